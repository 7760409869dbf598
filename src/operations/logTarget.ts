// pure
/** Whose log is meant: the container of a pod, and which of its instances. Mirrors kubelet v1.32 validateContainerLogStatus (facts 18). */
import type { PodStatus, ToldPod, V1ContainerStatus } from '../api/status.ts';
import { type Answered, refused } from './answered.ts';

const bad = (message: string, code: 400 | 404 = 400): Answered<never> => refused(code, message);
const defaultContainer = 'kubectl.kubernetes.io/default-container';

const nameOf = (c: { readonly name: string }): string => c.name;
/** In the order in which they are looked up. The statuses too: a pod too large to be told has no containers in its spec. */
const names = ({ spec, status }: ToldPod) => ({
  app: [...new Set([...spec.containers.map(nameOf), ...(status.containerStatuses ?? []).map(nameOf)])],
  init: [...new Set([...(spec.initContainers ?? []).map(nameOf), ...(status.initContainerStatuses ?? []).map(nameOf)])],
  ephemeral: [...new Set([...(spec.ephemeralContainers ?? []).map(nameOf), ...(status.ephemeralContainerStatuses ?? []).map(nameOf)])],
});

/** The container a person means: the named one, the one of the annotation, the only one. */
export function pickContainer(pod: ToldPod, named: string | undefined): Answered<string> {
  const { app, init, ephemeral } = names(pod);
  const known = [...app, ...init, ...ephemeral];
  const podName = pod.metadata.name;
  if (named !== undefined) {
    if (known.includes(named)) return { ok: true, value: named };
    return bad(`container ${named} is not valid for pod ${podName}, choose one of: [${known.join(' ')}]`, 404);
  }
  const annotated = pod.metadata.annotations?.[defaultContainer];
  if (annotated !== undefined && known.includes(annotated)) return { ok: true, value: annotated };
  const [only] = app;
  if (only !== undefined && app.length === 1) return { ok: true, value: only };
  const inits = init.length === 0 ? '' : ` or one of the init containers: [${init.join(' ')}]`;
  return bad(`a container name must be specified for pod ${podName}, choose one of: [${app.join(' ')}]${inits}`);
}

/**
 * The container a command runs in, as kubectl chooses it: the named one, the one of the annotation, the first; with what a person is told of
 * the choice.
 */
export function sessionContainer(pod: ToldPod, named: string | undefined): Answered<{ readonly name: string; readonly note?: string }> {
  if (named !== undefined) {
    const picked = pickContainer(pod, named);
    return picked.ok ? { ok: true, value: { name: picked.value } } : picked;
  }
  const { app, init, ephemeral } = names(pod);
  const all = [...app, ...init.map((n) => `${n} (init)`), ...ephemeral.map((n) => `${n} (ephem)`)];
  const annotated = pod.metadata.annotations?.[defaultContainer];
  if (annotated !== undefined && [...app, ...init, ...ephemeral].includes(annotated)) return { ok: true, value: { name: annotated } };
  const absent = annotated === undefined ? '' : `Default container name "${annotated}" not found in pod ${pod.metadata.name}\n`;
  const [first] = app;
  if (first === undefined) return bad(`pod ${pod.metadata.name} has no container that is known yet`);
  const note = `${absent}${all.length > 1 ? `Defaulted container "${first}" out of: ${all.join(', ')}\n` : ''}`;
  return { ok: true, value: { name: first, ...(note !== '' && { note }) } };
}

/** In the kubelet's order: app, init, ephemeral. */
export const statusOf = (s: PodStatus, container: string): V1ContainerStatus | undefined =>
  [s.containerStatuses, s.initContainerStatuses, s.ephemeralContainerStatuses]
    .flatMap((list) => list ?? [])
    .find((c) => c.name === container);

/** The id of the instance whose log is asked for, as told (`containerd://…`), or the kubelet's words for why there is none. */
export function selectInstance(pod: ToldPod, container: string, previous: boolean): Answered<string> {
  const found = statusOf(pod.status, container);
  const of = `container "${container}" in pod "${pod.metadata.name}"`;
  if (found === undefined) return bad(`${of} is not available`);
  const { waiting, running, terminated } = found.state;
  const last = found.lastState.terminated?.containerID;
  const instance = (id: string | undefined, otherwise: string): Answered<string> =>
    id === undefined || id === '' ? bad(otherwise) : { ok: true, value: id };
  if (previous) return instance(last, `previous terminated ${of} not found`);
  if (running) return instance(found.containerID, `${of} is not available`);
  if (terminated) return instance(terminated.containerID || last, `${of} is terminated`);
  if (found.lastState.terminated) return instance(last, `${of} is terminated`);
  if (waiting) return bad(`${of} is waiting to start: ${waitingText(waiting.reason)}`);
  return bad(`${of} is not available`);
}

function waitingText(reason: string | undefined): string {
  switch (reason) {
    case 'ErrImagePull':
      return "image can't be pulled";
    case 'ImagePullBackOff':
      return 'trying and failing to pull image';
    default:
      return reason ?? '';
  }
}

/** Whether the instance of this id is told to run. */
export const instanceRuns = (pod: ToldPod, container: string, id: string): boolean => {
  const found = statusOf(pod.status, container);
  return found?.state.running !== undefined && found.containerID === id;
};

/** `containerd://abc` → `abc`. */
export const runtimeId = (told: string): string => told.slice(told.indexOf('://') < 0 ? 0 : told.indexOf('://') + 3);
