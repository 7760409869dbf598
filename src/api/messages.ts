// pure
/**
 * The payloads that come to a node and that it answers with (`podsched.dev/v1`), each written once, as in `payloads.ts`: a TypeBox schema and
 * the type inferred from it. Import the types with `import type`; readers check by hand what they use, since everything that arrives is hostile.
 */
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { verbs } from './verbs.ts';

type DeepReadonly<T> = T extends readonly (infer U)[]
  ? readonly DeepReadonly<U>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

const oneOf = <const T extends readonly string[]>(values: T, description?: string) =>
  Type.Unsafe<T[number]>(
    Type.Union(
      values.map((v) => Type.Literal(v)),
      description === undefined ? {} : { description },
    ),
  );
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const apiVersion = Type.Literal('podsched.dev/v1');
const stamp = {
  boot: Type.Integer({ minimum: 0, description: 'counter of kernel boots; readers order payloads by (boot, seq)' }),
  seq: Type.Integer({ minimum: 0, description: 'rises with each payload within a boot, over agent restarts too' }),
};

export const CommandSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('Command'),
  id: optional(Type.String({ maxLength: 128, description: 'a known one is answered from the cache for 10 minutes' })),
  target: optional(
    Type.Object({
      namespace: optional(Type.String({ description: 'absent: default' })),
      pod: optional(Type.String()),
      container: optional(Type.String()),
    }),
  ),
  args: optional(Type.Record(Type.String(), Type.Unknown(), { description: 'what the verb takes' })),
  replyTo: optional(Type.String({ description: 'P/reply/<one level>/<node>; the response topic of MQTT 5 wins over it' })),
  session: optional(Type.Integer({ description: 'of the node’s online; another than the current one: expired' })),
  bootID: optional(Type.String({ description: 'of the node’s online; a signed command has it' })),
  node: optional(Type.String({ description: 'for whom it is; a signed command has it' })),
  verb: optional(oneOf(verbs, 'as in the topic; a signed command has it')),
});
export type Command = DeepReadonly<Static<typeof CommandSchema>>;

export const ReplySchema = Type.Object({
  apiVersion,
  kind: Type.Literal('Reply'),
  id: Type.String({ description: 'of the command; empty when it had none' }),
  node: Type.String(),
  verb: Type.String(),
  status: oneOf(['accepted', 'running', 'ok', 'error', 'denied', 'expired', 'tooLarge']),
  reason: optional(Type.String({ description: 'CamelCase: why it was not done' })),
  message: optional(Type.String({ description: 'for people' })),
  chunk: optional(Type.Object({ seq: Type.Integer({ minimum: 0 }), last: Type.Boolean() })),
  stream: optional(oneOf(['stdout', 'stderr'], 'of exec: which of the two the data is of; stdout comes first')),
  encoding: optional(Type.Literal('base64', { description: 'of data that is no UTF-8' })),
  data: optional(Type.String({ description: 'a piece of the answer; JSON answers are whole when all pieces are put together' })),
  exitCode: optional(Type.Integer({ description: 'of exec' })),
  truncated: optional(Type.String({ description: 'what was left out for want of room' })),
  ...stamp,
});
export type Reply = DeepReadonly<Static<typeof ReplySchema>>;
export type ReplyStatus = Reply['status'];

export const LogLinesSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('LogLines'),
  node: Type.String(),
  namespace: Type.String(),
  pod: Type.String(),
  container: Type.String(),
  chunk: Type.Object({
    seq: Type.Integer({ minimum: 0, description: 'from 0 for each following; a missing one was lost on its way (QoS 0)' }),
    last: Type.Boolean({ description: 'nothing follows; reason says why' }),
  }),
  encoding: optional(Type.Literal('base64', { description: 'of data that is no UTF-8' })),
  data: Type.String({ description: 'a piece of the log: lines with their newlines' }),
  dropped: optional(Type.Integer({ minimum: 1, description: 'lines left out before this piece: they came faster than they may be told' })),
  reason: optional(Type.String({ description: 'of the last: LeaseEnded, ContainerEnded, LogFailed' })),
  message: optional(Type.String()),
  ...stamp,
});
export type LogLines = DeepReadonly<Static<typeof LogLinesSchema>>;

