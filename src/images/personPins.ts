/**
 * Images that a person keeps on the node by command. Owns the entry `image-pins` of stateDir and its copy in memory: names in containerd's
 * spelling, whether the images are here or not.
 */
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { fullName } from './fullName.ts';

export interface PersonPinsDeps {
  readonly log: Log;
  /** stateDir. */
  readonly store: Store;
}

const entry = 'image-pins';
/** A list for people; more is a mistake of a program. */
const mostPins = 500;

export type PinOutcome = 'done' | 'already' | 'no image name' | 'too many';

export class PersonPins {
  #names = new Set<string>();
  /** One change after the other, so that the newest list stays. */
  #changing: Promise<unknown> = Promise.resolve();

  constructor(private readonly deps: PersonPinsDeps) {}

  /** Never rejects: an unreadable list is made anew by the next change. */
  async load(): Promise<void> {
    try {
      const stored = await this.deps.store.get(entry);
      if (Array.isArray(stored)) for (const name of stored) if (typeof name === 'string') this.#names.add(name);
    } catch (e) {
      this.deps.log.error({ error: describeError(e) }, 'which images a person pinned cannot be read: pin them again');
    }
  }

  names(): Iterable<string> {
    return this.#names;
  }

  /** On the card when it resolves. Rejects when it cannot be stored. */
  set(text: string, pinned: boolean): Promise<PinOutcome> {
    const change = this.#changing.then(() => this.#set(text, pinned));
    this.#changing = change.catch(() => {}); // the failure is the caller's
    return change;
  }

  async #set(text: string, pinned: boolean): Promise<PinOutcome> {
    const name = fullName(text);
    if (name === undefined) return 'no image name';
    if (this.#names.has(name) === pinned) return 'already';
    if (pinned && this.#names.size >= mostPins) return 'too many';
    const next = new Set(this.#names);
    if (pinned) next.add(name);
    else next.delete(name);
    await this.deps.store.put(entry, [...next].sort());
    this.#names = next;
    return 'done';
  }
}
