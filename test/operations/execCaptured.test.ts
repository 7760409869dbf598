/** A command whose output is given whole: which container, what is refused, what is cut. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ExecResult, RuntimeError } from '../../src/container/runtime.ts';
import type { Container, ContainerId } from '../../src/container/words.ts';
import { type ExecRequest, execCaptured } from '../../src/operations/execCaptured.ts';
import { cs, ended, running, told, waiting } from './view.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const pod = told('web', {
  status: { containerStatuses: [cs('app', { state: running }), cs('side', { state: waiting('CrashLoopBackOff') })] },
});
const done = told('done', { status: { phase: 'Succeeded', containerStatuses: [cs('app', { state: ended(0) })] } });
const record = (name: string, attempt: number, state: Container['state']): Container =>
  ({ id: `${name}-${attempt}` as ContainerId, name, attempt, state }) as Container;

function rig(result: ExecResult | Error = { exitCode: 0, stdout: bytes('out'), stderr: bytes('err') }) {
  const ran: unknown[] = [];
  const deps = {
    pods: () => [pod, done],
    runtime: {
      listContainers: async () => [record('app', 0, 'exited'), record('app', 1, 'running'), record('side', 3, 'exited')],
      execSync: async (...args: unknown[]) => {
        ran.push(args.slice(0, 3));
        if (result instanceof Error) throw result;
        return result;
      },
    },
  };
  const request: ExecRequest = { namespace: 'default', pod: 'web', command: ['ls'], timeoutSeconds: 10, limitBytes: 100 };
  return { ran, run: (o: Partial<ExecRequest> = {}) => execCaptured({ ...request, ...o }, deps) };
}

test('the running container of that name is asked, by its vector and no shell', async () => {
  const { ran, run } = rig();
  assert.deepEqual(await run({ container: 'app', command: ['sh', '-c', 'a b'] }), {
    ok: true,
    value: { exitCode: 0, stdout: bytes('out'), stderr: bytes('err'), truncated: false },
  });
  assert.equal((await run()).ok, true);
  assert.deepEqual(ran, [
    ['app-1', ['sh', '-c', 'a b'], 10],
    ['app-1', ['ls'], 10],
  ]);
});

test('output beyond the limit is cut and said so; the errors have their place first', async () => {
  const { run } = rig({ exitCode: 3, stdout: bytes('o'.repeat(50)), stderr: bytes('e'.repeat(8)) });
  const answer = await run({ limitBytes: 20 });
  assert.ok(answer.ok);
  const { exitCode, stdout, stderr, truncated } = answer.value;
  assert.deepEqual([exitCode, stdout.length, stderr.length, truncated], [3, 12, 8, true]);
  const small = await run({ limitBytes: 4 });
  assert.deepEqual(small.ok && [small.value.stdout.length, small.value.stderr.length, small.value.truncated], [0, 4, true]);
  assert.equal((await run({ limitBytes: 58 })).ok, true);
});

test('what cannot be run is refused with why, before the runtime is asked', async () => {
  const { ran, run } = rig();
  const rows: readonly (readonly [string, Partial<ExecRequest>, number, RegExp])[] = [
    ['no command', { command: [] }, 400, /name of a program/],
    ['an empty one', { command: ['', 'a'] }, 400, /name of a program/],
    ['a NUL', { command: ['a\0b'] }, 400, /NUL/],
    ['too many words', { command: Array.from({ length: 1001 }, () => 'a') }, 400, /at most 1000 words/],
    ['too long', { command: ['a', 'b'.repeat(70_000)] }, 400, /65536 bytes/],
    ['no time', { timeoutSeconds: 0 }, 400, /timeoutSeconds/],
    ['half a second', { timeoutSeconds: 0.5 }, 400, /timeoutSeconds/],
    ['a day', { timeoutSeconds: 86_400 }, 400, /timeoutSeconds/],
    ['no room', { limitBytes: 0 }, 400, /limitBytes/],
    ['much room', { limitBytes: 2 ** 30 }, 400, /limitBytes/],
    ['no pod', { pod: 'cam' }, 404, /pod "cam" not found/],
    ['no container', { container: 'x' }, 404, /x/],
    ['one that does not run', { container: 'side' }, 409, /"side" does not run \(CrashLoopBackOff\)/],
    ['a pod that has ended', { pod: 'done' }, 409, /completed pod; current phase is Succeeded/],
  ];
  for (const [what, request, code, message] of rows) {
    const answer = await run(request);
    assert.ok(!answer.ok, what);
    assert.equal(answer.code, code, `${what}: ${answer.message}`);
    assert.match(answer.message, message, what);
  }
  assert.deepEqual(ran, []);
});

test('what the runtime says of the command is an answer; a runtime that is away is none', async () => {
  const late = await rig(new RuntimeError('deadlineExceeded', 'too late')).run();
  assert.match(late.ok ? '' : late.message, /did not end within 10 s, and was killed/);
  const gone = await rig(new RuntimeError('notFound', 'no such container')).run();
  assert.match(gone.ok ? '' : gone.message, /ended meanwhile/);
  const none = await rig(new RuntimeError('unknown', 'exec: "nope": executable file not found')).run();
  assert.match(none.ok ? '' : none.message, /executable file not found/);
  await assert.rejects(rig(new RuntimeError('unavailable', 'no socket')).run(), /no socket/);
});
