import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { create, type DescMessage, toBinary } from '@bufbuild/protobuf';
import { RuntimeError, type RuntimeEvent } from '../../src/container/runtime.ts';
import { containerdEvent } from '../../src/cri/events.ts';
import { AnyContainerEventSchema, EnvelopeSchema, TaskExitSchema } from '../../src/cri/gen/containerd_pb.ts';
import { Settle, type Shown } from '../../src/cri/settle.ts';
import { FakeClock, settle as settled } from '../fakes/fakeClock.ts';
import { sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { pause, rig } from './rig.ts';

const code = (expected: RuntimeError['code']) => (e: unknown) => e instanceof RuntimeError && e.code === expected;

async function until(what: string, check: () => boolean): Promise<void> {
  const end = performance.now() + 20_000;
  while (!check()) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
    await pause(5);
  }
}

test('containerd\u2019s topics become events; the end of an exec is none', () => {
  const envelope = (topic: string, schema: DescMessage, fields: Record<string, unknown>) =>
    create(EnvelopeSchema, { topic, event: { value: toBinary(schema, create(schema, fields)) } });
  const c = { containerId: 'c' };
  const table: [ReturnType<typeof envelope>, RuntimeEvent['topic'] | undefined][] = [
    [envelope('/tasks/start', AnyContainerEventSchema, c), 'start'],
    [envelope('/tasks/oom', AnyContainerEventSchema, c), 'oom'],
    [envelope('/tasks/exit', TaskExitSchema, { ...c, id: 'c' }), 'exit'],
    [envelope('/tasks/exit', TaskExitSchema, { ...c, id: 'an-exec' }), undefined],
    [envelope('/containers/delete', AnyContainerEventSchema, c), 'delete'],
    [envelope('/tasks/paused', AnyContainerEventSchema, c), undefined],
  ];
  for (const [e, topic] of table) assert.deepEqual(containerdEvent(e), topic === undefined ? undefined : { containerId: 'c', topic });
});

function settling() {
  const clock = new FakeClock();
  const told: string[] = [];
  const stop = new AbortController();
  const world: { now: Shown | Error; asked: number } = { now: 'running', asked: 0 };
  const shown = async () => {
    world.asked += 1;
    if (world.now instanceof Error) throw world.now;
    return world.now;
  };
  const settle = new Settle({ clock, shown, emit: (e) => told.push(`${e.topic} ${e.containerId}`), signal: stop.signal });
  return { clock, told, stop, world, settle };
}

test('an exit is told when the runtime shows it, once, however often it came', async () => {
  const { clock, told, world, settle } = settling();
  settle.tell({ containerId: 'c', topic: 'exit' });
  settle.tell({ containerId: 'c', topic: 'exit' });
  await clock.advance(30);
  assert.deepEqual(told, []);
  world.now = 'ended';
  await clock.advance(50);
  assert.deepEqual(told, ['exit c']);
  assert.equal(settle.size, 0);
  assert.equal(clock.sleeping, 0);
});

test('what is gone has ended; a start waits until it is no longer only created', async () => {
  const { clock, told, world, settle } = settling();
  world.now = 'missing';
  settle.tell({ containerId: 'gone', topic: 'exit' });
  await settled();
  assert.deepEqual(told, ['exit gone']);
  world.now = 'created';
  settle.tell({ containerId: 'c', topic: 'start' });
  await clock.advance(10);
  assert.equal(told.length, 1);
  world.now = 'running';
  await clock.advance(20);
  assert.deepEqual(told, ['exit gone', 'start c']);
});

test('an event is told in any case: after two seconds, when inspection fails, and at once where there is nothing to wait for', async () => {
  const { clock, told, world, settle } = settling();
  settle.tell({ containerId: 'slow', topic: 'exit' });
  settle.tell({ containerId: 'o', topic: 'oom' });
  settle.tell({ containerId: 'd', topic: 'delete' });
  assert.deepEqual(told, ['oom o', 'delete d']);
  await clock.advance(4_000);
  assert.deepEqual(told, ['oom o', 'delete d', 'exit slow']);
  assert.ok(world.asked < 20, `${world.asked} inspections`);
  world.now = new RuntimeError('unavailable', 'away');
  settle.tell({ containerId: 'c', topic: 'exit' });
  await settled();
  assert.deepEqual(told.at(-1), 'exit c');
});

