/**
 * Completions: which one-shot pods have run. A Never or OnFailure pod that its containers brought to an end is recorded on the card before
 * its containers may be removed, and does not run again until its work changes, the object is removed, or a person asks for it.
 * Owns the entries `completions/…` of stateDir and their copy in memory. Never decides whether a pod has ended.
 * The kubelet has nothing like it: it reads the answer from dead containers and forgets when they are gone.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import type { PodPhase, PodStatus } from '../api/status.ts';
import type { Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';

export interface Completion {
  readonly key: KeyText;
  readonly uid: PodUid;
  /** `1:…`: scheme and hash. */
  readonly workHash: string;
  readonly phase: PodPhase;
  /** By container name; the last exit. */
  readonly exitCodes: Readonly<Record<string, number>>;
  /** As told at the end. */
  readonly status: PodStatus;
}

export interface CompletionsDeps {
  readonly log: Log;
  /** stateDir: a completion outlives a power cut. */
  readonly store: Store;
}

const prefix = 'completions/';
const schemeOf = (hash: string): string => (hash.includes(':') ? hash.slice(0, hash.indexOf(':')) : '');

function isCompletion(value: unknown): value is Completion {
  if (typeof value !== 'object' || value === null) return false;
  const v = value as Record<string, unknown>;
  return (
    typeof v.key === 'string' &&
    typeof v.uid === 'string' &&
    typeof v.workHash === 'string' &&
    typeof v.phase === 'string' &&
    typeof v.status === 'object' &&
    v.status !== null
  );
}

export class Completions {
  #byKey = new Map<KeyText, Completion>();
  /** On their way to the card; forgotten meanwhile, they are not taken up. */
  #writing = new Map<KeyText, Completion>();

  constructor(private readonly deps: CompletionsDeps) {}

  /** Reads all entries. One that cannot be read is logged and left out: its pod may run once more, the others do not. */
  async load(): Promise<void> {
    for (const entry of await this.#list()) {
      try {
        const value = await this.deps.store.get(entry);
        if (isCompletion(value)) this.#byKey.set(value.key, value);
        else if (value !== undefined) this.deps.log.warn({ entry }, 'a completion record has an unknown shape');
      } catch (error) {
        this.deps.log.warn({ entry, error }, 'a completion record cannot be read');
      }
    }
  }

  /** On the card when it resolves; only then may the pod's containers go. */
  async record(desired: DesiredPod, phase: PodPhase, exitCodes: Readonly<Record<string, number>>, status: PodStatus): Promise<void> {
    await this.#put({ key: desired.key, uid: desired.uid, workHash: desired.workHash, phase, exitCodes, status });
  }

  /**
   * The completion of this work, if it has one. A hash of another scheme cannot be compared with ours: the record is taken for this work
   * (an upgrade runs nothing twice), and `adopt` writes it in today's scheme.
   */
  find(key: KeyText, workHash: string): Completion | undefined {
    const found = this.#byKey.get(key);
    if (found === undefined) return undefined;
    return found.workHash === workHash || schemeOf(found.workHash) !== schemeOf(workHash) ? found : undefined;
  }

  /** Whether this instance's work has a completion. */
  has(desired: DesiredPod | undefined): boolean {
    return desired !== undefined && this.find(desired.key, desired.workHash) !== undefined;
  }

  /** From now on the record of this key is compared by this hash. True when it was of another scheme and was rewritten. */
  async adopt(key: KeyText, workHash: string): Promise<boolean> {
    const found = this.#byKey.get(key);
    if (found === undefined || schemeOf(found.workHash) === schemeOf(workHash)) return false;
    await this.#put({ ...found, workHash });
    return true;
  }

  /** The object was removed, or a person asked for another run. */
  async forget(key: KeyText): Promise<void> {
    this.#byKey.delete(key);
    this.#writing.delete(key);
    await this.deps.store.remove(prefix + key);
  }

  /** Keys that have a record. */
  keys(): readonly KeyText[] {
    return [...this.#byKey.keys()];
  }

  async #put(completion: Completion): Promise<void> {
    const { key } = completion;
    this.#writing.set(key, completion);
    await this.deps.store.put(prefix + key, completion);
    if (this.#writing.get(key) !== completion) return;
    this.#writing.delete(key);
    this.#byKey.set(key, completion);
  }

  /** An unreadable card never stops the agent. */
  async #list(): Promise<readonly string[]> {
    try {
      return await this.deps.store.list(prefix);
    } catch (error) {
      this.deps.log.error({ error }, 'completion records cannot be listed');
      return [];
    }
  }
}
