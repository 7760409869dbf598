// pure
/**
 * Schemas of what is told in Kubernetes' shapes (`v1 Pod`, `v1 Node`, `v1 Event`) as far as it is told, and of what is neither ours nor theirs:
 * the signed envelope, the marker, Home Assistant's message. The types of the v1 shapes stand in status.ts and v1.ts; the documents of the
 * contract are written from these, and a test holds them against what is really told. Readers ignore what they do not know.
 */
import { type TSchema, Type } from '@sinclair/typebox';

const text = (description?: string) => Type.String(description === undefined ? {} : { description });
const time = (description?: string) => text(description ?? 'RFC 3339, whole seconds');
const texts = (description?: string) => Type.Record(Type.String(), Type.String(), description === undefined ? {} : { description });
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const oneOf = (...values: readonly string[]) => Type.Union(values.map((v) => Type.Literal(v)));
const stamps =
  '`podsched.dev/boot` and `podsched.dev/seq` order payloads; `podsched.dev/truncated` says what was left out to keep the payload small';

const stamped = (more: Readonly<Record<string, TSchema>>) =>
  Type.Object({
    ...more,
    annotations: Type.Intersect(
      [
        texts(),
        Type.Object({
          'podsched.dev/boot': Type.String({ pattern: '^[0-9]+$' }),
          'podsched.dev/seq': Type.String({ pattern: '^[0-9]+$' }),
          'podsched.dev/truncated': optional(Type.String()),
        }),
      ],
      { description: stamps },
    ),
  });

const condition = Type.Object({
  type: Type.String(),
  status: oneOf('True', 'False', 'Unknown'),
  lastTransitionTime: optional(time()),
  reason: optional(text()),
  message: optional(text()),
});

const terminated = Type.Object({
  exitCode: Type.Integer(),
  reason: optional(text()),
  message: optional(text()),
  startedAt: optional(time()),
  finishedAt: optional(time()),
  containerID: optional(text()),
});
const state = Type.Object({
  waiting: optional(Type.Object({ reason: optional(text()), message: optional(text()) })),
  running: optional(Type.Object({ startedAt: time() })),
  terminated: optional(terminated),
});
const containerStatus = Type.Object({
  name: Type.String(),
  state,
  lastState: state,
  ready: Type.Boolean(),
  restartCount: Type.Integer({ minimum: 0 }),
  image: Type.String(),
  imageID: Type.String(),
  containerID: optional(text()),
  started: optional(Type.Boolean()),
  volumeMounts: optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        mountPath: Type.String(),
        readOnly: optional(Type.Boolean()),
        recursiveReadOnly: optional(text()),
      }),
    ),
  ),
});
const quantity = Type.Union([Type.String(), Type.Number()], { description: 'a quantity: 500m, 64Mi, 2' });
const quantities = optional(Type.Record(Type.String(), quantity));
const container = Type.Object({
  name: Type.String(),
  image: Type.String(),
  restartPolicy: optional(text('Always: a sidecar')),
  ports: optional(
    Type.Array(
      Type.Object({
        name: optional(text()),
        containerPort: Type.Integer(),
        hostPort: optional(Type.Integer()),
        protocol: optional(text()),
        hostIP: optional(text()),
      }),
    ),
  ),
  resources: optional(Type.Object({ limits: quantities, requests: quantities })),
});
const ips = optional(Type.Array(Type.Object({ ip: Type.String() })));
const containerStatuses = optional(Type.Array(containerStatus));

export const ToldPodSchema = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('Pod'),
    metadata: stamped({
      name: Type.String(),
      namespace: Type.String(),
      uid: Type.String(),
      creationTimestamp: time('when it was first seen'),
      deletionTimestamp: optional(time('it is ending; when its grace is over')),
      deletionGracePeriodSeconds: optional(Type.Integer({ minimum: 0 })),
      labels: optional(texts()),
    }),
    spec: Type.Object(
      {
        initContainers: optional(Type.Array(container)),
        containers: Type.Array(container),
        ephemeralContainers: optional(Type.Array(container)),
        restartPolicy: optional(oneOf('Always', 'OnFailure', 'Never')),
        nodeName: optional(text()),
        hostNetwork: optional(Type.Boolean()),
      },
      { description: 'names, images, ports and resources; never values of variables, commands or volumes' },
    ),
    status: Type.Object({
      phase: oneOf('Pending', 'Running', 'Succeeded', 'Failed'),
      conditions: optional(Type.Array(condition)),
      message: optional(text()),
      reason: optional(text()),
      hostIP: optional(text()),
      hostIPs: ips,
      podIP: optional(text()),
      podIPs: ips,
      startTime: optional(time()),
      initContainerStatuses: containerStatuses,
      containerStatuses,
      ephemeralContainerStatuses: containerStatuses,
      qosClass: optional(oneOf('Guaranteed', 'Burstable', 'BestEffort')),
    }),
  },
  { description: 'v1 Pod, as far as it is told' },
);

