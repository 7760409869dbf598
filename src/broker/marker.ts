/**
 * MQTT has no end-of-retained message. A message of our own, sent after SUBSCRIBE at QoS 1, comes back when the snapshot is through: a strong
 * hint, no proof. A full queue drops it like any other, so it is sent again every 10 s. Owns the markers of one connection that are out.
 */
import { BrokerError } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';
import { parseObject } from './online.ts';

const againMs = 10_000;

export class Marker {
  #serial = 0;
  #out = new Map<string, { readonly wake: AbortController; came: boolean }>();
  #stopped = false;
  #back = false;

  constructor(
    private readonly clock: Clock,
    /** What tells our markers from those of an earlier connection. */
    private readonly prefix: string,
    private readonly send: (payload: string) => Promise<void>,
  ) {}

  /** One of this connection has come back: what was queued for an absent node has come before it. */
  get back(): boolean {
    return this.#back;
  }

  /** True when it came back, false after `tries` × 10 s. Rejects with BrokerError when the connection ends. */
  async wait(tries: number): Promise<boolean> {
    const id = `${this.prefix}-${++this.#serial}`;
    const waiting = { wake: new AbortController(), came: false };
    this.#out.set(id, waiting);
    try {
      for (let i = 0; i < tries && !this.#stopped; i++) {
        const payload = JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'Marker', id });
        this.send(payload).catch(() => {}); // refused or cut: it does not come back, which is what we wait for
        await this.clock.sleep(againMs, waiting.wake.signal).catch(() => {}); // woken: `came` or `stopped` says why
        if (waiting.came) return true;
      }
      if (this.#stopped) throw new BrokerError('the connection is gone');
      return false;
    } finally {
      this.#out.delete(id);
    }
  }

  /** A message on the marker topic. */
  came(payload: Uint8Array): void {
    const id = parseObject(payload)?.id;
    const waiting = typeof id === 'string' ? this.#out.get(id) : undefined;
    if (waiting === undefined) return;
    this.#back = true;
    waiting.came = true;
    waiting.wake.abort();
  }

  stop(): void {
    this.#stopped = true;
    for (const waiting of this.#out.values()) waiting.wake.abort();
  }
}
