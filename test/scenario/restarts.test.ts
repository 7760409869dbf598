/** A restart of the agent on the whole house: what was told of a quiet pod stands, and nobody reads anything else in between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SyncStatus } from '../../src/api/payloads.ts';
import { manifest, World } from './world.ts';

const names = ['a', 'b', 'c', 'd', 'e', 'f'];

for (const latencyMs of [1, 5, 40, 300]) {
  test(`a runtime that answers in ${latencyMs} ms: no quiet pod is told as waiting for a moment after a restart`, async () => {
    const world = new World({ latencyMs });
    for (const name of names) world.folder.files.set(`${name}.yaml`, manifest(name));
    await world.start();
    await world.advance(60);
    assert.deepEqual(
      names.map((n) => world.sync(n)?.reason),
      names.map(() => 'Ready'),
    );
    // a card takes its time: the runtime was listed, and has said that it is up, before the manifests are read
    const read = world.folder.read.bind(world.folder);
    world.folder.read = async () => {
      await world.clock.sleep(500);
      return await read();
    };
    const told: string[] = [];
    world.onTold.push((topic, payload) => {
      if (payload === undefined || !topic.includes('/sync/default/')) return;
      const { phase, reason, object } = JSON.parse(payload) as SyncStatus;
      if (phase !== 'Running' || reason !== 'Ready') told.push(`${object.name}: ${phase} ${reason}`);
    });
    for (let i = 0; i < 5; i++) {
      await world.restart();
      await world.advance(20);
    }
    assert.deepEqual(told, []);
  });
}
