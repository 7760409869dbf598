// pure
/** Which instance of the runtime an accepted object goes on as, when the checkpoint does not say (behaviour, "Identity, exactly"). */
import type { KeyText, PodUid } from '../api/objects.ts';
import { annotations, newestFirst, type RuntimePod } from '../container/words.ts';

/** The one whose sandbox has the same pod-hash, else the newest (highest attempt, then ready); undefined: the runtime has none. */
export function adoptableUid(pods: readonly RuntimePod[], key: KeyText, podHash: string): PodUid | undefined {
  const candidates = pods.filter((p) => `Pod/${p.namespace}/${p.name}` === key).flatMap((p) => p.sandboxes);
  const ranked = candidates.sort((a, b) => {
    const hash = Number(b.annotations[annotations.podHash] === podHash) - Number(a.annotations[annotations.podHash] === podHash);
    return hash || b.attempt - a.attempt || Number(b.state === 'ready') - Number(a.state === 'ready') || newestFirst(a, b);
  });
  return ranked[0]?.uid;
}

/** Something of it runs, or may run. */
export const isAlive = (p: RuntimePod): boolean =>
  p.sandboxes.some((s) => s.state === 'ready') || p.containers.some((c) => c.state === 'running' || c.state === 'unknown');

/** What still lives of earlier instances of the same name. */
export const predecessorsOf = (
  pods: readonly RuntimePod[],
  { namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid: PodUid },
): RuntimePod[] => pods.filter((p) => p.name === name && p.namespace === namespace && p.uid !== uid && isAlive(p));
