/** Sealed Secrets: kept as they came, opened when somebody uses one. Owns what was opened, for as long as the sealed one is accepted. */
import { sealedAnnotation } from '../api/delivery.ts';
import type { ApiObject } from '../api/objects.ts';
import type { Secret } from '../api/v1.ts';
import type { PolicyPort } from './remoteWords.ts';
import type { Told } from './view.ts';

const noKey = { ok: false, reason: 'CannotUnseal', message: 'this node has no key to open sealed Secrets' } as const;

export class Sealed {
  #opened = new WeakMap<Secret, Secret>();
  /** Tried in vain: whoever tells of objects asks each time, and in a group's topic most may be sealed for other nodes. */
  #closed = new WeakMap<Secret, Told>();

  constructor(private readonly policy: () => PolicyPort) {}

  /** The object as pods see it; why it cannot be opened, where that is so. */
  open(object: ApiObject): { readonly object: ApiObject } | { readonly object: undefined; readonly told: Told } {
    if (object.kind !== 'Secret' || object.metadata.annotations?.[sealedAnnotation] === undefined) return { object };
    const known = this.#opened.get(object);
    if (known !== undefined) return { object: known };
    const before = this.#closed.get(object);
    if (before !== undefined) return { object: undefined, told: before };
    const unsealed = this.policy().unseal?.(object) ?? noKey;
    if (unsealed.ok) {
      this.#opened.set(object, unsealed.secret);
      return { object: unsealed.secret };
    }
    const told = { reason: unsealed.reason, message: unsealed.message };
    this.#closed.set(object, told);
    return { object: undefined, told };
  }

  /** Policy or keys are others: what could not be opened is tried again. */
  tryAgain(): void {
    this.#closed = new WeakMap();
  }
}
