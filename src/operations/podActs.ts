/**
 * What a person may do to a pod: restart, stop and start it, hold it at what runs of it and let go, go back to its last good revision. Owns
 * nothing: each act is asked of the room that knows how. A refusal says what would help.
 */
import { type KeyText, keyText, type PodUid } from '../api/objects.ts';
import type { SyncStatus } from '../api/payloads.ts';
import type { ToldPod } from '../api/status.ts';
import { type Answered, pathParts, refused } from './answered.ts';
import { restartTargets } from './restartTargets.ts';
import { findPod } from './target.ts';

const podActs = ['restart', 'stop', 'start', 'hold', 'release', 'rollback'] as const;
export type PodAct = (typeof podActs)[number];

export interface PodActRequest {
  readonly act: PodAct;
  readonly namespace: string;
  readonly pod: string;
  /** Of a restart: only this one. */
  readonly container?: string;
  /** Of a restart: a new instance in place of this one; what has run to its end runs again. */
  readonly new?: boolean;
}

/** What came of it, for people. */
export interface Done {
  readonly message: string;
}

/** What going back came to. `now`: it is carried out; else it waits for what an edit waits for, and is not held yet. */
export type WentBack =
  | { readonly back: true; readonly from: string; readonly to: string; readonly now: boolean }
  | { readonly back: false; readonly message: string };

export interface PodActDeps {
  readonly pods: () => readonly ToldPod[];
  readonly sync: () => readonly SyncStatus[];
  /** Some source has an accepted pod of this name. */
  readonly isWanted: (key: KeyText) => boolean;
  readonly isStopped: (key: KeyText) => boolean;
  /** The instance that is wanted now; undefined: there is none yet. */
  readonly instance: (key: KeyText) => PodUid | undefined;
  /** These containers end by their grace and start again. False: the runtime has not said yet what there is of them. */
  readonly restart: (uid: PodUid, containers: readonly string[]) => boolean;
  /** What has run is forgotten, and a new instance takes this one's place. Rejects when it cannot be stored. */
  readonly renew: (uid: PodUid, key: KeyText) => Promise<void>;
  /** False: it was so already. These reject when it cannot be stored. */
  readonly stop: (key: KeyText) => Promise<boolean>;
  readonly start: (key: KeyText) => Promise<boolean>;
  readonly hold: (key: KeyText) => Promise<boolean>;
  readonly release: (key: KeyText) => Promise<{ readonly hold: boolean; readonly rollback: boolean; readonly stillHeld: boolean }>;
  readonly rollBack: (key: KeyText) => Promise<WentBack>;
}

const actOf = (path: string): PodAct | undefined => podActs.find((act) => path.startsWith(`/${act}/`));

/** Whether the path is one of acts on pods. */
export const asksForPodAct = (path: string): boolean => actOf(path) !== undefined;

/** The request of a path for which `asksForPodAct`. A word that an act does not take is refused: a slip of the pen must not restart more. */
export function podActRequest(path: string, query: string): Answered<PodActRequest> {
  const act = actOf(path) ?? 'restart';
  const named = pathParts(path, `/${act}/`, ['namespace', 'pod']);
  if (!named.ok) return named;
  let request: PodActRequest = { act, ...named.value };
  for (const [name, text] of new URLSearchParams(query)) {
    if (act === 'restart' && name === 'container' && text !== '') request = { ...request, container: text };
    else if (act === 'restart' && name === 'new' && text === '1') request = { ...request, new: true };
    else return refused(400, act === 'restart' ? 'container=NAME or new=1 is meant' : `${act} takes nothing but the name of a pod`);
  }
  return { ok: true, value: request };
}

