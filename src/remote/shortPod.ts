// pure
/** A pod as it may leave the machine: never environment, commands, volumes, or an annotation that holds a manifest; its status is whole. */
import type { ToldPod } from '../api/status.ts';
import { toldSpec } from '../status/told.ts';

const maxAnnotationLength = 256;
const manifest = 'kubectl.kubernetes.io/last-applied-configuration';

/** Of a pod that is short already, the same. */
export function shortPod({ apiVersion, kind, metadata, spec, status }: ToldPod): ToldPod {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, labels, annotations = {} } = metadata;
  const kept = Object.entries(annotations).filter(([key, value]) => key !== manifest && value.length <= maxAnnotationLength);
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
      ...(labels && { labels }),
      annotations: Object.fromEntries(kept),
    },
    spec: toldSpec(spec),
    status,
  };
}
