// pure
/** A pod as it may leave the machine: never environment, commands, volumes, or an annotation that holds a manifest; its status is whole. */
import type { ToldPod } from '../api/status.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';

const maxAnnotationLength = 256;
const manifest = 'kubectl.kubernetes.io/last-applied-configuration';

const shortContainer = <C extends Container | EphemeralContainer>(c: C) => ({
  name: c.name,
  image: c.image ?? '',
  ...(c.ports && { ports: c.ports }),
  ...(c.resources && { resources: c.resources }),
  ...(c.restartPolicy && { restartPolicy: c.restartPolicy }),
});

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
    spec: {
      ...(spec.initContainers && { initContainers: spec.initContainers.map(shortContainer) }),
      containers: spec.containers.map(shortContainer),
      ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(shortContainer) }),
      ...(spec.restartPolicy && { restartPolicy: spec.restartPolicy }),
      ...(spec.nodeName !== undefined && { nodeName: spec.nodeName }),
      ...(spec.hostNetwork && { hostNetwork: true }),
    },
    status,
  };
}
