import assert from 'node:assert/strict';
import { test } from 'node:test';
import { followEvents } from '../../src/pleg/follow.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

function rig(prepare: (runtime: FakeRuntime) => void = () => {}) {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  prepare(runtime);
  const said: string[] = [];
  const stop = new AbortController();
  const running = followEvents(
    {
      clock,
      log: silentLog,
      runtime,
      pleg: {
        onRuntimeEvent: (e) => said.push(`${e.topic} ${e.containerId}`),
        setEventsHealthy: (b) => said.push(b ? 'healthy' : 'not healthy'),
      },
      changed: (flows) => said.push(flows ? 'flows' : 'ended'),
    },
    stop.signal,
  );
  const opened = () => runtime.calls.filter((c) => c.method === 'events').length;
  const end = (): Promise<void> => {
    stop.abort();
    return running;
  };
  return { clock, runtime, said, opened, end };
}

test('events go to PLEG; a stream that breaks is said, and opened again after a second', async () => {
  const { clock, runtime, said, opened, end } = rig();
  await clock.advance(0);
  runtime.tellEvent('oom', 'c');
  await clock.advance(0);
  runtime.breakEvents();
  await clock.advance(999);
  assert.deepEqual(said, ['healthy', 'flows', 'oom c', 'not healthy', 'ended']);
  assert.equal(opened(), 1);
  await clock.advance(1);
  assert.equal(opened(), 2);
  assert.deepEqual(said.slice(5), ['healthy', 'flows']);
  assert.equal(runtime.listeners, 1);
  await end();
  assert.equal(runtime.listeners, 0);
});

test('a runtime without events is asked once a minute, for it may be upgraded', async () => {
  const { clock, runtime, said, opened, end } = rig((r) => {
    r.eventsImplemented = false;
  });
  await clock.advance(59_999);
  assert.equal(opened(), 1);
  assert.deepEqual(said, ['not healthy', 'ended']);
  runtime.eventsImplemented = true;
  await clock.advance(1);
  assert.equal(opened(), 2);
  assert.deepEqual(said.slice(2), ['healthy', 'flows']);
  await end();
});

test('a runtime that is away is asked every second, and stopping ends the pause', async () => {
  const { clock, said, opened, end } = rig((r) => r.setDown(true));
  await clock.advance(5_000);
  assert.equal(opened(), 6);
  assert.ok(!said.includes('healthy'));
  await end();
  assert.equal(clock.sleeping, 0);
});
