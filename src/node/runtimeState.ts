/**
 * Is the runtime there, is its network ready: the one truth behind RuntimeDown and NetworkNotReady. Asks the runtime when a call failed
 * or came back, and once a minute; while it is away every second, up to five. Never decides anything about a pod.
 * Mirrors kubelet v1.32 updateRuntimeUp (which polls every 5 s).
 */
import type { Runtime } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';

export interface RuntimeStateDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: Pick<Runtime, 'status' | 'version'>;
  /** What was down is up, what was up is down, or the network changed. */
  readonly changed: (up: boolean) => void;
}

export class RuntimeState {
  #down: string | undefined = 'not asked yet';
  #network: string | undefined = 'network state unknown';
  #name = 'containerd';
  #version = '';
  #asked = false;
  #failures = 0;
  #wake = new AbortController();

  constructor(private readonly deps: RuntimeStateDeps) {}

  /** It has answered once, or failed to. */
  get asked(): boolean {
    return this.#asked;
  }

  /** Why the runtime cannot be used; undefined: it can. */
  down(): string | undefined {
    return this.#down;
  }

  /** Why pods with a network of their own cannot start; undefined: they can. */
  networkError(): string | undefined {
    return this.#network;
  }

  /** The scheme of container ids in status. */
  runtimeName(): string {
    return this.#name;
  }

  runtimeVersion(): string {
    return this.#version;
  }

  /** Some call failed or worked against what is known here: ask now. */
  suspect(): void {
    this.#wake.abort();
  }

  async check(): Promise<void> {
    const before = [this.#down, this.#network].join();
    const wasUp = this.#down === undefined;
    try {
      if (!wasUp) {
        const { runtimeName, runtimeVersion } = await this.deps.runtime.version();
        this.#name = runtimeName || this.#name;
        this.#version = runtimeVersion;
      }
      const conditions = await this.deps.runtime.status();
      const find = (type: string) => conditions.find((c) => c.type === type);
      const ready = find('RuntimeReady');
      const network = find('NetworkReady');
      this.#down =
        ready?.status === true
          ? undefined
          : ready === undefined
            ? 'the runtime does not say that it is ready'
            : ready.message || ready.reason;
      this.#network = network?.status === true ? undefined : network?.message || network?.reason || 'network state unknown';
    } catch (e) {
      this.#down = describeError(e);
    }
    this.#asked = true;
    this.#failures = this.#down === undefined && this.#network === undefined ? 0 : this.#failures + 1;
    if ([this.#down, this.#network].join() === before) return;
    if (this.#down !== undefined && wasUp) this.deps.log.warn({ reason: this.#down }, 'container runtime is down');
    if (this.#down === undefined && !wasUp) this.deps.log.info({ name: this.#name, version: this.#version }, 'container runtime is up');
    this.deps.changed(this.#down === undefined);
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = () => this.#wake.abort();
    signal.addEventListener('abort', stop);
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.check();
      const pauseMs = this.#failures === 0 ? 60_000 : Math.min(1000 * 2 ** Math.min(this.#failures - 1, 3), 5000);
      // woken early is as good as having slept: the next check is due either way
      await this.deps.clock.sleep(pauseMs, this.#wake.signal).catch(() => {});
    }
    signal.removeEventListener('abort', stop);
  }
}
