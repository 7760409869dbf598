/**
 * The end of a pod's folder (facts 15.6, 15.7): first what this room mounted, then a look whether anything is still mounted, then the data of
 * the volumes, then the rest. Whatever cannot go now stays, with all above it, for a later try: nothing is ever deleted
 * through a mount.
 */
import type { FileHandle } from 'node:fs/promises';
import { openFolder } from './descriptor.ts';
import { isOurMount, isSubPathMount, ownKinds, subPathsFolder, volumesFolder } from './layout.ts';
import type { Mounter } from './mount.ts';
import { folderIn, namesIn, removeEmpty, removeTree } from './remove.ts';
import { unbind } from './subPath.ts';

/** Removes `<root>/<name>`; what is not there is removed. Rejects when something is in use or is not known to be the pod's. */
export async function removePodFolder(mounter: Mounter, root: string, name: string): Promise<void> {
  const parent = await openFolder(root);
  if (parent === undefined) return;
  try {
    const pod = await folderIn(parent, name);
    if (pod === undefined) return;
    try {
      await unmountAll(mounter, `${root}/${name}`);
      await removeVolumes(pod);
      await removeSubPaths(pod);
      for (const rest of await namesIn(pod)) await removeTree(pod, rest);
    } finally {
      await pod.close();
    }
    await removeEmpty(parent, name);
  } finally {
    await parent.close();
  }
}

async function unmountAll(mounter: Mounter, folder: string): Promise<void> {
  const under = async (): Promise<string[]> => (await mounter.mountPoints()).filter((p) => p === folder || p.startsWith(`${folder}/`));
  // the newest first: it may lie on an older one
  for (const point of (await under()).reverse()) {
    const below = point.slice(folder.length + 1);
    if (isSubPathMount(below)) await unbind(mounter, point);
    else if (isOurMount(below)) await mounter.unmount(point);
  }
  const [left] = await under();
  if (left !== undefined) throw new Error(`something is still mounted at ${left}`);
}

/** The data of volumes that are the pod's own goes; a folder of another kind must be empty. */
async function removeVolumes(pod: FileHandle): Promise<void> {
  const volumes = await folderIn(pod, volumesFolder);
  if (volumes === undefined) return;
  try {
    for (const kind of await namesIn(volumes)) {
      if (ownKinds.has(kind)) await removeTree(volumes, kind);
      else await removeEmpty(volumes, kind);
    }
  } finally {
    await volumes.close();
  }
  await removeEmpty(pod, volumesFolder);
}

/** What subPaths were bound to is empty; where it is not, a mount was overlooked, and behind it lies somebody's data. */
async function removeSubPaths(parent: FileHandle, name = subPathsFolder, depth = 0): Promise<void> {
  const folder = depth < 3 ? await folderIn(parent, name) : undefined;
  try {
    if (folder !== undefined) for (const inner of await namesIn(folder)) await removeSubPaths(folder, inner, depth + 1);
  } finally {
    await folder?.close();
  }
  await removeEmpty(parent, name);
}
