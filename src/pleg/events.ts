// pure
/** What happened to a pod between two lists of the runtime. Mirrors kubelet v1.32 pleg/generic.go generateEvents. */
import type { PodUid } from '../api/objects.ts';
import type { ContainerState, RuntimePod, SandboxState } from '../container/words.ts';

export type PodLifecycleEventType = 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved' | 'ContainerChanged';

export interface PodLifecycleEvent {
  readonly uid: PodUid;
  readonly type: PodLifecycleEventType;
  /** The container's id, or the sandbox's. */
  readonly id: string;
}

/** Created and unknown containers are one state here: something is there and neither runs nor has ended. */
type SeenState = 'running' | 'exited' | 'unknown' | 'nonexistent';

const ofContainer: Readonly<Record<ContainerState, SeenState>> = {
  running: 'running',
  exited: 'exited',
  created: 'unknown',
  unknown: 'unknown',
};
const ofSandbox: Readonly<Record<SandboxState, SeenState>> = { ready: 'running', notready: 'exited' };

function seenStates(pod: RuntimePod | undefined): Map<string, SeenState> {
  const states = new Map<string, SeenState>();
  for (const c of pod?.containers ?? []) states.set(c.id, ofContainer[c.state]);
  for (const s of pod?.sandboxes ?? []) states.set(s.id, ofSandbox[s.state]);
  return states;
}

function eventTypes(before: SeenState, now: SeenState): readonly PodLifecycleEventType[] {
  if (before === now) return [];
  switch (now) {
    case 'running':
      return ['ContainerStarted'];
    case 'exited':
      return ['ContainerDied'];
    case 'unknown':
      return ['ContainerChanged'];
    case 'nonexistent':
      // it was never seen dead: say so before it is gone
      return before === 'exited' ? ['ContainerRemoved'] : ['ContainerDied', 'ContainerRemoved'];
  }
}

/** What happened to a pod's containers and sandboxes between two lists. `undefined`: the runtime had (has) nothing of it. */
export function computeEvents(before: RuntimePod | undefined, now: RuntimePod | undefined): PodLifecycleEvent[] {
  const uid = (now ?? before)?.uid;
  if (uid === undefined) return [];
  const old = seenStates(before);
  const current = seenStates(now);
  const ids = new Set([...current.keys(), ...old.keys()]);
  return [...ids].flatMap((id) =>
    eventTypes(old.get(id) ?? 'nonexistent', current.get(id) ?? 'nonexistent').map((type) => ({ uid, type, id })),
  );
}
