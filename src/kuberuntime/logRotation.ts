/**
 * Keeps the logs of containers under a cap. A container's log folder holds the logs of all attempts of that container: `<n>.log`, what was
 * rotated of it (`<n>.log.<time>`), and what was packed of that (`….gz`).
 *
 * What the cap counts: the bytes of all these files together, whatever attempt wrote them and whether it still runs, are at most
 * maxSize × maxFiles. Over it the oldest go first, by attempt and then by rotation; the newest attempt's `<n>.log` never goes whole, but is
 * cut to its last maxSize bytes once nobody writes it. Besides, one attempt has at most maxFiles files, as with the kubelet. So a crash loop
 * and a flood alike keep the newest maxSize × maxFiles bytes. On disk there is at most that, and what the container writes between two
 * looks: 0.1 s and one rotation during a flood, 0.2 s after silence, 1 s (with over twenty logs more, 5 s at most) after slow writing.
 *
 * No ticks: a quiet log is watched, and stat-ed once a minute in case the watch was lost; one that is written is looked at before it can be
 * full. Nothing at all happens while no container runs. Packing is for logs that take over a minute to fill, never for a flood's.
 *
 * Never tears a line, never follows a link, and moves nothing that it cannot move back. Only when the runtime does not open a new file and
 * the cap is over is the current one emptied. Mirrors kubelet v1.32 logs/container_log_manager.go (facts 13.5) in the names and in what a
 * rotation leaves.
 */
import { dirname } from 'node:path';
import { Deadlines } from '../async/deadlines.ts';
import type { Runtime } from '../container/runtime.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { LogFolder, type LoggedContainer } from './logFolder.ts';
import { LogPacker } from './logPacker.ts';
import { type WatchFile, watchFile } from './logWatch.ts';

export interface LogRotationDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: Pick<Runtime, 'reopenLog'>;
  /** Size at which a log is rotated. */
  readonly maxSizeBytes: () => number;
  /** Files kept of one attempt, the current one counted; at least 2. */
  readonly maxFiles: () => number;
  /** All containers of our pods that the runtime has, running or not. */
  readonly containers: () => readonly LoggedContainer[];
  /** Absent: the kernel's. */
  readonly watch?: WatchFile;
}

/** The turns of one folder: one at a time, and one more when somebody asked meanwhile. */
interface Line {
  readonly folder: LogFolder;
  busy: boolean;
  again: boolean;
  failed: boolean;
}

const quietMs = 60_000;
const failedMs = 5_000;

export class LogRotation {
  #lines = new Map<string, Line>();
  #due: Deadlines<string>;
  #packer: LogPacker;
  #running = false;

  constructor(private readonly deps: LogRotationDeps) {
    const { clock, log } = deps;
    this.#due = new Deadlines(clock, (dir) => this.#onDue(dir));
    this.#packer = new LogPacker({
      clock,
      log,
      mayGrow: (dir, bytes) => {
        const folder = this.#lines.get(dir)?.folder;
        return folder !== undefined && folder.bytes + bytes <= folder.cap;
      },
      ended: (dir, how) => void this.#packed(dir, how),
    });
  }

  /** News of containers: some started, ended, or are gone. */
  look(): void {
    if (!this.#running) return;
    const seen = new Map<string, LoggedContainer[]>();
    for (const c of this.deps.containers()) {
      if (c.logPath === '') continue;
      const dir = dirname(c.logPath);
      const others = seen.get(dir);
      if (others === undefined) seen.set(dir, [c]);
      else others.push(c);
    }
    for (const dir of [...this.#lines.keys()]) if (!seen.has(dir)) this.#forget(dir);
    for (const [dir, containers] of seen) if (this.#line(dir).folder.meet(containers)) this.#onDue(dir);
  }

  /** Rotates until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#running = true;
    this.look();
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#running = false;
    this.#due.stop();
    this.#packer.stop();
    for (const dir of [...this.#lines.keys()]) this.#forget(dir);
  }

  #line(dir: string): Line {
    const known = this.#lines.get(dir);
    if (known !== undefined) return known;
    const { clock, log, runtime, maxSizeBytes, maxFiles, watch = watchFile } = this.deps;
    const folder: LogFolder = new LogFolder(dir, {
      clock,
      log,
      runtime,
      maxSizeBytes,
      maxFiles,
      watch,
      packer: this.#packer,
      logs: () => [...this.#lines.values()].reduce((sum, line) => sum + line.folder.live, 0),
      woken: (inMs) => {
        if (this.#running && this.#lines.get(dir)?.folder === folder) this.#due.setEarlier(dir, after(clock.monotonic(), inMs));
      },
    });
    const line = { folder, busy: false, again: false, failed: false };
    this.#lines.set(dir, line);
    return line;
  }

  #forget(dir: string): void {
    this.#lines.get(dir)?.folder.close();
    this.#lines.delete(dir);
    this.#due.delete(dir);
    this.#packer.forget(dir);
  }

  #onDue(dir: string): void {
    const line = this.#lines.get(dir);
    if (line === undefined) return;
    line.again = true;
    if (!line.busy) void this.#turns(dir, line);
  }

  /** Never rejects. */
  async #turns(dir: string, line: Line): Promise<void> {
    line.busy = true;
    while (line.again && this.#isCurrent(dir, line)) {
      line.again = false;
      this.#due.delete(dir);
      const waitMs = await this.#turn(line);
      if (!this.#isCurrent(dir, line) || line.folder.live === 0) continue;
      const now = this.deps.clock.monotonic();
      // all quiet logs are looked at in one waking
      const at = waitMs === undefined ? (((Math.floor(now / quietMs) + 1) * quietMs) as Monotonic) : after(now, waitMs);
      this.#due.setEarlier(dir, at);
    }
    line.busy = false;
    if (!this.#isCurrent(dir, line)) line.folder.close();
  }

  #isCurrent(dir: string, line: Line): boolean {
    return this.#running && this.#lines.get(dir) === line;
  }

  async #turn(line: Line): Promise<number | undefined> {
    try {
      const waitMs = await line.folder.look();
      line.failed = false;
      return waitMs;
    } catch (e) {
      const nouns = { folder: line.folder.dir, error: describeError(e) };
      if (!line.failed) this.deps.log.warn(nouns, 'the logs of a container cannot be kept in order');
      line.failed = true;
      return failedMs;
    }
  }

  async #packed(dir: string, how: 'packed' | 'noRoom' | 'failed'): Promise<void> {
    const folder = this.#lines.get(dir)?.folder;
    if (folder === undefined) return;
    folder.markStale();
    try {
      if (how === 'noRoom') await folder.shed();
    } catch (e) {
      this.deps.log.warn({ folder: dir, error: describeError(e) }, 'a rotated log could not be removed');
    }
    this.#onDue(dir);
  }
}
