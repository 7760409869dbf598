/**
 * Is a path a mount point now? The kernel's table is asked, and the path itself only when it does not stand there as it is written: below a
 * disk or server that is away a look at a path may never come back, so nobody waits longer for one than a moment, and one path is looked at
 * by one at a time.
 */
import { realpath } from 'node:fs/promises';
import type { Clock } from '../world/clock.ts';

export interface MountTableDeps {
  readonly clock: Clock;
  /** Every mount point that the agent sees. */
  readonly mountPoints: () => Promise<readonly string[]>;
  /** Absent: the kernel's. */
  readonly realPath?: (path: string) => Promise<string>;
}

const answerMs = 2_000;

export class MountTable {
  #looks = new Map<string, Promise<string | undefined>>();

  constructor(private readonly deps: MountTableDeps) {}

  /**
   * Whether something is mounted exactly there, links resolved. An automount point counts before its disk is there: who touches it waits
   * for the disk, and nothing is written through it.
   */
  async has(path: string): Promise<boolean> {
    const points = await this.deps.mountPoints();
    if (points.includes(path)) return true;
    const real = await this.realPath(path);
    return real !== undefined && real !== path && points.includes(real);
  }

  /** The path without links; undefined: nothing is there, or it does not answer. */
  async realPath(path: string): Promise<string | undefined> {
    const over = new AbortController();
    const late = this.deps.clock.sleep(answerMs, over.signal).then(
      () => undefined,
      () => undefined, // answered in time
    );
    try {
      return await Promise.race([this.#look(path), late]);
    } finally {
      over.abort();
    }
  }

  #look(path: string): Promise<string | undefined> {
    const { realPath = (p: string) => realpath(p) } = this.deps;
    const under = this.#looks.get(path);
    if (under !== undefined) return under;
    const look = realPath(path).then(
      (real) => real,
      () => undefined, // that is the answer
    );
    this.#looks.set(path, look);
    void look.then(() => this.#looks.delete(path));
    return look;
  }
}
