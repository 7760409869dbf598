import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAbort, orAbort } from '../../src/async/abort.ts';

test('what comes first counts: the work, or the signal', async () => {
  const stop = new AbortController();
  assert.equal(await orAbort(Promise.resolve(7), stop.signal), 7);
  await assert.rejects(orAbort(Promise.reject(new Error('broken')), stop.signal), /broken/);
  const waiting = orAbort(new Promise(() => {}), stop.signal);
  stop.abort();
  await assert.rejects(waiting, isAbort);
});

test('after an abort nobody hears the work any more, not even its failure', async () => {
  const stop = new AbortController();
  stop.abort();
  await assert.rejects(orAbort(Promise.reject(new Error('late')), stop.signal), isAbort);
  assert.equal(isAbort(new Error('late')), false);
});
