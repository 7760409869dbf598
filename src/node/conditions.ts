// pure
/**
 * The conditions of a v1 Node: those of every kubelet (facts 17.2, in its order, reasons and words) and our own. Ours are there only while
 * something is not as it should be. The time of a condition is when its status last changed, whatever else of it did.
 */
import { conditionWords, pressureTypes } from '../api/pressures.ts';

export interface JudgedCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

export interface TimedCondition extends JudgedCondition {
  /** RFC 3339 */
  readonly lastTransitionTime: string;
}

export interface Readiness {
  /** Why nothing can be started; empty: all is well. undefined: nobody has asked the runtime yet. */
  readonly problems: readonly string[] | undefined;
  /** Whether pods have a network, or why not; undefined: nobody can say, for the runtime has not answered. */
  readonly network: 'ready' | { readonly error: string } | undefined;
}

/** What a node without pressure tells. */
const noPressure: readonly JudgedCondition[] = pressureTypes.map((type) => ({ type, status: 'False', ...conditionWords(type, false) }));

/** What every kubelet tells. Of what is not known yet nothing is said: what was told last stands. `pressures`: those that somebody judged. */
export function kubeletConditions({ problems, network }: Readiness, pressures: readonly JudgedCondition[]): JudgedCondition[] {
  return [
    ...(network === undefined ? [] : [networkCondition(network)]),
    ...noPressure.map((none) => pressures.find((p) => p.type === none.type) ?? none),
    ...(problems === undefined ? [] : [readyCondition(problems)]),
  ];
}

const networkCondition = (network: 'ready' | { readonly error: string }): JudgedCondition =>
  network === 'ready'
    ? { type: 'NetworkUnavailable', status: 'False', reason: 'NetworkReady', message: 'the network of pods is ready' }
    : { type: 'NetworkUnavailable', status: 'True', reason: 'NetworkNotReady', message: network.error };

const readyCondition = (problems: readonly string[]): JudgedCondition =>
  problems.length === 0
    ? { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
    : { type: 'Ready', status: 'False', reason: 'KubeletNotReady', message: problems.join(', ') };

const lasting: ReadonlySet<string> = new Set(['NetworkUnavailable', 'Ready']);

/** A type stands once: what two parts say of one is one text. */
function merged(judged: readonly JudgedCondition[]): JudgedCondition[] {
  const byType = new Map<string, JudgedCondition>();
  for (const c of judged) {
    const other = byType.get(c.type);
    if (other === undefined) byType.set(c.type, c);
    else if (!other.message.split('; ').includes(c.message)) byType.set(c.type, { ...other, message: `${other.message}; ${c.message}` });
  }
  return [...byType.values()];
}

/** With times: that of before where the status is the same, else `at`. What is not judged now goes, but for what lasts. */
export function timed(before: readonly TimedCondition[], judged: readonly JudgedCondition[], at: string): readonly TimedCondition[] {
  const known = new Map(before.map((c) => [c.type, c]));
  const now = merged(judged).map((c) => {
    const last = known.get(c.type);
    return { ...c, lastTransitionTime: last !== undefined && last.status === c.status ? last.lastTransitionTime : at };
  });
  const kept = before.filter((c) => lasting.has(c.type) && !now.some((n) => n.type === c.type));
  return [...kept, ...now].sort((a, b) => rank(a.type) - rank(b.type));
}

const order = ['NetworkUnavailable', 'MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];
/** Ours come after the kubelet's, in their own order. */
const rank = (type: string): number => (order.includes(type) ? order.indexOf(type) : order.length);

export interface ConditionEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

const kubeletEvents: Readonly<Record<string, readonly [True: string, False: string]>> = {
  Ready: ['NodeReady', 'NodeNotReady'],
  MemoryPressure: ['NodeHasInsufficientMemory', 'NodeHasSufficientMemory'],
  DiskPressure: ['NodeHasDiskPressure', 'NodeHasNoDiskPressure'],
  PIDPressure: ['NodeHasInsufficientPID', 'NodeHasSufficientPID'],
};

/** What events tell of a change: the kubelet's words for its conditions, and a warning for each of `told` that has come. */
export function conditionEvents(
  node: string,
  before: readonly TimedCondition[],
  now: readonly TimedCondition[],
  told: ReadonlySet<string>,
): ConditionEvent[] {
  const statusBefore = new Map(before.map((c) => [c.type, c.status]));
  return now.flatMap((c): ConditionEvent[] => {
    const last = statusBefore.get(c.type);
    if (last === c.status) return [];
    const words = kubeletEvents[c.type];
    if (words !== undefined) {
      // of an agent that has just begun, only what is not as it should be is news
      if (last === undefined && (c.type === 'Ready' ? c.status === 'True' : c.status === 'False')) return [];
      const reason = c.status === 'True' ? words[0] : words[1];
      return [{ type: 'Normal', reason, message: `Node ${node} status is now: ${reason}` }];
    }
    return told.has(c.type) && c.status === 'True' ? [{ type: 'Warning', reason: c.reason, message: c.message }] : [];
  });
}
