/**
 * May the event stream be trusted? It is up when the stream said so, and it is healthy while our own acts come back as events.
 * Owns the acts still waiting for their echo. Never decides what happened: a list does that.
 */
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';

/** An echo takes milliseconds; a busy Pi is given seconds. A false alarm costs a relist each second until the next event. */
const echoMs = 3_000;
const heardMs = 5_000;

export class StreamHealth {
  #up = false;
  #echoLost = false;
  #heard = new Map<string, Monotonic>();
  #waiting: Deadlines<string>;

  constructor(
    private readonly clock: Clock,
    /** Healthy or not has changed. */
    private readonly changed: () => void,
  ) {
    this.#waiting = new Deadlines(clock, () => {
      if (!this.#up || this.#echoLost) return;
      this.#echoLost = true;
      this.changed();
    });
  }

  get healthy(): boolean {
    return this.#up && !this.#echoLost;
  }

  /** The stream is connected, or broken. What it missed in between is no sign of deafness. */
  setUp(up: boolean): void {
    this.#up = up;
    this.#echoLost = false;
    for (const id of this.#waiting.keys()) this.#waiting.delete(id);
    this.changed();
  }

  /** We have just made this container or sandbox do something. Its event may have come before the call's answer. */
  expect(id: string): void {
    const heard = this.#heard.get(id);
    if (!this.#up || (heard !== undefined && this.clock.monotonic() - heard < heardMs)) return;
    this.#waiting.setEarlier(id, after(this.clock.monotonic(), echoMs));
  }

  /** An event came. */
  hear(id: string): void {
    const now = this.clock.monotonic();
    this.#heard.delete(id);
    this.#heard.set(id, now);
    for (const [old, at] of this.#heard) {
      if (now - at < heardMs) break;
      this.#heard.delete(old);
    }
    this.#waiting.delete(id);
    if (!this.#echoLost) return;
    this.#echoLost = false;
    this.changed();
  }

  stop(): void {
    this.#waiting.stop();
  }
}
