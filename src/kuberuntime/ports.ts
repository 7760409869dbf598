// pure
/** The ports of a pod as the runtime wants them: of app containers only, each once (facts 10.1). */
import type { ContainerPort, Pod } from '../api/v1.ts';
import type { PortMapping } from '../container/runtime.ts';

/** A port given twice in one container counts once: by its name, or by all it says when it has none. */
const identity = (p: ContainerPort): string =>
  p.name || `${p.hostIP?.includes(':') ? 'v6' : 'v4'}-${p.protocol ?? 'TCP'}-${p.hostIP ?? ''}:${p.containerPort}:${p.hostPort ?? 0}`;

/** Ports without a hostPort are included with 0: the runtime sees what the pod listens on. */
export function portMappings(pod: Pod): PortMapping[] {
  return pod.spec.containers.flatMap((c) => {
    const seen = new Set<string>();
    return (c.ports ?? []).flatMap((p): PortMapping[] => {
      const id = identity(p);
      if (seen.has(id)) return [];
      seen.add(id);
      return [{ protocol: p.protocol ?? 'TCP', containerPort: p.containerPort, hostPort: p.hostPort ?? 0, hostIp: p.hostIP ?? '' }];
    });
  });
}
