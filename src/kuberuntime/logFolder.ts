/** One container's log folder: what was seen there at the last look, and the deeds that keep it under its cap (see logRotation.ts). */
import { rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { PodUid } from '../api/objects.ts';
import { type Runtime, RuntimeError } from '../container/runtime.ts';
import type { ContainerId } from '../container/words.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { emptyLog, isFull, keepTail, listLogs, logSize, removeFile } from './logFiles.ts';
import type { LogPacker } from './logPacker.ts';
import { type LogFileSeen, nextLookMs, oldestToRemove, packable, planTidy, rotatedName, type TidyInputs } from './logPlan.ts';
import { localStamp, type WatchFile } from './logWatch.ts';

export interface LoggedContainer {
  readonly id: ContainerId;
  readonly uid: PodUid;
  readonly name: string;
  /** As the runtime tells it; '' when it does not. */
  readonly logPath: string;
  readonly running: boolean;
}

export interface LogFolderDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: Pick<Runtime, 'reopenLog'>;
  readonly maxSizeBytes: () => number;
  readonly maxFiles: () => number;
  readonly packer: Pick<LogPacker, 'now' | 'queue' | 'drop'>;
  readonly watch: WatchFile;
  /** How many logs are written on this node. */
  readonly logs: () => number;
  /** A quiet log was written: look within these milliseconds. */
  readonly woken: (inMs: number) => void;
}

/** A log that is being written. */
interface LiveLog {
  readonly id: ContainerId;
  readonly path: string;
  seen: { readonly size: number; readonly at: Monotonic } | undefined;
  /** undefined: its pace is not known yet. */
  grown: { readonly bytes: number; readonly ms: number } | undefined;
  /** When this file began, as far as we saw. */
  begun: Monotonic;
  /** The runtime did not open a new file: not asked again before this. */
  retryAt: Monotonic;
  retryMs: number;
  unwatch: (() => void) | undefined;
}

/** After the first write to a quiet log. */
const wakeMs = 200;
/** Where the kernel gives no watch. */
const unwatchedMs = 5_000;
const firstRetryMs = 1_000;
const longestRetryMs = 60_000;
/** A runtime that has not opened the file by then is taken for one that will not: the old file is written meanwhile. */
const reopenMs = 5_000;
/** A log that is full earlier is a flood: its parts go before packing them is worth it. */
const floodMs = 60_000;

export class LogFolder {
  /** What is known of its containers, to notice news. */
  #key: string | undefined;
  /** By file name. */
  #live = new Map<string, LiveLog>();
  /** Bytes of what is not written any more, at the last listing. */
  #restBytes = 0;
  /** It must be listed before anything is decided. */
  #stale = true;

  constructor(
    readonly dir: string,
    private readonly deps: LogFolderDeps,
  ) {}

  /** How many logs are written here. */
  get live(): number {
    return this.#live.size;
  }

