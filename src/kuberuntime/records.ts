// pure
/** A pod's container records as the decisions read them: newest first, so the record of a name is the first match. */
import type { ProbeResult } from '../container/probes.ts';
import type { ContainerId, ContainerStatus, RuntimePodStatus } from '../container/words.ts';
import { annotations } from '../container/words.ts';

/** Why a container is killed; '' when its definition changed or its pod ends. It chooses the grace (facts 7.1). */
export type KillReason = '' | 'LivenessProbe' | 'StartupProbe' | 'Unknown';

export interface ContainerToKill {
  readonly id: ContainerId;
  readonly name: string;
  readonly reason: KillReason;
  /** The text of the Killing event. */
  readonly message: string;
  /** By a person: it ends together with the others that were asked for. */
  readonly asked?: true;
}

export interface ActionInputs {
  /** The hash wanted for a container of the pod. */
  hashOf(name: string): string;
  /** Whether a record made with `recorded` ('' when it carries none) is of the wanted definition; `id` for what adoption remembers. */
  sameHash(recorded: string, wanted: string, id: ContainerId): boolean;
  liveness(id: ContainerId): ProbeResult | undefined;
  startup(id: ContainerId): ProbeResult | undefined;
  /** A deletion is wanted: nothing starts again. */
  readonly deleting: boolean;
  /** A running record was made with other values of a ConfigMap or Secret, and its pod asks for a restart then. Left out: no pod asks. */
  configChanged?(record: ContainerStatus): boolean;
  /** A running record has lost a device, and can have it again. Left out: none has. */
  deviceBack?(record: ContainerStatus): boolean;
  /** A person asked for a restart of this record. Left out: nobody did. */
  restartAsked?(record: ContainerStatus): boolean;
}

/** The newest record of a container name. */
export const recordOf = (status: RuntimePodStatus, name: string): ContainerStatus | undefined =>
  status.containers.find((c) => c.name === name);

/** Whether a running record is of another definition than the wanted one. */
export const definitionChanged = (record: ContainerStatus, o: ActionInputs): boolean =>
  !o.sameHash(record.annotations[annotations.ourContainerHash] ?? '', o.hashOf(record.name), record.id);

/** The end of a Killing event's text, after the container's name. */
export const configChangedText = ': a ConfigMap or Secret it uses changed';
export const deviceBackText = ': a device it had lost is back';
export const restartAskedText = ': a restart was asked for';