export const ToldNodeSchema = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('Node'),
    metadata: stamped({ name: Type.String(), labels: texts() }),
    status: Type.Object({
      capacity: quantities,
      allocatable: quantities,
      addresses: Type.Array(Type.Object({ type: oneOf('InternalIP', 'Hostname'), address: Type.String() })),
      conditions: Type.Array(condition),
      nodeInfo: Type.Intersect([
        texts(),
        Type.Object({
          machineID: text('hash of the board, as in NodeOnline'),
          bootID: text(),
          kernelVersion: text(),
          containerRuntimeVersion: text('empty: not known yet'),
          kubeletVersion: text('podsched and its version'),
          operatingSystem: text(),
          architecture: text(),
        }),
      ]),
    }),
  },
  { description: 'v1 Node, as far as it is told' },
);

export const ToldEventSchema = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('Event'),
    metadata: stamped({ name: Type.String(), namespace: Type.String() }),
    involvedObject: Type.Object({
      kind: Type.String(),
      namespace: Type.String(),
      name: Type.String(),
      uid: optional(text()),
      apiVersion: optional(text()),
      fieldPath: optional(text('the container: spec.containers{web}')),
    }),
    type: oneOf('Normal', 'Warning'),
    reason: text('CamelCase; see docs/reasons.md'),
    message: text(),
    source: Type.Object({ component: Type.String(), host: Type.String() }),
    firstTimestamp: time(),
    lastTimestamp: time(),
    count: Type.Integer({ minimum: 1, description: 'repeats within 10 minutes are one event' }),
  },
  { description: 'v1 Event, as far as it is told' },
);

export const MarkerSchema = Type.Object({
  apiVersion: Type.Literal('podsched.dev/v1'),
  kind: Type.Literal('Marker'),
  id: text('of this connection and this marker'),
});

export const EnvelopeSchema = Type.Object(
  {
    payloadType: Type.String({ pattern: '^application/vnd\\.podsched\\.(manifest\\+(yaml|json)|(command|index|config)\\+json)$' }),
    payload: text('base64'),
    signatures: Type.Array(
      Type.Object({ keyid: optional(text('of a key in keys.d')), sig: text('base64, ed25519 over the pre-authentication encoding') }),
      { minItems: 1 },
    ),
  },
  { description: 'DSSE: what is inside, and who signed it' },
);

export const ManifestSchema = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: oneOf('Pod', 'ConfigMap', 'Secret'),
    metadata: Type.Object({
      name: Type.String(),
      namespace: optional(text('absent: that of the topic')),
      labels: optional(texts()),
      annotations: optional(
        texts('podsched.dev/generation, rollout, audience; `podsched.dev/state: absent` alone is a tombstone: the object is to go'),
      ),
    }),
  },
  { description: 'one object as Kubernetes shapes it; YAML is taken too' },
);

const component = Type.Object(
  { p: oneOf('binary_sensor', 'sensor', 'button') },
  { description: 'platform, and the keys of Home Assistant for it; the platform alone: it is removed' },
);
export const HomeAssistantSchema = Type.Object(
  {
    dev: Type.Object({
      ids: Type.Array(Type.String()),
      name: Type.String(),
      mdl: optional(text()),
      mf: optional(text()),
      sn: optional(text()),
      sw: optional(text()),
    }),
    origin: Type.Object({ name: Type.String(), sw: Type.String() }),
    qos: Type.Literal(1),
    cmps: Type.Record(Type.String(), component),
  },
  { description: 'device discovery of Home Assistant’s MQTT integration' },
);
