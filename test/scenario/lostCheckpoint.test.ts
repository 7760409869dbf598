/** The stored state cannot be read after a power cut: what files wanted is judged by the folder, what topics wanted waits for the broker. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Afar, podJson } from './afar.ts';
import { manifest } from './world.ts';

const runs = (a: Afar): string[] => a.world.runtime.running();
const told = (a: Afar, name: string): string | undefined => {
  const sync = a.world.kubelet.status.sync().find((s) => s.object.name === name);
  return sync && `${sync.phase} ${sync.reason}`;
};

/** Runs two pods of topics and two of files; then all that was accepted is damaged, one file is gone, and no broker answers. */
async function damaged(): Promise<Afar> {
  const a = new Afar();
  for (const name of ['m0', 'm1']) a.keep(a.topic(name), podJson(name));
  for (const name of ['web', 'old']) a.world.folder.files.set(`${name}.yaml`, manifest(name));
  await a.world.start();
  await a.world.advance(20);
  assert.deepEqual(runs(a), ['m0/app', 'm1/app', 'old/app', 'web/app']);
  a.broker.down = true;
  a.broker.cut();
  a.world.kill();
  a.world.folder.files.delete('old.yaml');
  for (const key of [...a.world.stateStore.entries.keys()]) if (key.startsWith('objects/')) a.world.stateStore.entries.set(key, '{"torn');
  await a.world.start();
  await a.world.advance(200);
  return a;
}

test('files are asked at once: what no file names ends; what came by topics runs on, and is told so', async () => {
  const a = await damaged();
  assert.deepEqual(runs(a), ['m0/app', 'm1/app', 'web/app']);
  for (const name of ['m0', 'm1']) assert.equal(told(a, name), 'Waiting CheckpointLost');
  assert.equal(told(a, 'old'), undefined);
});

test('when the broker is back, what it names goes on under its own instance, and what it does not name ends', async () => {
  const a = await damaged();
  const sandboxes = () => [...a.world.runtime.sandboxes.values()].flatMap(({ config }) => (config.name === 'm0' ? config.uid : []));
  const uids = sandboxes();
  a.broker.retained.delete(a.topic('m1'));
  const starts = a.world.runtime.deeds.filter((d) => d === 'startContainer').length;
  a.broker.down = false;
  await a.world.advance(300);
  assert.deepEqual(runs(a), ['m0/app', 'web/app']);
  assert.deepEqual(sandboxes(), uids);
  assert.equal(a.world.runtime.deeds.filter((d) => d === 'startContainer').length, starts, 'nothing was started for it');
  assert.deepEqual([told(a, 'm0'), told(a, 'm1')], ['Running Ready', undefined]);
});

test('resync --forget-lost does not wait for the broker', async () => {
  const a = await damaged();
  await Promise.all([a.world.kubelet.config.forgetLost(), a.world.advance(1)]);
  await a.world.advance(120);
  assert.deepEqual(runs(a), ['web/app']);
  assert.deepEqual([told(a, 'm0'), told(a, 'm1')], [undefined, undefined]);
});
