// pure
/**
 * The payloads of our own kinds (`podsched.dev/v1`), each written once: a TypeBox schema, and the type inferred from it. Import the types with
 * `import type`: then the schemas, and typebox with them, stay out of the bundle; tests and the documentation use the schemas.
 * Unknown fields are ignored by readers, and fields are only ever added within v1.
 */
import { type Static, type TSchema, Type } from '@sinclair/typebox';

type DeepReadonly<T> = T extends readonly (infer U)[]
  ? readonly DeepReadonly<U>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

const oneOf = <const T extends readonly string[]>(values: T) => Type.Unsafe<T[number]>(Type.Union(values.map((v) => Type.Literal(v))));
const list = <T extends TSchema>(items: T) => Type.Array(items);

const stamp = {
  boot: Type.Integer({ minimum: 0, description: 'counter of kernel boots; readers order payloads by (boot, seq)' }),
  seq: Type.Integer({ minimum: 0, description: 'rises with each payload within a boot, over agent restarts too' }),
};
const apiVersion = Type.Literal('podsched.dev/v1');

export const NodeOnlineSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('NodeOnline'),
  node: Type.String(),
  state: oneOf(['online', 'offline', 'lost', 'duplicate']),
  machine: Type.String({ description: 'hash of the board, to tell two boards of one name apart' }),
  bootID: Type.String({ description: 'the kernel’s boot id' }),
  session: Type.Integer({ description: 'CLOCK_MONOTONIC in ms at CONNECT; a will of an older session is ignored' }),
  heartbeatSeconds: Type.Integer({ minimum: 1, description: 'stale when nothing was heard for three of these' }),
  agentVersion: Type.String(),
  contract: Type.Integer({ description: 'version of the MQTT contract' }),
  clockSynced: Type.Boolean({ description: 'false: times in payloads of this node may be wrong' }),
  ...stamp,
});
export type NodeOnline = DeepReadonly<Static<typeof NodeOnlineSchema>>;

export const ProblemSchema = Type.Object({
  path: Type.String({ description: 'field path, as spec.containers[0].image' }),
  file: Type.Optional(Type.String()),
  line: Type.Optional(Type.Integer({ minimum: 1 })),
  column: Type.Optional(Type.Integer({ minimum: 1 })),
  expected: Type.String(),
  got: Type.String(),
  nearest: Type.Optional(Type.String({ description: 'the known name or value most like what was written' })),
});
export type ToldProblem = DeepReadonly<Static<typeof ProblemSchema>>;

const objectRef = Type.Object({ kind: Type.String(), namespace: Type.String(), name: Type.String() });
const truncated = Type.Optional(Type.String({ description: 'what was left out to keep the payload small' }));

export const SyncStatusSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('SyncStatus'),
  object: objectRef,
  phase: oneOf([
    'Accepted',
    'Waiting',
    'Running',
    'Completed',
    'Failed',
    'Refused',
    'UpdateBlocked',
    'RolledBack',
    'Held',
    'Stopped',
    'Terminating',
    'SourceGone',
  ]),
  reason: Type.String({ description: 'CamelCase: what blocks, or what is; see docs/reasons.md' }),
  message: Type.String(),
  desired: Type.Optional(
    Type.Object(
      { source: Type.String(), revision: Type.String(), generation: Type.Optional(Type.Integer()) },
      { description: 'the winner; absent when no source has an accepted object' },
    ),
  ),
  running: Type.Optional(Type.Object({ revision: Type.String(), uid: Type.String() })),
  nextRetrySeconds: Type.Optional(Type.Integer({ minimum: 0, description: 'when this was told' })),
  sources: list(
    Type.Object({
      source: Type.String({ description: 'file:<name>, mqtt:node, mqtt:group/<g>, mqtt:all' }),
      revision: Type.Optional(Type.String()),
      generation: Type.Optional(Type.Integer()),
      phase: oneOf(['Accepted', 'Waiting', 'Refused', 'Shadowed']),
      reason: Type.String(),
      message: Type.String(),
      problems: list(ProblemSchema),
    }),
  ),
  truncated,
  ...stamp,
});
export type SyncStatus = DeepReadonly<Static<typeof SyncStatusSchema>>;
export type SyncPhase = SyncStatus['phase'];

export const FileStatusSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('FileStatus'),
  file: Type.String(),
  objects: list(objectRef),
  problems: list(ProblemSchema),
  truncated,
  ...stamp,
});
export type FileStatus = DeepReadonly<Static<typeof FileStatusSchema>>;

/** A payload before it is told: boot and seq are of the moment of telling. */
export type Unstamped<T extends { readonly boot: number; readonly seq: number }> = T extends unknown ? Omit<T, 'boot' | 'seq'> : never;
export type SyncBody = Unstamped<SyncStatus>;
export type FileBody = Unstamped<FileStatus>;
