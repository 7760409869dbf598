/**
 * Where a hostPath really leads, asked before each start of a container: who may write below an allowed path may put a link there, and a link
 * leads out. Owns the looks under way: below a disk that is away a look may never come back, so only a few are taken at a time, and nobody
 * waits long for one. Never: takes what does not answer for what is not there.
 */
import { readlink, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../world/clock.ts';
import { codeOf, isNowhere } from '../world/errno.ts';
import { cleanPath, isBelow, outermost } from './hostPaths.ts';
import type { Policy } from './policy.ts';

export interface RealPathsDeps {
  readonly clock: Clock;
  /** A path without its links; undefined: it is not there. Absent: the kernel's. */
  readonly realPath?: (path: string) => Promise<string | undefined>;
}

const answerMs = 10_000;
const mostAtOnce = 2;

export class RealPaths {
  #under = new Map<string, Promise<unknown>>();

  constructor(private readonly deps: RealPathsDeps) {}

  /** What is wrong with a path that the policy allows as it is written; undefined: nothing. Never rejects. */
  async leadsOut(path: string, { source, hostPath: allowed }: Pick<Policy, 'source' | 'hostPath'>): Promise<string | undefined> {
    if (allowed.includes('/')) return undefined;
    const clean = cleanPath(path);
    if (clean === undefined || !isBelow(clean, allowed)) return `hostPath ${path}: policy.${source}.hostPath does not allow it`;
    try {
      const real = await this.#resolve(clean);
      const ends: string[] = [];
      for (const root of outermost(allowed)) ends.push(await this.#resolve(root));
      return isBelow(real, ends) ? undefined : `hostPath ${path} leads to ${real}, which policy.${source}.hostPath does not allow`;
    } catch (e) {
      return `hostPath ${path}: ${e instanceof Error ? e.message : String(e)}`;
    }
  }

  /** Without links, as far as it is there: what is missing has none. Rejects when there is no answer. */
  async #resolve(path: string): Promise<string> {
    const rest: string[] = [];
    for (let at = path; ; at = dirname(at)) {
      const real = await this.#look(at);
      if (real !== undefined) return join(real, ...rest);
      if (at === '/') return path;
      rest.unshift(at.slice(at.lastIndexOf('/') + 1));
    }
  }

  async #look(path: string): Promise<string | undefined> {
    const over = new AbortController();
    const late = this.deps.clock.sleep(answerMs, over.signal).then(() => {
      throw new Error(`does not answer (${answerMs / 1000} s)`);
    });
    late.catch(() => {}); // called off, or told by the race
    try {
      return await Promise.race([this.#inTurn(path, over.signal), late]);
    } finally {
      over.abort();
    }
  }

  async #inTurn(path: string, over: AbortSignal): Promise<string | undefined> {
    for (;;) {
      const before = this.#under.get(path) ?? (this.#under.size < mostAtOnce ? undefined : Promise.race(this.#under.values()));
      if (before === undefined) break;
      await before;
      if (over.aborted) throw new Error('nobody waits for it any more');
    }
    const { realPath = realPathOf } = this.deps;
    const look = realPath(path);
    const end = look.then(
      () => {},
      () => {},
    );
    this.#under.set(path, end);
    void end.then(() => this.#under.delete(path));
    return look;
  }
}

async function realPathOf(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (e) {
    if (!isNowhere(e)) throw new Error(`cannot be looked at (${codeOf(e)})`);
  }
  // where a link leads to that leads nowhere now, something may be in a moment
  const target = await readlink(path).catch(() => undefined); // it is no link
  if (target !== undefined) throw new Error(`${path} is a link that leads nowhere`);
  return undefined;
}
