/** An image of two layers: the one that all images of a bed share, and one of its own with the program `/app/sleep`. */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { busybox1, imageArchive } from './images.ts';
import { mustRun } from './process.ts';

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');

/** Writes the docker archive of `ref` to `path`. `mark` makes the layer another one, `env` only the image. */
export async function layeredArchive(path: string, ref: string, mark: string, env: readonly string[] = []): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'podsched-layers-'));
  try {
    await mustRun('tar', ['-C', work, '-xf', await imageArchive(busybox1)]);
    const [made] = JSON.parse(readFileSync(join(work, 'manifest.json'), 'utf8')) as [{ Config: string; Layers: string[] }];
    const config = JSON.parse(readFileSync(join(work, made.Config), 'utf8')) as {
      rootfs: { diff_ids: string[] };
      config: { Cmd: string[]; Env: string[] };
    };
    mkdirSync(join(work, 'own/app'), { recursive: true });
    // busybox is what it is called
    copyFileSync('/bin/busybox', join(work, 'own/app/sleep'));
    writeFileSync(join(work, 'own/app/mark'), mark);
    const layer = join(work, 'own.tar');
    await mustRun('tar', [
      '--sort=name',
      '--mtime=@0',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '-C',
      join(work, 'own'),
      '-cf',
      layer,
      '.',
    ]);
    config.rootfs.diff_ids.push(`sha256:${sha256(readFileSync(layer))}`);
    config.config.Cmd = [program, '2147483647'];
    config.config.Env.push(...env);
    const text = JSON.stringify({ ...config, history: [] });
    const name = `${sha256(text)}.json`;
    writeFileSync(join(work, name), text);
    writeFileSync(join(work, 'manifest.json'), JSON.stringify([{ Config: name, RepoTags: [ref], Layers: [...made.Layers, 'own.tar'] }]));
    await mustRun('tar', ['-C', work, '-cf', path, 'manifest.json', name, ...made.Layers, 'own.tar']);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The file in the own layer that a container of it runs. */
export const program = '/app/sleep';
