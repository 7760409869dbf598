/** What every window of the agent (local API, commands) looks at: answers as plain data, asked for when somebody looks. */
import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import type { EphemeralContainer } from '../api/v1.ts';
import type { StreamTarget } from '../container/runtime.ts';
import type { NodeObject } from '../node/info.ts';
import type { Answered } from './answered.ts';
import type { DebugRequest } from './debug.ts';
import type { Finding } from './doctorFinding.ts';
import type { ExecAnswer, ExecRequest } from './execCaptured.ts';
import type { ImagesView } from './images.ts';
import type { LogRequest } from './logRequest.ts';
import type { LogAnswer } from './logs.ts';
import type { NodeActRequest } from './nodeActs.ts';
import type { ListedObject } from './objects.ts';
import type { Done, PodActRequest } from './podActs.ts';
import type { StatsView } from './stats.ts';
import type { StreamRequest } from './streamRequest.ts';

export type { ExecAnswer, ExecRequest } from './execCaptured.ts';
export type { NodeActRequest } from './nodeActs.ts';
export type { Done, PodActRequest } from './podActs.ts';

export interface NodeCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export interface HealthCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
}

export interface AgentView {
  readonly nodeName: string;
  readonly version: string;
  /** The pods whole: metadata, spec after defaults, status; sorted by namespace and name. */
  pods(): readonly ToldPod[];
  /** One answer for each object of each source. */
  sync(): readonly SyncStatus[];
  /** The accepted ConfigMaps and Secrets without their values. Left out: there are none. */
  objects?(): readonly ListedObject[];
  /** Files that have something to say. */
  files(): readonly FileStatus[];
  events(filter: { readonly namespace?: string; readonly name?: string }): readonly V1Event[];
  conditions(): readonly NodeCondition[];
  /** The node as a `v1 Node`, read at the question. */
  readonly node?: () => Promise<NodeObject>;
  health(): readonly HealthCheck[];
  /** Rejects when the runtime or the file does not answer. The signal ends the stream. */
  logs(request: LogRequest, signal: AbortSignal): Promise<LogAnswer>;
  /** Where the runtime serves this session. Rejects when it does not answer. */
  stream(request: StreamRequest): Promise<Answered<StreamTarget>>;
  /** Adds an ephemeral container to a pod: on the card when it resolves, started as soon as may be. Rejects when it cannot be stored. */
  debug(request: DebugRequest): Promise<Answered<EphemeralContainer>>;
  /** Runs a command in a container to its end. Rejects when the runtime does not answer. */
  execCaptured(request: ExecRequest, signal?: AbortSignal): Promise<Answered<ExecAnswer>>;
  /**
   * Begins it: what it needs is on the card when it resolves, and containers end and start after that. Rejects when it cannot be stored.
   */
  act(request: PodActRequest): Promise<Answered<Done>>;
  /** The same for the node. `identify` resolves when the light blinks. Rejects when something cannot be stored. */
  nodeAct(request: NodeActRequest): Promise<Answered<Done>>;
  /** Everything that helps to find out what is wrong, as JSON of at most 1 MiB, without secrets. A part that cannot be had says why. */
  bundle(signal: AbortSignal): Promise<Answered<object>>;
  /** What `podsched doctor` finds, looked for now. Left out: nobody looks. */
  readonly doctor?: () => Promise<readonly Finding[]>;
  /** The node's images; undefined: the agent does not look after them. */
  readonly images?: ImagesView;
  /** What pods and the node use; undefined: nobody measures it. */
  readonly stats?: StatsView;
  /** The configuration in force, by dotted path. Secrets are files, so nothing here is secret. */
  configuration(): Readonly<Record<string, unknown>>;
}
