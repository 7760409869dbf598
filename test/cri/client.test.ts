import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId, SandboxId } from '../../src/container/words.ts';
import { plainText } from '../../src/cri/errors.ts';
import { type CriRuntime, shownConfig } from '../../src/cri/runtime.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { until } from '../until.ts';
import { pause, rig } from './rig.ts';

const code = (expected: RuntimeError['code'], text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof RuntimeError, String(e));
  assert.equal(e.code, expected, e.message);
  assert.match(e.message, text);
  return true;
};
const works = async (runtime: CriRuntime) => assert.equal((await runtime.version()).runtimeName, 'containerd');

// J2: server absent at first call; repeated restarts
test('a socket that is absent, stale or a directory fails at once, and the first call after the server came works', async (t) => {
  const { runtime, server, socket } = rig(t);
  const began = performance.now();
  await assert.rejects(runtime.listSandboxes(), code('unavailable', /^connect ENOENT .*cri\.sock$/));
  writeFileSync(socket, '');
  await assert.rejects(runtime.listSandboxes(), code('unavailable', /ECONNREFUSED/));
  rmSync(socket);
  mkdirSync(socket);
  await assert.rejects(runtime.listSandboxes(), code('unavailable', /ECONNREFUSED/));
  rmdirSync(socket);
  assert.ok(performance.now() - began < 15_000, 'not by its deadline');
  await server.start();
  await works(runtime);
});

test('a socket that may not be opened says so, and works when it may', { skip: process.getuid?.() !== 0 && 'needs root' }, async (t) => {
  const { runtime, server } = rig(t);
  await server.start();
  process.seteuid?.(65534);
  try {
    await assert.rejects(runtime.listSandboxes(), code('unavailable', /EACCES/));
  } finally {
    process.seteuid?.(0);
  }
  await works(runtime);
});

test('the server restarts ten times: the call while it is away fails, the next one works', async (t) => {
  const { runtime, server } = rig(t);
  for (let i = 0; i < 10; i++) {
    await server.start();
    await works(runtime);
    server.stop();
    await assert.rejects(runtime.version(), code('unavailable', /./));
  }
});

test('many failures before do not delay the first call that can work', async (t) => {
  const { runtime, server } = rig(t);
  for (let i = 0; i < 100; i++) await assert.rejects(runtime.version(), code('unavailable', /ENOENT/));
  await server.start();
  await works(runtime);
});

test('calls under way when the server dies end, each of them', async (t) => {
  const { runtime, server, fake } = rig(t);
  await server.start();
  fake.hang('listSandboxes');
  const calls = Array.from({ length: 5 }, () => runtime.listSandboxes());
  const ended = Promise.all(calls.map((c) => assert.rejects(c, code('unavailable', /./))));
  await pause(50);
  server.stop();
  await ended;
});

test('a socket that is taken but never answered ends by the deadline, and holds up nothing afterwards', async (t) => {
  const clock = new FakeClock();
  const { runtime, server, socket } = rig(t, { requestTimeoutMs: 200, clock });
  const sockets: Socket[] = [];
  const deaf = createServer((s) => sockets.push(s)).listen(socket);
  await once(deaf, 'listening');
  const asked = assert.rejects(runtime.version(), code('deadlineExceeded', /Version: no answer in 0\.2 s/));
  await until('the socket is taken', () => sockets.length > 0);
  await clock.advance(200);
  await asked;
  for (const s of sockets) s.destroy();
  deaf.close();
  await once(deaf, 'close');
  await server.start();
  await works(runtime);
});

test('one call that hangs holds up no other', async (t) => {
  const { runtime, server, fake } = rig(t);
  await server.start();
  const release = fake.hang('sandboxStatus');
  const id = await runtime.runSandbox(sandboxConfig('web'), '');
  const hung = runtime.sandboxStatus(id);
  assert.equal((await runtime.listSandboxes()).length, 1);
  release();
  assert.equal((await hung).id, id);
});

