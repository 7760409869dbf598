// pure
/** Who holds which devices, by what the runtime has and by what was promised since. */
import type { PodUid } from '../api/objects.ts';
import { type ContainerStatus, labels } from '../container/words.ts';
import { type Holder, type IsThere, type Lost, readGiven } from './deviceChoice.ts';

export type DeviceRecord = Pick<ContainerStatus, 'id' | 'name' | 'state' | 'labels' | 'annotations'> & { readonly uid: PodUid };

/** Under which one container of one instance is known here. */
export const holderKey = (uid: string, container: string): string => `${uid}/${container}`;

/**
 * `records`: the newest of a name first. `claims`: what was promised to containers that are being made, by `holderKey`. `holds`: the instance
 * has not ended, so that a container of it that ended keeps what it had for its next start.
 */
export function holdersOf(
  records: readonly DeviceRecord[],
  claims: ReadonlyMap<string, Holder>,
  holds: (uid: PodUid) => boolean,
): readonly Holder[] {
  const holders: Holder[] = [];
  const named = new Set<string>();
  for (const { id, uid, name: container, state, labels: of, annotations } of records) {
    const key = holderKey(uid, container);
    const newest = !named.has(key);
    named.add(key);
    const kept = newest && holds(uid);
    if (state === 'exited' && !kept) continue;
    const claim = kept && state !== 'running' ? claims.get(key) : undefined;
    const given = claim?.given ?? readGiven(annotations);
    const pod = `${of[labels.podNamespace] ?? ''}/${of[labels.podName] ?? ''}`;
    if (given.length > 0) holders.push({ uid, pod, container, given, ...(state === 'running' && { running: id }) });
  }
  const promised = [...claims].filter(([key, { uid }]) => !named.has(key) && holds(uid));
  return [...holders, ...promised.map(([, holder]) => holder)];
}

/** Those who have lost something, running ones first. `spares`: by the id of a running container. */
export function lostOf(holders: readonly Holder[], isThere: IsThere, spares: ReadonlyMap<string, ReadonlySet<string>>): readonly Lost[] {
  const lost = holders.flatMap((holder): Lost[] => {
    const gone = holder.given.filter((given) => !isThere(given));
    return gone.length === 0 ? [] : [{ holder, gone, spares: spares.get(holder.running ?? '') ?? none }];
  });
  const runs = ({ holder }: Lost): boolean => holder.running !== undefined;
  return [...lost.filter(runs), ...lost.filter((l) => !runs(l))];
}

const none: ReadonlySet<string> = new Set();
