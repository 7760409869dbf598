// pure
/** Where a container stands in its pod, as events name it. */
import type { Pod } from '../api/v1.ts';

/** `spec.containers{web}`, `spec.initContainers{setup}`, `spec.ephemeralContainers{debug}`; undefined when the pod has no such container. */
export function containerFieldPath(pod: Pod, name: string): string | undefined {
  if (pod.spec.containers.some((c) => c.name === name)) return `spec.containers{${name}}`;
  if (pod.spec.initContainers?.some((c) => c.name === name)) return `spec.initContainers{${name}}`;
  if (pod.spec.ephemeralContainers?.some((c) => c.name === name)) return `spec.ephemeralContainers{${name}}`;
  return undefined;
}
