/**
 * MQTT has no end-of-retained message. A message of our own, sent after SUBSCRIBE at QoS 1, comes back when the snapshot is through: a strong
 * hint, no proof. A full queue drops it like any other, so it is sent again every 10 s. One wait at a time.
 */
import { BrokerError } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';
import { parseObject } from './online.ts';

const againMs = 10_000;

export class Marker {
  #serial = 0;
  #waiting: { readonly id: string; readonly wake: AbortController; came: boolean } | undefined;
  #stopped = false;

  constructor(
    private readonly clock: Clock,
    /** What tells our markers from those of an earlier connection. */
    private readonly prefix: string,
    private readonly send: (payload: string) => Promise<void>,
  ) {}

  /** True when it came back, false after `tries` × 10 s. Rejects with BrokerError when the connection ends. */
  async wait(tries: number): Promise<boolean> {
    if (this.#waiting !== undefined) throw new Error('a marker is out already');
    const waiting = { id: `${this.prefix}-${++this.#serial}`, wake: new AbortController(), came: false };
    this.#waiting = waiting;
    try {
      for (let i = 0; i < tries; i++) {
        if (this.#stopped) throw new BrokerError('the connection is gone');
        const payload = JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'Marker', id: waiting.id });
        this.send(payload).catch(() => {}); // refused or cut: it does not come back, which is what we wait for
        await this.clock.sleep(againMs, waiting.wake.signal).catch(() => {}); // woken: `came` or `stopped` says why
        if (waiting.came) return true;
      }
      return false;
    } finally {
      this.#waiting = undefined;
    }
  }

  /** A message on the marker topic. */
  came(payload: Uint8Array): void {
    if (this.#waiting === undefined || parseObject(payload)?.id !== this.#waiting.id) return;
    this.#waiting.came = true;
    this.#waiting.wake.abort();
  }

  stop(): void {
    this.#stopped = true;
    this.#waiting?.wake.abort();
  }
}
