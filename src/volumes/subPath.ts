/**
 * A subPath is bound to a place of the agent's own, and that is mounted: the runtime never looks at a path that a container can change.
 * Mirrors kubelet v1.32 volume/util/subpath (facts 10.11): what is missing is made with the volume's mode, and links that stay inside the
 * volume are followed. Each step is taken from the folder that is open, so that nothing swapped meanwhile leads out of the volume.
 */
import { chmod, type FileHandle, mkdir, open, readlink, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '../world/errno.ts';
import { isSameInode, nameIn, openFollowing, openPlace, pathOf } from './descriptor.ts';
import type { Mounter } from './mount.ts';

const mostLinks = 40;

const leadsOut = (): Error => new Error('it leads out of its volume');

/** Opens `subPath` inside `volume`, making folders that are missing. Rejects when it leads out. The caller closes it. */
export async function openInside(volume: string, subPath: string): Promise<FileHandle> {
  const stack = [await openFollowing(volume)];
  const rest = subPath.split('/');
  let links = 0;
  try {
    const [root] = stack;
    if (root === undefined) throw leadsOut();
    const top = await readlink(pathOf(root));
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      if (name === '' || name === '.') continue;
      const folder = stack.at(-1) ?? root;
      if (name === '..') {
        if (stack.length === 1) throw leadsOut();
        await stack.pop()?.close();
        continue;
      }
      const place = await placeIn(folder, name, root);
      stack.push(place);
      if (!(await place.stat()).isSymbolicLink()) continue;
      await stack.pop()?.close();
      if (++links > mostLinks) throw new Error('too many links');
      const target = await readlink(nameIn(folder, name));
      if (target.startsWith('/')) {
        const inside = below(top, target);
        if (inside === undefined) throw leadsOut();
        for (const open of stack.splice(1)) await open.close();
        rest.unshift(inside);
      } else rest.unshift(target);
      rest.splice(0, 1, ...(rest[0] ?? '').split('/'));
    }
    const found = stack.pop();
    if (found === undefined) throw leadsOut();
    return found;
  } finally {
    for (const open of stack) await open.close();
  }
}

const below = (top: string, path: string): string | undefined => {
  if (path === top) return '';
  return path.startsWith(`${top}/`) ? path.slice(top.length + 1) : undefined;
};

/** A name in a folder; when it is missing, a folder is made of it with the mode of the volume. */
async function placeIn(folder: FileHandle, name: string, root: FileHandle): Promise<FileHandle> {
  const path = nameIn(folder, name);
  const found = await openPlace(path);
  if (found !== undefined) return found;
  await mkdir(path).catch((e: unknown) => {
    if (codeOf(e) !== 'EEXIST') throw e; // somebody was quicker
  });
  const made = await openPlace(path);
  if (made === undefined) throw new Error('a folder of it went away while it was made');
  if ((await made.stat()).isDirectory()) await chmod(pathOf(made), (await root.stat()).mode & 0o7777);
  return made;
}

/** Binds the subPath to `target`; `whole`: with what is mounted below it. What is bound there already stays when it is the same. */
export async function bindSubPath(mounter: Mounter, volume: string, subPath: string, target: string, whole = false): Promise<void> {
  const source = await openInside(volume, subPath);
  try {
    const wanted = await source.stat();
    if ((await mounter.mountPoints()).includes(target)) {
      if (isSameInode(await stat(target), wanted)) return;
      await unbind(mounter, target);
    }
    await makeTarget(target, wanted.isDirectory());
    await mounter.bind(source, target, whole);
    if (!isSameInode(await stat(target), wanted)) throw new Error('another file was bound than was looked at');
  } finally {
    await source.close();
  }
}

/**
 * Takes a binding away. On a machine that systemd started, what is mounted below a hostPath later is mounted below its bindings too, and an
 * unmount there would take the node's own mount with it: so the binding is cut off from the node before what came into it goes.
 */
export async function unbind(mounter: Mounter, target: string): Promise<void> {
  const busy = await mounter.unmount(target).then(
    () => undefined,
    (e: unknown) => ({ e }),
  );
  if (busy === undefined) return;
  const inside = (await mounter.mountPoints()).filter((p) => p.startsWith(`${target}/`));
  if (inside.length === 0) throw busy.e;
  await mounter.makePrivate(target);
  for (const point of inside.reverse()) await mounter.unmount(point);
  await mounter.unmount(target);
}

/** Folders on folders, everything else on an empty file. */
async function makeTarget(target: string, folder: boolean): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o750 });
  const place = await openPlace(target);
  const isFolder = (await place?.stat())?.isDirectory();
  await place?.close();
  if (isFolder === folder) return;
  // of a former binding of another type: empty by nature, and rmdir removes nothing that is not
  if (isFolder !== undefined) await (isFolder ? rmdir(target) : unlink(target));
  if (folder) await mkdir(target, { mode: 0o750 });
  else await (await open(target, 'wx', 0o640)).close();
}
