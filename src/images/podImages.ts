// pure
/** Every image that a pod names. */
import type { Pod } from '../api/v1.ts';

/** As written: of init, app and ephemeral containers, and of image volumes; one that several name comes once. */
export function podImages({ spec }: Pick<Pod, 'spec'>): string[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])].map((c) => c.image);
  const volumes = (spec.volumes ?? []).map((v) => v.image?.reference);
  return [...new Set([...containers, ...volumes].filter((text): text is string => text !== undefined && text !== ''))];
}
