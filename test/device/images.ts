/**
 * Images without a registry: a busybox root file system packed as a docker archive, by hand (it is three JSON texts and a tar). They are
 * kept in a cache folder, so that the second bed imports them at once.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mustRun } from './process.ts';

export interface ImageRecipe {
  /** Name and tag, as a manifest writes it. */
  readonly ref: string;
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly env?: readonly string[];
  readonly user?: string;
  readonly workingDir?: string;
}

/** The two busybox images differ in one variable, so that a change of tag is a change of image. */
export const busybox1: ImageRecipe = { ref: 'localhost/busybox:1', cmd: ['sh'], env: ['IMAGE_VERSION=1'] };
export const busybox2: ImageRecipe = { ref: 'localhost/busybox:2', cmd: ['sh'], env: ['IMAGE_VERSION=2'] };
export const sandboxImage: ImageRecipe = { ref: 'localhost/pause:1', cmd: ['/bin/sleep', '2147483647'] };

const recipeVersion = 1;
const busyboxFile = '/bin/busybox';
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', arm: 'arm' };

const cacheFolder = (): string => process.env.PODSCHED_TEST_CACHE ?? join(tmpdir(), 'podsched-test-cache');

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');

/** The layer that all images share: busybox with its applets, a user `app` (1000), and a writable /tmp. */
async function makeLayer(work: string): Promise<Buffer> {
  const root = join(work, 'root');
  for (const dir of ['bin', 'etc', 'tmp', 'proc', 'sys', 'dev', 'root', 'var']) mkdirSync(join(root, dir), { recursive: true });
  copyFileSync(busyboxFile, join(root, 'bin/busybox'));
  const applets = (await mustRun(busyboxFile, ['--list'])).split('\n').filter((a) => a !== '' && a !== 'busybox');
  for (const applet of applets) symlinkSync('busybox', join(root, 'bin', applet));
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/tmp:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\napp:x:1000:\n');
  const tar = join(work, 'layer.tar');
  await mustRun('chmod', ['1777', join(root, 'tmp')]);
  await mustRun('tar', ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '-C', root, '-cf', tar, '.']);
  return readFileSync(tar);
}

/** The docker archive of a recipe; made once and kept. Returns the path of the tar. */
export async function imageArchive(recipe: ImageRecipe): Promise<string> {
  if (!existsSync(busyboxFile)) throw new Error(`${busyboxFile} is not there: apt-get install busybox-static`);
  const key = sha256(JSON.stringify([recipeVersion, recipe, sha256(readFileSync(busyboxFile))])).slice(0, 16);
  const archive = join(cacheFolder(), `${recipe.ref.replaceAll(/[^a-z0-9.]+/g, '-')}-${key}.tar`);
  if (existsSync(archive)) return archive;
  mkdirSync(cacheFolder(), { recursive: true });
  const work = mkdtempSync(join(cacheFolder(), 'making-'));
  try {
    const layer = await makeLayer(work);
    const config = JSON.stringify({
      architecture: architectures[process.arch] ?? process.arch,
      os: 'linux',
      created: '1970-01-01T00:00:00Z',
      config: {
        Env: ['PATH=/bin', ...(recipe.env ?? [])],
        Cmd: recipe.cmd ?? [],
        Entrypoint: recipe.entrypoint ?? [],
        User: recipe.user ?? '',
        WorkingDir: recipe.workingDir ?? '/',
      },
      rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
      history: [{ created: '1970-01-01T00:00:00Z', created_by: 'podsched test bed' }],
    });
    const configName = `${sha256(config)}.json`;
    writeFileSync(join(work, configName), config);
    writeFileSync(join(work, 'manifest.json'), JSON.stringify([{ Config: configName, RepoTags: [recipe.ref], Layers: ['layer.tar'] }]));
    await mustRun('tar', ['-C', work, '-cf', join(work, 'image.tar'), 'manifest.json', configName, 'layer.tar']);
    renameSync(join(work, 'image.tar'), archive); // two makers at once: the last one wins, and both are equal
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return archive;
}
