// pure
/** What an edit must know of the running side of an instance, from the runtime's words. */
import type { DesiredPod, InstanceState } from '../api/desired.ts';
import type { RuntimePodStatus } from '../container/words.ts';

/**
 * `worker`: where its worker stands; `completed`: it has a completion record. Nothing known of an instance means that it has not begun:
 * then an edit has nothing to spare.
 */
export function instanceState(
  desired: DesiredPod | undefined,
  runtime: RuntimePodStatus | undefined,
  o: { readonly worker: string | undefined; readonly completed: boolean },
): InstanceState {
  const sandboxes = runtime?.sandboxes ?? [];
  const records = runtime?.containers ?? [];
  const spec = desired?.pod.spec;
  const succeeded = (name: string): boolean => {
    const newest = records.find((c) => c.name === name);
    return newest?.state === 'exited' && newest.exitCode === 0 && newest.reason !== 'OOMKilled';
  };
  const plainInit = (spec?.initContainers ?? []).filter((c) => c.restartPolicy !== 'Always');
  const appSeen = (spec?.containers ?? []).some((c) => records.some((r) => r.name === c.name));
  const ended = o.worker === 'terminating' || o.worker === 'terminated' || o.worker === 'finished';
  return {
    sandboxDead: sandboxes.length > 0 && sandboxes[0]?.state !== 'ready',
    finished: o.completed || o.worker === 'finished',
    initUnfinished: sandboxes.length > 0 && !appSeen && plainInit.some((c) => !succeeded(c.name)),
    terminating: ended && !o.completed,
  };
}
