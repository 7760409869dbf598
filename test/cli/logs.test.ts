import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../src/cli/program.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import type { LogRequest } from '../../src/operations/logRequest.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { agentView, cs, nowMs, sync, told } from '../operations/view.ts';

interface Result {
  readonly code: number;
  readonly out: Buffer;
  readonly err: string;
}
type Run = (...args: string[]) => Promise<Result>;

async function withAgent(view: AgentView, isTerminal: boolean, work: (run: Run) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cli-'));
  const server = await startServer({ socketPath: join(dir, 'podsched.sock'), agent: () => view, log: silentLog });
  try {
    await work(async (...args) => {
      const out: Uint8Array[] = [];
      let err = '';
      const write = async (bytes: Uint8Array): Promise<void> => void out.push(bytes);
      const print = { out: (t: string) => void out.push(Buffer.from(t)), nowMs: () => nowMs, sleep: async () => {} };
      const code = await runCommand(args, {
        print: {
          ...print,
          err: (text) => {
            err += text;
          },
        },
        env: { PODSCHED_RUN_DIR: dir },
        stdin: async () => new Uint8Array(),
        bytes: { isTerminal, write },
        console: fakeConsole,
      });
      return { code, out: Buffer.concat(out), err };
    });
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

const two = told('two', {
  metadata: { namespace: 'kitchen' },
  spec: { initContainers: [{ name: 'first', image: 'img' }] },
  status: { containerStatuses: [cs('a'), cs('b')] },
});
const asked: LogRequest[] = [];
const viewOf = (bytes: Uint8Array, o: Partial<AgentView> = {}): AgentView =>
  agentView({
    pods: () => [told('web'), two],
    logs: async (request) => {
      asked.push(request);
      return {
        ok: true,
        value: (async function* () {
          for (let i = 0; i < bytes.length; i += 3) yield bytes.subarray(i, i + 3);
        })(),
      };
    },
    ...o,
  });

const wild = Buffer.from([0x61, 0xff, 0x00, 0x1b, 0x5b, 0x32, 0x4a, 0x0d, 0x0a]);

test('logs prints the bytes as they are into a pipe', () =>
  withAgent(viewOf(wild), false, async (run) => {
    const { code, out, err } = await run('logs', 'web');
    assert.deepEqual([code, err], [0, '']);
    assert.deepEqual(out, wild);
  }));

test('on a terminal what would steer it is left out; colours and whole characters stay, wherever the chunks end', () =>
  withAgent(viewOf(Buffer.from('\x1b[31mré\x1b[0md\t\u{1f600}\x1b[2J\x07\x1b]0;x\x07\r\n')), true, async (run) => {
    assert.equal((await run('logs', 'web')).out.toString(), '\x1b[31mré\x1b[0md\t\u{1f600}\ufffd[2J\ufffd\ufffd]0;x\ufffd\n');
  }));

test('every option reaches the agent', () =>
  withAgent(viewOf(wild), false, async (run) => {
    asked.length = 0;
    const all = ['-c', 'b', '-f', '-p', '--tail', '20', '--since', '1m30s', '--timestamps', '--limit-bytes', '9'];
    assert.equal((await run('logs', 'pod/two', '-n', 'kitchen', ...all)).code, 0);
    assert.deepEqual(asked[0], {
      namespace: 'kitchen',
      pod: 'two',
      container: 'b',
      follow: true,
      previous: true,
      timestamps: true,
      tailLines: 20,
      sinceSeconds: 90,
      limitBytes: 9,
    });
    assert.equal((await run('logs', 'web', '--tail=-1', '--since-time', '2026-01-01T00:00:00Z')).code, 0);
    assert.deepEqual([asked[1]?.tailLines, asked[1]?.sinceNanos, asked[1]?.container], [undefined, 1_767_225_600_000_000_000n, 'app']);
  }));

test('a mistake is one line, and its exit code tells of what kind it is', () =>
  withAgent(viewOf(wild, { sync: () => [sync('new', { phase: 'Waiting', reason: 'Accepted' })] }), false, async (run) => {
    for (const [args, code, message] of [
      [['wob'], 3, /pod "wob" not found/],
      [['web', '-c', 'x'], 3, /container x is not valid for pod web, choose one of: \[app\]/],
      [['two', '-n', 'kitchen'], 2, /must be specified for pod two, choose one of: \[a b\] or one of the init containers: \[first\]/],
      [['new'], 1, /has not run yet \(Accepted\); podsched why new/],
      [['cm/web'], 2, /is no pod/],
      [['web', '--tail', 'x'], 2, /--tail: expected a whole number/],
      [['web', '--limit-bytes', '0'], 2, /--limit-bytes: expected a whole number from 1 on/],
      [['web', '--since', '5'], 2, /--since: expected a duration/],
      [['web', '--since', '5s', '--since-time', 'x'], 2, /only one of them/],
      [['web', '--since-time', 'soon'], 1, /sinceTime: expected a time/],
    ] as const) {
      const { code: got, err, out } = await run('logs', ...args);
      assert.deepEqual([got, out.length], [code, 0], `${args.join(' ')}: ${err}`);
      assert.match(err, message);
    }
  }));

test('what the agent refuses is told in its words, and a log that breaks off is no success', async () => {
  const refuse = agentView({ logs: async () => ({ ok: false, code: 400, message: 'container "app" is waiting to start: ErrImagePull' }) });
  await withAgent(refuse, false, async (run) => {
    const { code, err } = await run('logs', 'web');
    assert.deepEqual([code, err], [1, 'podsched: container "app" is waiting to start: ErrImagePull\n']);
  });
  const breaks = agentView({
    logs: async () => ({
      ok: true,
      value: (async function* () {
        yield Buffer.from('half');
        throw new Error('EIO');
      })(),
    }),
  });
  await withAgent(breaks, false, async (run) => {
    const { code, err, out } = await run('logs', 'web');
    assert.deepEqual([code, out.toString()], [4, 'half']);
    assert.match(err, /it ended the connection/);
  });
});
