// pure
/** The containers of a pod, of whatever sort. A name is one container's only. */
import type { Container, EphemeralContainer, PodSpec } from './v1.ts';

type Containers = Pick<PodSpec, 'initContainers' | 'containers' | 'ephemeralContainers'>;

/** Init, app and ephemeral containers. */
export const everyContainer = (spec: Containers): readonly (Container | EphemeralContainer)[] => [
  ...(spec.initContainers ?? []),
  ...spec.containers,
  ...(spec.ephemeralContainers ?? []),
];

/** undefined: the pod has none of this name. */
export const containerNamed = (spec: Containers, name: string): Container | EphemeralContainer | undefined =>
  everyContainer(spec).find((c) => c.name === name);
