// pure
/**
 * Who goes. Mirrors kubelet v1.32 eviction/helpers.go rankMemoryPressure and its sisters (facts 14.4): who uses more than it asked for, then the
 * lower priority, then the larger excess. Where it differs, since one wrong choice here takes a house's only service down (G9):
 * critical pods come last of all, and go only when no other pod would help; a pod whose end frees next to nothing of what is missing is
 * spared, whoever it is; of pods that are equal in all else the one that grows goes before the one that is merely large; and whose use is not
 * known goes after those whose use is, not before.
 */
import type { PodUid } from '../api/objects.ts';
import type { QosClass } from '../api/resources.ts';

export interface Candidate {
  readonly uid: PodUid;
  readonly critical: boolean;
  readonly priority: number;
  readonly qos: QosClass;
  /** Bytes, inodes or processes; undefined: not known. */
  readonly usage: number | undefined;
  /** 0: it asked for nothing. */
  readonly request: number;
  /** How much of it came since the first look of this pressure; 0: nothing, or not known. */
  readonly growth: number;
}

const rounds: Readonly<Record<QosClass, number>> = { BestEffort: 0, Burstable: 1, Guaranteed: 2 };

/** A twentieth of what is missing is help; so much growth is a difference. */
const helps = 20;

/** All in the order in which they would go, first of all first. `missing`: what must become free. */
export function rankPods(candidates: readonly Candidate[], missing: number): readonly Candidate[] {
  const least = missing / helps;
  const growthOf = ({ growth }: Candidate): number => (growth >= least ? growth : 0);
  const isOver = (c: Candidate): boolean => (c.usage ?? 0) > c.request;
  return [...candidates].sort(
    (a, b) =>
      Number(a.critical) - Number(b.critical) ||
      Number(a.usage === undefined) - Number(b.usage === undefined) ||
      Number(isOver(b)) - Number(isOver(a)) ||
      a.priority - b.priority ||
      growthOf(b) - growthOf(a) ||
      (b.usage ?? 0) - b.request - ((a.usage ?? 0) - a.request) ||
      rounds[a.qos] - rounds[b.qos] ||
      (a.uid < b.uid ? -1 : 1),
  );
}

/**
 * The one that goes now; undefined: none whose end would help. `floor`: less than this is nothing in any case. One whose use is not known
 * goes only where nobody's is.
 */
export function pickPod(candidates: readonly Candidate[], missing: number, floor: number): Candidate | undefined {
  const least = Math.max(floor, missing / helps);
  const ranked = rankPods(candidates, missing);
  const known = ranked.filter((c) => c.usage !== undefined);
  return known.length > 0 ? known.find((c) => (c.usage ?? 0) >= least) : ranked.find((c) => !c.critical);
}