  /** What the folder was seen to hold, without a copy that is being packed. */
  get bytes(): number {
    return [...this.#live.values()].reduce((sum, log) => sum + (log.seen?.size ?? 0), this.#restBytes);
  }

  get cap(): number {
    return this.deps.maxSizeBytes() * this.deps.maxFiles();
  }

  /** Takes note of the folder's containers; true: there is news, and it must be looked at. */
  meet(containers: readonly LoggedContainer[]): boolean {
    const key = containers
      .map((c) => `${c.id} ${c.running}`)
      .sort()
      .join();
    if (key === this.#key) return false;
    this.#key = key;
    this.#stale = true;
    const running = new Map(containers.filter((c) => c.running).map((c) => [basename(c.logPath), c]));
    for (const [name, log] of this.#live) {
      if (running.get(name)?.id === log.id) continue;
      log.unwatch?.();
      this.#live.delete(name);
    }
    const now = this.deps.clock.monotonic();
    for (const [name, { id, logPath: path }] of running) {
      if (this.#live.has(name)) continue;
      const fresh = { seen: undefined, grown: undefined, unwatch: undefined, begun: now, retryAt: now, retryMs: firstRetryMs };
      this.#live.set(name, { id, path, ...fresh });
    }
    return true;
  }

  close(): void {
    for (const log of this.#live.values()) log.unwatch?.();
    this.#live.clear();
  }

  /** What is here is not what was seen: the next look lists it. */
  markStale(): void {
    this.#stale = true;
  }

  /** Looks, does what is to be done, and says in how many milliseconds to look again; undefined: all is quiet. */
  async look(): Promise<number | undefined> {
    const logs = [...this.#live.values()];
    for (const log of logs) await this.#measure(log);
    const now = this.deps.clock.monotonic();
    const full = logs.filter((log) => (log.seen?.size ?? 0) >= this.deps.maxSizeBytes() && log.retryAt <= now);
    const packing = this.deps.packer.now(this.dir)?.bytes ?? 0;
    if (this.#stale || full.length > 0 || this.bytes + packing > this.cap) await this.#tidy(full);
    return this.#next(logs);
  }

  /** The oldest file goes, to make room; false: there is none that may. */
  async shed(): Promise<boolean> {
    const oldest = oldestToRemove(await listLogs(this.dir), new Set(this.#live.keys()));
    if (oldest === undefined) return false;
    await this.#remove([oldest]);
    this.#stale = true;
    return true;
  }

  async #measure(log: LiveLog): Promise<void> {
    const { clock } = this.deps;
    const wasQuiet = log.unwatch !== undefined;
    log.unwatch?.();
    log.unwatch = undefined;
    let size = await logSize(log.path);
    if (size === undefined && log.retryAt <= clock.monotonic()) {
      if (await this.#reopen(log)) size = await logSize(log.path);
      if (size === undefined) this.#retryLater(log);
    }
    const at = clock.monotonic();
    const before = log.seen;
    log.seen = size === undefined ? undefined : { size, at };
    log.grown = undefined;
    if (before === undefined || size === undefined) return;
    // smaller than before: it was emptied, or is another file
    const bytes = size < before.size ? size : size - before.size;
    // what came after a silence came nobody knows how fast
    if (bytes === 0 || !wasQuiet) log.grown = { bytes, ms: at - before.at };
  }

  /** The runtime opens the log anew; false: it does not. */
  async #reopen(log: LiveLog): Promise<boolean> {
    const { clock, runtime } = this.deps;
    const timer = new AbortController();
    const late = clock.sleep(reopenMs, timer.signal).then(() => {
      throw new RuntimeError('deadlineExceeded', `the log was not opened anew within ${reopenMs} ms`);
    });
    try {
      await Promise.race([runtime.reopenLog(log.id), late]);
      return true;
    } catch (e) {
      const nouns = { file: log.path, error: describeError(e) };
      // the first time it may have ended just now, and that is no trouble
      const level = log.retryMs === 2 * firstRetryMs ? 'warn' : 'debug';
      this.deps.log[level](nouns, 'a log was not opened anew');
      return false;
    } finally {
      timer.abort();
    }
  }

  #retryLater(log: LiveLog): void {
    log.retryAt = after(this.deps.clock.monotonic(), log.retryMs);
    log.retryMs = Math.min(longestRetryMs, log.retryMs * 2);
  }

  /** Rotates what is full, then brings the folder under its cap. */
  async #tidy(full: readonly LiveLog[]): Promise<void> {
    const { packer, clock } = this.deps;
    let files = await listLogs(this.dir);
    let slow = false;
    for (const log of full) {
      const { begun } = log;
      if ((await this.#rotate(log, files)) && clock.monotonic() - begun >= floodMs) slow = true;
      files = await listLogs(this.dir);
    }
    const plan = planTidy(this.#inputs(files));
    await this.#remove(plan.remove);
    const { cut } = plan;
    if (cut) await keepTail(join(this.dir, cut.name), cut.keepBytes);
    await this.#lastResort(files, plan.leftBytes);
    const gone = new Set(plan.remove);
    files = files.filter((f) => !gone.has(f.name)).map((f) => (f.name === cut?.name ? { ...f, size: cut.keepBytes } : f));
    const temporary = `${packer.now(this.dir)?.name}.tmp`;
    this.#restBytes = files.reduce((sum, f) => sum + (this.#live.has(f.name) || f.name === temporary ? 0 : f.size), 0);
    this.#stale = false;
    if (slow) packer.queue(this.dir, packable(files));
  }

  /** The cap is over, and what is over it cannot be rotated. */
  async #lastResort(files: readonly LogFileSeen[], leftBytes: number): Promise<void> {
    const { clock, log: say } = this.deps;
    let bytes = leftBytes;
    for (const [name, log] of this.#live) {
      if (bytes <= this.cap || log.retryAt <= clock.monotonic()) continue;
      await emptyLog(log.path);
      const size = files.find((f) => f.name === name)?.size ?? 0;
      say.warn({ file: log.path, bytes: size }, 'a log was emptied: it is over its cap and the runtime does not open a new one');
      log.seen = { size: 0, at: clock.monotonic() };
      bytes -= size;
    }
  }

  #inputs(files: readonly LogFileSeen[]): TidyInputs {
    const { packer, maxSizeBytes, maxFiles } = this.deps;
    const live = new Set(this.#live.keys());
    return { files, live, packing: packer.now(this.dir)?.name, maxSizeBytes: maxSizeBytes(), maxFiles: maxFiles() };
  }

  async #remove(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    this.deps.packer.drop(this.dir, names);
    for (const name of names) await removeFile(join(this.dir, name));
  }

  /** Room first, then the move: on a full disk too there is a place for the new file. */
  async #rotate(log: LiveLog, files: readonly LogFileSeen[]): Promise<boolean> {
    const { dir } = this;
    const { clock } = this.deps;
    const name = basename(log.path);
    const size = files.find((f) => f.name === name)?.size;
    if (size === undefined) return false;
    const to = rotatedName(name, localStamp(clock.now()), files);
    const moved = [...files.filter((f) => f.name !== name), { name: to, size }, { name, size: 0 }];
    await this.#remove(planTidy(this.#inputs(moved)).remove.filter((n) => n !== to));
    await rename(log.path, join(dir, to));
    for (let tries = 0; !(await this.#reopen(log)); tries++) {
      // an answer may be lost: who has made a new file has heard
      if ((await logSize(log.path)) !== undefined) break;
      const oldest = tries === 0 && (await isFull(dir)) ? oldestToRemove(await listLogs(dir), new Set([to])) : undefined;
      if (oldest === undefined) {
        await rename(join(dir, to), log.path);
        this.#retryLater(log);
        return false;
      }
      await this.#remove([oldest]);
    }
    const now = clock.monotonic();
    Object.assign(log, { seen: { size: 0, at: now }, begun: now, retryAt: now, retryMs: firstRetryMs });
    return true;
  }

  async #next(logs: readonly LiveLog[]): Promise<number | undefined> {
    const max = this.deps.maxSizeBytes();
    const waits: number[] = [];
    const now = this.deps.clock.monotonic();
    for (const log of logs) {
      if (log.retryAt > now) waits.push(log.retryAt - now);
      if (log.seen === undefined) continue; // it is missing, and asked for again at its time
      const { size } = log.seen;
      const capRoom = this.cap - this.bytes;
      const roomBytes = size >= max ? capRoom : Math.min(max - size, capRoom);
      const waitMs = nextLookMs({ roomBytes, grown: log.grown, logs: this.deps.logs() });
      if (waitMs !== undefined) waits.push(waitMs);
      // it wrote and writes no more: perhaps it cannot. On a full disk rotated logs are the first to go, one at each look
      else if (this.#restBytes > 0 && (await isFull(this.dir)) && (await this.shed())) waits.push(wakeMs);
      else if (!this.#watch(log)) waits.push(unwatchedMs);
    }
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  #watch(log: LiveLog): boolean {
    log.unwatch = this.deps.watch(log.path, () => {
      log.unwatch?.();
      log.unwatch = undefined;
      // what it writes from here on is its pace
      if (log.seen !== undefined) log.seen = { ...log.seen, at: this.deps.clock.monotonic() };
      this.deps.woken(wakeMs);
    });
    return log.unwatch !== undefined;
  }
}
