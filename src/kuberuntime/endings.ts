/**
 * Containers that are being ended. Each has one budget of grace, which hook, turn and stop share (facts 7.1, 7.2): whoever asks again
 * meanwhile joins that ending and can only shorten it, so that no preStop runs twice. Owns who is being ended, and whose hook has run
 * though the stop then failed. It stops nothing itself.
 */
import { isAbort } from '../async/abort.ts';
import type { SyncResult } from '../container/syncResult.ts';
import type { ContainerId } from '../container/words.ts';
import type { Clock, Monotonic } from '../world/clock.ts';

const shortened = Object.assign(new Error('the grace was shortened'), { name: 'AbortError' });

/** How many containers whose stop failed are remembered. */
const kept = 256;

/** The budget of one container's end. */
export class Ending {
  /** The stop itself is under way: the runtime holds the time now. */
  stopping = false;
  failed = false;
  /** The preStop hook was begun; it does not run again. */
  hookRan = false;
  #since: Monotonic;
  #rearm: AbortController | undefined;

  constructor(
    private readonly clock: Clock,
    /** Of the whole end, from its beginning or from the moment it was shortened. */
    private graceSeconds: number,
  ) {
    this.#since = clock.monotonic();
  }

  /** Whole seconds, with what was used up rounded down; may be negative. */
  get leftSeconds(): number {
    return this.graceSeconds - Math.floor((this.clock.monotonic() - this.#since) / 1000);
  }

  get grace(): number {
    return this.graceSeconds;
  }

  /** Whether a grace counted from now would be over before this one. */
  isLongerThan(graceSeconds: number): boolean {
    return this.clock.monotonic() + graceSeconds * 1000 < this.#endMs;
  }

  /** A grace counted from now; a longer one than what is left changes nothing. */
  shorten(graceSeconds: number): void {
    if (!this.isLongerThan(graceSeconds)) return;
    this.#since = this.clock.monotonic();
    this.graceSeconds = graceSeconds;
    this.#rearm?.abort(shortened);
  }

  /** Waits for the work, at most to the end of the grace; whether it ended in time. The work goes on unheard otherwise. */
  async inTime(work: Promise<unknown>): Promise<boolean> {
    let done = false;
    const end = work.finally(() => {
      done = true;
    });
    for (;;) {
      const leftMs = this.#endMs - this.clock.monotonic();
      if (leftMs <= 0) return done;
      const rearm = new AbortController();
      this.#rearm = rearm;
      const late = this.clock.sleep(leftMs, rearm.signal).catch((e) => {
        if (!isAbort(e)) throw e;
      });
      await Promise.race([end, late]);
      rearm.abort(shortened);
      if (done) return true;
    }
  }

  get #endMs(): number {
    return this.#since + this.graceSeconds * 1000;
  }
}

export class Endings {
  #of = new Map<ContainerId, { readonly ending: Ending; readonly done: Promise<SyncResult> }>();

  constructor(private readonly clock: Clock) {}

  /**
   * Ends a container by `end`, or joins the ending under way and shortens its grace. Only a stop that the runtime has in hand cannot be
   * shortened: a shorter one is begun beside it, and the runtime ends the container at whichever comes first. `end` never rejects.
   */
  async run(id: ContainerId, graceSeconds: number, end: (ending: Ending) => Promise<SyncResult>): Promise<SyncResult> {
    const before = this.#of.get(id);
    if (before !== undefined && !before.ending.failed && !(before.ending.stopping && before.ending.isLongerThan(graceSeconds))) {
      before.ending.shorten(graceSeconds);
      return before.done;
    }
    const ending = new Ending(this.clock, graceSeconds);
    ending.hookRan = before?.ending.hookRan ?? false;
    const done = end(ending);
    this.#of.set(id, { ending, done });
    const result = await done;
    ending.failed = result.error !== undefined;
    // a shorter one that was begun beside it goes on, and who asks next joins that
    const isNewest = this.#of.get(id)?.ending === ending;
    // what could not be stopped is asked for again, and its hook has run
    if (isNewest && !ending.failed) this.#of.delete(id);
    else if (isNewest) this.#forgetOldest();
    return result;
  }

  /** Under way, or to be asked for again. */
  get size(): number {
    return this.#of.size;
  }

  /** A container whose stop failed may have ended by itself: nobody asks for it again. */
  #forgetOldest(): void {
    for (const [id, { ending }] of this.#of) {
      if (this.#of.size <= kept) return;
      if (ending.failed) this.#of.delete(id);
    }
  }
}
