import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fingerprint, KnownIds } from '../../src/remote/known.ts';
import type { ReplyPart } from '../../src/remote/words.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

const done: ReplyPart[] = [{ status: 'ok', message: 'done', chunk: { seq: 0, last: true } }];

function bed(store = new MemoryStore(), clock = new FakeClock(), bootId = 'boot-1') {
  let writes = 0;
  const put = store.put.bind(store);
  store.put = (key, value) => {
    writes++;
    return put(key, value);
  };
  return { known: new KnownIds({ clock, log: silentLog, store, bootId }), store, clock, writes: () => writes };
}

test('an id is new, then it runs, then it is answered for ten minutes', async () => {
  const { known, clock } = bed();
  await known.load();
  assert.deepEqual(known.look('a', 'p'), { is: 'new' });
  await known.begin('a', 'p', false);
  assert.deepEqual(known.look('a', 'p'), { is: 'running' });
  known.finish('a', done);
  assert.deepEqual(known.look('a', 'p'), { is: 'answered', parts: done });
  assert.deepEqual(known.look('a', 'q'), { is: 'another' });
  await clock.advance(10 * 60_000 - 1);
  assert.equal(known.look('a', 'p').is, 'answered');
  await clock.advance(1);
  assert.deepEqual(known.look('a', 'p'), { is: 'new' });
});

test('one that runs is known however long it takes', async () => {
  const { known, clock } = bed();
  await known.begin('a', 'p', true);
  await clock.advance(60 * 60_000);
  assert.equal(known.look('a', 'p').is, 'running');
});

test('only what changes something is written: before it is done, and how it ended', async () => {
  const { known, writes } = bed();
  await known.begin('read', 'p', false);
  known.finish('read', done);
  await known.settled();
  assert.equal(writes(), 0);
  await known.begin('deed', 'p', true);
  assert.equal(writes(), 1);
  known.finish('deed', done);
  await known.settled();
  assert.equal(writes(), 2);
});

test('an agent that is started anew knows what was done, and says so of what was only begun', async () => {
  const first = bed();
  await first.known.begin('done', 'p', true);
  first.known.finish('done', [{ status: 'error', reason: 'Conflict', message: 'no' }]);
  await first.known.begin('begun', 'p', true);
  await first.known.settled();

  const { known } = bed(first.store, first.clock);
  await known.load();
  assert.deepEqual(known.look('done', 'p'), { is: 'answered', parts: [{ status: 'error', reason: 'Conflict', message: 'no' }] });
  const begun = known.look('begun', 'p');
  assert.ok(begun.is === 'answered' && begun.parts[0]?.reason === 'AgentRestarted');
  assert.equal(known.look('done', 'other').is, 'another');
  await first.clock.advance(10 * 60_000);
  assert.equal(known.look('done', 'p').is, 'new');
});

test('after a reboot nothing is known, whatever lies there', async () => {
  const first = bed();
  await first.known.begin('a', 'p', true);
  await first.known.settled();
  const second = bed(first.store, new FakeClock(), 'boot-2');
  await second.known.load();
  assert.equal(second.known.look('a', 'p').is, 'new');
  for (const hostile of [7, null, [], { bootID: 'boot-1', ids: 7 }, { bootID: 'boot-1', ids: [{ id: 7 }] }, 'x']) {
    const store = new MemoryStore();
    await store.put('commands', hostile);
    await bed(store).known.load();
  }
  const broken = new MemoryStore();
  broken.entries.set('commands', '{');
  await bed(broken).known.load();
});

test('a thousand ids are not a thousand answers in memory: what changed something stays longest, and what runs always', async () => {
  const { known } = bed();
  await known.begin('runs', 'p', false);
  await known.begin('deed', 'p', true);
  known.finish('deed', done);
  for (let i = 0; i < 1000; i++) {
    await known.begin(`id${i}`, 'p', false);
    known.finish(`id${i}`, done);
  }
  assert.equal(known.look('runs', 'p').is, 'running');
  assert.equal(known.look('deed', 'p').is, 'answered');
  assert.equal(known.look('id999', 'p').is, 'answered');
  assert.equal(known.look('id0', 'p').is, 'new');
  const answered = Array.from({ length: 1000 }, (_, i) => known.look(`id${i}`, 'p').is).filter((is) => is === 'answered').length;
  assert.ok(answered < 260, String(answered));
});

test('large answers give way by their bytes', async () => {
  const { known } = bed();
  const large = (): ReplyPart[] => [{ status: 'ok', data: 'x'.repeat(60 * 1024), chunk: { seq: 0, last: true } }];
  for (let i = 0; i < 20; i++) {
    await known.begin(`id${i}`, 'p', false);
    known.finish(`id${i}`, large());
  }
  const kept = Array.from({ length: 20 }, (_, i) => known.look(`id${i}`, 'p').is).filter((is) => is === 'answered').length;
  assert.ok(kept > 4 && kept < 10, String(kept));
});

test('an answer too large to keep: a question may be asked again, a deed is known to be done', async () => {
  const { known } = bed();
  const large: ReplyPart[] = [{ status: 'ok', exitCode: 2, data: 'x'.repeat(100 * 1024), chunk: { seq: 3, last: true } }];
  await known.begin('question', 'p', false);
  known.finish('question', large);
  assert.equal(known.look('question', 'p').is, 'new');
  await known.begin('deed', 'p', true);
  known.finish('deed', large);
  assert.deepEqual(known.look('deed', 'p'), {
    is: 'answered',
    parts: [{ status: 'ok', exitCode: 2, chunk: { seq: 0, last: true }, truncated: 'the data was not kept' }],
  });
});

test('a signed id is spent once in a session, and anew in the next', () => {
  const { known } = bed();
  assert.equal(known.spendSigned('a', 1), 'fresh');
  assert.equal(known.spendSigned('a', 1), 'spent');
  assert.equal(known.spendSigned('a', 2), 'fresh');
  for (let i = 1; i < 4096; i++) assert.equal(known.spendSigned(`id${i}`, 2), 'fresh');
  assert.equal(known.spendSigned('one too many', 2), 'full');
});

test('a run directory that cannot be written holds up nothing', async () => {
  const store = new MemoryStore();
  store.put = async () => {
    throw new Error('ENOSPC');
  };
  const { known } = bed(store);
  await known.begin('a', 'p', true);
  known.finish('a', done);
  await known.settled();
  assert.equal(known.look('a', 'p').is, 'answered');
});

test('two commands are the same when verb, target and arguments are, in whatever order they were written', () => {
  const print = (verb: 'restart' | 'stop', pod: string, args: Record<string, boolean | number>) =>
    fingerprint({ verb, target: { pod }, args });
  assert.equal(print('restart', 'a', { new: true, x: 1 }), print('restart', 'a', { x: 1, new: true }));
  assert.notEqual(print('restart', 'a', {}), print('stop', 'a', {}));
  assert.notEqual(print('restart', 'a', {}), print('restart', 'b', {}));
  assert.notEqual(print('restart', 'a', { new: true }), print('restart', 'a', { new: false }));
});
