/** What every window of the agent (local API, commands) looks at: answers as plain data, asked for when somebody looks. */
import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import type { EphemeralContainer } from '../api/v1.ts';
import type { StreamTarget } from '../container/runtime.ts';
import type { NodeObject } from '../node/info.ts';
import type { Answered } from './answered.ts';
import type { DebugRequest } from './debug.ts';
import type { HoldAnswer, HoldRequest } from './hold.ts';
import type { ImagesView } from './images.ts';
import type { LogRequest } from './logRequest.ts';
import type { LogAnswer } from './logs.ts';
import type { ListedObject } from './objects.ts';
import type { StatsView } from './stats.ts';
import type { StreamRequest } from './streamRequest.ts';

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
  /** Edits of the pod wait, or go on: on the card when it resolves. Rejects when it cannot be stored. */
  hold(request: HoldRequest): Promise<Answered<HoldAnswer>>;
  /** The node's images; undefined: the agent does not look after them. */
  readonly images?: ImagesView;
  /** What pods and the node use; undefined: nobody measures it. */
  readonly stats?: StatsView;
  /** The configuration in force, by dotted path. Secrets are files, so nothing here is secret. */
  configuration(): Readonly<Record<string, unknown>>;
}
