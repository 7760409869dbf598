/**
 * What the firmware says of the supply: too low a voltage, a slowed processor. Owns what was seen since the boot (the kernel forgets it) and how
 * long a state is held after it was last seen, so that a supply which dips every few seconds is told once.
 *
 * The kernel asks the firmware by itself every two seconds, and notifies both files when something changed: they are watched, nothing is
 * polled, and each heartbeat reads once more. `get_throttled` is left alone until something points to it, for the kernel logs a warning
 * with a stack trace at its first reading.
 */
import { type FSWatcher, watch } from 'node:fs';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { fileText } from './files.ts';
import { decodeThrottled, powerWords, underVoltageBit } from './throttled.ts';

export interface PowerWatchDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Log;
  /** `get_throttled`; undefined: this kernel has none. */
  readonly throttled: string | undefined;
  /** The alarm of the voltage sensor; undefined: this board has none. */
  readonly underVoltage: string | undefined;
}

/** Masks of bits in the order of `powerWords`. */
export interface PowerState {
  /** Now, or within the last five minutes. */
  readonly held: number;
  readonly sinceBoot: number;
}

/** A state stays for this long after it was last seen. */
const holdMs = 5 * 60_000;

export class PowerWatch {
  #sinceBoot = 0;
  /** By bit: until when it counts as now. */
  #until: (Monotonic | undefined)[] = powerWords.map(() => undefined);
  /** The kernel has said that the word of the firmware changed. */
  #notified = false;

  constructor(private readonly deps: PowerWatchDeps) {}

  /** Whether this board tells anything at all. */
  get known(): boolean {
    return this.deps.throttled !== undefined || this.deps.underVoltage !== undefined;
  }

  /** What somebody else saw in this boot: an earlier run of the agent, the firmware. */
  restore(sinceBoot: number): void {
    this.#sinceBoot |= sinceBoot & ((1 << powerWords.length) - 1);
  }

  state(): PowerState {
    const now = this.deps.clock.monotonic();
    const held = this.#until.reduce<number>((bits, until, i) => (until !== undefined && now < until ? bits | (1 << i) : bits), 0);
    return { held, sinceBoot: this.#sinceBoot };
  }

  /** Reads what there is. `hot`: the processor may be slowed for its heat. Never rejects. */
  async read(hot: boolean): Promise<void> {
    const { throttled, underVoltage } = this.deps;
    const low = underVoltage !== undefined && (await fileText(underVoltage)) === '1';
    if (low) this.#seen(underVoltageBit);
    if (throttled === undefined || !(low || hot || this.#notified || this.state().held !== 0)) return;
    const bits = decodeThrottled(await fileText(throttled));
    if (bits === undefined) return;
    // the driver of the voltage sensor clears the marks of before every two seconds; without it they stay until the next boot
    this.#seen(underVoltage === undefined ? bits.now : bits.now | bits.before);
    this.restore(bits.before);
  }

  /** Tells at once when the kernel says that something changed. Until aborted. */
  watch(changed: () => void, signal: AbortSignal): void {
    const { log, throttled, underVoltage } = this.deps;
    const watchers: FSWatcher[] = [];
    for (const path of [throttled, underVoltage]) {
      if (path === undefined || signal.aborted) continue;
      try {
        // a file of the kernel is never replaced by another one, so the file itself can be watched
        const watcher = watch(path, { persistent: false }, () => {
          if (path === throttled) this.#notified = true;
          const before = this.state();
          this.read(false)
            .then(() => {
              const now = this.state();
              if (now.held !== before.held || now.sinceBoot !== before.sinceBoot) changed();
            })
            .catch((e) => log.warn({ error: describeError(e) }, 'a change of the supply could not be told'));
        });
        watcher.on('error', () => watcher.close()); // the driver went away; the heartbeat goes on reading
        watchers.push(watcher);
      } catch (e) {
        log.debug({ path, error: describeError(e) }, 'a sensor cannot be watched; it is read at each heartbeat');
      }
    }
    signal.addEventListener('abort', () => {
      for (const watcher of watchers) watcher.close();
    });
  }

  #seen(bits: number): void {
    const until = after(this.deps.clock.monotonic(), holdMs);
    this.#sinceBoot |= bits;
    this.#until = this.#until.map((before, i) => ((bits & (1 << i)) === 0 ? before : until));
  }
}
