// pure
/**
 * The life of one pod instance: sync → terminating → terminated → finished, never backwards, as a record and its transitions.
 * Mirrors kubelet v1.32 pod_workers.go (facts 3), with these differences: every instance has a UID of its own that never comes back, so
 * there is no restart request; an instance that never started and is ended vanishes, if the runtime has nothing of it; what the runtime still has of the same full
 * name counts as a predecessor; only `create` begins a life.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { RuntimePod } from '../container/words.ts';

/** What the next step has to work with: the pod as wished, or, for an orphan, what the runtime shows of it. */
export type Wish = { readonly pod: DesiredPod } | { readonly runtimePod: RuntimePod };

export type WorkerState = 'sync' | 'terminating' | 'terminated' | 'finished';

export interface WorkerUpdate {
  readonly type: 'create' | 'update' | 'sync' | 'kill';
  readonly pod?: DesiredPod;
  /** An orphan in the runtime, to be ended by its own grace. Ignored beside `pod`. */
  readonly runtimePod?: RuntimePod;
  readonly killGraceSeconds?: number;
  readonly evict?: boolean;
  /** Why it is killed, for people. */
  readonly reason?: string;
  /** With `create`: an earlier agent was ending it against its will, so its life here begins with its end. */
  readonly condemned?: true;
}

export interface PodRecord {
  readonly uid: PodUid;
  /** `web_default`: only one instance of a full name lives at a time. */
  readonly fullName: string;
  readonly state: WorkerState;
  /** The newest wish not yet taken up. Older ones are gone. */
  readonly pending: Wish | undefined;
  /** The wish last taken up: what a retry works with. */
  readonly active: Wish | undefined;
  /** A step has begun: from here on something of it may exist. */
  readonly started: boolean;
  readonly startedTerminating: boolean;
  /** Nobody wants it any more. */
  readonly deleted: boolean;
  readonly evicted: boolean;
  /** The runtime was seen to have it before any step began. */
  readonly observedRuntime: boolean;
  /** Effective kill grace; undefined: each container's own rule. */
  readonly graceSeconds: number | undefined;
  readonly reason: string | undefined;
}

/** The table of facts 3.5: a grace asked for counts when it is the first or a smaller one; without any, the pod's own. At least 1 s. */
export function effectiveGrace(
  recorded: number | undefined,
  asked: { readonly specSeconds?: number; readonly deletionSeconds?: number; readonly overrideSeconds?: number },
): { readonly graceSeconds: number; readonly shortened: boolean } {
  let grace = recorded;
  for (const seconds of [asked.deletionSeconds, asked.overrideSeconds]) {
    if (seconds !== undefined && (grace === undefined || seconds < grace)) grace = seconds;
  }
  const graceSeconds = Math.max(1, grace ?? asked.specSeconds ?? 0);
  return { graceSeconds, shortened: recorded !== undefined && graceSeconds < recorded };
}

const podOf = (wish: Wish | undefined): DesiredPod | undefined => (wish !== undefined && 'pod' in wish ? wish.pod : undefined);

/** The manifest of this instance as last wished; undefined for an orphan nobody has a manifest of. */
export const lastPod = (record: PodRecord): DesiredPod | undefined => podOf(record.pending) ?? podOf(record.active);

function newRecord(uid: PodUid, fullName: string): PodRecord {
  return {
    uid,
    fullName,
    state: 'sync',
    pending: undefined,
    active: undefined,
    started: false,
    startedTerminating: false,
    deleted: false,
    evicted: false,
    observedRuntime: false,
    graceSeconds: undefined,
    reason: undefined,
  };
}

export interface Applied {
  readonly record: PodRecord;
  /** The step under way works for a wish that is gone, or kills too patiently: stop waiting for it. */
  readonly cancel: boolean;
}

/** What an update does to a record (undefined: a new one). undefined: the update changes nothing. */
export function applyUpdate(before: PodRecord | undefined, update: WorkerUpdate): Applied | undefined {
  const { pod, runtimePod } = update;
  const kill = update.type === 'kill';
  const subject = pod ?? runtimePod;
  if (subject === undefined || (pod === undefined && !kill)) return undefined;
  if (before === undefined && update.type !== 'create' && !kill) return undefined;

  const record = before ?? newRecord(subject.uid, `${subject.name}_${subject.namespace}`);
  if (before === undefined && pod !== undefined && update.condemned === true)
    return { record: condemned(record, pod, update), cancel: false };
  if (record.state === 'finished') return undefined;
  const wasEnding = record.state !== 'sync';
  if (wasEnding && update.type === 'create') return undefined;
  // its containers are down: an orphan's sighting is old news
  if (record.state === 'terminated' && pod === undefined) return undefined;

  const wishPod = pod ?? lastPod(record);
  const pending: Wish | undefined = wishPod !== undefined ? { pod: wishPod } : runtimePod !== undefined ? { runtimePod } : undefined;
  const next: PodRecord = {
    ...record,
    pending,
    observedRuntime: record.observedRuntime || pod === undefined,
    deleted: record.deleted || pod === undefined,
    evicted: record.evicted || (kill && update.evict === true),
    reason: kill ? (record.reason ?? update.reason) : record.reason,
  };
  // what is under way may pull an image, or wait to start one, that nobody wants any more
  if (!kill) return { record: next, cancel: record.state === 'sync' && isOtherWork(podOf(record.active), pod) };
  if (record.state === 'terminated') return { record: next, cancel: false };

  const ending: PodRecord = { ...next, state: 'terminating' };
  // an orphan has no grace but its own
  if (wishPod === undefined) return { record: ending, cancel: !wasEnding };
  const { graceSeconds, shortened } = killGrace(record, wishPod, update.killGraceSeconds);
  return { record: { ...ending, graceSeconds }, cancel: !wasEnding || shortened };
}

