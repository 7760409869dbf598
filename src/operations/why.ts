// pure
/**
 * The one reason why an object is not running, and what would help. The agent's own answer (SyncStatus) is the truth; here it is put into
 * words, with the container it is about, the place of each mistake, and what of the node stands in the way.
 */

import type { FileStatus, SyncStatus, ToldProblem } from '../api/payloads.ts';
import { problemText } from '../api/problems.ts';
import { explainReason } from '../api/reasons.ts';
import type { ToldPod, V1ContainerStatus } from '../api/status.ts';
import type { NodeCondition } from './agentView.ts';
import { pickContainer } from './logTarget.ts';
import { findPod, isTarget, type Target } from './target.ts';
import { missingObject, missingRemedy } from './whyMissing.ts';

export interface WhyFacts {
  readonly pods: readonly ToldPod[];
  readonly sync: readonly SyncStatus[];
  readonly files: readonly FileStatus[];
  readonly conditions: readonly NodeCondition[];
}

export interface Why {
  readonly object: Target;
  /** It is as its manifest wants it. */
  readonly well: boolean;
  /** `is not running`, `is running`, `has completed` … */
  readonly state: string;
  readonly reason: string;
  readonly message: string;
  readonly meaning?: string;
  readonly remedy?: string;
  /** The container the reason is about, with how it ended last. */
  readonly container?: {
    readonly name: string;
    readonly restarts: number;
    readonly lastEnd?: string;
    /** The command that prints the log which says more. */
    readonly logs?: string;
  };
  readonly problems: readonly ToldProblem[];
  readonly nextRetrySeconds?: number;
  /** What else is known: other sources, conditions of the node. */
  readonly notes: readonly string[];
}

const states: Readonly<Record<SyncStatus['phase'], string>> = {
  Accepted: 'is accepted and has not started yet',
  Waiting: 'is not running',
  Running: 'is running',
  Completed: 'has completed',
  Failed: 'has failed',
  Refused: 'is refused',
  UpdateBlocked: 'is running, and its update is blocked',
  RolledBack: 'is running its last good revision',
  Held: 'is held at its revision',
  Stopped: 'is stopped',
  Terminating: 'is ending',
  SourceGone: 'is running, and its source is gone',
};

const wellReasons: ReadonlySet<string> = new Set(['Ready', 'Succeeded', 'Accepted']);
/** Conditions of the node that keep pods from starting; the others are no answer to the question. */
const blocking: ReadonlySet<string> = new Set(['RuntimeDown', 'NetworkNotReady', 'ManifestFolderUnreadable', 'ConfigurationInvalid']);

/** undefined: no source names it, no pod has its name, and no broken file looks like it. */
export function why(target: Target, facts: WhyFacts): Why | undefined {
  const sync = facts.sync.find((s) => isTarget(target, s.object));
  const pod = target.kind === 'Pod' ? findPod(facts.pods, target) : undefined;
  const nodeNotes = facts.conditions
    .filter((c) => c.status === 'True' && blocking.has(c.type) && c.type !== sync?.reason)
    .map((c) => `node: ${c.type}: ${c.message}`);
  if (sync === undefined) return pod === undefined ? fromFile(target, facts, nodeNotes) : fromPod(target, pod, nodeNotes);

  const { phase, reason, message } = sync;
  const kept = target.kind !== 'Pod' && phase === 'Accepted';
  const container = pod === undefined ? undefined : containerOf(pod, reason);
  const problems = sync.sources.filter((s) => s.phase === 'Refused' || s.reason === 'FieldsWithoutEffect').flatMap((s) => s.problems);
  const others = sync.sources
    .filter((s) => s.phase !== 'Accepted' || s.source !== sync.desired?.source)
    .filter((s) => s.problems.length === 0 && s.message !== message)
    .map((s) => `${s.source}: ${s.phase}${s.reason === s.phase ? '' : ` (${s.reason})`}: ${s.message}`);
  return {
    object: target,
    well: wellReasons.has(reason) && (phase === 'Running' || phase === 'Completed' || kept),
    state: kept ? 'is accepted and kept' : states[phase],
    reason,
    message,
    ...explained(reason),
    ...waitsFor(sync, facts),
    ...(container && { container }),
    problems,
    ...(sync.nextRetrySeconds !== undefined && { nextRetrySeconds: sync.nextRetrySeconds }),
    notes: [...others, ...nodeNotes],
  };
}

/** A container that waits for an object is told which, in place of what could be wrong with any configuration. */
function waitsFor({ object, reason, message, desired }: SyncStatus, facts: WhyFacts): Pick<Why, 'meaning' | 'remedy'> {
  const missing = ['CreateContainerConfigError', 'FailedMount'].includes(reason) ? missingObject(message) : undefined;
  if (missing === undefined) return {};
  const { kind, name, key } = missing;
  const what = key === undefined ? `${kind} ${name}, which is not there` : `the key ${key} of ${kind} ${name}, which it does not have`;
  return {
    meaning: `${reason === 'FailedMount' ? 'A volume of the pod' : "The container's environment"} needs ${what}.`,
    remedy: missingRemedy(missing, object.namespace, desired?.source ?? 'file:', facts.sync),
  };
}

