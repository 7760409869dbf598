/**
 * Secrets as they were: a container has the values it was started with, and may tell them long after its Secret was changed or removed. Owns
 * the last few versions of each Secret that was looked up. For hiding values only: no environment is made of what this gives.
 */

import type { ObjectLookup } from '../api/references.ts';
import type { Secret } from '../api/v1.ts';

/** Versions of one Secret. */
const mostKept = 5;

export class SecretMemory {
  /** The newest last. */
  #versions = new Map<string, readonly Secret[]>();

  constructor(private readonly now: ObjectLookup) {}

  /** A Secret with all values it was seen to have, under names of their own; everything else as it is. */
  readonly lookup: ObjectLookup = (kind, namespace, name, source) => {
    const object = this.now(kind, namespace, name, source);
    if (kind !== 'Secret') return object;
    const key = `${source} ${namespace}/${name}`;
    let versions = this.#versions.get(key) ?? [];
    if (object?.kind === 'Secret' && object !== versions.at(-1)) {
      // read anew with the same values it is no other version
      versions = [...versions.filter((v) => valuesOf(v) !== valuesOf(object)), object].slice(-mostKept);
      this.#versions.set(key, versions);
    }
    const newest = versions.at(-1);
    if (newest === undefined || (versions.length === 1 && newest === object)) return object;
    return { ...newest, data: together(versions.map((v) => v.data)), stringData: together(versions.map((v) => v.stringData)) };
  };
}

const valuesOf = ({ data = {}, stringData = {} }: Secret): string => JSON.stringify([data, stringData]);

const together = (maps: readonly (Readonly<Record<string, string>> | undefined)[]): Record<string, string> =>
  Object.fromEntries(maps.flatMap((map, i) => Object.entries(map ?? {}).map(([key, value]) => [`${i} ${key}`, value])));
