/** `hold` and `release` through the socket: what is asked, what is said, how it ends. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../src/cli/program.ts';
import { type HoldDeps, type HoldRequest, holdPod } from '../../src/operations/hold.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { agentView } from '../operations/view.ts';

interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function withHolds(
  deps: Partial<HoldDeps>,
  work: (run: (...args: string[]) => Promise<Said>, asked: readonly HoldRequest[], socketPath: string) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-hold-'));
  const socketPath = join(dir, 'podsched.sock');
  const asked: HoldRequest[] = [];
  const view = agentView({
    hold: (r) => {
      asked.push(r);
      return holdPod(r, {
        isWanted: (key) => key === 'Pod/default/web',
        hold: async () => true,
        release: async () => ({ hold: true, rollback: false, stillHeld: false }),
        ...deps,
      });
    },
  });
  const server = await startServer({ socketPath, agent: () => view, log: silentLog });
  const run = async (...args: string[]): Promise<Said> => {
    let [out, err] = ['', ''];
    const code = await runCommand(args, {
      print: { out: (t) => (out += t), err: (t) => (err += t), nowMs: () => 0, sleep: async () => {} },
      env: { PODSCHED_RUN_DIR: dir },
      stdin: async () => new Uint8Array(),
      console: fakeConsole,
      bytes: { isTerminal: false, write: async () => {} },
    });
    return { code, out, err };
  };
  try {
    await work(run, asked, socketPath);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

test('hold and release say what they did', () =>
  withHolds({}, async (run, asked) => {
    assert.deepEqual(await run('hold', 'web'), { code: 0, out: 'pod/web held\n', err: '' });
    assert.deepEqual(await run('release', 'pod/web', '-n', 'default'), { code: 0, out: 'pod/web released\n', err: '' });
    assert.deepEqual(asked, [
      { act: 'hold', namespace: 'default', pod: 'web' },
      { act: 'release', namespace: 'default', pod: 'web' },
    ]);
  }));

const rows: readonly (readonly [string, Partial<HoldDeps>, readonly string[], number, RegExp])[] = [
  ['no such pod', {}, ['hold', 'nobody'], 3, /^podsched: pod "nobody" not found in namespace "default"\n$/],
  ['no pod at all', {}, ['hold', 'configmap/web'], 2, /is no pod/],
  ['held already', { hold: async () => false }, ['hold', 'web'], 0, /^pod\/web was held already\n$/],
  ['not held', { release: async () => ({ hold: false, rollback: false, stillHeld: false }) }, ['release', 'web'], 0, /was not held/],
  ['rolled back', { release: async () => ({ hold: false, rollback: true, stillHeld: false }) }, ['release', 'web'], 0, /is tried again/],
  [
    'held by its annotation',
    { release: async () => ({ hold: true, rollback: false, stillHeld: true }) },
    ['release', 'web'],
    1,
    /the hold of pod "web" by command is gone, and it is held by its annotation podsched\.dev\/hold: take it out/,
  ],
  ['a full card', { hold: async () => Promise.reject(new Error('no space left')) }, ['hold', 'web'], 1, /no space left/],
];
for (const [what, deps, args, code, text] of rows) {
  test(`${args[0]}: ${what}`, () =>
    withHolds(deps, async (run) => {
      const said = await run(...args);
      assert.equal(said.code, code);
      assert.match(said.out + said.err, text);
    }));
}

test('the local API takes POST only, and a whole path', () =>
  withHolds({}, async (_, asked, socketPath) => {
    const ask = (method: string, path: string): Promise<number> =>
      new Promise((resolve, reject) => {
        request({ socketPath, method, path }, (r) => {
          r.resume();
          resolve(r.statusCode ?? 0);
        })
          .on('error', reject)
          .end();
      });
    assert.deepEqual(
      [await ask('GET', '/hold/default/web'), await ask('POST', '/hold/web'), await ask('POST', '/release/a/b/c')],
      [405, 400, 400],
    );
    assert.deepEqual(asked, []);
  }));
