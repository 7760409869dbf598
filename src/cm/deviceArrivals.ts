/**
 * Devices that came a moment ago. udev gives a node its group after the kernel has made it, on a busy machine seconds after: until then a device
 * that is closed to somebody may be about to open. Owns when each was seen for the first time, no longer than that matters.
 */
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { keyOf } from './deviceChoice.ts';
import type { Member } from './deviceScan.ts';

const settleMs = 5_000;

export class DeviceArrivals {
  #at = new Map<string, Monotonic>();

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** A look at a class. `before`: what the last look found (`keyOf`); undefined: nobody has looked, so all of it may have just come. */
  seen(before: ReadonlySet<string> | undefined, now: Iterable<string>): void {
    const time = this.clock.monotonic();
    for (const [key, at] of this.#at) if (time >= after(at, settleMs)) this.#at.delete(key);
    for (const key of now) if (before?.has(key) !== true && !this.#at.has(key)) this.#at.set(key, time);
  }

  /** Milliseconds until the last of these is what it will be; 0: they all are. */
  settlesInMs(members: readonly Member[]): number {
    const now = this.clock.monotonic();
    return Math.max(0, ...members.flatMap((m) => this.#at.get(keyOf(m)) ?? []).map((at) => after(at, settleMs) - now));
  }
}