function explained(reason: string): { readonly meaning?: string; readonly remedy?: string } {
  const text = explainReason(reason);
  return text === undefined ? {} : { meaning: text.meaning, remedy: text.remedy };
}

function fromPod(target: Target, pod: ToldPod, notes: readonly string[]): Why {
  const ending = pod.metadata.deletionTimestamp !== undefined;
  const removed = 'Removed';
  return {
    object: target,
    well: false,
    state: ending ? 'is ending' : 'is not named by any source',
    reason: removed,
    message: 'no source names it any more',
    ...explained(removed),
    problems: [],
    notes,
  };
}

/** A file so broken that no object could be read from it: `web.yaml` is most likely meant to be the pod `web`. */
function fromFile(target: Target, facts: WhyFacts, notes: readonly string[]): Why | undefined {
  const stem = (file: string): string => file.replace(/\.(yaml|yml|json)$/, '');
  const names = [target.name, `${target.namespace}.${target.name}`, `${target.namespace}.${target.name}.${target.kind.toLowerCase()}`];
  const broken = facts.files.filter((f) => f.problems.length > 0);
  const file = broken.find((f) => names.includes(stem(f.file)));
  if (file === undefined) return undefined;
  const invalid = 'Invalid';
  const [first] = file.problems;
  return {
    object: target,
    well: false,
    state: 'is refused',
    reason: invalid,
    message: first === undefined ? `${file.file} cannot be read` : problemText(first),
    ...explained(invalid),
    problems: file.problems,
    notes,
  };
}

/** The first container whose state has this reason; else the first one that does not run well. */
function containerOf(pod: ToldPod, reason: string): Why['container'] | undefined {
  if (wellReasons.has(reason)) return undefined;
  const all = [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])];
  const has = (c: V1ContainerStatus): boolean => c.state.waiting?.reason === reason || c.state.terminated?.reason === reason;
  const found = all.find(has) ?? all.find((c) => c.state.running === undefined && c.state.terminated?.exitCode !== 0) ?? all.find(notReady);
  if (found === undefined) return undefined;
  const end = found.state.terminated ?? found.lastState.terminated;
  const ran = end !== undefined || found.state.running !== undefined;
  return {
    name: found.name,
    restarts: found.restartCount,
    ...(end && {
      lastEnd: `exit code ${end.exitCode}${end.reason === undefined ? '' : ` (${end.reason})`}${end.message === undefined ? '' : `: ${end.message}`}`,
    }),
    ...(ran && { logs: logsCommand(pod, found) }),
  };
}

function logsCommand(pod: ToldPod, c: V1ContainerStatus): string {
  const { name, namespace = 'default' } = pod.metadata;
  const where = namespace === 'default' ? '' : ` -n ${namespace}`;
  const picked = pickContainer(pod, undefined);
  const which = picked.ok && picked.value === c.name ? '' : ` -c ${c.name}`;
  // of one that waits, `logs` shows the last that ran anyway
  const previous = c.state.running && c.lastState.terminated ? ' -p' : '';
  return `podsched logs ${name}${where}${which}${previous}`;
}

const notReady = (c: V1ContainerStatus): boolean => !c.ready && c.state.terminated?.exitCode !== 0;

/** As `podsched why` prints it. `folder` stands before the names of manifests. */
export function whyText(w: Why, folder = ''): string {
  const reasonShown = w.well && (w.reason === 'Ready' || w.reason === 'Succeeded') ? '' : `: ${w.reason}`;
  const more = w.problems.length > 0 && w.problems.some((p) => w.message.includes(p.got)) ? [] : [w.message];
  const lines = [`${w.object.name} ${w.state}${reasonShown}`, ...more.filter((m) => m !== '').map((m) => `  ${m}`)];
  for (const p of w.problems) lines.push(`  ${problemText(p, p.file?.startsWith('/') === true ? '' : folder)}`);
  if (w.container !== undefined) {
    const { name, restarts, lastEnd, logs } = w.container;
    lines.push(
      `  Container:  ${name}, restarted ${restarts === 1 ? 'once' : `${restarts} times`}${lastEnd === undefined ? '' : `, last end: ${lastEnd}`}`,
    );
    if (logs !== undefined) lines.push(`  Log:        ${logs}`);
  }
  if (!w.well && w.meaning !== undefined) lines.push(`  Meaning:    ${w.meaning}`);
  if (!w.well && w.remedy !== undefined) lines.push(`  What helps: ${w.remedy}`);
  if (w.nextRetrySeconds !== undefined) lines.push(`  Next try:   within ${w.nextRetrySeconds} s`); // counted from when it was told
  for (const note of w.notes) lines.push(`  Also:       ${note}`);
  return `${lines.join('\n')}\n`;
}
