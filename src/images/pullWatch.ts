/**
 * Looks after one pull while it runs: what containerd's content service shows of it is told now and then, and a pull that does not move is
 * ended. A runtime without that service is left alone. Asks often at first, since a fast line is done soon; then every ten seconds.
 */
import { isAbort } from '../async/abort.ts';
import { type ContentStore, type Ingest, isUnimplemented } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { beginProgress, hasBegun, lookAgain, type Progress, type ProgressLimits, progressText, stalled } from './progress.ts';

export interface PullWatchDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly content: Pick<ContentStore, 'ingests'>;
  readonly limits: ProgressLimits;
}

const firstLooksMs = [500, 500, 1000, 2000, 3000, 3000];
const lookMs = 10_000;
const tellMs = 30_000;

export class PullWatch {
  #progress: Progress | undefined;
  #silent = false;

  constructor(private readonly deps: PullWatchDeps) {}

  /** Bytes of it were seen. undefined: nobody can tell. */
  get begun(): boolean | undefined {
    return this.#progress === undefined ? undefined : hasBegun(this.#progress);
  }

  /** Before the pull: what others left is not its own. */
  async begin(): Promise<void> {
    const there = await this.#ask();
    if (there !== undefined) this.#progress = beginProgress(there, this.deps.clock.monotonic());
  }

  /**
   * Until `signal` (the pull is over); resolves with why it is stalled. `patience` multiplies the times a pull is judged by.
   * `tell` gets a text at most every 30 s.
   */
  async stall(patience: number, tell: (text: string) => void, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = this.deps;
    const { stallMs, rateOverMs, leastRate } = this.deps.limits;
    const limits = { stallMs: stallMs * patience, rateOverMs: rateOverMs * patience, leastRate };
    let toldAt = clock.monotonic();
    let told = '';
    try {
      for (let i = 0; this.#progress !== undefined; i++) {
        await clock.sleep(firstLooksMs[i] ?? lookMs, signal);
        const seen = await this.#ask();
        signal.throwIfAborted();
        if (seen === undefined) continue; // the runtime is away: the pull itself will say so
        const now = clock.monotonic();
        this.#progress = lookAgain(this.#progress, seen, now, limits.rateOverMs);
        const why = stalled(this.#progress, now, limits);
        if (why !== undefined) return why;
        const text = progressText(this.#progress);
        if (now - toldAt < tellMs || text === undefined || text === told) continue;
        [toldAt, told] = [now, text];
        tell(text);
      }
    } catch (e) {
      if (!signal.aborted && !isAbort(e)) throw e;
    }
    return undefined;
  }

  async #ask(): Promise<readonly Ingest[] | undefined> {
    try {
      return await this.deps.content.ingests();
    } catch (e) {
      if (isUnimplemented(e)) this.#progress = undefined;
      else if (!this.#silent) this.deps.log.debug({ error: describeError(e) }, 'the runtime does not say what it is writing');
      this.#silent = true;
      return undefined;
    }
  }
}
