/**
 * What an agent asks of a runtime, written down as the recordings of the kubelet are: a proxy in front of the socket that decodes each request
 * with the product's own CRI messages and passes it on untouched. Sandboxes and containers are known by pod and name, not by id.
 */
import { type DescField, type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import {
  ContainerConfigSchema,
  CreateContainerRequestSchema,
  CreateContainerResponseSchema,
  ExecSyncRequestSchema,
  PodSandboxConfigSchema,
  RemoveContainerRequestSchema,
  RemovePodSandboxRequestSchema,
  RunPodSandboxRequestSchema,
  RunPodSandboxResponseSchema,
  StartContainerRequestSchema,
  StopContainerRequestSchema,
  StopPodSandboxRequestSchema,
} from '../../src/cri/gen/cri_pb.ts';
import type { Json } from '../conformance/kubelet-1.32/recording.ts';
import { startCriProxy } from './criProxy.ts';

export interface RecordedCall {
  readonly phase: string;
  readonly call: string;
  /** `namespace/name` of the pod. */
  readonly pod: string;
  readonly container?: string;
  readonly attempt?: number;
  /** Seconds. */
  readonly timeout?: number;
  readonly cmd?: readonly string[];
  /** undefined: not answered yet. */
  ok?: boolean;
}

export interface CriRecorder {
  readonly endpoint: string;
  /** Written into each call that comes. */
  phase: string;
  readonly calls: readonly RecordedCall[];
  /** The first sandbox config of each pod. */
  readonly sandboxes: ReadonlyMap<string, Json>;
  /** The first config of each container: `namespace/name container`. */
  readonly containers: ReadonlyMap<string, Json>;
  close(): Promise<void>;
}

const isObject = (v: unknown): v is Readonly<Record<string, unknown>> => typeof v === 'object' && v !== null;

function element(field: DescField, value: unknown): Json {
  const message = 'message' in field ? field.message : undefined;
  const names = 'enum' in field ? field.enum : undefined;
  if (message !== undefined && isObject(value)) return words(message, value as MessageShape<DescMessage>);
  if (names !== undefined) return names.values.find((v) => v.number === value)?.name ?? String(value);
  return typeof value === 'bigint' ? Number(value) : (value as Json);
}

/** A message in the recordings' words: the interface's own field names, enums by name, zero values left out. */
export function words<D extends DescMessage>(schema: D, message: MessageShape<D>): Json {
  const read = message as unknown as Readonly<Record<string, unknown>>;
  const out: { [key: string]: Json } = {};
  for (const field of schema.fields) {
    const value = read[field.localName];
    switch (field.fieldKind) {
      case 'list':
        if (Array.isArray(value) && value.length > 0) out[field.name] = value.map((v) => element(field, v));
        break;
      case 'map':
        if (isObject(value) && Object.keys(value).length > 0)
          out[field.name] = Object.fromEntries(Object.entries(value).map(([k, v]) => [k, element(field, v)]));
        break;
      case 'message':
        if (value !== undefined) out[field.name] = element(field, value);
        break;
      case 'enum':
      case 'scalar':
        if (value !== undefined && value !== 0 && value !== 0n && value !== '' && value !== false) out[field.name] = element(field, value);
        break;
    }
  }
  return out;
}

/** A call without what the recorder adds. */
type Asked = Omit<RecordedCall, 'phase' | 'call' | 'ok'>;

/** Listens on `path` and records what goes to the runtime's socket `target`. */
export async function startCriRecorder(path: string, target: string): Promise<CriRecorder> {
  const proxy = await startCriProxy(path, target);
  const calls: RecordedCall[] = [];
  const sandboxes = new Map<string, Json>();
  const containers = new Map<string, Json>();
  const podOf = new Map<string, string>();
  const containerOf = new Map<string, { readonly pod: string; readonly container: string }>();
  const recorder: CriRecorder = { endpoint: proxy.endpoint, phase: '', calls, sandboxes, containers, close: proxy.close };

  const sandbox = (id: string): Asked => ({ pod: podOf.get(id) ?? id });
  const container = (id: string) => containerOf.get(id) ?? { pod: '', container: id };

  /** What a call is about, and what its answer teaches; undefined: it only asks. */
  const read = (method: string, bytes: Buffer): { asked: Asked; learn?: (answer: Buffer) => void } | undefined => {
    switch (method) {
      case 'RunPodSandbox': {
        const { config } = fromBinary(RunPodSandboxRequestSchema, bytes);
        if (config === undefined) return undefined;
        const pod = `${config.metadata?.namespace}/${config.metadata?.name}`;
        if (!sandboxes.has(pod)) sandboxes.set(pod, words(PodSandboxConfigSchema, config));
        return {
          asked: { pod, attempt: config.metadata?.attempt ?? 0 },
          learn: (a) => podOf.set(fromBinary(RunPodSandboxResponseSchema, a).podSandboxId, pod),
        };
      }
      case 'CreateContainer': {
        const { config, podSandboxId } = fromBinary(CreateContainerRequestSchema, bytes);
        if (config === undefined) return undefined;
        const { pod } = sandbox(podSandboxId);
        const name = config.metadata?.name ?? '';
        const key = `${pod} ${name}`;
        if (!containers.has(key)) containers.set(key, words(ContainerConfigSchema, config));
        return {
          asked: { pod, container: name, attempt: config.metadata?.attempt ?? 0 },
          learn: (a) => containerOf.set(fromBinary(CreateContainerResponseSchema, a).containerId, { pod, container: name }),
        };
      }
      case 'StartContainer':
        return { asked: container(fromBinary(StartContainerRequestSchema, bytes).containerId) };
      case 'StopContainer': {
        const { containerId, timeout } = fromBinary(StopContainerRequestSchema, bytes);
        return { asked: { ...container(containerId), timeout: Number(timeout) } };
      }
      case 'ExecSync': {
        const { containerId, cmd, timeout } = fromBinary(ExecSyncRequestSchema, bytes);
        return { asked: { ...container(containerId), cmd, timeout: Number(timeout) } };
      }
      case 'RemoveContainer':
        return { asked: container(fromBinary(RemoveContainerRequestSchema, bytes).containerId) };
      case 'StopPodSandbox':
        return { asked: sandbox(fromBinary(StopPodSandboxRequestSchema, bytes).podSandboxId) };
      case 'RemovePodSandbox':
        return { asked: sandbox(fromBinary(RemovePodSandboxRequestSchema, bytes).podSandboxId) };
      default:
        return undefined;
    }
  };

  proxy.listen = (callPath, bytes) => {
    const call = callPath.slice(callPath.lastIndexOf('/') + 1);
    const heard = read(call, bytes);
    if (heard === undefined) return undefined;
    const entry: RecordedCall = { phase: recorder.phase, call, ...heard.asked };
    calls.push(entry);
    return (answer) => {
      entry.ok = answer !== undefined;
      if (answer !== undefined) heard.learn?.(answer);
    };
  };
  return recorder;
}
