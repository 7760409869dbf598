// pure
/**
 * What the status shows of probes (facts 8.3). A container is judged by the probes it was started with; one that nobody has looked at yet by
 * those of the manifest, so that it is never taken for ready for a moment.
 */
import type { DesiredPod } from '../api/desired.ts';
import { isSidecar } from '../api/resources.ts';
import type { Container } from '../api/v1.ts';
import type { ProbeResult, ProbeView } from '../container/probes.ts';
import { annotations, type ContainerId, type ContainerStatus } from '../container/words.ts';
import { type ProbeType, probeOf } from './turn.ts';

/** App containers and sidecars; a plain init container is not probed. */
export const probed = ({ pod: { spec } }: DesiredPod): readonly Container[] => [
  ...spec.containers,
  ...(spec.initContainers ?? []).filter(isSidecar),
];

/** The record is of another definition than the wanted one, so it is about to be replaced. Hashes of different schemes tell nothing. */
export function isOtherDefinition(record: Pick<ContainerStatus, 'name' | 'annotations'>, desired: DesiredPod): boolean {
  const made = record.annotations[annotations.ourContainerHash] ?? '';
  const wanted = desired.containerHashes[record.name] ?? '';
  return made !== wanted && schemeOf(made) === schemeOf(wanted);
}

const schemeOf = (hash: string): string | undefined => hash.split(':')[0];

export interface ViewInputs {
  readonly desired: DesiredPod;
  /** The container as it was when this id was first seen. */
  readonly seen: (name: string, id: string) => Container | undefined;
  readonly record: (id: string) => ContainerStatus | undefined;
  /** Only what a probe has found; 'unknown': it has such a probe, which has found nothing yet. */
  readonly found: (id: ContainerId, type: ProbeType) => ProbeResult | undefined;
}

export function probeView({ desired, seen, record, found }: ViewInputs): ProbeView {
  const succeeded = (type: ProbeType, name: string, id: string | undefined): boolean | undefined => {
    const result = id === undefined ? undefined : found(id as ContainerId, type);
    const container = (id === undefined ? undefined : seen(name, id)) ?? probed(desired).find((c) => c.name === name);
    const its = id === undefined ? undefined : record(id);
    // its own probes are not known any more: what they found stands
    if (id !== undefined && its !== undefined && seen(name, id) === undefined && isOtherDefinition(its, desired))
      return result === undefined ? undefined : result === 'success';
    if (container === undefined || probeOf(container, type) === undefined) return undefined;
    return result === 'success';
  };
  return {
    started: (name, id) => succeeded('startup', name, id),
    ready: (name, id) => succeeded('readiness', name, id),
  };
}
