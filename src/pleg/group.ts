// pure
/** From two flat lists of the runtime to pods: only ours, by UID, newest first. */
import type { PodUid } from '../api/objects.ts';
import { type Container, labels, newestFirst, type RuntimePod, type Sandbox } from '../container/words.ts';

export interface Grouped {
  readonly pods: ReadonlyMap<PodUid, RuntimePod>;
  /** Ids of what belongs to somebody else: their events concern nobody here. */
  readonly foreign: ReadonlySet<string>;
}

interface Parts {
  readonly sandboxes: Sandbox[];
  readonly containers: Container[];
}

/** `mine` judges the labels of each record by itself (sandboxes and containers both carry podsched's label). */
export function groupPods(
  sandboxes: readonly Sandbox[],
  containers: readonly Container[],
  mine: (labels: Readonly<Record<string, string>>) => boolean,
): Grouped {
  const parts = new Map<PodUid, Parts>();
  const foreign = new Set<string>();
  const partsOf = (uid: PodUid): Parts => {
    const known = parts.get(uid);
    if (known !== undefined) return known;
    const fresh: Parts = { sandboxes: [], containers: [] };
    parts.set(uid, fresh);
    return fresh;
  };
  for (const sandbox of sandboxes) {
    if (mine(sandbox.labels)) partsOf(sandbox.uid).sandboxes.push(sandbox);
    else foreign.add(sandbox.id);
  }
  for (const container of containers) {
    const uid = container.labels[labels.podUid];
    if (uid !== undefined && mine(container.labels)) partsOf(uid as PodUid).containers.push(container);
    else foreign.add(container.id);
  }
  const pods = new Map<PodUid, RuntimePod>();
  for (const [uid, part] of parts) {
    const sorted = { sandboxes: part.sandboxes.sort(newestFirst), containers: part.containers.sort(newestFirst) };
    const words = sorted.sandboxes[0]?.labels ?? sorted.containers[0]?.labels ?? {};
    const name = sorted.sandboxes[0]?.name ?? words[labels.podName] ?? '';
    const namespace = sorted.sandboxes[0]?.namespace ?? words[labels.podNamespace] ?? '';
    pods.set(uid, { uid, name, namespace, ...sorted });
  }
  return { pods, foreign };
}
