import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { EphemeralContainer } from '../../src/api/v1.ts';
import { runCommand } from '../../src/cli/program.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import type { DebugRequest } from '../../src/operations/debug.ts';
import type { StreamRequest } from '../../src/operations/streamRequest.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { type FakeConsole, fakeConsole } from '../fakes/fakeConsole.ts';
import { exited, type FakeProcess, failed, startFakeStreaming, success } from '../fakes/fakeStreaming.ts';
import { agentView, cs, ended, nowMs, running, told, waiting } from '../operations/view.ts';
import { until } from '../until.ts';

interface Result {
  readonly code: number;
  readonly err: string;
  readonly console: FakeConsole;
}

interface Stage {
  /** What the agent was asked for. */
  readonly asked: StreamRequest[];
  run(args: readonly string[], console?: FakeConsole, onSleep?: (times: number) => void): Promise<Result>;
}

/** An agent whose sessions are those of a fake runtime. */
async function onStage(o: Partial<AgentView>, process: (p: FakeProcess) => void, work: (s: Stage) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-exec-'));
  const streaming = await startFakeStreaming(process);
  const asked: StreamRequest[] = [];
  const view = agentView({
    pods: () => [told('web'), several],
    stream: async (request) => {
      asked.push(request);
      const { stdin, stdout, stderr, tty } = request;
      const query = new URLSearchParams(Object.entries({ stdin, stdout, stderr, tty }).map(([k, v]): [string, string] => [k, String(v)]));
      return { ok: true, value: { host: '127.0.0.1', port: streaming.port, path: `/exec/token?${query}` } };
    },
    ...o,
  });
  const server = await startServer({ socketPath: join(dir, 'podsched.sock'), agent: () => view, log: silentLog });
  try {
    await work({
      asked,
      run: async (args, console = fakeConsole(), onSleep = () => {}) => {
        let err = '';
        let slept = 0;
        const code = await runCommand(args, {
          print: {
            out: () => {},
            err: (text) => {
              err += text;
            },
            nowMs: () => nowMs,
            sleep: async () => onSleep(++slept),
          },
          env: { PODSCHED_RUN_DIR: dir },
          stdin: async () => new Uint8Array(),
          bytes: console.output,
          console: () => console,
        });
        return { code, err, console };
      },
    });
  } finally {
    await server.close();
    await streaming.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

const several = told('several', {
  metadata: { namespace: 'kitchen' },
  spec: { initContainers: [{ name: 'first', image: 'img' }] },
  status: { containerStatuses: [cs('a', { state: running }), cs('b', { state: running })] },
});
const annotated = (name: string) =>
  told('annotated', {
    metadata: { annotations: { 'kubectl.kubernetes.io/default-container': name } },
    status: { containerStatuses: [cs('a', { state: running }), cs('b', { state: running })] },
  });

const says = (p: FakeProcess): void => {
  void p.write('stdout', 'out\x1b[1m\n');
  void p.write('stderr', 'err\n');
  p.end(exited(7));
};

test('the command reaches the agent word by word, its outputs come apart as they are, and its exit code is ours', () =>
  onStage({}, says, async ({ run, asked }) => {
    const command = ['sh', '-c', 'echo "$HOME"; a=1 && b', '', '-x', '--', 'é \n%&+'];
    const { code, err, console } = await run(['exec', 'web', '--', ...command]);
    assert.deepEqual([code, err], [7, 'command terminated with exit code 7\n']);
    assert.deepEqual([console.out(), console.err()], ['out\x1b[1m\n', 'err\n']);
    const { kind, namespace, pod, container } = asked[0] ?? assert.fail();
    assert.deepEqual([kind, namespace, pod, container], ['exec', 'default', 'web', 'app']);
    assert.deepEqual(asked[0]?.command, command);
    assert.deepEqual([asked[0]?.stdin, asked[0]?.stdout, asked[0]?.stderr, asked[0]?.tty], [false, true, true, false]);
    assert.ok(!console.wasRaw());
  }));

test('what is piped in goes in, and its end too', () =>
  onStage(
    {},
    (p) =>
      void p.stdinEnded.then(async () => {
        await p.write('stdout', p.stdin().toUpperCase());
        p.end(success);
      }),
    async ({ run }) => {
      const { code, err, console } = await run(['exec', '-i', 'pod/web', '--', 'tr', 'a-z', 'A-Z'], fakeConsole({ input: 'some text' }));
      assert.deepEqual([code, err, console.out()], [0, '', 'SOME TEXT']);
      assert.ok(!console.isRead());
    },
  ));

test('with -it the terminal is raw as long as the session, and its size is told at once and when it changes', async () => {
  const console = fakeConsole({ terminal: true });
  let sizes: readonly string[] = [];
  const rawWhileTyping: boolean[] = [];
  await onStage(
    {},
    (p) => {
      p.onStdin((typed) => {
        rawWhileTyping.push(console.isRaw());
        if (typed === 'resize\r') {
          console.resize(100, 40);
          void console.type('exit\r');
        } else {
          sizes = p.sizes;
          p.end(exited(3));
        }
      });
      // the other end reads now; the session may still be about to
      void until('somebody reads', () => console.isRaw() && console.isRead()).then(() => console.type('resize\r'));
    },
    async ({ run, asked }) => {
      const { code } = await run(['exec', '-it', 'web', '--', 'sh'], console);
      assert.equal(code, 3);
      assert.deepEqual(sizes, ['{"Width":80,"Height":24}', '{"Width":100,"Height":40}']);
      assert.deepEqual(rawWhileTyping, [true, true]);
      assert.deepEqual([asked[0]?.tty, asked[0]?.stdin, asked[0]?.stderr], [true, true, false]);
      assert.ok(!console.isRaw() && !console.isRead());
    },
  );
});

test('a terminal without a terminal is said and done without; -t without -i is no terminal', () =>
  onStage({}, says, async ({ run, asked }) => {
    const piped = await run(['exec', '-it', 'web', '--', 'sh'], fakeConsole({ input: '' }));
    assert.equal(
      piped.err,
      'Unable to use a TTY - input is not a terminal or the right kind of file\ncommand terminated with exit code 7\n',
    );
    assert.ok(!piped.console.wasRaw());
    await run(['exec', '-t', 'web', '--', 'sh'], fakeConsole({ terminal: true }));
    assert.deepEqual(
      asked.map((a) => [a.stdin, a.tty, a.stderr]),
      [
        [true, false, true],
        [false, false, true],
      ],
    );
  }));

test('which container is meant: the named one, that of the annotation, the first one, and then it is said', async () => {
  await onStage({}, says, async ({ run, asked }) => {
    assert.match(
      (await run(['exec', 'several', '-n', 'kitchen', '--', 'ls'])).err,
      /^Defaulted container "a" out of: a, b, first \(init\)\n/,
    );
    assert.equal((await run(['exec', 'several', '-n', 'kitchen', '-c', 'b', '--', 'ls'])).err, 'command terminated with exit code 7\n');
    assert.deepEqual(
      asked.map((a) => a.container),
      ['a', 'b'],
    );
  });
  await onStage({ pods: () => [annotated('b')] }, says, async ({ run, asked }) => {
    assert.equal((await run(['exec', 'annotated', '--', 'ls'])).err, 'command terminated with exit code 7\n');
    assert.equal(asked[0]?.container, 'b');
  });
  await onStage({ pods: () => [annotated('c')] }, says, async ({ run, asked }) => {
    assert.match(
      (await run(['exec', 'annotated', '--', 'ls'])).err,
      /^Default container name "c" not found in pod annotated\nDefaulted container "a"/,
    );
    assert.equal(asked[0]?.container, 'a');
  });
});

test('a mistake is one line, and its exit code tells of what kind it is', async () => {
  const done = told('done', { status: { phase: 'Succeeded' } });
  const refuse = async () => ({ ok: false, code: 404, message: 'container not found ("app")' }) as const;
  await onStage({ pods: () => [told('web'), done, several], stream: refuse }, says, async ({ run }) => {
    for (const [args, code, message] of [
      [['web', '--', 'ls'], 3, /^podsched: container not found \("app"\)\n$/],
      [['wob', '--', 'ls'], 3, /pod "wob" not found/],
      [['web', '-c', 'x', '--', 'ls'], 3, /container x is not valid for pod web/],
      [['done', '--', 'ls'], 1, /cannot exec into a container in a completed pod; current phase is Succeeded/],
      [['web'], 2, /which command\? podsched exec POD -- COMMAND/],
      [['cm/web', '--', 'ls'], 2, /is no pod/],
    ] as const) {
      const got = await run(['exec', ...args]);
      assert.equal(got.code, code, args.join(' '));
      assert.match(got.err, message);
    }
  });
});

test('why a command did not start is told, and a session that breaks off is no success', async () => {
  await onStage(
    {},
    (p) => p.end(failed('exec: "nope": executable file not found in $PATH')),
    async ({ run }) => {
      const { code, err } = await run(['exec', 'web', '--', 'nope']);
      assert.deepEqual([code, err], [1, 'podsched: exec: "nope": executable file not found in $PATH\n']);
    },
  );
  const console = fakeConsole({ terminal: true });
  await onStage(
    {},
    (p) => void p.write('stdout', 'half').then(() => p.socket.destroy()),
    async ({ run }) => {
      const { code, err } = await run(['exec', '-it', 'web', '--', 'sh'], console);
      assert.equal(code, 1);
      assert.match(err, /^podsched: the session ended before the command did/);
      assert.ok(console.wasRaw() && !console.isRaw());
    },
  );
});

/** An agent that takes debug containers; the test says what becomes of them. */
function debugged(first: Parameters<typeof cs>[1]) {
  const taken: DebugRequest[] = [];
  const container = () => taken[0]?.container as EphemeralContainer;
  const state = { now: first };
  const view: Partial<AgentView> = {
    pods: () => [told('web', { status: taken.length > 0 ? { ephemeralContainerStatuses: [cs(container().name, state.now)] } : {} })],
    debug: async (request) => {
      taken.push(request);
      return { ok: true, value: request.container as EphemeralContainer };
    },
    logs: async () => ({
      ok: true,
      value: (async function* () {
        yield Buffer.from('what it said\n');
      })(),
    }),
  };
  return { view, taken, container, state };
}

test('debug adds a container with a name of its own and does not wait for it', async () => {
  const { view, taken, container } = debugged(undefined);
  await onStage(view, says, async ({ run, asked }) => {
    const { code, err } = await run([
      'debug',
      'web',
      '--image',
      'busybox:1',
      '--env',
      'A=b=c',
      '--env',
      'E=',
      '--target',
      'app',
      '--',
      'sleep',
      '9',
    ]);
    assert.deepEqual([code, err], [0, `Defaulting debug container name to ${container().name}.\n`]);
    assert.match(container().name, /^debugger-[a-z0-9]{5}$/);
    assert.deepEqual(container(), {
      name: container().name,
      image: 'busybox:1',
      command: ['sleep', '9'],
      env: [
        { name: 'A', value: 'b=c' },
        { name: 'E', value: '' },
      ],
      targetContainerName: 'app',
    });
    assert.deepEqual([taken[0]?.namespace, taken[0]?.pod, asked.length], ['default', 'web', 0]);
  });
});

test('with -it one is in it as soon as it runs; its exit code is ours', async () => {
  const { view, container, state } = debugged({ state: waiting('ContainerCreating') });
  const console = fakeConsole({ terminal: true });
  await onStage(
    view,
    (p) => {
      p.onStdin(() => {
        state.now = { state: ended(4) };
        p.end(success);
      });
      void until('somebody reads', () => console.isRaw() && console.isRead()).then(() => console.type('exit\r'));
    },
    async ({ run, asked }) => {
      const { code, err } = await run(['debug', '-it', 'web', '--image', 'busybox:1', '-c', 'look'], console, (times) => {
        if (times === 3) state.now = { state: running };
      });
      assert.equal(code, 4);
      assert.match(err, /^If you don't see a command prompt, try pressing enter.\n/);
      assert.deepEqual(container(), { name: 'look', image: 'busybox:1', stdin: true, tty: true });
      assert.deepEqual([asked[0]?.kind, asked[0]?.container, asked[0]?.tty], ['attach', 'look', true]);
    },
  );
});

test('what ended before one could be in it is shown by its log; a pipe that feeds it has an end', async () => {
  const { view, container } = debugged({ state: ended(0) });
  await onStage(view, says, async ({ run, asked }) => {
    const { code, console } = await run(['debug', '-i', 'web', '--image', 'busybox:1', '--', 'echo'], fakeConsole({ input: '' }));
    assert.deepEqual([code, console.out(), asked.length, container().stdinOnce], [0, 'what it said\n', 0, true]);
  });
});

test('why a debug container cannot start, and why it is not taken, is told', async () => {
  const { view } = debugged({ state: waiting('ErrImagePull', 'no such image') });
  await onStage(view, says, async ({ run }) => {
    const { code, err } = await run(['debug', '-i', 'web', '--image', 'nowhere/x:1', '-c', 'look'], fakeConsole({ input: '' }));
    assert.deepEqual([code, err], [1, 'podsched: container look cannot start: ErrImagePull: no such image\n']);
  });
  const refuse = async () => ({ ok: false, code: 422, message: 'spec.ephemeralContainers[0].name: taken' }) as const;
  await onStage({ debug: refuse }, says, async ({ run }) => {
    assert.deepEqual((await run(['debug', 'web', '--image', 'x', '-c', 'app'])).code, 1);
    assert.match((await run(['debug', 'web', '--image', 'x', '-c', 'app'])).err, /^podsched: spec.ephemeralContainers\[0\].name: taken\n$/);
    for (const args of [['web'], ['web', '--image', 'x', '--env', 'SECRET'], ['cm/web', '--image', 'x']]) {
      const { code, err } = await run(['debug', ...args]);
      assert.equal(code, 2, args.join(' '));
      assert.doesNotMatch(err, /SECRET/);
    }
  });
});