/** It may run, or have ended already: what the runtime has of it is its own, and no step but those of its end is taken. */
function condemned(record: PodRecord, pod: DesiredPod, { killGraceSeconds, reason }: WorkerUpdate): PodRecord {
  const { graceSeconds } = killGrace(record, pod, killGraceSeconds);
  return { ...record, pending: { pod }, state: 'terminating', observedRuntime: true, evicted: true, reason, graceSeconds };
}

const isOtherWork = (before: DesiredPod | undefined, now: DesiredPod | undefined): boolean =>
  before !== undefined && now !== undefined && before.workHash !== now.workHash;

function killGrace(record: PodRecord, pod: DesiredPod, overrideSeconds: number | undefined) {
  const specSeconds = pod.pod.spec.terminationGracePeriodSeconds;
  const deletionSeconds = pod.pod.metadata.deletionGracePeriodSeconds;
  const asked = {
    ...(specSeconds !== undefined && { specSeconds }),
    ...(deletionSeconds !== undefined && { deletionSeconds }),
    ...(overrideSeconds !== undefined && { overrideSeconds }),
  };
  // a pod that ended by itself is being killed by its own grace already: what is asked for now can only be shorter
  const endsByItself = record.state === 'terminating' && record.graceSeconds === undefined;
  return effectiveGrace(endsByItself ? specSeconds : record.graceSeconds, asked);
}

/** Nobody wants this instance (housekeeping): end it. undefined: it is ending already, or has ended. */
export function orphaned(record: PodRecord): Applied | undefined {
  if (record.state !== 'sync') return undefined;
  const pod = lastPod(record);
  const graceSeconds = pod === undefined ? undefined : killGrace(record, pod, undefined).graceSeconds;
  return {
    record: { ...record, state: 'terminating', deleted: true, pending: record.pending ?? record.active, graceSeconds },
    cancel: true,
  };
}

/**
 * May this instance take its first step? Instances of one full name live one after another, in the order in which they came.
 * `never`: it was ended before it began. `all` in the order of their coming.
 */
export function mayStart(me: PodRecord, all: Iterable<PodRecord>): 'yes' | 'later' | 'never' {
  if (me.started || me.observedRuntime) return 'yes';
  if (me.state !== 'sync') return 'never';
  let iCame = false;
  for (const other of all) {
    if (other.uid === me.uid) iCame = true;
    else if (other.fullName === me.fullName && other.state !== 'finished') {
      if (other.started || other.observedRuntime) return 'later';
      if (!iCame && other.state === 'sync') return 'later';
    }
  }
  return 'yes';
}

/** The pending wish is taken up. */
export function beginStep(record: PodRecord): PodRecord {
  return {
    ...record,
    active: record.pending ?? record.active,
    pending: undefined,
    started: true,
    startedTerminating: record.startedTerminating || record.state === 'terminating',
  };
}

export type StepResult = 'ok' | 'terminal' | 'failed';

/**
 * What the end of a step does. `ran` is the state the step worked for; an update may have moved the record since.
 * A phase change keeps the wish pending, so that the next step runs at once.
 */
export function completeStep(record: PodRecord, ran: WorkerState, result: StepResult): PodRecord {
  if (result === 'failed' || record.state !== ran) return record;
  const again = record.pending ?? record.active;
  switch (ran) {
    case 'sync':
      return result === 'terminal' ? { ...record, state: 'terminating', startedTerminating: true, pending: again } : record;
    case 'terminating':
      // an orphan has no status, volumes or records to close
      return lastPod(record) === undefined
        ? { ...record, state: 'finished', pending: undefined }
        : { ...record, state: 'terminated', pending: again };
    case 'terminated':
    case 'finished':
      return { ...record, state: 'finished', pending: undefined };
  }
}

const resultSpread = 0.5;
const errorMs = 10_000;
const networkMs = 1_000;

/** When to look again after a step that leaves the phase as it is, in ms. `random` in [0,1). An exact moment wins when it is earlier. */
export function nextStepMs(
  outcome: { readonly error?: unknown; readonly retryAfterMs?: number },
  resyncMs: number,
  random: number,
): number {
  const base = outcome.error === undefined ? resyncMs : isNetworkNotReady(outcome.error) ? networkMs : errorMs;
  return Math.min(base * (1 + random * resultSpread), outcome.retryAfterMs ?? Number.POSITIVE_INFINITY);
}

const isNetworkNotReady = (e: unknown): boolean => (e instanceof Error ? e.message : String(e)).includes('network is not ready');
