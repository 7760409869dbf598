/**
 * Another machine under our name: who goes on, and who steps aside. The identity file decides, for it names one board. Changes the mode of the
 * session and the identity; what follows for the connection is the link's.
 */
import type { NodeTopics } from '../api/topics.ts';
import type { Clock } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import type { RetainedTopics } from './retained.ts';
import type { SessionIdentity, SessionState } from './words.ts';

export interface RivalDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly identity: SessionIdentity;
  readonly state: SessionState;
}

export interface TakeDeps {
  readonly retained: Pick<RetainedTopics, 'set'>;
  readonly topics: Pick<NodeTopics, 'duplicate'>;
}

/** For so long the machine may be alive: nothing of the subtree is cleared, and the condition says why. */
export function suspect({ clock, state }: RivalDeps, machine: string, ms: number): void {
  state.other = machine;
  state.suspectUntil = Math.max(state.suspectUntil, clock.monotonic() + ms);
}

/** It is online now. `goOn`: nothing changes; `aside`: say so under `duplicates`; `leave`: come back with another will. */
export async function hearRival({ identity, log, state }: RivalDeps, machine: string): Promise<'goOn' | 'aside' | 'leave'> {
  const tookItsName = identity.formerMachines().includes(machine);
  if (state.mode === 'duplicate') return 'goOn';
  if (state.mode === 'normal' && identity.rightful() && !tookItsName) {
    log.error(
      { machine, own: identity.machine },
      'another machine is online under this node name, and the identity file names us: we go on',
    );
    return 'goOn';
  }
  log.error({ machine, own: identity.machine }, 'this node name is taken by another machine: nothing is told under it from here');
  const wasNormal = state.mode === 'normal';
  state.mode = 'duplicate';
  if (tookItsName) await identity.giveBack(machine);
  return wasNormal ? 'leave' : 'aside';
}

/** Nothing live was heard of another: its board was replaced, or is outlived by this one. The connection has to be made anew, with another will. */
export async function takeName({ identity, log, retained, state, topics }: RivalDeps & TakeDeps): Promise<void> {
  log.warn({ machine: identity.machine }, 'nobody else is online under this name, and this board takes it');
  await identity.claim();
  state.mode = 'normal';
  state.suspectUntil = 0;
  retained.set(topics.duplicate(identity.machine), undefined, { qos: 1 });
}
