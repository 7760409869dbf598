import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PruneResult } from '../../src/images/gc.ts';
import type { InventoryImage } from '../../src/images/inventory.ts';
import type { PullNowResult } from '../../src/images/manager.ts';
import { type ImagesDeps, imagesView } from '../../src/operations/images.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const web: InventoryImage = {
  id: 'sha256:1',
  names: ['docker.io/library/web:1'],
  tags: ['docker.io/library/web:1'],
  digests: [],
  sizeBytes: 5,
  used: true,
  usedBy: ['default/web'],
  pins: ['pod'],
  firstDetected: 1 as Monotonic,
  lastUsed: 2 as Monotonic,
};
const nothing: PruneResult = { removed: [], failed: [], freedBytes: 0, offline: false };

const pulled: PullNowResult = { ok: true, image: { id: 'sha256:2', tags: [], digests: [], pinned: false, username: '' } };

const view = (o: { prune?: PruneResult | undefined } & Partial<ImagesDeps> = {}) =>
  imagesView({
    gc: { list: async () => [web], prune: async () => ('prune' in o ? o.prune : nothing) },
    puller: { pullNow: async () => pulled },
    importer: { importByHand: async () => ({ ok: true, names: ['docker.io/library/x:1'], problems: [] }) },
    pins: { set: async () => 'done' },
    ...o,
  });
const signal = new AbortController().signal;

test('an image is told with its users and its pins, not with when the agent saw it', async () => {
  assert.deepEqual(await view().list(), [
    { id: 'sha256:1', tags: ['docker.io/library/web:1'], digests: [], sizeBytes: 5, usedBy: ['default/web'], pinned: ['pod'] },
  ]);
});

test('pruning before anybody knows what is needed is refused', async () => {
  const answer = await view({ prune: undefined }).prune(false);
  assert.ok(!answer.ok && answer.code === 409);
  assert.deepEqual(await view().prune(true), { ok: true, value: { dryRun: true, ...nothing } });
});

test('a pull is told with its whole name; a name that is none is the asker’s fault, a registry that is away is not', async () => {
  const answers: Record<string, PullNowResult> = {
    web: pulled,
    'Web:::': { ok: false, reason: 'InvalidImageName', message: 'invalid reference format' },
    'r.example/x:1': { ok: false, reason: 'ErrImagePull', message: 'connection refused' },
  };
  const { pull } = view({ puller: { pullNow: async (name) => answers[name] ?? assert.fail(name) } });
  assert.deepEqual(await pull('web', signal), { ok: true, value: { image: 'docker.io/library/web:latest', id: 'sha256:2' } });
  assert.deepEqual(await pull('Web:::', signal), { ok: false, code: 400, message: 'invalid reference format' });
  const failed = await pull('r.example/x:1', signal);
  assert.deepEqual(failed, {
    ok: false,
    code: 502,
    message: 'image "r.example/x:1" could not be pulled: ErrImagePull: connection refused',
  });
});

test('only a regular file with an absolute path is imported', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-import-'));
  try {
    const archive = join(dir, 'a.tar');
    writeFileSync(archive, 'x');
    symlinkSync(archive, join(dir, 'link.tar'));
    execFileSync('mkfifo', [join(dir, 'pipe')]);
    const asked: string[] = [];
    const imports = view({
      importer: {
        importByHand: async (path) => {
          asked.push(path);
          if (path !== archive) return { ok: false, message: 'link.tar: not an archive' };
          return { ok: true, names: ['docker.io/library/x:1'], problems: ['x:2 is for another platform'] };
        },
      },
    });
    const { import: take } = imports;
    assert.deepEqual(await take(archive, signal), {
      ok: true,
      value: { images: ['docker.io/library/x:1'], problems: ['x:2 is for another platform'] },
    });
    for (const [path, code] of [
      ['a.tar', 400],
      ['', 400],
      ['/a\0b', 400],
      [dir, 400],
      [join(dir, 'pipe'), 400],
      ['/dev/zero', 400],
      [join(dir, 'none.tar'), 404],
      [join(dir, 'link.tar'), 502],
    ] as const) {
      const answer = await take(path, signal);
      assert.ok(!answer.ok, path);
      assert.equal(answer.code, code, path);
    }
    assert.deepEqual(asked, [archive, join(dir, 'link.tar')]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
