/** Images of pods for the emulated processor: Debian's static busybox as a docker archive. It is three JSON texts and a tar. */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun } from '../device/process.ts';

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');

export interface Busybox {
  readonly busybox: string;
  readonly applets: readonly string[];
}

/** Writes `ref` for arm64 to `file`. `version` is all that two of them differ in. */
export async function busyboxArchive({ busybox, applets }: Busybox, ref: string, version: number, file: string): Promise<void> {
  const work = mkdtempSync(`${file}-`);
  try {
    const root = join(work, 'root');
    for (const folder of ['bin', 'etc', 'tmp', 'proc', 'sys', 'dev', 'root', 'var']) mkdirSync(join(root, folder), { recursive: true });
    copyFileSync(busybox, join(root, 'bin/busybox'));
    for (const applet of applets.filter((a) => a !== 'busybox')) symlinkSync('busybox', join(root, 'bin', applet));
    writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/tmp:/bin/sh\n');
    writeFileSync(join(root, 'etc/group'), 'root:x:0:\napp:x:1000:\n');
    await mustRun('chmod', ['1777', join(root, 'tmp')]);
    await mustRun('chmod', ['0755', join(root, 'bin/busybox')]);
    const layer = join(work, 'layer.tar');
    await mustRun('tar', ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '-C', root, '-cf', layer, '.']);
    const config = JSON.stringify({
      architecture: 'arm64',
      variant: 'v8',
      os: 'linux',
      created: '1970-01-01T00:00:00Z',
      config: { Env: ['PATH=/bin', `IMAGE_VERSION=${version}`], Cmd: ['sh'], WorkingDir: '/' },
      rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(readFileSync(layer))}`] },
    });
    const name = `${sha256(config)}.json`;
    writeFileSync(join(work, name), config);
    writeFileSync(join(work, 'manifest.json'), JSON.stringify([{ Config: name, RepoTags: [ref], Layers: ['layer.tar'] }]));
    await mustRun('tar', ['-C', work, '-cf', join(work, 'image.tar'), 'manifest.json', name, 'layer.tar']);
    renameSync(join(work, 'image.tar'), file);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
