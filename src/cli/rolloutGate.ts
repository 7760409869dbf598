// pure
/**
 * What happens to a rollout next, from what its nodes tell: the gate rises by one when everything behind it has been well for long enough. It never
 * falls, and who cannot be asked keeps nobody waiting: a node that is away takes the revision when it comes back, since its gate is open.
 */
import type { Rollout } from '../api/messages.ts';
import type { ObjectKey } from '../api/objects.ts';
import type { SyncStatus } from '../api/payloads.ts';
import { waveOf } from '../api/rollout.ts';

/** `outside`: the object is not this node's, or a stronger source has it. */
export type Progress = 'outside' | 'waiting' | 'updating' | 'ready' | 'failed';

export interface GateNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Offline, lost or stale. */
  readonly away: boolean;
  readonly progress: Progress;
  /** Since when it has been ready without a break, in ms of a clock that only rises. */
  readonly readyAt?: number;
  /** Why it is not ready, for people. */
  readonly note?: string;
}

export interface GateTimes {
  readonly now: number;
  /** Since when the gate has stood where it stands, as far as the asker knows. */
  readonly gateAt: number;
}

export type GateDecision =
  | { readonly act: 'open'; readonly gate: number; readonly why: string }
  /** `at`: when it is worth another look, without any news. */
  | { readonly act: 'wait'; readonly why: string; readonly at?: number }
  | { readonly act: 'done' }
  | { readonly act: 'abort'; readonly why: string }
  /** Somebody ended it. */
  | { readonly act: 'ended'; readonly state: 'done' | 'aborted' };

/** Nodes need a moment to tell what they made of it: until then an empty wave may only be a silent one. */
export const settleMs = 60_000;

/** `failures`: names of nodes behind the gate that have failed so far. */
export function decideGate(rollout: Rollout, nodes: readonly GateNode[], times: GateTimes, failures: readonly string[]): GateDecision {
  const { waves, gate, bakeSeconds = 0, abortAfterFailures = 1, state } = rollout;
  if (state === 'done' || state === 'aborted') return { act: 'ended', state };
  if (failures.length >= abortAfterFailures) return { act: 'abort', why: `failed on ${named(failures)}` };
  if (gate === 0) return waves.length === 0 ? { act: 'done' } : { act: 'open', gate: 1, why: 'nothing was open yet' };

  const behind = nodes
    .filter((n) => n.progress !== 'outside')
    .map((node) => ({ node, wave: waveOf(rollout, node) }))
    .filter((n) => n.wave !== undefined && n.wave <= gate);
  const present = behind.filter(({ node }) => !node.away);
  const pending = present.filter(({ node }) => node.progress === 'waiting' || node.progress === 'updating');
  if (pending.length > 0) {
    const texts = pending.map(({ node }) => (node.note === undefined ? node.name : `${node.name} (${node.note})`));
    return { act: 'wait', why: `not ready yet: ${named(texts)}` };
  }
  const well = present.filter(({ node, wave }) => wave === gate && node.progress === 'ready');
  const settled = times.gateAt + settleMs;
  if (well.length === 0) {
    const absent = behind.filter(({ node, wave }) => wave === gate && node.away).map(({ node }) => node.name);
    if (absent.length > 0)
      return { act: 'wait', why: `nobody of wave ${gate} is there to show whether it goes well: ${named(absent)} away` };
    if (times.now < settled) return { act: 'wait', why: `no node of wave ${gate} has told anything yet`, at: settled };
  }
  const since = Math.max(times.gateAt, ...present.map(({ node }) => node.readyAt ?? times.gateAt));
  const bakedAt = since + bakeSeconds * 1000;
  if (well.length > 0 && times.now < bakedAt)
    return { act: 'wait', why: `wave ${gate} is ready, and watched for ${bakeSeconds} s`, at: bakedAt };
  if (gate >= waves.length) return { act: 'done' };
  return {
    act: 'open',
    gate: gate + 1,
    why: well.length === 0 ? `wave ${gate} has no node` : `wave ${gate} has been ready for ${bakeSeconds} s`,
  };
}

const mostNamed = 5;

function named(names: readonly string[]): string {
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  return names.slice(0, mostNamed).join(', ') + more;
}

/** An object of a rollout as it is retained. */
export interface RolledObject {
  readonly key: ObjectKey;
  /** As nodes name it: `mqtt:group/attic`, `mqtt:all`. */
  readonly source: string;
  readonly generation: number | undefined;
}

/** Reasons that do not pass by waiting. */
const failing: ReadonlySet<string> = new Set(['CrashLoopBackOff', 'ContainersFailed']);

/** What a node has made of an object, by its SyncStatus; `undefined`: it has told nothing of it. */
export function progressOf(sync: SyncStatus | undefined, object: RolledObject): { readonly progress: Progress; readonly note?: string } {
  const said = sync?.sources.find((s) => s.source === object.source);
  if (sync === undefined || said === undefined) return { progress: 'outside' };
  const because = (progress: Progress, reason: string): { progress: Progress; note: string } => ({ progress, note: reason });
  switch (said.phase) {
    case 'Refused':
      return because('failed', said.reason);
    case 'Shadowed':
      return { progress: 'outside' };
    case 'Waiting':
      return because('waiting', said.reason);
    case 'Accepted':
  }
  // it tells of what it had before
  if (object.generation !== undefined && (said.generation ?? -1) < object.generation) return because('waiting', 'NotReceived');
  if (sync.desired?.source !== object.source) return { progress: 'outside' };
  if (object.key.kind !== 'Pod') return sync.phase === 'Accepted' ? { progress: 'ready' } : because('updating', sync.reason);
  switch (sync.phase) {
    case 'Completed':
      return { progress: 'ready' };
    case 'Failed':
    case 'RolledBack':
    case 'Refused':
      return because('failed', sync.reason);
    case 'Running':
    case 'Waiting':
      // what is wrong with the revision before is no failure of this one
      if (sync.running?.revision !== sync.desired.revision) return because('updating', sync.reason);
      if (sync.phase === 'Running' && ready.has(sync.reason)) return { progress: 'ready' };
      return because(failing.has(sync.reason) ? 'failed' : 'updating', sync.reason);
    case 'Accepted':
    case 'UpdateBlocked':
    case 'Held':
    case 'Stopped':
    case 'Terminating':
    case 'SourceGone':
      return because('updating', sync.reason);
  }
}

/** The pod runs and all of it is ready, whatever else there is to say of it. */
const ready: ReadonlySet<string> = new Set(['Ready', 'ImageStale', 'DeviceGone']);

const worst: readonly Progress[] = ['failed', 'waiting', 'updating', 'ready', 'outside'];

/** Of several objects, the one that is least far; the others' part is outside only when all of it is. */
export function worstOf(all: readonly { readonly progress: Progress; readonly note?: string }[]): {
  readonly progress: Progress;
  readonly note?: string;
} {
  for (const progress of worst) {
    const found = all.find((p) => p.progress === progress);
    if (found !== undefined) return found;
  }
  return { progress: 'outside' };
}
