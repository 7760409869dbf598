/**
 * hostPath: a path of the node as it is. Never ours: no owner, mode or label is changed and nothing is deleted. Mirrors kubelet v1.32
 * volume/hostpath (facts 15.4), but a path without `…OrCreate` is never created: without a type the kubelet leaves a missing one to the
 * runtime, which makes a folder of it, on the card where a disk should be mounted.
 */
import type { Stats } from 'node:fs';
import { chmod, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DesiredPod } from '../api/desired.ts';
import type { HostPathType, HostPathVolumeSource } from '../api/v1.ts';
import { codeOf } from '../world/errno.ts';
import { describeError } from '../world/log.ts';
import type { HostLooks } from './hostLooks.ts';
import type { VolumeKind, VolumePlace } from './kind.ts';

/** `heldBack` rejects while a disk of the node that the path lies on is away: without it the path is another folder, on the card. */
export function hostPathKind(looks: HostLooks, heldBack?: (desired: DesiredPod, path: string) => Promise<void>): VolumeKind {
  const check = async ({ desired, volume: { hostPath } }: VolumePlace): Promise<void> => {
    await heldBack?.(desired, hostPath?.path ?? '');
    await checkHostPath(hostPath, looks);
  };
  return {
    handles: ({ hostPath }) => hostPath !== undefined,
    setUp: check,
    check,
    path: ({ volume: { hostPath } }) => hostPath?.path ?? '',
    readOnly: false,
    managed: false,
  };
}

const failed = (path: string, text: string): Error => new Error(`hostPath type check failed: ${path} ${text}`);

/** Resolves when the path is of its type, made where the type asks for it. */
export async function checkHostPath(source: HostPathVolumeSource | undefined, looks: Pick<HostLooks, 'at'>): Promise<void> {
  const { path = '', type = '' } = source ?? {};
  const lookAt = (): Promise<Stats | undefined> =>
    looks.at(path).catch((e: unknown) => {
      throw failed(path, describeError(e));
    });
  if (path.split('/').includes('..')) throw failed(path, "must not contain '..'");
  let found = await lookAt();
  if (found === undefined && type === 'DirectoryOrCreate') {
    await makeFolders(path);
    found = await lookAt();
  }
  if (found === undefined && type === 'FileOrCreate') {
    await makeFile(path);
    found = await lookAt();
  }
  const wrong = wrongType(type, found);
  if (wrong !== undefined) throw failed(path, wrong);
}

/** With all above it that is missing, open to read for every user whatever the agent's umask is; what is there stays as it is. */
async function makeFolders(path: string): Promise<void> {
  try {
    const first = await mkdir(path, { recursive: true, mode: 0o755 });
    for (let made = path.replace(/\/+$/, ''); first !== undefined && made.length >= first.length; made = dirname(made))
      await chmod(made, 0o755);
  } catch (e) {
    throw failed(path, `cannot be created (${codeOf(e)})`);
  }
}

/** Folders above it are not made. */
async function makeFile(path: string): Promise<void> {
  try {
    const file = await open(path, 'ax', 0o644);
    await file.chmod(0o644).finally(() => file.close());
  } catch (e) {
    if (codeOf(e) !== 'EEXIST') throw failed(path, `cannot be created (${codeOf(e)})`); // somebody was quicker
  }
}

function wrongType(type: HostPathType, found: Stats | undefined): string | undefined {
  switch (type) {
    case '':
      return found === undefined ? 'does not exist, and only the types DirectoryOrCreate and FileOrCreate create it' : undefined;
    case 'DirectoryOrCreate':
    case 'Directory':
      return found?.isDirectory() ? undefined : 'is not a directory';
    case 'FileOrCreate':
    case 'File':
      return found?.isFile() ? undefined : 'is not a file';
    case 'Socket':
      return found?.isSocket() ? undefined : 'is not a socket file';
    case 'CharDevice':
      return found?.isCharacterDevice() ? undefined : 'is not a character device';
    case 'BlockDevice':
      return found?.isBlockDevice() ? undefined : 'is not a block device';
    default:
      return unknownType(type);
  }
}

/** Validation refuses it; a stored object may come from another version. */
const unknownType = (_type: never): string => 'is an invalid volume type';
