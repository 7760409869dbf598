// pure
/**
 * What is published under `desired/`: the payload of an object with its generation, tombstones, and the index that lists what is meant to be there.
 * The index is what deletes for sure, so it is only ever changed by what was meant: every other entry stays as it was read.
 */

import { audienceAnnotation, generationAnnotation, stateAnnotation } from '../api/delivery.ts';
import type { DesiredIndex } from '../api/messages.ts';
import { type KeyText, keyText, type ObjectKey } from '../api/objects.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import { rolloutAnnotation } from '../api/rollout.ts';
import { type DesiredScope, maxRetainedBytes } from '../api/topics.ts';
import { type Listed, mostEntries } from '../config/desiredIndex.ts';

/** The topic it is for, as what is signed must say. */
export const audienceOf = (scope: DesiredScope): string => (scope === 'all' ? '*' : 'node' in scope ? scope.node : `group:${scope.group}`);

/** `node pi-07`, `group attic`, `all nodes`. */
export const scopeText = (scope: DesiredScope): string =>
  scope === 'all' ? 'all nodes' : 'node' in scope ? `node ${scope.node}` : `group ${scope.group}`;

export interface GenerationFacts {
  /** `--generation`. */
  readonly asked: number | undefined;
  /** The manifest's own. */
  readonly written: number | undefined;
  /** Of what is retained, or what the index remembers. */
  readonly before: number | undefined;
  /** What begins the count where one is needed: the generation of the index. It has risen with every change, so a node that remembers an object
   * of that name from before remembers a smaller one. Undefined: none is needed. */
  readonly first: number | undefined;
}

/** The generation of a payload that is another than before; undefined: it carries none. What is asked for is taken as it is. */
export function nextGeneration({ asked, written, before, first }: GenerationFacts): number | undefined {
  if (asked !== undefined) return asked;
  if (before !== undefined) return Math.max(before + 1, written ?? 0);
  return written ?? first;
}

const delivery: ReadonlySet<string> = new Set([audienceAnnotation, generationAnnotation, stateAnnotation, rolloutAnnotation]);

/** The same object, whatever its delivery: keys in any order, without the annotations that say how it comes. */
export function contentText(raw: Plain): string {
  const metadata = isPlain(raw.metadata) ? raw.metadata : {};
  const annotations = isPlain(metadata.annotations) ? metadata.annotations : {};
  const own = Object.entries(annotations).filter(([name]) => !delivery.has(name));
  const { annotations: _, ...rest } = metadata;
  return sortedText({ ...raw, metadata: { ...rest, ...(own.length > 0 && { annotations: Object.fromEntries(own) }) } });
}

/** The value with its keys in order, at every level. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isPlain(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}

const sortedText = (value: unknown): string => JSON.stringify(sorted(value));

/** An object with only metadata: it is to be gone. */
export const tombstone = (key: ObjectKey, annotations: Readonly<Record<string, string>>): Plain => ({
  apiVersion: 'v1',
  kind: key.kind,
  metadata: { name: key.name, namespace: key.namespace, annotations: { ...annotations, [stateAnnotation]: 'absent' } },
});

export interface IndexChange {
  readonly set: readonly Listed[];
  readonly remove: readonly ObjectKey[];
}

/** The entries after a change, by key; those it does not name stay. */
export function changedEntries(entries: readonly Listed[], { set, remove }: IndexChange): readonly Listed[] {
  const all = new Map<KeyText, Listed>(entries.map((e) => [keyText(e.key), e]));
  for (const key of remove) all.delete(keyText(key));
  for (const entry of set) all.set(keyText(entry.key), entry);
  return [...all.values()].sort((a, b) => (keyText(a.key) < keyText(b.key) ? -1 : 1));
}

/** An envelope is a third larger than what it holds. */
const signedBytes = 44 * 1024;
/** What stands around the entries. */
const frameBytes = 300;

/**
 * The entries as index topics of one generation, the first is `_index` itself: at most 1,000 in one, and no more than a retained message may
 * hold. `audience`: it will be signed.
 */
export function indexParts(entries: readonly Listed[], generation: number, audience?: string): readonly DesiredIndex[] {
  const room = (audience === undefined ? maxRetainedBytes : signedBytes) - frameBytes;
  const parts: DesiredIndex['entries'][number][][] = [[]];
  let used = 0;
  for (const { key, sha256, generation: counted } of entries) {
    const entry = { kind: key.kind, ns: key.namespace, name: key.name, sha256, ...(counted !== undefined && { generation: counted }) };
    const bytes = JSON.stringify(entry).length + 1;
    if ((parts.at(-1)?.length ?? 0) >= mostEntries || used + bytes > room) {
      parts.push([]);
      used = 0;
    }
    parts.at(-1)?.push(entry);
    used += bytes;
  }
  return parts.map((listed, part) => ({
    apiVersion: 'podsched.dev/v1',
    kind: 'DesiredIndex',
    generation,
    ...(parts.length > 1 && { parts: parts.length }),
    ...(audience !== undefined && { part, audience }),
    entries: listed,
  }));
}
