/**
 * hostPath: a path of the node as it is. Never ours: no owner, mode or label is changed and nothing is deleted. Mirrors kubelet v1.32
 * volume/hostpath (facts 15.4), but a path without `…OrCreate` is never created: without a type the kubelet leaves a missing one to the
 * runtime, which makes a folder of it, on the card where a disk should be mounted.
 */
import type { Stats } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { basename, dirname, relative } from 'node:path';
import type { DesiredPod } from '../api/desired.ts';
import type { HostPathType, HostPathVolumeSource } from '../api/v1.ts';
import { codeOf, isMissing } from '../world/errno.ts';
import { describeError } from '../world/log.ts';
import { openFolder, openFollowing, pathOf } from './descriptor.ts';
import type { HostLooks } from './hostLooks.ts';
import type { VolumeKind, VolumePlace } from './kind.ts';
import { openInside } from './subPath.ts';

/** `heldBack` rejects while a disk of the node that the path lies on is away: without it the path is another folder, on the card. */
export function hostPathKind(
  looks: HostLooks,
  heldBack?: (desired: DesiredPod, path: string) => Promise<void>,
  rootOf?: (desired: DesiredPod, path: string) => string | undefined,
): VolumeKind {
  const within = ({ desired, volume: { hostPath } }: VolumePlace): Within | undefined => {
    const path = hostPath?.path ?? '';
    const root = rootOf?.(desired, path);
    return root === undefined ? undefined : { root, path: relative(root, path) };
  };
  const check = async (place: VolumePlace): Promise<void> => {
    const { hostPath } = place.volume;
    await heldBack?.(place.desired, hostPath?.path ?? '');
    await checkHostPath(hostPath, looks, within(place));
  };
  return {
    handles: ({ hostPath }) => hostPath !== undefined,
    setUp: check,
    check,
    path: ({ volume: { hostPath } }) => hostPath?.path ?? '',
    within,
    readOnly: false,
    managed: false,
  };
}

const failed = (path: string, text: string): Error => new Error(`hostPath type check failed: ${path} ${text}`);

/** A path, and what it must not lead out of. */
type Within = NonNullable<ReturnType<NonNullable<VolumeKind['within']>>>;

/** Resolves when the path is of its type, made where the type asks for it; `within`: and only there, whatever its links become. */
export async function checkHostPath(
  source: HostPathVolumeSource | undefined,
  looks: Pick<HostLooks, 'at'>,
  within?: Within,
): Promise<void> {
  const { path = '', type = '' } = source ?? {};
  const lookAt = (): Promise<Stats | undefined> =>
    looks.at(path).catch((e: unknown) => {
      throw failed(path, describeError(e));
    });
  if (path.split('/').includes('..')) throw failed(path, "must not contain '..'");
  let found = await lookAt();
  if (found === undefined && type === 'DirectoryOrCreate') {
    await (within === undefined ? makeFolders(path) : makeInside(path, within));
    found = await lookAt();
  }
  if (found === undefined && type === 'FileOrCreate') {
    await (within === undefined ? makeFile(path, path) : makeFileInside(path, within));
    found = await lookAt();
  }
  const wrong = wrongType(type, found);
  if (wrong !== undefined) throw failed(path, wrong);
}

/**
 * With all above it that is missing, open to read for every user whatever the agent's umask is; what is there stays as it is. A container may
 * have the folder above as its own and put a link where a folder was just made: the mode is given to nothing but what is open and no link.
 */
async function makeFolders(path: string): Promise<void> {
  let here: FileHandle | undefined;
  try {
    here = await openFollowing('/');
    for (const name of path.split('/')) {
      if (name === '' || name === '.') continue;
      const next: FileHandle = await folderOf(`${pathOf(here)}/${name}`);
      await here.close();
      here = next;
    }
  } catch (e) {
    throw failed(path, `cannot be created (${codeOf(e)})`);
  } finally {
    await here?.close();
  }
}

/** What is there, by links of the node's owner too, or a folder that is made. */
async function folderOf(path: string): Promise<FileHandle> {
  try {
    return await openFollowing(path);
  } catch (e) {
    if (!isMissing(e)) throw e;
  }
  try {
    await mkdir(path, { mode: 0o755 });
  } catch (e) {
    if (codeOf(e) === 'EEXIST') return openFollowing(path); // somebody was quicker
    throw e;
  }
  const made = await openFolder(path);
  if (made === undefined) throw Object.assign(new Error('it went away while it was made'), { code: 'ENOENT' });
  await made.chmod(0o755).catch(async (e: unknown) => {
    await made.close();
    throw e;
  });
  return made;
}

/** What must not be led out of is the owner's, and made as any path. */
async function makeInside(path: string, { root, path: rest }: Within): Promise<void> {
  await makeFolders(root);
  const made = await openInside(root, rest).catch((e: unknown) => {
    throw failed(path, `cannot be created (${codeOf(e)})`);
  });
  await made.close();
}

async function makeFileInside(path: string, { root, path: rest }: Within): Promise<void> {
  const folder = await openInside(root, dirname(rest)).catch((e: unknown) => {
    throw failed(path, `cannot be created (${codeOf(e)})`);
  });
  try {
    await makeFile(path, `${pathOf(folder)}/${basename(rest)}`);
  } finally {
    await folder.close();
  }
}

/** Folders above it are not made. `at`: where it is made. */
async function makeFile(path: string, at: string): Promise<void> {
  try {
    const file = await open(at, 'ax', 0o644);
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
