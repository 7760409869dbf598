import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand } from '../../src/cli/program.ts';
import type { ImagesView, ListedImage, Pruned } from '../../src/operations/images.ts';
import { startServer } from '../../src/server/server.ts';
import { silentLog } from '../../src/world/log.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { agentView, nowMs } from '../operations/view.ts';

const id = (c: string): string => `sha256:${c.repeat(64)}`;
const web: ListedImage = {
  id: id('a'),
  tags: ['docker.io/library/web:1', 'docker.io/library/web:latest'],
  digests: [],
  sizeBytes: 4_266_000,
  usedBy: ['default/web', 'kitchen/cam'],
  pinned: ['pod'],
};
const bare: ListedImage = { id: id('b'), tags: [], digests: [`r.example/x@${id('c')}`], sizeBytes: 1000, usedBy: [], pinned: [] };
const pruned = (o: Partial<Pruned> = {}): Pruned => ({
  dryRun: false,
  removed: [{ id: bare.id, names: bare.digests, sizeBytes: 1000 }],
  failed: [],
  freedBytes: 2500,
  offline: false,
  ...o,
});

const images = (o: Partial<ImagesView> = {}): ImagesView => ({
  list: async () => [web, bare],
  prune: async (dryRun) => ({ ok: true, value: pruned({ dryRun }) }),
  pull: async (image) => ({ ok: true, value: { image: `${image}:latest`, id: id('d') } }),
  import: async (path) => ({ ok: true, value: { images: [`from ${path}`], problems: [] } }),
  pin: async (name) => ({ ok: true, value: { message: `${name} is pinned` } }),
  ...o,
});