export const DesiredIndexSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('DesiredIndex'),
  generation: Type.Integer({ minimum: 0, description: 'of the index itself: it must not fall' }),
  parts: optional(Type.Integer({ minimum: 1, maximum: 100, description: 'how many _index topics there are; absent: 1' })),
  part: optional(Type.Integer({ minimum: 0, maximum: 100, description: 'of the topic it is on, 0 is _index itself; a signed one has it' })),
  audience: optional(Type.String({ description: 'the topic it is for: a node, group:<g> or *; a signed one has it' })),
  entries: Type.Array(
    Type.Object({
      kind: oneOf(['Pod', 'ConfigMap', 'Secret']),
      ns: Type.String(),
      name: Type.String(),
      sha256: Type.String({ description: 'the first 16 hex digits of SHA-256 over the bytes of the payload' }),
      generation: optional(Type.Integer({ minimum: 0 })),
    }),
    { maxItems: 1000 },
  ),
});
export type DesiredIndex = DeepReadonly<Static<typeof DesiredIndexSchema>>;

export const NodeConfigSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('NodeConfig'),
  generation: optional(Type.Integer({ minimum: 0, description: 'it must not fall; a signed one has it' })),
  audience: optional(Type.String({ description: 'the node it is for; a signed one has it' })),
  groups: optional(Type.Array(Type.String(), { maxItems: 32 })),
  labels: optional(Type.Record(Type.String(), Type.String(), { description: 'beside and over those of the file' })),
  heartbeatSeconds: optional(Type.Integer({ minimum: 5, maximum: 86_400 })),
  logLevel: optional(oneOf(['debug', 'info', 'warn', 'error'])),
});
export type NodeConfig = DeepReadonly<Static<typeof NodeConfigSchema>>;

export const RolloutSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('Rollout'),
  id: Type.String(),
  waves: Type.Array(
    Type.Object({
      selector: optional(Type.Record(Type.String(), Type.String(), { description: 'labels of the node, all of them' })),
      percent: Type.Integer({ minimum: 0, maximum: 100, description: 'of all nodes that fit, by a stable hash' }),
    }),
    { maxItems: 100 },
  ),
  gate: Type.Integer({ minimum: 0, description: 'waves up to this number, counted from 1, take the new revision; 0: none yet' }),
  bakeSeconds: optional(Type.Integer({ minimum: 0 })),
  abortAfterFailures: optional(Type.Integer({ minimum: 1 })),
  state: optional(oneOf(['running', 'done', 'aborted'], 'for people; nodes go by the gate')),
});
export type Rollout = DeepReadonly<Static<typeof RolloutSchema>>;

export const NodeSummarySchema = Type.Object({
  apiVersion,
  kind: Type.Literal('NodeSummary'),
  node: Type.String(),
  uptimeSeconds: Type.Integer({ minimum: 0 }),
  pods: Type.Object({ desired: Type.Integer(), running: Type.Integer(), ready: Type.Integer() }),
  restartsLastHour: Type.Integer({ minimum: 0 }),
  alerts: Type.Array(Type.String({ description: 'type of a node condition that is not as it should be, or a pod that is not' }), {
    maxItems: 20,
  }),
  cpuPercent: optional(Type.Number()),
  memoryBytes: optional(Type.Integer({ description: 'working set of the node' })),
  memoryTotalBytes: optional(Type.Integer()),
  temperatureCelsius: optional(Type.Number()),
  diskWrittenBytes: optional(Type.Integer({ description: 'since the machine started' })),
  ...stamp,
});
export type NodeSummary = DeepReadonly<Static<typeof NodeSummarySchema>>;

const used = {
  cpu: optional(
    Type.Object({
      usageNanoCores: optional(Type.Integer({ minimum: 0, description: 'billionths of a core, now' })),
      usageCoreNanoSeconds: optional(Type.Integer({ minimum: 0, description: 'since it began' })),
    }),
  ),
  memory: optional(
    Type.Object({
      availableBytes: optional(Type.Integer({ minimum: 0 })),
      workingSetBytes: optional(Type.Integer({ minimum: 0, description: 'what cannot be given back easily' })),
    }),
  ),
};
export const NodeMetricsSchema = Type.Object({
  apiVersion,
  kind: Type.Literal('NodeMetrics'),
  node: Type.Object({ nodeName: Type.String(), time: Type.String({ description: 'RFC 3339: when it was measured' }), ...used }),
  pods: Type.Array(
    Type.Object({
      podRef: Type.Object({ name: Type.String(), namespace: Type.String(), uid: Type.String() }),
      ...used,
      containers: optional(Type.Array(Type.Object({ name: Type.String(), ...used }))),
    }),
    { description: 'those of which something runs' },
  ),
  truncated: optional(Type.String({ description: 'what was left out to keep the payload small' })),
  ...stamp,
});
export type NodeMetrics = DeepReadonly<Static<typeof NodeMetricsSchema>>;
