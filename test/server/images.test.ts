import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentView } from '../../src/operations/agentView.ts';
import type { ImagesView } from '../../src/operations/images.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { agentView } from '../operations/view.ts';

const images: ImagesView = {
  list: async () => [{ id: 'sha256:1', tags: ['r/a:1'], digests: [], sizeBytes: 5, usedBy: [], pinned: [] }],
  prune: async (dryRun) => ({ ok: true, value: { dryRun, removed: [], failed: [], freedBytes: 0, offline: false } }),
  pull: async (image) => ({ ok: true, value: { image, id: 'sha256:2' } }),
  import: async (path) => ({ ok: true, value: { images: [path], problems: [] } }),
  pin: async (image) => ({ ok: true, value: { message: image } }),
};

async function serving(view: AgentView | undefined, work: (socketPath: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-images-'));
  const socketPath = join(dir, 'podsched.sock');
  const server = await startServer({ socketPath, agent: () => view, log: silentLog });
  try {
    await work(socketPath);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

const ask = (socketPath: string, path: string, method = 'GET') =>
  new Promise<{ status: number; allow: string | undefined; body: Record<string, unknown> }>((resolve, reject) => {
    const r = request({ socketPath, path, method, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, allow: response.headers.allow, body: text === '' ? {} : JSON.parse(text) }),
      );
    });
    r.on('error', reject);
    r.end();
  });

test('each path answers with what the view says', () =>
  serving(agentView({ images }), async (socket) => {
    const list = await ask(socket, '/images');
    assert.deepEqual([list.status, list.body.kind, (list.body.items as unknown[]).length], [200, 'ImageList', 1]);
    const dry = await ask(socket, '/images/prune?dryRun=1', 'POST');
    assert.deepEqual([dry.status, dry.body.kind, dry.body.dryRun], [200, 'ImagePrune', true]);
    assert.equal((await ask(socket, '/images/prune', 'POST')).body.dryRun, false);
    const pulled = await ask(socket, '/images/pull?image=r.example%2Fa%3A1', 'POST');
    assert.deepEqual([pulled.status, pulled.body.kind, pulled.body.image], [200, 'ImagePull', 'r.example/a:1']);
    const imported = await ask(socket, '/images/import?path=%2Ftmp%2Fa%20b.tar', 'POST');
    assert.deepEqual([imported.status, imported.body.kind, imported.body.images], [200, 'ImageImport', ['/tmp/a b.tar']]);
  }));

test('a wrong question is refused, and nothing is done for it', () => {
  const done: string[] = [];
  const watched: ImagesView = {
    ...images,
    prune: async (dryRun) => {
      done.push('prune');
      return images.prune(dryRun);
    },
    pull: async (image, signal) => {
      done.push('pull');
      return images.pull(image, signal);
    },
  };
  return serving(agentView({ images: watched }), async (socket) => {
    for (const [path, method, status] of [
      ['/images', 'POST', 405],
      ['/images/prune', 'GET', 405],
      ['/images/prune', 'HEAD', 405],
      ['/images/prune?dryRun=true', 'POST', 400],
      ['/images/prune?dryRun=', 'POST', 400],
      ['/images/pull', 'POST', 400],
      ['/images/pull?image=', 'POST', 400],
      ['/images/import', 'POST', 400],
      ['/images/', 'POST', 404],
      ['/images/remove', 'POST', 404],
      ['/images/prune/x', 'POST', 404],
    ] as const)
      assert.equal((await ask(socket, path, method)).status, status, `${method} ${path}`);
    assert.deepEqual(done, []);
  });
});

test('an agent that starts says so, and a refusal or a runtime that is away has its words', async () => {
  await serving(undefined, async (socket) => assert.equal((await ask(socket, '/images')).status, 503));
  const broken: ImagesView = {
    ...images,
    list: async () => Promise.reject(new Error('connect ENOENT containerd.sock')),
    prune: async () => ({ ok: false, code: 409, message: 'not yet' }),
  };
  await serving(agentView({ images: broken }), async (socket) => {
    const away = await ask(socket, '/images');
    assert.deepEqual([away.status, away.body.message], [502, 'the runtime does not answer: connect ENOENT containerd.sock']);
    const refused = await ask(socket, '/images/prune', 'POST');
    assert.deepEqual([refused.status, refused.body.message], [409, 'not yet']);
  });
});

test('who goes away ends the pull', async () => {
  let ended = (): void => {};
  const over = new Promise<void>((resolve) => {
    ended = resolve;
  });
  let begun = (): void => {};
  const began = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const slow: ImagesView = {
    ...images,
    pull: (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          ended();
          reject(new Error('ended'));
        });
        begun();
      }),
  };
  await serving(agentView({ images: slow }), async (socketPath) => {
    const asked = request({ socketPath, path: '/images/pull?image=a', method: 'POST', agent: false });
    asked.on('error', () => {}); // it is broken off here
    asked.end();
    await began;
    asked.destroy();
    await over;
  });
});
