/** The routes that change a pod or the node: methods, words, and that nothing is done for a wrong question. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentView } from '../../src/operations/agentView.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { agentView } from '../operations/view.ts';
import { until } from '../until.ts';

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}
type Ask = (method: string, path: string) => Promise<Answer>;

async function serving(view: AgentView | undefined, work: (ask: Ask, socketPath: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-acts-'));
  const socketPath = join(dir, 'podsched.sock');
  const server = await startServer({ socketPath, agent: () => view, log: silentLog });
  const ask: Ask = (method, path) =>
    new Promise((resolve, reject) => {
      request({ socketPath, path, method, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text === '' ? {} : JSON.parse(text) }));
      })
        .on('error', reject)
        .end();
    });
  try {
    await work(ask, socketPath);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

function recorder(): { readonly asked: unknown[]; readonly view: AgentView } {
  const asked: unknown[] = [];
  const done = async (r: unknown) => {
    asked.push(r);
    return { ok: true as const, value: { message: 'done' } };
  };
  return { asked, view: agentView({ act: done, nodeAct: done }) };
}

test('each act is asked of the view with the words of its path', async () => {
  const { asked, view } = recorder();
  await serving(view, async (ask) => {
    for (const path of [
      '/restart/default/web?container=app',
      '/restart/default/web?new=1',
      '/stop/default/web',
      '/start/default/web',
      '/hold/default/web',
      '/release/default/web',
      '/rollback/default/web',
      '/resync?forgetLost=1',
      '/identify?seconds=3',
      '/decommission?confirm=pi-07',
    ]) {
      const answer = await ask('POST', path);
      assert.deepEqual([answer.status, answer.body.message], [200, 'done'], path);
    }
  });
  const pod = { namespace: 'default', pod: 'web' };
  assert.deepEqual(asked, [
    { act: 'restart', ...pod, container: 'app' },
    { act: 'restart', ...pod, new: true },
    ...['stop', 'start', 'hold', 'release', 'rollback'].map((act) => ({ act, ...pod })),
    { act: 'resync', forgetLost: true },
    { act: 'identify', seconds: 3 },
    { act: 'decommission', confirm: 'pi-07' },
  ]);
});

test('a wrong method, a half path and a word too many are refused, and nothing is done', async () => {
  const { asked, view } = recorder();
  await serving(view, async (ask) => {
    const rows: readonly (readonly [string, string, number])[] = [
      ['GET', '/stop/default/web', 405],
      ['DELETE', '/resync', 405],
      ['POST', '/bundle', 405],
      ['POST', '/stop/web', 400],
      ['POST', '/stop/a/b/c', 400],
      ['POST', '/stop/a/%ff', 400],
      ['POST', '/stop/a/b?all=1', 400],
      ['POST', '/restart/a/b?new=yes', 400],
      ['POST', '/resync?force=1', 400],
      ['POST', '/stop', 404],
    ];
    for (const [method, path, status] of rows) assert.equal((await ask(method, path)).status, status, `${method} ${path}`);
  });
  assert.deepEqual(asked, []);
});

test('while the agent starts there is nobody to ask, and a full card is told as it is', async () => {
  await serving(undefined, async (ask) => {
    assert.equal((await ask('POST', '/stop/default/web')).status, 503);
    assert.equal((await ask('GET', '/bundle')).status, 503);
  });
  await serving(agentView({ act: async () => Promise.reject(new Error('no space left')) }), async (ask) => {
    const answer = await ask('POST', '/stop/default/web');
    assert.deepEqual([answer.status, /no space left/.test(String(answer.body.message))], [500, true]);
  });
});

test('the bundle is read, and ends with its asker', async () => {
  let state = 'not asked';
  const bundle: AgentView['bundle'] = (signal) =>
    new Promise((_, reject) => {
      state = 'asked';
      signal.addEventListener('abort', () => {
        state = 'given up';
        reject(signal.reason);
      });
    });
  await serving(agentView(), async (ask) => {
    const answer = await ask('GET', '/bundle');
    assert.deepEqual([answer.status, answer.body.kind], [200, 'SupportBundle']);
  });
  await serving(agentView({ bundle }), async (_, socketPath) => {
    const asking = request({ socketPath, path: '/bundle', agent: false });
    asking.on('error', () => {}); // it is ended below
    asking.end();
    await until('the bundle is asked for', () => state === 'asked');
    asking.destroy();
    await until('the bundle is given up', () => state === 'given up');
  });
});

test('images are pinned and unpinned by name', async () => {
  const pins: unknown[] = [];
  const images = {
    pin: async (name: string, pinned: boolean) => {
      pins.push([name, pinned]);
      if (name === 'full') throw new Error('no space left');
      return { ok: true as const, value: { message: 'pinned' } };
    },
  } as unknown as NonNullable<AgentView['images']>;
  await serving(agentView({ images }), async (ask) => {
    const pinned = await ask('POST', '/images/pin?image=r%2Fa%3A1');
    assert.deepEqual([pinned.status, pinned.body.kind, pinned.body.message], [200, 'ImagePin', 'pinned']);
    assert.equal((await ask('POST', '/images/unpin?image=r%2Fa%3A1')).status, 200);
    assert.equal((await ask('POST', '/images/pin')).status, 400);
    assert.equal((await ask('GET', '/images/pin?image=a')).status, 405);
    const full = await ask('POST', '/images/pin?image=full');
    assert.deepEqual([full.status, /could not be stored: no space left/.test(String(full.body.message))], [500, true]);
  });
  assert.deepEqual(pins, [
    ['r/a:1', true],
    ['r/a:1', false],
    ['full', true],
  ]);
});
