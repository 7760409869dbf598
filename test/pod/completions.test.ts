import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Completions } from '../../src/pod/completions.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { desiredPod } from './desiredPod.ts';

const job = desiredPod('job', 'u1', { spec: { restartPolicy: 'Never' } });
const status = { phase: 'Succeeded', reason: 'Completed' } as const;

async function loaded(store: MemoryStore): Promise<Completions> {
  const completions = new Completions({ log: silentLog, store });
  await completions.load();
  return completions;
}

test('a completion is on the card when it was recorded, and is found after a restart', async () => {
  const store = new MemoryStore();
  const before = await loaded(store);
  assert.equal(before.find(job.key, job.workHash), undefined);
  await before.record(job, 'Succeeded', { app: 0 }, status);
  const now = await loaded(store);
  assert.deepEqual(now.find(job.key, job.workHash), {
    key: job.key,
    uid: job.uid,
    workHash: job.workHash,
    phase: 'Succeeded',
    exitCodes: { app: 0 },
    status,
  });
  assert.deepEqual(now.keys(), [job.key]);
});

test('other work under the same key has not run, and a forgotten record is gone for good', async () => {
  const store = new MemoryStore();
  const completions = await loaded(store);
  await completions.record(job, 'Failed', { app: 3 }, { phase: 'Failed' });
  assert.equal(completions.find(job.key, '1:other'), undefined);
  assert.equal(completions.find(desiredPod('job2', 'u2').key, job.workHash), undefined);
  await completions.forget(job.key);
  await completions.forget(job.key);
  assert.equal(completions.find(job.key, job.workHash), undefined);
  assert.equal((await loaded(store)).find(job.key, job.workHash), undefined);
});

test('forgotten while it is on its way to the card, a record does not come back', async () => {
  const store = new MemoryStore();
  let stored = () => {};
  const put = store.put.bind(store);
  store.put = async (key, value) => {
    await put(key, value);
    await new Promise<void>((resolve) => {
      stored = resolve;
    });
  };
  const completions = await loaded(store);
  const recording = completions.record(job, 'Succeeded', { app: 0 }, status);
  await new Promise((resolve) => setImmediate(resolve));
  await completions.forget(job.key);
  stored();
  await recording;
  assert.equal(completions.find(job.key, job.workHash), undefined);
  assert.equal((await loaded(store)).find(job.key, job.workHash), undefined);
});

test('a card that cannot be listed never stops the agent', async () => {
  const store = new MemoryStore();
  store.list = async () => {
    throw new Error('EIO');
  };
  assert.deepEqual((await loaded(store)).keys(), []);
});

test('a record of another hash scheme counts for this work, and is rewritten in the scheme of today', async () => {
  const store = new MemoryStore();
  const completions = await loaded(store);
  await completions.record({ ...job, workHash: '0:old' }, 'Succeeded', { app: 0 }, status);
  assert.equal(completions.find(job.key, job.workHash)?.phase, 'Succeeded');
  assert.equal(await completions.adopt(job.key, job.workHash), true);
  assert.equal(await completions.adopt(job.key, job.workHash), false);
  assert.equal(completions.find(job.key, '1:other'), undefined, 'from now on it is compared');
  assert.equal((await loaded(store)).find(job.key, job.workHash)?.workHash, job.workHash);
});

test('a torn or foreign entry costs only itself', async () => {
  const store = new MemoryStore();
  await (await loaded(store)).record(job, 'Succeeded', { app: 0 }, status);
  store.entries.set('completions/Pod/default/torn', '{"key":');
  store.entries.set('completions/Pod/default/odd', '{"key":7}');
  const completions = await loaded(store);
  assert.deepEqual(completions.keys(), [job.key]);
});

test('a record that could not be stored is no record', async () => {
  const store = new MemoryStore();
  const completions = await loaded(store);
  store.put = () => Promise.reject(new Error('read-only file system'));
  await assert.rejects(completions.record(job, 'Succeeded', { app: 0 }, status), /read-only/);
  assert.equal(completions.find(job.key, job.workHash), undefined);
});
