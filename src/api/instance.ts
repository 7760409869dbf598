// pure
/** From an accepted object to the instance every room works with. */
import { defaultPod } from './defaults.ts';
import type { DesiredPod } from './desired.ts';
import { podHashes } from './hash.ts';
import { keyOf, keyText, type PodUid, type Source } from './objects.ts';
import type { ObjectMeta, Pod } from './v1.ts';

/**
 * One instance of an accepted, decoded pod. The kubelet's `kubernetes.io/config.*` annotations are kept for tools (hash = revision); what an
 * API server would keep in the metadata is dropped, so that nobody's old deletionTimestamp is told as ours.
 */
export function toDesiredPod(
  object: Pod,
  o: { readonly uid: PodUid; readonly source: Source; readonly nodeName: string; readonly firstSeen: string },
): DesiredPod {
  const hashes = podHashes(object);
  const key = keyOf(object);
  const { labels, annotations } = object.metadata;
  const metadata: ObjectMeta = {
    name: key.name,
    namespace: key.namespace,
    uid: o.uid,
    creationTimestamp: o.firstSeen,
    ...(labels !== undefined && { labels }),
    annotations: {
      ...annotations,
      'kubernetes.io/config.hash': hashes.revision,
      'kubernetes.io/config.seen': o.firstSeen,
      'kubernetes.io/config.source': o.source.startsWith('file:') ? 'file' : 'mqtt',
    },
  };
  return {
    uid: o.uid,
    key: keyText(key),
    name: key.name,
    namespace: key.namespace,
    source: o.source,
    ...hashes,
    pod: defaultPod({ ...object, metadata }, o.nodeName),
    firstSeen: o.firstSeen,
  };
}
