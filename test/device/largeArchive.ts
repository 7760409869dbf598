/** An archive that is large and cannot be packed smaller, and what reading it in costs a process. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun } from './process.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** In Go's words. */
export const ownArchitecture: string = { x64: 'amd64', arm64: 'arm64', arm: 'arm' }[process.arch as string] ?? process.arch;

/** A docker archive of one layer, which is a tar file; the layer is moved into it. Returns its path, in `work`. */
export async function dockerArchive(work: string, name: string, ref: string, layer: string, architecture: string): Promise<string> {
  const dir = mkdtempSync(join(work, 'image-'));
  const digest = (await mustRun('sha256sum', [layer])).split(' ')[0];
  const config = JSON.stringify({
    architecture,
    os: 'linux',
    config: { Cmd: ['sh'], Env: ['PATH=/bin'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  });
  writeFileSync(join(dir, `${sha256(config)}.json`), config);
  writeFileSync(join(dir, 'manifest.json'), JSON.stringify([{ Config: `${sha256(config)}.json`, RepoTags: [ref], Layers: ['layer.tar'] }]));
  renameSync(layer, join(dir, 'layer.tar'));
  const path = join(work, name);
  await mustRun('tar', ['-C', dir, '-cf', path, 'manifest.json', `${sha256(config)}.json`, 'layer.tar']);
  rmSync(dir, { recursive: true, force: true });
  return path;
}

/** A gzipped docker archive of `megabytes` of noise, in `work`. Returns its path. */
export async function largeArchive(work: string, ref: string, megabytes: number): Promise<string> {
  const data = join(work, 'data');
  await mustRun('sh', ['-c', `head -c ${megabytes}000000 /dev/urandom >'${data}'`]);
  const layer = join(work, 'large-layer.tar');
  await mustRun('tar', ['-C', work, '-cf', layer, 'data']);
  rmSync(data);
  const archive = await dockerArchive(work, 'large.tar', ref, layer, ownArchitecture);
  await mustRun('gzip', ['-1', '-f', archive]);
  return `${archive}.gz`;
}

/** By how much the memory of a process rises at most over what it has now, while `step` goes on. */
export async function memoryGrowth(
  pid: number,
  step: () => Promise<unknown>,
): Promise<{ readonly beforeBytes: number; readonly grownBytes: number }> {
  const bytes = (field: string) =>
    Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
  writeFileSync(`/proc/${pid}/clear_refs`, '5'); // the peak counts from now
  const beforeBytes = bytes('VmRSS');
  await step();
  return { beforeBytes, grownBytes: bytes('VmHWM') - beforeBytes };
}
