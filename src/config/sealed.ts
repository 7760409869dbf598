/** Sealed Secrets: kept as they came, opened when somebody uses one. Owns what was opened, for as long as the sealed one is accepted. */
import { sealedAnnotation } from '../api/delivery.ts';
import type { ApiObject } from '../api/objects.ts';
import type { Secret } from '../api/v1.ts';
import type { PolicyPort } from './remoteWords.ts';
import type { Told } from './view.ts';

const noKey = { ok: false, reason: 'CannotUnseal', message: 'this node has no key to open sealed Secrets' } as const;

export class Sealed {
  #opened = new WeakMap<Secret, Secret>();

  constructor(private readonly policy: () => PolicyPort) {}

  /** The object as pods see it; why it cannot be opened, where that is so. */
  open(object: ApiObject): { readonly object: ApiObject } | { readonly object: undefined; readonly told: Told } {
    if (object.kind !== 'Secret' || object.metadata.annotations?.[sealedAnnotation] === undefined) return { object };
    const known = this.#opened.get(object);
    if (known !== undefined) return { object: known };
    const unsealed = this.policy().unseal?.(object) ?? noKey;
    if (!unsealed.ok) return { object: undefined, told: { reason: unsealed.reason, message: unsealed.message } };
    this.#opened.set(object, unsealed.secret);
    return { object: unsealed.secret };
  }
}
