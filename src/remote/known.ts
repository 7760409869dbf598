/**
 * Owns the ids of commands: what was answered to each in the last ten minutes, so that a command sent twice is done once. Bounded in count and
 * bytes. Those of commands that change something are in runDir too, written before the deed, so that an agent that is started anew in between
 * neither does it again nor says that it was done. An answer too large to keep is asked for again where that changes nothing.
 */
import { createHash } from 'node:crypto';
import { type Canonical, canonicalText } from '../api/canonical.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import type { Asked, ReplyPart } from './words.ts';

export interface KnownDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. */
  readonly store: Store;
  readonly bootId: string;
}

interface Entry {
  readonly print: string;
  /** CLOCK_MONOTONIC, ms. */
  readonly at: number;
  readonly changes: boolean;
  /** undefined: it runs. */
  parts?: readonly ReplyPart[];
  bytes: number;
}

export type Seen =
  | { readonly is: 'new' | 'running' | 'another' | 'spent' }
  | { readonly is: 'answered'; readonly parts: readonly ReplyPart[] };

const storeKey = 'commands';
const rememberMs = 10 * 60_000;
const maxEntries = 256;
const maxBytes = 512 * 1024;
const maxAnswerBytes = 64 * 1024;
const maxStored = 128;
/** Signed ids are used once in a session, however long that is. */
const maxSigned = 4096;

const unknownEnd: ReplyPart = {
  status: 'error',
  reason: 'AgentRestarted',
  message: 'it was begun, then the agent was started anew: look whether it was done',
};

/** What makes two commands of one id the same. */
export function fingerprint({ verb, target, args }: Pick<Asked, 'verb' | 'target' | 'args'>): string {
  const text = canonicalText([verb, target, args] as unknown as Canonical);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

export class KnownIds {
  /** The oldest first. */
  #entries = new Map<string, Entry>();
  #bytes = 0;
  #signed = new Set<string>();
  #signedIn: number | undefined;
  #loading: Promise<void> | undefined;
  #saving: Promise<void> = Promise.resolve();

  constructor(private readonly deps: KnownDeps) {}

  /** What an earlier agent of this boot left; read once. Never rejects. */
  load(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /** Whether the id was used, and for what came of it. */
  look(id: string, print: string): Seen {
    this.#forgetOld();
    const entry = this.#entries.get(id);
    if (entry === undefined) return { is: 'new' };
    if (entry.print !== print) return { is: 'another' };
    return entry.parts === undefined ? { is: 'running' } : { is: 'answered', parts: entry.parts };
  }

  /** Once per session and id; false: it was used, or there is no room to remember that it was. */
  spendSigned(id: string, session: number | undefined): 'spent' | 'full' | 'fresh' {
    if (session !== this.#signedIn) this.#signed.clear();
    this.#signedIn = session;
    if (this.#signed.has(id)) return 'spent';
    if (this.#signed.size >= maxSigned) return 'full';
    this.#signed.add(id);
    return 'fresh';
  }

  /** It is about to run. Resolves when that is written, where it must be. */
  begin(id: string, print: string, changes: boolean): Promise<void> {
    this.#entries.set(id, { print, at: this.deps.clock.monotonic(), changes, bytes: 0 });
    this.#makeRoom();
    return changes ? this.#save() : Promise.resolve();
  }

  /** What it was answered, whole; undefined: too much, or not to the end. */
  finish(id: string, parts: readonly ReplyPart[] | undefined): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    const bytes = parts === undefined ? 0 : JSON.stringify(parts).length;
    const kept = parts === undefined || bytes > maxAnswerBytes ? (entry.changes ? shortened(parts) : undefined) : parts;
    if (kept === undefined) this.#delete(id);
    else {
      entry.parts = kept;
      entry.bytes = kept === parts ? bytes : JSON.stringify(kept).length;
      this.#bytes += entry.bytes;
      this.#makeRoom();
    }
    if (entry.changes) void this.#save();
  }

  /** What was put down is written. */
  settled(): Promise<void> {
    return this.#saving;
  }

  #delete(id: string): void {
    this.#bytes -= this.#entries.get(id)?.bytes ?? 0;
    this.#entries.delete(id);
  }

  #forgetOld(): void {
    const since = this.deps.clock.monotonic() - rememberMs;
    for (const [id, { at, parts }] of this.#entries) if (at <= since && parts !== undefined) this.#delete(id);
  }

  /** First what changes nothing, then the oldest; never one that runs. */
  #makeRoom(): void {
    const over = (): boolean => this.#entries.size > maxEntries || this.#bytes > maxBytes;
    for (const changing of [false, true]) {
      for (const [id, { changes, parts }] of this.#entries) {
        if (!over()) return;
        if (changes === changing && parts !== undefined) this.#delete(id);
      }
    }
  }

  async #load(): Promise<void> {
    const { bootId, log, store } = this.deps;
    try {
      const stored = (await store.get(storeKey)) as { readonly bootID?: unknown; readonly ids?: unknown } | undefined;
      if (stored?.bootID !== bootId || !Array.isArray(stored.ids)) return;
      for (const { id, print, at, end } of stored.ids as readonly StoredId[]) {
        if (typeof id !== 'string' || typeof print !== 'string' || typeof at !== 'number' || this.#entries.has(id)) continue;
        this.#entries.set(id, { print, at, changes: true, parts: [end ?? unknownEnd], bytes: 0 });
      }
    } catch (error) {
      // losing runDir is never an error
      log.warn({ error: describeError(error) }, 'the ids of earlier commands cannot be read');
    }
  }

  /** One write after the other, each with what is there by then. Never rejects. */
  #save(): Promise<void> {
    this.#saving = this.#saving.then(async () => {
      const ids: StoredId[] = [...this.#entries]
        .filter(([, { changes }]) => changes)
        .slice(-maxStored)
        .map(([id, { print, at, parts }]) => ({ id, print, at, ...(parts !== undefined && { end: shortened(parts)[0] }) }));
      try {
        await this.deps.store.put(storeKey, { bootID: this.deps.bootId, ids });
      } catch (error) {
        this.deps.log.warn({ error: describeError(error) }, 'the id of a command could not be written');
      }
    });
    return this.#saving;
  }
}

interface StoredId {
  readonly id: string;
  readonly print: string;
  readonly at: number;
  /** How it ended, without data; absent: it was running. */
  readonly end?: ReplyPart;
}

/** How it ended, as one part without its data. */
function shortened(parts: readonly ReplyPart[] | undefined): [ReplyPart] {
  const last = parts?.at(-1);
  if (last === undefined) return [{ ...unknownEnd, reason: 'AnswerNotKept', message: 'it was done, and its answer was not kept' }];
  const { data, encoding: _, stream: __, chunk, ...end } = last;
  const more = data !== undefined && data !== '' ? { truncated: 'the data was not kept' } : {};
  return [{ ...end, ...(chunk !== undefined && { chunk: { seq: 0, last: true } }), ...more }];
}
