/**
 * Looks at paths of the node, few at a time. A look at a disk or server that is away may never come back, and until then holds one of the four
 * threads that all files of the agent share: without a bound a few such pods would hold up its manifests and its stores as well. Owns the
 * looks under way; an answer that comes too late is nobody's.
 */
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from '../world/clock.ts';
import { codeOf, isNowhere } from '../world/errno.ts';

export interface HostLooksDeps {
  readonly clock: Clock;
  /** Absent: the kernel's. */
  readonly stat?: (path: string) => Promise<Stats>;
}

const mostAtOnce = 2;
const answerMs = 10_000;

export class HostLooks {
  #under = new Map<string, Promise<unknown>>();

  constructor(private readonly deps: HostLooksDeps) {}

  /** What the path leads to; undefined: nothing is there. Rejects with a text that goes on after the path. */
  async at(path: string): Promise<Stats | undefined> {
    const over = new AbortController();
    const late = this.deps.clock.sleep(answerMs, over.signal).then(() => {
      const why = this.#under.has(path) ? '' : ', and neither do other paths that were asked for before';
      throw new Error(`does not answer (${answerMs / 1000} s)${why}`);
    });
    late.catch(() => {}); // called off, or told by the race
    try {
      return await Promise.race([this.#inTurn(path, over.signal), late]);
    } finally {
      over.abort();
    }
  }

  async #inTurn(path: string, over: AbortSignal): Promise<Stats | undefined> {
    for (;;) {
      const before = this.#under.get(path) ?? (this.#under.size < mostAtOnce ? undefined : Promise.race(this.#under.values()));
      if (before === undefined) break;
      await before;
      if (over.aborted) return undefined;
    }
    const { stat: look = stat } = this.deps;
    const found = look(path).catch((e: unknown) => {
      // below a file there is nothing either
      if (isNowhere(e)) return undefined;
      throw new Error(`cannot be looked at (${codeOf(e)})`);
    });
    const end = found.then(
      () => {},
      () => {},
    );
    this.#under.set(path, end);
    void end.then(() => this.#under.delete(path));
    return found;
  }
}
