/** H5: an agent that grows says so and starts anew, before it is what the node is short of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownMemoryLimit, watchOwnMemory } from '../src/agentMemory.ts';
import { silentLog } from '../src/world/log.ts';
import { FakeClock } from './fakes/fakeClock.ts';

const mib = 2 ** 20;

function watch(limitBytes: number) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const agent = { rss: 0, looks: 0, told: [] as string[] };
  const rssBytes = (): number => {
    agent.looks++;
    return agent.rss;
  };
  const running = watchOwnMemory({ clock, log: silentLog, rssBytes, limitBytes, tooLarge: (m) => agent.told.push(m) }, stop.signal);
  return { clock, stop, agent, running };
}

test('H5: its limit is a quarter of a small board, and 192 MiB of a large one', () => {
  assert.deepEqual(
    [427, 512, 1024, 8192].map((n) => ownMemoryLimit(n * mib) / mib),
    [106.75, 128, 192, 192],
  );
});

test('H5: over the limit three minutes in a row it says so, once', async () => {
  const { clock, agent, running } = watch(100 * mib);
  agent.rss = 101 * mib;
  await clock.advance(120_000);
  assert.deepEqual(agent.told, []);
  await clock.advance(60_000);
  assert.deepEqual(agent.told, ['podsched has 101 MiB of memory, and may have 100: it starts anew, pods go on']);
  await clock.advance(600_000);
  assert.equal(agent.told.length, 1);
  await running;
});

test('what passes by itself is nothing to tell', async () => {
  const { clock, agent, stop, running } = watch(100 * mib);
  for (const rss of [101, 101, 100, 101, 101, 99]) {
    agent.rss = rss * mib;
    await clock.advance(60_000);
  }
  assert.deepEqual(agent.told, []);
  stop.abort();
  await running;
  assert.equal(clock.sleeping, 0);
});

test('a look that fails is reported, and the next one comes', async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let looks = 0;
  const rssBytes = (): number => {
    looks++;
    throw new Error('no /proc');
  };
  const running = watchOwnMemory({ clock, log: silentLog, rssBytes, limitBytes: 1, tooLarge: () => assert.fail('told') }, stop.signal);
  await clock.advance(180_000);
  stop.abort();
  await running;
  assert.ok(looks >= 3, `${looks}`);
});
