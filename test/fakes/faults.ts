/** What goes wrong on demand, for any fake with named methods: calls that fail, calls that hang, calls that take time. Remembers them all. */
import { setMaxListeners } from 'node:events';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { Clock, Monotonic } from '../../src/world/clock.ts';

interface Failure<M> {
  readonly method: M;
  readonly error: Error;
  times: number;
  readonly when: 'before' | 'after';
}

interface Hang<M> {
  readonly method: M;
  readonly match: (args: readonly unknown[]) => boolean;
  readonly released: AbortController;
}

export class Faults<M extends string> {
  readonly calls: { readonly method: M; readonly args: readonly unknown[]; readonly at: Monotonic }[] = [];
  /** A call that hangs ends by itself after this, as the real door promises. */
  requestTimeoutMs = 120_000;
  /** While set, every call rejects with it. */
  away: Error | undefined;
  #failures: Failure<M>[] = [];
  #hangs: Hang<M>[] = [];
  #clients = manyListeners();

  constructor(
    private readonly clock: Clock,
    private readonly latencyMs: (method: M) => number,
  ) {}

  failNext(method: M, error: Error, times: number, when: 'before' | 'after'): void {
    this.#failures.push({ method, error, times, when });
  }

  hang(method: M, match: (args: readonly unknown[]) => boolean): () => void {
    const hang: Hang<M> = { method, match, released: new AbortController() };
    this.#hangs.push(hang);
    return () => {
      this.#hangs = this.#hangs.filter((h) => h !== hang);
      hang.released.abort();
    };
  }

  /** Every call that waits now ends `unavailable`, its deed undone from there on. */
  dropClients(): void {
    const gone = this.#clients;
    this.#clients = manyListeners();
    gone.abort(new RuntimeError('unavailable', 'connection dropped'));
  }

  /** Notes the call, lets it take its time, fail or hang as asked, and does the deed. */
  async call<T>(method: M, args: readonly unknown[], deed: () => T | Promise<T>, extraTimeoutMs = 0): Promise<T> {
    this.calls.push({ method, args, at: this.clock.monotonic() });
    const latency = this.latencyMs(method);
    if (latency > 0) await this.clock.sleep(latency, this.#clients.signal);
    const hang = this.#hangs.find((h) => h.method === method && h.match(args));
    if (hang !== undefined) {
      await this.wait(this.requestTimeoutMs + extraTimeoutMs, hang.released.signal);
      if (!hang.released.signal.aborted) throw new RuntimeError('deadlineExceeded', `${method}: deadline exceeded`);
    }
    if (this.away !== undefined) throw this.away;
    const failure = this.#failures.find((f) => f.method === method);
    if (failure !== undefined && --failure.times <= 0) this.#failures.splice(this.#failures.indexOf(failure), 1);
    if (failure?.when === 'before') throw failure.error;
    const answer = await deed();
    if (failure !== undefined) throw failure.error;
    return answer;
  }

  /** Resolves after `ms` or when the signal fires, whichever is first. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await this.clock.sleep(ms, AbortSignal.any([signal, this.#clients.signal])).catch((e) => {
      if (!signal.aborted) throw e;
    });
  }
}

/** Every call that waits listens to it. */
function manyListeners(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
