/**
 * Revisions that are Ready, and not for long enough yet: what crashes a moment after each start is Ready for that moment, too. Owns since when
 * each is, in memory; one that was lost counts anew. Never asks: it is told.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { KeyText } from '../api/objects.ts';
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock } from '../world/clock.ts';

/** As long as the first back-off of a container that crashes. */
const steadyMs = 10_000;

export class Steady {
  #ready = new Map<KeyText, DesiredPod>();
  #due: Deadlines<KeyText>;

  constructor(
    private readonly clock: Clock,
    /** It has been Ready all the time. */
    private readonly proven: (desired: DesiredPod) => void,
  ) {
    this.#due = new Deadlines(clock, (key) => this.#over(key));
  }

  /** It is Ready, from now on or still. */
  seen(desired: DesiredPod): void {
    const { key, uid, revision } = desired;
    const before = this.#ready.get(key);
    if (before?.uid === uid && before.revision === revision) return;
    this.#ready.set(key, desired);
    this.#due.set(key, after(this.clock.monotonic(), steadyMs));
  }

  /** It is not Ready, gone, or another. False: it was not before either. */
  lost(key: KeyText): boolean {
    this.#due.delete(key);
    return this.#ready.delete(key);
  }

  /** This revision is Ready now, and it is not known yet whether that lasts. */
  has(key: KeyText, revision: string): boolean {
    return this.#ready.get(key)?.revision === revision;
  }

  stop(): void {
    this.#due.stop();
  }

  #over(key: KeyText): void {
    const desired = this.#ready.get(key);
    if (desired === undefined) return;
    this.#ready.delete(key);
    this.proven(desired);
  }
}
