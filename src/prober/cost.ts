/** What probing costs, for the metrics: how many probes of each type came to what, and what they took together. */
import type { Outcome } from './attempt.ts';
import type { ProbeType } from './turn.ts';

export interface ProbeCost {
  readonly success: number;
  readonly failure: number;
  readonly error: number;
  /** Without waiting for a turn. */
  readonly totalMs: number;
}

const none: ProbeCost = { success: 0, failure: 0, error: 0, totalMs: 0 };

export class Costs {
  #cost: Record<ProbeType, ProbeCost> = { liveness: none, readiness: none, startup: none };

  add(type: ProbeType, { kind, ms }: Pick<Outcome, 'kind' | 'ms'>): void {
    const before = this.#cost[type];
    const result = kind === 'warning' ? 'success' : kind;
    this.#cost[type] = { ...before, [result]: before[result] + 1, totalMs: before.totalMs + ms };
  }

  /** Since the agent's start. */
  get all(): Readonly<Record<ProbeType, ProbeCost>> {
    return { ...this.#cost };
  }
}
