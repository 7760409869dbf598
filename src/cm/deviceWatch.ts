/**
 * Watching the folders that devices are found in. It says only "look again", when things have settled: the kernel makes a node, udev gives it its
 * group and then its links, one after the other. Owns the watches; where the kernel has none left it looks every 20 s, and says so.
 */
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { codeOf } from '../world/errno.ts';
import type { DeviceFiles } from './deviceFiles.ts';
import type { Interest } from './deviceScan.ts';

export interface DeviceWatchDeps {
  readonly clock: Clock;
  readonly files: Pick<DeviceFiles, 'identity' | 'watch'>;
  /** A name of interest came, went or changed its permissions; nothing more was heard for a moment. */
  readonly look: () => void;
  /** Why it cannot watch; undefined: it can again. */
  readonly degraded: (reason: string | undefined) => void;
}

const quietMs = 250;
/** A folder that is never quiet is looked at this often. */
const longestMs = 2_000;
const pollMs = 20_000;

interface Watched {
  readonly identity: string;
  readonly handle: { close(): void };
}

export class DeviceWatch {
  #interest: Interest = new Map();
  #watched = new Map<string, Watched>();
  #since: Monotonic | undefined;
  #due: Deadlines<'quiet' | 'poll'>;
  #degraded: string | undefined;

  constructor(private readonly deps: DeviceWatchDeps) {
    this.#due = new Deadlines(deps.clock, (key) => {
      if (key === 'quiet') this.#since = undefined;
      this.deps.look();
    });
  }

  /** Watches these folders and no others. True when a watch is new: what changed before it was heard by nobody. */
  set(interest: Interest): boolean {
    this.#interest = interest;
    for (const folder of [...this.#watched.keys()]) if (!interest.has(folder)) this.#drop(folder);
    let fresh = false;
    let trouble: string | undefined;
    for (const folder of interest.keys()) {
      const identity = this.deps.files.identity(folder);
      if (identity === undefined || this.#watched.get(folder)?.identity === identity) continue;
      this.#drop(folder);
      const failed = this.#arm(folder, identity);
      trouble ??= failed;
      fresh ||= failed === undefined;
    }
    this.#tell(trouble);
    return fresh;
  }

  stop(): void {
    this.#due.stop();
    for (const folder of [...this.#watched.keys()]) this.#drop(folder);
  }

  #arm(folder: string, identity: string): string | undefined {
    try {
      const handle = this.deps.files.watch(
        folder,
        (name) => this.#heard(folder, name),
        (e) => {
          if (this.#watched.get(folder)?.handle === handle) this.#drop(folder);
          this.#tell(`watching ${folder} failed (${codeOf(e)}): devices are looked for every ${pollMs / 1000} s`);
        },
      );
      this.#watched.set(folder, { identity, handle });
      return undefined;
    } catch (e) {
      return `cannot watch ${folder} (${codeOf(e)}): devices are looked for every ${pollMs / 1000} s`;
    }
  }

  #drop(folder: string): void {
    this.#watched.get(folder)?.handle.close();
    this.#watched.delete(folder);
  }

  /** On kernels before 6.12 a write to a device of the host is heard here as well: other names cost no more than this look. */
  #heard(folder: string, name: string | null): void {
    if (name !== null && !this.#interest.get(folder)?.some((pattern) => pattern.test(name))) return;
    const now = this.deps.clock.monotonic();
    this.#since ??= now;
    this.#due.set('quiet', after(now, Math.min(quietMs, Math.max(0, this.#since + longestMs - now))));
  }

  #tell(trouble: string | undefined): void {
    if (trouble === undefined) this.#due.delete('poll');
    // each look comes back here, and sets the next one
    else this.#due.set('poll', after(this.deps.clock.monotonic(), pollMs));
    if (trouble === this.#degraded) return;
    this.#degraded = trouble;
    this.deps.degraded(trouble);
  }
}