test('each kind of call has its own deadline, on the monotonic clock', async (t) => {
  const clock = new FakeClock();
  const { runtime, server, fake } = rig(t, { clock });
  await server.start();
  const pod = sandboxConfig('web');
  const container = 'c' as ContainerId;
  const table: [call: () => Promise<unknown>, method: Parameters<typeof fake.hang>[0], seconds: number][] = [
    [() => runtime.version(), 'version', 10],
    [() => runtime.status(), 'status', 10],
    [() => runtime.listSandboxes(), 'listSandboxes', 30],
    [() => runtime.listContainers(), 'listContainers', 30],
    [() => runtime.containerStatus(container), 'containerStatus', 30],
    [() => runtime.images.imageStatus('x'), 'imageStatus', 30],
    [() => runtime.startContainer(container), 'startContainer', 120],
    [() => runtime.createContainer('s' as SandboxId, containerConfig(pod, 'a'), pod), 'createContainer', 120],
    [() => runtime.removeSandbox('s' as SandboxId), 'removeSandbox', 120],
    [() => runtime.runSandbox(pod, ''), 'runSandbox', 240],
    [() => runtime.stopContainer(container, 30), 'stopContainer', 150],
    [() => runtime.images.pullImage('x'), 'pullImage', 7200],
  ];
  for (const [call, method, seconds] of table) {
    const release = fake.hang(method);
    const calls = fake.calls.length;
    let ended = false;
    const answer = assert.rejects(call(), code('deadlineExceeded', /no answer in/), method).finally(() => {
      ended = true;
    });
    while (fake.calls.length === calls) await pause(5);
    await clock.advance(seconds * 1000 - 1);
    await pause(10);
    assert.equal(ended, false, `${method} ended early`);
    await clock.advance(1);
    await answer;
    release();
  }
  assert.equal(clock.sleeping, 0);
});

test('a pull ends when it is no longer wanted', async (t) => {
  const { runtime, server, fake } = rig(t);
  await server.start();
  fake.hang('pullImage');
  const stop = new AbortController();
  const pull = runtime.images.pullImage('localhost/busybox:1', { signal: stop.signal });
  setTimeout(() => stop.abort(new Error('the pod is gone')), 30);
  await assert.rejects(pull, /the pod is gone/);
});

// J1: a Unix-socket channel that does not come back after idling. Ours never idles; here it is made to.
test('a call after a long idle time works, also where the channel went idle', async (t) => {
  const { runtime, server, fake } = rig(t, { channelOptions: { 'grpc.client_idle_timeout_ms': 1000 } });
  await server.start();
  await works(runtime);
  await pause(2_600);
  await works(runtime);
  assert.equal(fake.calls.length, 2);
});

test('containerd that listens but is not up yet counts as away', async (t) => {
  const { runtime, server } = rig(t);
  await server.start();
  server.notReady = 'server is not initialized yet';
  await assert.rejects(runtime.listContainers(), code('unavailable', /^server is not initialized yet$/));
  server.notReady = undefined;
  await runtime.listContainers();
});

test('the text of an error is the runtime\u2019s own', () => {
  const table = [
    ['rpc error: code = Unknown desc = failed to pull: rpc error: code = NotFound desc = x: not found', 'failed to pull: x: not found'],
    ['No connection established. Last error: Error: connect ENOENT /run/c.sock. Resolution note: ', 'connect ENOENT /run/c.sock'],
    ['name "a_b" is reserved for "c"', 'name "a_b" is reserved for "c"'],
  ] as const;
  for (const [raw, plain] of table) assert.equal(plainText(raw), plain);
});

