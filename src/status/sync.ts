// pure
/**
 * The one answer to "why is it not running" for an object, and the problems of a file. Reads what the sources say of it, what its worker does
 * and the pod status; every reason it can give is explained in api/reasons.ts.
 */
import type { KeyText, ObjectKey, Problem, Source } from '../api/objects.ts';
import type { FileBody, SyncBody, SyncPhase } from '../api/payloads.ts';
import type { PodStatus, V1ContainerStatus } from '../api/status.ts';
import type { Reason } from './containers.ts';
import { firstProblem, toldProblem } from './problems.ts';
import { runsContainers } from './told.ts';

export interface SyncSource {
  readonly source: Source;
  readonly revision?: string;
  readonly generation?: number;
  readonly phase: 'Accepted' | 'Shadowed' | 'Refused' | 'Waiting';
  readonly reason: string;
  readonly message: string;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** What the sources know of an object. Without sources it has been removed. */
export interface SyncView extends ObjectKey {
  readonly winner?: { readonly source: Source; readonly revision: string; readonly generation?: number };
  /** Accepted, and held back before a worker sees it. */
  readonly pending?: Reason;
  /** Accepted, and something else goes on: there is no room for it, its images are not here, it was given up, somebody holds the pod. */
  readonly blockedEdit?: Reason;
  /** Who holds the pod at what runs of it, in words. */
  readonly heldBy?: string;
  /** A sealed Secret that cannot be opened: this one, or one that the pod uses. */
  readonly unopened?: Reason;
  readonly sources: readonly SyncSource[];
}

/** What the running side knows of a pod. */
export interface LivePod {
  /** Where the worker of the newest instance stands; undefined: it has none. */
  readonly state?: 'waiting' | 'sync' | 'terminating' | 'terminated' | 'finished' | undefined;
  readonly status?: PodStatus | undefined;
  /** What containers are of: the revision and instance. */
  readonly running?: { readonly revision: string; readonly uid: string } | undefined;
  /** What stopped the last sync as a whole. */
  readonly blocked?: Reason | undefined;
  /** Why the runtime cannot be asked. */
  readonly runtimeDown?: string | undefined;
  /** Why pods with a network of their own cannot start. */
  readonly networkNotReady?: string | undefined;
  readonly nextRetrySeconds?: number | undefined;
}

interface Answer extends Reason {
  readonly phase: SyncPhase;
}

const answer = (phase: SyncPhase, reason: string, message: string): Answer => ({ phase, reason, message });

/** `live` for pods only. */
export function computeSyncStatus(view: SyncView, live: LivePod = {}): SyncBody {
  const { kind, namespace, name, winner } = view;
  const { phase, reason, message } = kind === 'Pod' ? podAnswer(view, live) : objectAnswer(view);
  const retry = phase === 'Waiting' || phase === 'Running' ? live.nextRetrySeconds : undefined;
  return {
    apiVersion: 'podsched.dev/v1',
    kind: 'SyncStatus',
    object: { kind, namespace, name },
    phase,
    reason,
    message,
    ...(winner && {
      desired: {
        source: winner.source,
        revision: winner.revision,
        ...(winner.generation !== undefined && { generation: winner.generation }),
      },
    }),
    ...(live.running && { running: { revision: live.running.revision, uid: live.running.uid } }),
    ...(retry !== undefined && { nextRetrySeconds: Math.max(0, Math.ceil(retry)) }),
    sources: view.sources.map((s) => toldSource(s, kind === 'Secret')),
  };
}

/** undefined: the file has nothing to say. Warnings of single objects stand with the objects; a warning without a path is about the file. */
export function computeFileStatus(view: {
  readonly file: string;
  readonly objects: readonly KeyText[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}): FileBody | undefined {
  const problems = [...view.problems, ...view.warnings.filter((w) => w.path === '')];
  if (problems.length === 0) return undefined;
  return {
    apiVersion: 'podsched.dev/v1',
    kind: 'FileStatus',
    file: view.file,
    objects: view.objects.map((key) => {
      const [kind = '', namespace = '', name = ''] = key.split('/');
      return { kind, namespace, name };
    }),
    problems: problems.map((p) => toldProblem(p, true)),
  };
}

/** ConfigMaps and Secrets, and every object that has no winner. */
function objectAnswer({ winner, pending, sources, unopened }: SyncView): Answer {
  if (winner !== undefined) {
    if (unopened !== undefined) return { phase: 'Waiting', ...unopened };
    const refused = refusedEdit(winner, sources);
    if (refused !== undefined) return { phase: 'Accepted', ...refused };
    if (pending !== undefined) return { phase: 'Waiting', ...pending };
    return sourceAnswer(winner, sources) ?? answer('Accepted', 'Accepted', 'accepted and kept');
  }
  // a good source that only waits weighs more than a bad one beside it
  const waiting = sources.find((s) => s.phase === 'Waiting');
  if (waiting !== undefined) return answer('Waiting', waiting.reason, waiting.message);
  if (pending !== undefined) return { phase: 'Waiting', ...pending };
  const refused = sources.find((s) => s.phase === 'Refused');
  if (refused !== undefined) return answer('Refused', refused.reason, firstProblem(refused));
  return answer('Terminating', 'Removed', 'no source names it any more');
}

function podAnswer(view: SyncView, live: LivePod): Answer {
  const { winner, pending, sources } = view;
  if (winner === undefined) {
    const base = objectAnswer(view);
    // it was removed, or the only object left of it is refused, and its pod ends
    const ends = live.state === 'terminating' || live.state === 'terminated';
    return ends && base.phase !== 'Terminating' ? answer('Terminating', base.reason, base.message) : base;
  }
  const now = liveAnswer(live);
  // what runs goes on while the newer text is held back
  if (pending !== undefined) return { phase: now.phase === 'Running' ? 'Running' : 'Waiting', ...pending };
  if (view.blockedEdit !== undefined) return blockedAnswer(now, view.blockedEdit, live);
  if (view.unopened !== undefined && !fine.has(now.reason)) {
    return { ...now, reason: view.unopened.reason, message: `${view.unopened.message}; ${now.message}` };
  }
  const refused = refusedEdit(winner, sources);
  // what is wrong with the running pod weighs more than what was written since
  if (refused !== undefined && fine.has(now.reason)) return { phase: now.phase, ...refused };
  const said = sourceAnswer(winner, sources);
  if (said !== undefined) return fine.has(now.reason) ? said : { ...now, message: `${now.message}; ${said.reason}: ${said.message}` };
  return view.heldBy === undefined ? now : { ...now, message: `${now.message === '' ? '' : `${now.message}; `}${view.heldBy}: edits wait` };
}

/** What is wrong with the pod that goes on stands first, since that is what somebody must look at now. */
function blockedAnswer(now: Answer, why: Reason, { running }: LivePod): Answer {
  const well = fine.has(now.reason);
  if (why.reason === 'RolledBack') {
    return well ? answer('RolledBack', why.reason, why.message) : { ...now, message: `${now.message}; rolled back: ${why.message}` };
  }
  if (why.reason === 'Held' && !well) return { ...now, message: `${now.message}; its update waits: ${why.message}` };
  const stays = running === undefined ? 'what was accepted before stays' : `revision ${running.revision} stays`;
  if (well) return answer(why.reason === 'Held' ? 'Held' : 'UpdateBlocked', why.reason, `${stays}: ${why.message}`);
  return { ...now, message: `${now.message}; its update is blocked (${why.reason}): ${why.message}` };
}

const fine: ReadonlySet<string> = new Set(['Accepted', 'Ready', 'Succeeded', 'ImageStale']);

function liveAnswer(live: LivePod): Answer {
  const { state, status, blocked, runtimeDown, networkNotReady } = live;
  // while the runtime cannot be asked, whether there is a predecessor is not known either
  if (state === 'waiting' && runtimeDown === undefined) {
    return answer('Waiting', 'WaitingForPredecessor', 'the pod that had this name before is still ending');
  }
  if (status === undefined || state === undefined) {
    if (runtimeDown !== undefined) return answer('Waiting', 'RuntimeDown', runtimeDown);
    if (status === undefined) return answer('Accepted', 'Accepted', 'accepted, not started yet');
  }
  const ended = status.phase === 'Succeeded' || status.phase === 'Failed';
  if (state === 'terminating' && (!ended || runsContainers(status))) {
    return answer('Terminating', status.reason ?? 'Stopping', status.message ?? 'its containers are being stopped');
  }
  if (status.phase === 'Succeeded') return answer('Completed', 'Succeeded', 'all containers ended with exit code 0');
  if (status.phase === 'Failed') {
    return answer('Failed', status.reason ?? 'ContainersFailed', status.message ?? exits(status));
  }
  const phase = (status.containerStatuses ?? []).some((c) => c.state.running) ? 'Running' : 'Waiting';
  if (runtimeDown !== undefined) return answer(phase, 'RuntimeDown', runtimeDown);
  const stuck = waitingContainer(status);
  if (phase === 'Waiting' && networkNotReady !== undefined) return answer(phase, 'NetworkNotReady', networkNotReady);
  if (blocked !== undefined) return answer(phase, blocked.reason, blocked.message);
  if (stuck !== undefined) return answer(phase, stuck.reason, stuck.message);
  const ready = status.conditions?.find((c) => c.type === 'Ready');
  if (phase === 'Running' && ready?.status === 'True') {
    const gone = status.conditions?.find((c) => c.type === 'podsched.dev/DeviceGone');
    if (gone !== undefined) return answer('Running', 'DeviceGone', gone.message ?? '');
    const stale = status.conditions?.find((c) => c.type === 'podsched.dev/ImageStale');
    if (stale !== undefined) return answer('Running', 'ImageStale', stale.message ?? '');
    const unenforced = status.conditions?.find((c) => c.type === 'podsched.dev/LimitsNotEnforced')?.message;
    const limits = unenforced === undefined ? '' : `; limits not enforced: ${unenforced}`;
    return answer('Running', 'Ready', `all containers run and are ready${limits}`);
  }
  return answer(phase, ready?.reason ?? 'ContainersNotReady', ready?.message ?? '');
}

const notStuck: ReadonlySet<string> = new Set(['', 'ContainerCreating', 'PodInitializing']);

/** The first container, in the order of starting, that something keeps from running; else one that is only on its way. */
function waitingContainer(status: PodStatus): Reason | undefined {
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const waiting = all.filter((c) => c.state.waiting !== undefined);
  const stuck = waiting.find((c) => !notStuck.has(c.state.waiting?.reason ?? ''));
  if (stuck !== undefined) return { reason: stuck.state.waiting?.reason ?? '', message: named(stuck, stuck.state.waiting?.message ?? '') };
  const next = waiting.find((c) => (c.state.waiting?.reason ?? '') !== '');
  return next && { reason: next.state.waiting?.reason ?? '', message: named(next, 'not started yet') };
}

const named = (c: V1ContainerStatus, text: string): string => {
  const last = c.lastState.terminated;
  const exit =
    last === undefined ? '' : `; it last ended with exit code ${last.exitCode}${last.reason === undefined ? '' : ` (${last.reason})`}`;
  return `container ${c.name}${text === '' ? '' : `: ${text}`}${exit}`;
};

/** `container a ended with exit code 3 (Error), …` of those that failed. */
function exits(status: PodStatus): string {
  const failed = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].flatMap((c) => {
    const t = c.state.terminated;
    return t === undefined || t.exitCode === 0 ? [] : [`container ${c.name} ended with exit code ${t.exitCode} (${t.reason ?? 'Error'})`];
  });
  return failed.length === 0 ? 'a container failed' : failed.join(', ');
}

/** The winner's own source brought something newer that was refused: what was accepted last stays. */
function refusedEdit(winner: NonNullable<SyncView['winner']>, sources: readonly SyncSource[]): Reason | undefined {
  const refused = sources.find((s) => s.source === winner.source && s.phase === 'Refused');
  if (refused === undefined) return undefined;
  return {
    reason: 'EditRefused',
    message: `revision ${winner.revision} stays; what ${refused.source} says now is refused: ${firstProblem(refused)}`,
  };
}

/** The winner's own source has something newer whose time has not come, or has it no more: what was accepted of it goes on. */
function sourceAnswer(winner: NonNullable<SyncView['winner']>, sources: readonly SyncSource[]): Answer | undefined {
  const own = sources.find((s) => s.source === winner.source);
  if (own?.reason === 'SourceGone') return answer('SourceGone', own.reason, own.message);
  if (own?.phase !== 'Waiting' || (own.reason !== 'Missing' && own.reason !== 'Rollout')) return undefined;
  return answer('Waiting', own.reason, `revision ${winner.revision} goes on: ${own.message}`);
}

function toldSource(source: SyncSource, secret: boolean): SyncBody['sources'][number] {
  const { problems, warnings } = source;
  const note =
    warnings.length === 0
      ? ''
      : `${warnings.length} ${warnings.length === 1 ? 'warning' : 'warnings'}: ${warnings.map((w) => w.path).join(', ')}`;
  return {
    source: source.source,
    ...(source.revision !== undefined && { revision: source.revision }),
    ...(source.generation !== undefined && { generation: source.generation }),
    phase: source.phase,
    reason: source.reason,
    message: [source.message, note].filter((part) => part !== '').join('; '),
    problems: [...problems, ...warnings].map((p) => toldProblem(p, secret)),
  };
}
