/**
 * Reading one pod's status with as few calls as can be: what the list shows unchanged is taken from the status read before.
 * A record that vanishes between list and inspection is left out, as if the list had not shown it.
 */
import { isNotFound, type Runtime, RuntimeError } from '../container/runtime.ts';
import type { Container, ContainerId, ContainerStatus, RuntimePod, RuntimePodStatus, Sandbox, SandboxStatus } from '../container/words.ts';
import type { Clock } from '../world/clock.ts';

export type Inspector = Pick<Runtime, 'sandboxStatus' | 'containerStatus'>;

/** What is known of ended containers beside the runtime's record. */
export interface EndedView {
  /** What it said at its end, '' for nothing; never rejects. Asked once, for the record of an ended container does not change. */
  lastWords(status: ContainerStatus): Promise<string>;
  /** The runtime told that the kernel killed it for want of memory. */
  oomKilled(id: ContainerId): boolean;
}

const oomReason = 'OOMKilled';

/** The record says only that it was killed, and an event says why. */
export const isOomUntold = (c: ContainerStatus, ended: Pick<EndedView, 'oomKilled'>): boolean =>
  c.state === 'exited' && c.exitCode === 137 && c.reason === 'Error' && ended.oomKilled(c.id);

/** kubelet v1.32 kuberuntime_container.go: the runtime's own message first. */
async function withLastWords(status: ContainerStatus, ended: EndedView): Promise<ContainerStatus> {
  if (status.state !== 'exited') return status;
  const reason = isOomUntold(status, ended) ? oomReason : status.reason;
  const words = await ended.lastWords({ ...status, reason });
  const message = [status.message, words].filter((text) => text !== '').join(': ');
  return { ...status, reason, message };
}

/** The call's answer, or RuntimeError `deadlineExceeded` after `ms`: the call goes on, nobody waits for it any more. */
export async function within<T>(clock: Clock, ms: number, what: string, call: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = clock.sleep(ms, timer.signal).then(() => {
    throw new RuntimeError('deadlineExceeded', `${what} did not answer within ${ms} ms`);
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    timer.abort();
  }
}

/** The list shows this sandbox as the status read before has it. A ready pod-network sandbox without an address is asked again. */
const sandboxKnown = (now: Sandbox, before: SandboxStatus | undefined): before is SandboxStatus =>
  before !== undefined &&
  before.state === now.state &&
  (now.state !== 'ready' || before.networkMode === 'NODE' || (before.network?.ip ?? '') !== '');

const containerKnown = (now: Container, before: ContainerStatus | undefined, ended: EndedView): before is ContainerStatus =>
  before !== undefined && before.state === now.state && now.state !== 'unknown' && !isOomUntold(before, ended);

const byId = <T extends { readonly id: string }>(items: readonly T[] | undefined): Map<string, T> =>
  new Map((items ?? []).map((item) => [item.id, item]));

/** Nothing of this list needs a call: `before` is the whole answer. */
export function isKnown(pod: RuntimePod, before: RuntimePodStatus, ended: EndedView): boolean {
  if (pod.sandboxes.length !== before.sandboxes.length || pod.containers.length !== before.containers.length) return false;
  const sandboxes = byId(before.sandboxes);
  const containers = byId(before.containers);
  return (
    pod.sandboxes.every((s) => sandboxKnown(s, sandboxes.get(s.id))) &&
    pod.containers.every((c) => containerKnown(c, containers.get(c.id), ended))
  );
}

/** Addresses of the newest sandbox while it is ready. kubelet v1.32 pleg/generic.go getPodIPs: without a ready sandbox the old ones stay. */
function podIps(sandboxes: readonly SandboxStatus[], before: RuntimePodStatus | undefined): readonly string[] {
  const newest = sandboxes[0];
  const ips =
    newest === undefined || newest.state !== 'ready' || newest.networkMode === 'NODE' || newest.network === undefined
      ? []
      : [newest.network.ip, ...newest.network.additionalIps].filter((ip) => ip !== '');
  if (ips.length > 0 || sandboxes.some((s) => s.state === 'ready')) return ips;
  return before?.ips ?? [];
}

/** All calls of one pod at once; rejects when one fails for another reason than "not found". */
export async function inspectPod(
  runtime: Inspector,
  pod: RuntimePod,
  before: RuntimePodStatus | undefined,
  ended: EndedView,
): Promise<{ readonly status: RuntimePodStatus; readonly seen: RuntimePod }> {
  const oldSandboxes = byId(before?.sandboxes);
  const oldContainers = byId(before?.containers);
  const [sandboxes, containers] = await Promise.all([
    Promise.all(
      pod.sandboxes.map((s) => {
        const old = oldSandboxes.get(s.id);
        return sandboxKnown(s, old) ? old : runtime.sandboxStatus(s.id).catch(ifNotFound);
      }),
    ),
    Promise.all(
      pod.containers.map((c) => {
        const old = oldContainers.get(c.id);
        if (containerKnown(c, old, ended)) return old;
        return runtime
          .containerStatus(c.id)
          .then((status) => withLastWords(status, ended))
          .catch(ifNotFound);
      }),
    ),
  ]);
  const readSandboxes = sandboxes.filter((s) => s !== undefined);
  const readContainers = containers.filter((c) => c !== undefined);
  return {
    status: {
      uid: pod.uid,
      name: pod.name,
      namespace: pod.namespace,
      ips: podIps(readSandboxes, before),
      sandboxes: readSandboxes,
      containers: readContainers,
    },
    seen: {
      ...pod,
      sandboxes: pod.sandboxes.filter((_, i) => sandboxes[i] !== undefined),
      containers: pod.containers.filter((_, i) => containers[i] !== undefined),
    },
  };
}

function ifNotFound(e: unknown): undefined {
  if (!isNotFound(e)) throw e;
}
