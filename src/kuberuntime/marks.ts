// pure
/**
 * Labels and annotations on sandboxes and containers: how the pod is known again after the agent, and what an orphan's end needs
 * (facts 10.3). The `io.kubernetes.*` ones are the kubelet's, known to crictl and log shippers.
 * `podsched.dev/pod-hash` and `container-hash` cannot be changed after creation: a contract with every later release.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { Container, ContainerPort, LifecycleHandler } from '../api/v1.ts';
import { annotations, labels } from '../container/words.ts';

const podLabels = (desired: DesiredPod, nodeName: string): Record<string, string> => ({
  [labels.podName]: desired.name,
  [labels.podNamespace]: desired.namespace,
  [labels.podUid]: desired.uid,
  [labels.managed]: nodeName,
});

export const sandboxLabels = (desired: DesiredPod, nodeName: string): Record<string, string> => ({
  ...desired.pod.metadata.labels,
  ...podLabels(desired, nodeName),
});

export const containerLabels = (desired: DesiredPod, container: string, nodeName: string): Record<string, string> => ({
  [labels.containerName]: container,
  ...podLabels(desired, nodeName),
});

/** `started`: when the instance's first sandbox of this boot was made, `<boot id>/<CLOCK_MONOTONIC ms>`. */
export const sandboxAnnotations = (desired: DesiredPod, started: string): Record<string, string> => ({
  ...desired.pod.metadata.annotations,
  // for tools that know a static pod by these
  'kubernetes.io/config.hash': desired.revision,
  'kubernetes.io/config.source': desired.source.split(':')[0] ?? '',
  'kubernetes.io/config.seen': desired.firstSeen,
  [annotations.podHash]: desired.podHash,
  [annotations.source]: desired.source,
  [annotations.started]: started,
});

export function containerAnnotations(desired: DesiredPod, container: Container, attempt: number): Record<string, string> {
  const hash = desired.containerHashes[container.name] ?? '';
  const { deletionGracePeriodSeconds } = desired.pod.metadata;
  const { terminationGracePeriodSeconds } = desired.pod.spec;
  return {
    [annotations.containerHash]: hash,
    [annotations.ourContainerHash]: hash,
    [annotations.restartCount]: String(attempt),
    [annotations.terminationMessagePath]: container.terminationMessagePath ?? '',
    [annotations.terminationMessagePolicy]: container.terminationMessagePolicy ?? '',
    ...(container.lifecycle?.preStop !== undefined && { [annotations.preStopHandler]: handlerText(container.lifecycle.preStop) }),
    ...((container.ports ?? []).length > 0 && { [annotations.ports]: portsText(container) }),
    ...(terminationGracePeriodSeconds !== undefined && { [annotations.terminationGracePeriod]: String(terminationGracePeriodSeconds) }),
    ...(deletionGracePeriodSeconds !== undefined && { [annotations.deletionGracePeriod]: String(deletionGracePeriodSeconds) }),
  };
}

/** The order of keys is that of the Kubernetes type, whatever the manifest's: the same ports give the same text. */
const portsText = (container: Container): string =>
  JSON.stringify(
    (container.ports ?? []).map(({ name, hostPort, containerPort, protocol, hostIP }) => ({
      ...(name && { name }),
      ...(hostPort && { hostPort }),
      containerPort,
      protocol: protocol ?? 'TCP',
      ...(hostIP && { hostIP }),
    })),
  );

/** As Go writes JSON: keys in the order of the type, and `<`, `>` and `&` escaped. */
function handlerText({ exec, httpGet, tcpSocket, sleep }: LifecycleHandler): string {
  const ordered: LifecycleHandler = {
    ...(exec && { exec: { ...(exec.command && { command: exec.command }) } }),
    ...(httpGet && {
      httpGet: {
        ...(httpGet.path && { path: httpGet.path }),
        port: httpGet.port,
        ...(httpGet.host && { host: httpGet.host }),
        ...(httpGet.scheme && { scheme: httpGet.scheme }),
        ...(httpGet.httpHeaders?.length && { httpHeaders: httpGet.httpHeaders.map(({ name, value }) => ({ name, value })) }),
      },
    }),
    ...(tcpSocket && { tcpSocket: { port: tcpSocket.port, ...(tcpSocket.host && { host: tcpSocket.host }) } }),
    ...(sleep && { sleep: { seconds: sleep.seconds } }),
  };
  return JSON.stringify(ordered).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The preStop hook a container was made with; undefined when it has none, or one that cannot be read. */
export function preStopOfAnnotations(marks: Readonly<Record<string, string>>): LifecycleHandler | undefined {
  const handler = readJson(marks[annotations.preStopHandler]);
  if (!isObject(handler)) return undefined;
  const { exec, httpGet, tcpSocket, sleep } = handler;
  if (isObject(exec) && isTexts(exec.command)) return { exec: { command: exec.command } };
  if (isObject(httpGet) && isPort(httpGet.port)) {
    const { port, path, host, scheme, httpHeaders } = httpGet;
    return {
      httpGet: {
        port,
        ...(typeof path === 'string' && { path }),
        ...(typeof host === 'string' && { host }),
        ...((scheme === 'HTTP' || scheme === 'HTTPS') && { scheme }),
        ...(Array.isArray(httpHeaders) && { httpHeaders: httpHeaders.filter(isHeader) }),
      },
    };
  }
  if (isObject(tcpSocket) && isPort(tcpSocket.port)) return { tcpSocket: { port: tcpSocket.port } };
  if (isObject(sleep) && typeof sleep.seconds === 'number') return { sleep: { seconds: sleep.seconds } };
  return undefined;
}

/** The ports a container was made with, as far as they can be read. */
export function portsOfAnnotations(marks: Readonly<Record<string, string>>): ContainerPort[] {
  const ports = readJson(marks[annotations.ports]);
  if (!Array.isArray(ports)) return [];
  return ports.flatMap((port: unknown) =>
    isObject(port) && typeof port.containerPort === 'number'
      ? [
          {
            containerPort: port.containerPort,
            ...(typeof port.name === 'string' && { name: port.name }),
            ...(typeof port.hostPort === 'number' && { hostPort: port.hostPort }),
            ...(isProtocol(port.protocol) && { protocol: port.protocol }),
            ...(typeof port.hostIP === 'string' && { hostIP: port.hostIP }),
          },
        ]
      : [],
  );
}

type Plain = Readonly<Record<string, unknown>>;
const isObject = (v: unknown): v is Plain => typeof v === 'object' && v !== null && !Array.isArray(v);
const isTexts = (v: unknown): v is string[] => Array.isArray(v) && v.every((t) => typeof t === 'string');
const isPort = (v: unknown): v is number | string => typeof v === 'number' || typeof v === 'string';
const isProtocol = (v: unknown): v is 'TCP' | 'UDP' | 'SCTP' => v === 'TCP' || v === 'UDP' || v === 'SCTP';
const isHeader = (v: unknown): v is { name: string; value: string } =>
  isObject(v) && typeof v.name === 'string' && typeof v.value === 'string';

function readJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined; // somebody else's annotation
  }
}

/** The grace an orphan was promised, in seconds; undefined when its container does not say. */
export function graceOfAnnotations(marks: Readonly<Record<string, string>>): number | undefined {
  for (const key of [annotations.deletionGracePeriod, annotations.terminationGracePeriod]) {
    const seconds = Number.parseInt(marks[key] ?? '', 10);
    if (seconds >= 0) return seconds;
  }
  return undefined;
}
