import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { RuntimeError, type StreamOptions } from '../../src/container/runtime.ts';
import type { Container, ContainerId } from '../../src/container/words.ts';
import { addEphemeral } from '../../src/operations/debug.ts';
import { openStream } from '../../src/operations/stream.ts';
import { parseStreamRequest, type StreamRequest } from '../../src/operations/streamRequest.ts';
import { desiredPod } from '../pod/desiredPod.ts';
import { cs, ended, running, told, waiting } from './view.ts';

const request = (path: string, query = ''): StreamRequest => {
  const parsed = parseStreamRequest(path, query);
  assert.ok(parsed.ok);
  return parsed.value;
};
const target = { host: '127.0.0.1', port: 1, path: '/exec/x' };
const record = (name: string, state: Container['state'], attempt: number, id: string): Container =>
  ({ id: id as ContainerId, name, state, attempt }) as Container;

const web = told('web', {
  spec: {
    containers: [
      { name: 'app', image: 'x' },
      { name: 'shell', image: 'x', stdin: true, tty: true },
      { name: 'crash', image: 'x' },
    ],
    ephemeralContainers: [{ name: 'debugger', image: 'x', stdin: true }],
  },
  status: {
    containerStatuses: [
      cs('app', { state: running }),
      cs('shell', { state: running }),
      cs('crash', { state: waiting('CrashLoopBackOff') }),
      cs('over', { state: ended(0, 'Completed') }),
    ],
  },
});

function setUp(o: { readonly fails?: Error } = {}) {
  const calls: unknown[] = [];
  const answer = async (...call: unknown[]) => {
    calls.push(call);
    if (o.fails) throw o.fails;
    return target;
  };
  const deps = {
    pods: () => [web],
    runtime: {
      listContainers: async (uid?: PodUid) => {
        assert.equal(uid, 'uid-web');
        return [
          record('app', 'exited', 0, 'old'),
          record('app', 'running', 2, 'new'),
          record('app', 'running', 1, 'older'),
          record('shell', 'running', 0, 'sh'),
          record('debugger', 'running', 0, 'dbg'),
          record('crash', 'exited', 3, 'dead'),
        ];
      },
      execTarget: (id: ContainerId, command: readonly string[], options: StreamOptions) => answer('exec', id, command, options),
      attachTarget: (id: ContainerId, options: StreamOptions) => answer('attach', id, options),
    },
  };
  return { calls, open: (r: StreamRequest) => openStream(r, deps) };
}

test('the running container of the name is meant, and what was asked for is what the runtime is asked', async () => {
  const { calls, open } = setUp();
  assert.deepEqual(await open(request('/exec/default/web/app', 'command=sh&command=-c&command=a%20b&command=')), {
    ok: true,
    value: target,
  });
  assert.deepEqual(calls, [['exec', 'new', ['sh', '-c', 'a b', ''], { stdin: false, stdout: true, stderr: true, tty: false }]]);
  await open(request('/exec/default/web/app', 'command=sh&input=1&output=1&error=0&tty=1'));
  assert.deepEqual(calls[1], ['exec', 'new', ['sh'], { stdin: true, stdout: true, stderr: false, tty: true }]);
});

test('one attaches as the container was made', async () => {
  const { calls, open } = setUp();
  assert.ok((await open(request('/attach/default/web/shell', 'stdin=1&tty=1'))).ok);
  assert.ok((await open(request('/attach/default/web/debugger', 'stdin=1'))).ok);
  assert.ok((await open(request('/attach/default/web/app'))).ok);
  assert.deepEqual(calls, [
    ['attach', 'sh', { stdin: true, stdout: true, stderr: false, tty: true }],
    ['attach', 'dbg', { stdin: true, stdout: true, stderr: true, tty: false }],
    ['attach', 'new', { stdin: false, stdout: true, stderr: true, tty: false }],
  ]);
  for (const [path, query, message] of [
    ['/attach/default/web/shell', 'stdin=1', /tty: expected true/],
    ['/attach/default/web/app', 'tty=1', /the container has none/],
    ['/attach/default/web/app', 'stdin=1', /takes no input/],
  ] as const) {
    const got = await open(request(path, query));
    assert.ok(!got.ok && got.code === 400);
    assert.match(got.message, message);
  }
});

test('what is not there or does not run is 404 in the kubelet’s words', async () => {
  const { open } = setUp();
  const message = async (path: string): Promise<string> => {
    const got = await open(request(path, 'command=ls'));
    assert.ok(!got.ok && got.code === 404);
    return got.message;
  };
  assert.equal(await message('/exec/default/wob/app'), 'pod "wob" not found in namespace "default"');
  assert.equal(await message('/exec/kitchen/web/app'), 'pod "web" not found in namespace "kitchen"');
  assert.equal(await message('/exec/default/web/nope'), 'container not found ("nope")');
  assert.equal(await message('/exec/default/web/crash'), 'container not found ("crash"): it does not run (CrashLoopBackOff)');
  assert.equal(await message('/exec/default/web/over'), 'container not found ("over"): it does not run (Completed)');
});

test('one that ends meanwhile is not found; a runtime that does not answer is an error', async () => {
  const gone = await setUp({ fails: new RuntimeError('notFound', 'no such container') }).open(
    request('/exec/default/web/app', 'command=ls'),
  );
  assert.deepEqual(gone, { ok: false, code: 404, message: 'container not found ("app")' });
  await assert.rejects(
    setUp({ fails: new RuntimeError('unavailable', 'away') }).open(request('/exec/default/web/app', 'command=ls')),
    /away/,
  );
});

test('an ephemeral container is judged against the pod as it is wanted, and added once', async () => {
  const wanted = desiredPod('web', 'uid-web');
  const added: unknown[] = [];
  const add = (container: unknown, o: { pod?: string; desired?: boolean; phase?: 'Failed' } = {}) =>
    addEphemeral(
      { namespace: 'default', pod: o.pod ?? 'web', container },
      {
        pods: () => [told('web', o.phase && { status: { phase: o.phase } })],
        desired: () => (o.desired === false ? undefined : wanted),
        add: async (...call) => void added.push(call),
      },
    );
  const got = await add({ name: 'd', image: 'x:1' });
  assert.ok(got.ok);
  assert.deepEqual(added, [[wanted.uid, got.value]]);
  for (const [container, o, code, message] of [
    [{ name: 'd', image: 'x' }, { pod: 'wob' }, 404, /pod "wob" not found/],
    [{ name: 'd', image: 'x' }, { desired: false }, 409, /is being removed/],
    [{ name: 'd', image: 'x' }, { phase: 'Failed' }, 409, /has ended; current phase is Failed/],
    [{ name: 'd' }, {}, 422, /^spec\.ephemeralContainers\[0\]\.image: /],
    [{ name: 'd', image: 'x', env: [{ name: 'A', value: { secret: 1 } }] }, {}, 422, /a value that is not shown|env\[0\]\.value/],
  ] as const) {
    const refused = await add(container, o);
    assert.ok(!refused.ok);
    assert.equal(refused.code, code);
    assert.match(refused.message, message);
    assert.doesNotMatch(refused.message, /secret/);
  }
  assert.equal(added.length, 1);
});