async function run(o: Partial<ImagesView>, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cli-'));
  const view = agentView({ images: images(o) });
  const server = await startServer({ socketPath: join(dir, 'podsched.sock'), agent: () => view, log: silentLog });
  let [out, err] = ['', ''];
  try {
    const code = await runCommand(args, {
      print: {
        out: (text) => {
          out += text;
        },
        err: (text) => {
          err += text;
        },
        nowMs: () => nowMs,
        sleep: async () => {},
      },
      env: { PODSCHED_RUN_DIR: dir },
      stdin: async () => new Uint8Array(),
      console: fakeConsole,
      bytes: { isTerminal: false, write: async () => {} },
    });
    return { code, out, err };
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

test('images list and get images are one table', async () => {
  const { code, out } = await run({}, 'images', 'list');
  assert.equal(code, 0);
  assert.equal(
    out,
    [
      'NAME                                                    IMAGE ID       SIZE     USED BY                    PINNED',
      'docker.io/library/web:1, docker.io/library/web:latest   aaaaaaaaaaaa   4.27MB   default/web, kitchen/cam   pod',
      'r.example/x@sha256:cccccccccccc                         bbbbbbbbbbbb   1kB      <none>                     <none>',
      '',
    ].join('\n'),
  );
  assert.equal((await run({}, 'get', 'images')).out, out);
  assert.match((await run({ list: async () => [] }, 'images', 'ls')).err, /^No images found\.\n$/);
});

test('an image is asked for by any spelling of its name, and by the beginning of its id', async () => {
  for (const name of ['web:1', 'web', 'library/web:1', 'docker.io/library/web:latest', 'aaaa', id('a'), `sha256:${'a'.repeat(12)}`]) {
    const { code, out } = await run({}, 'get', 'images', name, '-o', 'json');
    assert.equal(code, 0, name);
    assert.equal(JSON.parse(out).id, web.id, name);
  }
  assert.equal((await run({}, 'get', 'image/docker.io/library/web:1', '-o', 'name')).out, 'image/docker.io/library/web:1\n');
  assert.equal((await run({}, 'images', 'list', '-o', 'name')).out, `image/docker.io/library/web:1\nimage/r.example/x@${id('c')}\n`);
  for (const name of ['web:2', 'aaa', 'feed']) {
    const { code, err } = await run({}, 'get', 'images', name);
    assert.deepEqual([code, err], [3, `podsched: image "${name}" is not on this node\n`]);
  }
});

test('prune says what went and how much that was', async () => {
  const done = await run({}, 'images', 'prune');
  assert.deepEqual([done.code, done.out], [0, 'removed r.example/x@sha256:cccccccccccc (1kB)\nFreed 2.5kB.\n']);
  const dry = await run({}, 'images', 'prune', '--dry-run');
  assert.deepEqual([dry.code, dry.out, dry.err], [0, 'would remove r.example/x@sha256:cccccccccccc (1kB)\nWould free 2.5kB.\n', '']);
  const none = await run({ prune: async () => ({ ok: true, value: pruned({ removed: [], freedBytes: 0 }) }) }, 'images', 'prune');
  assert.deepEqual([none.code, none.out, none.err], [0, '', 'Every image is used or pinned: nothing to remove.\n']);
});

test('a dry run without a network warns; what could not be removed ends with 1; a refusal has its words', async () => {
  const offline = await run(
    { prune: async () => ({ ok: true, value: pruned({ dryRun: true, offline: true }) }) },
    'images',
    'prune',
    '--dry-run',
  );
  assert.match(offline.err, /^Nothing can be pulled now/);
  const failed = [{ id: bare.id, names: [], sizeBytes: 1, message: 'image "x" could not be removed: busy' }];
  const some = await run({ prune: async () => ({ ok: true, value: pruned({ failed }) }) }, 'images', 'prune');
  assert.deepEqual([some.code, some.err], [1, 'image "x" could not be removed: busy\n']);
  const early = await run({ prune: async () => ({ ok: false, code: 409, message: 'not yet' }) }, 'images', 'prune');
  assert.deepEqual([early.code, early.err], [1, 'podsched: not yet\n']);
});

test('pull and import do one after the other, and say why one could not be had', async () => {
  const pulledTwo = await run({}, 'images', 'pull', 'web', 'db');
  assert.equal(pulledTwo.out, `web:latest is here (${'d'.repeat(12)})\ndb:latest is here (${'d'.repeat(12)})\n`);
  const away = await run(
    { pull: async () => ({ ok: false, code: 502, message: 'image "web" could not be pulled: refused' }) },
    'images',
    'pull',
    'web',
  );
  assert.deepEqual([away.code, away.err], [1, 'podsched: image "web" could not be pulled: refused\n']);
  const imported = await run({}, 'images', 'import', '/tmp/a.tar', 'b.tar');
  assert.equal(imported.out, `from /tmp/a.tar imported\nfrom ${process.cwd()}/b.tar imported\n`);
  const half = { images: ['r/a:1'], problems: ['r/b:1 is for another platform'] };
  const some = await run({ import: async () => ({ ok: true, value: half }) }, 'images', 'import', '/a.tar');
  assert.deepEqual([some.code, some.out, some.err], [1, 'r/a:1 imported\n', '/a.tar: r/b:1 is for another platform\n']);
  const missing = await run(
    { import: async () => ({ ok: false, code: 404, message: '/x.tar cannot be read: ENOENT' }) },
    'images',
    'import',
    '/x.tar',
  );
  assert.deepEqual([missing.code, missing.err], [3, 'podsched: /x.tar cannot be read: ENOENT\n']);
  assert.equal((await run({}, 'images', 'pull')).code, 2);
});

test('no name of an image speaks to the terminal', async () => {
  const evil = { ...web, tags: ['r/\u001b[31m:1'] };
  const result = { removed: [{ id: web.id, names: ['r/\u001b[31m:1'], sizeBytes: 1 }] };
  for (const args of [
    ['images', 'list'],
    ['images', 'list', '-o', 'name'],
    ['images', 'prune'],
  ]) {
    const { out, err } = await run({ list: async () => [evil], prune: async () => ({ ok: true, value: pruned(result) }) }, ...args);
    assert.ok(out.length > 0 && !`${out}${err}`.includes('\u001b'), args.join(' '));
  }
});