test('what shows only later, on a machine worked to its limit, is told once more; what never shows is left to the next list', async () => {
  const { clock, told, world, settle } = settling();
  settle.tell({ containerId: 'late', topic: 'exit' });
  await clock.advance(12_000);
  assert.deepEqual(told, ['exit late']);
  world.now = 'ended';
  await clock.advance(6_000);
  assert.deepEqual(told, ['exit late', 'exit late']);
  world.now = 'running';
  settle.tell({ containerId: 'never', topic: 'exit' });
  await clock.advance(70_000);
  assert.equal(settle.size, 0);
  assert.equal(clock.sleeping, 0);
  assert.ok(world.asked < 50, `${world.asked} inspections`);
});

test('after the end of the stream nothing is told', async () => {
  const { clock, told, stop, settle } = settling();
  settle.tell({ containerId: 'c', topic: 'exit' });
  await settled();
  stop.abort();
  await clock.advance(5_000);
  assert.deepEqual(told, []);
  assert.equal(settle.size, 0);
});

test('a runtime without any event service is unimplemented, and one that is away unavailable', async (t) => {
  const { runtime, server } = rig(t, { events: 'none' });
  const { signal } = new AbortController();
  let ready = 0;
  const read = () =>
    runtime.events(
      () => undefined,
      () => ready++,
      signal,
    );
  await assert.rejects(read(), code('unavailable'));
  await server.start();
  await assert.rejects(read(), code('unimplemented'));
  assert.equal(ready, 0);
});

test('a stream ends with an error when the server dies, and is read anew', async (t) => {
  const { runtime, server, fake } = rig(t);
  const stop = new AbortController();
  const told: RuntimeEvent[] = [];
  for (let i = 0; i < 3; i++) {
    await server.start();
    let ready = false;
    const stream = runtime.events(
      (e) => told.push(e),
      () => {
        ready = true;
      },
      stop.signal,
    );
    const broken = assert.rejects(stream, code('unavailable'));
    await until('ready', () => ready);
    const id = await fake.runSandbox(sandboxConfig(`pod${i}`), '');
    await until('told', () => told.some((e) => e.containerId === id && e.topic === 'start'));
    server.stop();
    await broken;
  }
});

// containerd writes each question for a container that it does not have into its log, which is on the card
test('a sandbox is asked for as a container once at most, whoever made it', async (t) => {
  const { runtime, server, fake } = rig(t);
  await server.start();
  const listed = await fake.runSandbox(sandboxConfig('listed'), '');
  const stop = new AbortController();
  const told: string[] = [];
  let ready = false;
  const stream = runtime.events(
    (e) => told.push(`${e.topic} ${e.containerId}`),
    () => {
      ready = true;
    },
    stop.signal,
  );
  await until('ready', () => ready);
  await runtime.listSandboxes();
  const found = await fake.runSandbox(sandboxConfig('found'), '');
  await until('its start is told', () => told.includes(`start ${found}`));
  for (const id of [listed, found]) {
    await fake.stopSandbox(id);
    fake.tellEvent('exit', id);
    await until('its end is told', () => told.includes(`exit ${id}`));
  }
  stop.abort();
  await stream;
  const asked = server.requests
    .filter((r) => r.method === 'ContainerStatus')
    .map((r) => (r.message as { containerId: string }).containerId);
  assert.deepEqual(asked, [found]);
});

// J4: heap growth on long streams, and on streams opened again and again
test('ten thousand events and two hundred broken streams leave no heap, no listener and no stream behind', async (t) => {
  const { runtime, server, fake } = rig(t);
  await server.start();
  const id = await fake.runSandbox(sandboxConfig('web'), '');
  const stop = new AbortController();
  let told = 0;
  const round = async (events: number) => {
    let ready = false;
    const before = told;
    const stream = runtime.events(
      () => told++,
      () => {
        ready = true;
      },
      stop.signal,
    );
    const broken = assert.rejects(stream, RuntimeError);
    await until('ready', () => ready);
    // an exec's exit comes with each exit, and is not told; an oom is told at once
    for (let i = 0; i < events; i++) fake.tellEvent('oom', id);
    await until('all were told', () => told - before >= events);
    server.breakStreams();
    await broken;
  };
  const heap = async () => {
    await pause(50);
    globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  };
  for (let i = 0; i < 40; i++) await round(50);
  server.requests.length = 0;
  fake.calls.length = 0;
  const warm = await heap();
  for (let i = 0; i < 200; i++) await round(50);
  server.requests.length = 0;
  fake.calls.length = 0;
  const grown = (await heap()) - warm;
  assert.equal(told, 240 * 50);
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
  await until('no stream is open', () => server.streams === 0 && fake.listeners === 0);
  // loose: without a forced collection the heap breathes by some megabytes
  assert.ok(grown < 24 * 2 ** 20, `heap grew by ${Math.round(grown / 1024)} KiB`);
});