/** What it needs is on the card when it resolves; containers end and start after that. Rejects when it cannot be stored. */
export async function actOnPod(request: PodActRequest, deps: PodActDeps): Promise<Answered<Done>> {
  const { act, namespace, pod: name } = request;
  const key = keyText({ kind: 'Pod', namespace, name });
  if (!deps.isWanted(key)) return notWanted(request, deps);
  const said = (message: string): Answered<Done> => ({ ok: true, value: { message: `pod/${name} ${message}` } });
  switch (act) {
    case 'restart':
      return restart(request, key, deps, said);
    case 'stop':
      return said((await deps.stop(key)) ? 'stopped: its containers end by their grace' : 'was stopped already');
    case 'start':
      return said((await deps.start(key)) ? 'started' : 'was not stopped');
    case 'hold':
      return said((await deps.hold(key)) ? 'held' : 'was held already');
    case 'release':
      return release(name, key, deps, said);
    case 'rollback': {
      if (deps.isStopped(key)) return stopped(name);
      const done = await deps.rollBack(key);
      if (!done.back) return refused(409, `pod "${name}" ${done.message}`);
      const { from, to, now } = done;
      if (now) return said(`goes back from revision ${from} to ${to}, and is held there`);
      return said(`goes back from revision ${from} to ${to} as soon as it can (podsched why ${name}); hold it then`);
    }
    default: {
      const never: never = act;
      return never;
    }
  }
}

type Said = (message: string) => Answered<Done>;

/** A new instance would be of the update that waits. */
const waitingUpdate = (sync: SyncStatus | undefined): string | undefined =>
  sync?.phase === 'UpdateBlocked' ? `${sync.reason}: ${sync.message}` : undefined;

async function restart(request: PodActRequest, key: KeyText, deps: PodActDeps, said: Said): Promise<Answered<Done>> {
  const { namespace, pod: name, container } = request;
  if (request.new === true && container !== undefined) return refused(400, 'a container, or a new instance of the whole pod: not both');
  if (deps.isStopped(key)) return stopped(name);
  const uid = deps.instance(key);
  if (uid === undefined) return refused(409, `pod "${name}" has not begun yet; podsched why ${name} says more`);
  if (request.new === true) {
    const waits = waitingUpdate(
      deps.sync().find((s) => s.object.kind === 'Pod' && s.object.namespace === namespace && s.object.name === name),
    );
    if (waits !== undefined)
      return refused(
        409,
        `pod "${name}" has an update that waits (${waits}), and a new instance would be of it; without new it restarts as it is`,
      );
    await deps.renew(uid, key);
    return said('starts anew, when this instance has ended by its grace');
  }
  const told = findPod(deps.pods(), { kind: 'Pod', namespace, name });
  // of the instance before, which still ends, nothing is restarted
  if (told === undefined || told.metadata.uid !== uid)
    return refused(409, `pod "${name}" has not started yet; podsched why ${name} says more`);
  const targets = restartTargets(told, container);
  if (!targets.ok) return targets;
  if (!deps.restart(uid, targets.value))
    return refused(
      409,
      `what runs of pod "${name}" is not known yet: the runtime does not answer, or was not listed since the agent started`,
    );
  return said(`restarts in place: ${targets.value.join(', ')}`);
}

async function release(name: string, key: KeyText, deps: PodActDeps, said: Said): Promise<Answered<Done>> {
  const { hold, rollback, stillHeld } = await deps.release(key);
  if (stillHeld) {
    const first = hold ? `the hold of pod "${name}" by command is gone, and it` : `pod "${name}"`;
    return refused(409, `${first} is held by its annotation podsched.dev/hold: take it out of the manifest`);
  }
  if (rollback) return said('released: the revision that was rolled back is tried again');
  return said(hold ? 'released' : 'was not held');
}

const stopped = (name: string): Answered<never> => refused(409, `pod "${name}" is stopped: podsched start ${name} brings it back`);

function notWanted({ namespace, pod: name }: PodActRequest, { pods }: PodActDeps): Answered<never> {
  const ending = findPod(pods(), { kind: 'Pod', namespace, name }) !== undefined;
  return ending
    ? refused(409, `pod "${name}" is being removed: no source names it any more`)
    : refused(404, `pod "${name}" not found in namespace "${namespace}"`);
}
