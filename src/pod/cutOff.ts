// pure
/** Whether a Never pod was cut off, by a reboot or by the death of its sandbox: it must not run a second time, since it may have half run. */
import type { Pod } from '../api/v1.ts';
import { annotations, type RuntimePodStatus } from '../container/words.ts';

/**
 * Why a Never pod is over: its newest sandbox is dead, a container of it was created, and not all app containers had an end of their own.
 * undefined: it is not. Without any container it simply starts (kubelet v1.32: it stays Pending for ever).
 */
export function cutOff(
  pod: Pod,
  runtime: RuntimePodStatus,
  bootId: string,
): { readonly reason: string; readonly message: string } | undefined {
  const sandbox = runtime.sandboxes[0];
  if (pod.spec.restartPolicy !== 'Never' || sandbox === undefined || sandbox.state === 'ready' || runtime.containers.length === 0)
    return undefined;
  const ended = new Set(runtime.containers.filter((c) => c.state === 'exited' && c.reason !== 'Unknown').map((c) => c.name));
  const running = runtime.containers.some((c) => c.state === 'running');
  if (running || pod.spec.containers.every((c) => ended.has(c.name))) return undefined;
  const started = sandbox.annotations[annotations.started];
  return started === undefined || started.startsWith(`${bootId}/`)
    ? { reason: 'SandboxDied', message: "The pod's sandbox died while it ran, and its restart policy is Never" }
    : { reason: 'NodeRebooted', message: 'The node was rebooted while the pod ran, and its restart policy is Never' };
}