test('a URL in a message lets nobody in: no name, no password, no signature', () => {
  const table = [
    [
      'failed open: failed to do request: Get "http://user:canary@127.0.0.1:1/blob?sig=canary": dial tcp 127.0.0.1:1: connect: connection refused',
      'failed open: failed to do request: Get "http://127.0.0.1:1/blob?…": dial tcp 127.0.0.1:1: connect: connection refused',
    ],
    [
      'unexpected status code https://cdn.example/x?a=b&sig=canary: 403 Forbidden',
      'unexpected status code https://cdn.example/x?…: 403 Forbidden',
    ],
    ['(see HTTPS://u:canary@cdn.example?x=canary).', '(see HTTPS://cdn.example?…).'],
    ['https://r.example/v2/a/b@sha256:ab: 404', 'https://r.example/v2/a/b@sha256:ab: 404'],
    ['is r.example/a@sha256:ab there? no', 'is r.example/a@sha256:ab there? no'],
  ] as const;
  for (const [raw, plain] of table) assert.equal(plainText(raw), plain);
  const began = performance.now();
  for (const long of ['http://', 'http://a?', 'http://a?.', 'http://a@']) plainText(long.repeat(100_000));
  assert.ok(performance.now() - began < 20_000, 'no text takes long');
});

test('after close no call goes out', async (t) => {
  const { runtime, server, fake } = rig(t);
  await server.start();
  runtime.close();
  await assert.rejects(runtime.version(), code('unavailable', /closed/));
  assert.equal(fake.calls.length, 0);
});

test('the cgroup driver comes from RuntimeConfig where the runtime has it, else from its configuration', async (t) => {
  for (const runtimeConfig of [true, false]) {
    const { runtime, server, fake } = rig(t, { runtimeConfig });
    await server.start();
    for (const driver of ['systemd', 'cgroupfs', undefined] as const) {
      fake.driver = driver;
      assert.equal(await runtime.cgroupDriver(), driver);
    }
  }
});

test('the sandbox image comes from the configuration that containerd 1.x shows; containerd 2 does not say it', async (t) => {
  const old = rig(t, { runtimeConfig: false });
  await old.server.start();
  old.fake.pauseImage = 'podsched.dev/pause:1';
  assert.equal(await old.runtime.sandboxImage(), 'podsched.dev/pause:1');
  const newer = rig(t, { runtimeConfig: true });
  await newer.server.start();
  assert.equal(await newer.runtime.sandboxImage(), undefined);
});

test('what a runtime shows of its configuration may be anything', () => {
  const table = [
    ['{"sandboxImage":"registry.k8s.io/pause:3.6"}', { sandboxImage: 'registry.k8s.io/pause:3.6' }],
    ['{"sandboxImage":"a:1","containerd":{"snapshotter":"native"}}', { sandboxImage: 'a:1', snapshotter: 'native' }],
    ['{"sandboxImage":"","containerd":null}', {}],
    ['{"sandboxImage":7,"containerd":{"snapshotter":[]}}', {}],
    ['null', {}],
    ['not json', {}],
    [undefined, {}],
  ] as const;
  for (const [config, shown] of table) assert.deepEqual(shownConfig(config), shown, config);
});

test('the lists of 50 pods are one request each, and cost less than 50 lists of one', async (t) => {
  const one = rig(t);
  const fifty = rig(t);
  const cpu = async ({ runtime, server, fake }: typeof one, pods: number) => {
    await server.start();
    for (let i = 0; i < pods; i++) {
      const pod = sandboxConfig(`pod${i}`, { annotations: { 'podsched.dev/pod-hash': `1:${'a'.repeat(64)}` } });
      const id = await fake.runSandbox(pod, '');
      await fake.createContainer(id, containerConfig(pod, 'main', { annotations: { ports: 'x'.repeat(300) } }), pod);
    }
    const list = async () => assert.equal((await runtime.listSandboxes()).length, (await runtime.listContainers()).length);
    for (let i = 0; i < 10; i++) await list();
    const calls = server.requests.length;
    const before = process.cpuUsage();
    for (let i = 0; i < 15; i++) await list();
    const { user, system } = process.cpuUsage(before);
    assert.equal(server.requests.length - calls, 30);
    return user + system;
  };
  const ofOne = await cpu(one, 1);
  const ofFifty = await cpu(fifty, 50);
  assert.ok(ofFifty < 50 * ofOne, `50 pods: ${ofFifty} µs, one pod: ${ofOne} µs`);
});
