/** A manifest folder in memory: every change ticks a moment later, as inotify with its debounce does; ticks can get lost (the poll then finds it). */
import type { Clock } from '../../src/world/clock.ts';
import type { FileText, FolderListing, FolderReader } from '../../src/world/folder.ts';

export class FakeFolder implements FolderReader {
  readonly files = new Map<string, string>();
  missing = false;
  loseTicks = false;
  #onTick: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly pollMs = 20_000,
  ) {}

  write(name: string, text: string): void {
    this.files.set(name, text);
    this.#tick();
  }

  remove(name: string): void {
    this.files.delete(name);
    this.#tick();
  }

  async read(): Promise<FolderListing> {
    if (this.missing) return { ok: false, message: 'no such folder' };
    const files: FileText[] = [...this.files]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, text]) => ({ name, content: { ok: true, bytes: new TextEncoder().encode(text) } }));
    return { ok: true, files };
  }

  watch(onTick: () => void, _onDegraded: (reason: string | undefined) => void, signal: AbortSignal): void {
    this.#onTick = onTick;
    const poll = async () => {
      while (!signal.aborted) {
        await this.clock.sleep(this.pollMs, signal);
        onTick();
      }
    };
    poll().catch(() => {}); // only an abort ends it
    signal.addEventListener('abort', () => {
      if (this.#onTick === onTick) this.#onTick = undefined;
    });
  }

  #tick(): void {
    if (this.loseTicks) return;
    const tick = this.#onTick;
    if (tick !== undefined)
      this.clock
        .sleep(20)
        .then(() => tick === this.#onTick && tick())
        .catch(() => {});
  }
}
