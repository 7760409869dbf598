import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { shared, systemGateFacts } from '../../src/gates/facts.ts';
import { systemMounter } from '../../src/volumes/mount.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

test('this machine answers: / is mounted, a folder of it is not; clock and network say yes or no and never reject', async () => {
  const facts = systemGateFacts(new FakeClock(), systemMounter.mountPoints);
  assert.equal(await facts.mounts.has('/'), true);
  assert.equal(await facts.mounts.has('/etc/passwd/none'), false);
  assert.equal(typeof (await facts.timeSynced()), 'boolean');
  const byHand = readFileSync('/proc/net/route', 'utf8')
    .split('\n')
    .some((line) => /^\S+\t00000000\t\S+\t0003\t/.test(line));
  if (byHand) assert.equal(await facts.networkUp(), true);
  else assert.equal(typeof (await facts.networkUp()), 'boolean');
});

test('many who ask at once share one answer, and the next one is asked for anew', async () => {
  let asked = 0;
  let answer: (yes: boolean) => void = () => {};
  const ask = shared(() => {
    asked++;
    return new Promise<boolean>((resolve) => {
      answer = resolve;
    });
  });
  const first = [ask(), ask(), ask()];
  assert.equal(asked, 1);
  answer(true);
  assert.deepEqual(await Promise.all(first), [true, true, true]);
  const second = ask();
  assert.equal(asked, 2);
  answer(false);
  assert.equal(await second, false);
});
