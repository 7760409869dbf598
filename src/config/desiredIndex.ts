// pure
/**
 * The index of a node, a group or all: which objects should be there. It says two things: what is to go (a newer one that leaves the name
 * out), and what is missing (listed, and not received). An older one says nothing.
 */

import { wrongLabel, wrongSubdomain } from '../api/names.ts';
import type { Kind, ObjectKey, Problem } from '../api/objects.ts';
import { isPlain } from '../api/plain.ts';
import { shown } from '../api/scalars.ts';

export interface Listed {
  readonly key: ObjectKey;
  /** First 16 hex digits of SHA-256 of the payload. */
  readonly sha256: string;
  readonly generation?: number;
}

export interface IndexPart {
  readonly generation: number;
  readonly parts: number;
  readonly entries: readonly Listed[];
}

export type ReadIndex = { readonly ok: true; readonly part: IndexPart } | { readonly ok: false; readonly problems: readonly Problem[] };

/** In one part. */
export const mostEntries = 1000;
const mostParts = 100;
const mostProblems = 10;
const kinds: readonly Kind[] = ['Pod', 'ConfigMap', 'Secret'];

const isCount = (v: unknown): v is number => typeof v === 'number' && Number.isSafeInteger(v) && v >= 0;

/** Checks by hand what arrived as JSON. An entry of a kind that this version does not know is passed over: it names nothing of ours. */
export function readIndex(value: unknown): ReadIndex {
  const problems: Problem[] = [];
  const wrong = (path: string, expected: string, got: unknown): void => {
    if (problems.length < mostProblems) problems.push({ path, expected, got: shown(got) });
  };
  if (!isPlain(value)) return { ok: false, problems: [{ path: '', expected: 'a DesiredIndex', got: shown(value) }] };
  if (value.apiVersion !== 'podsched.dev/v1') wrong('apiVersion', 'podsched.dev/v1', value.apiVersion);
  if (value.kind !== 'DesiredIndex') wrong('kind', 'DesiredIndex', value.kind);
  const { generation, parts = 1, entries } = value;
  if (!isCount(generation)) wrong('generation', 'a whole number from 0', generation);
  if (!isCount(parts) || parts < 1 || parts > mostParts) wrong('parts', `a whole number from 1 to ${mostParts}`, parts);
  if (!Array.isArray(entries)) wrong('entries', 'a list', entries);
  else if (entries.length > mostEntries) wrong('entries', `at most ${mostEntries} entries`, `${entries.length}`);
  const listed: Listed[] = [];
  for (const [i, entry] of (Array.isArray(entries) ? (entries as readonly unknown[]) : []).slice(0, mostEntries).entries()) {
    const at = `entries[${i}]`;
    if (!isPlain(entry)) {
      wrong(at, 'kind, ns, name and sha256', entry);
      continue;
    }
    const { kind: said, ns, name, sha256, generation: counted } = entry;
    const kind = kinds.find((k) => k === said);
    if (typeof said !== 'string') wrong(`${at}.kind`, `one of ${kinds.join(', ')}`, said);
    // they become topics that are asked for: nothing else than names
    const [wrongNs, wrongName] = [
      typeof ns === 'string' ? wrongLabel(ns) : 'text',
      typeof name === 'string' ? wrongSubdomain(name) : 'text',
    ];
    if (wrongNs !== undefined) wrong(`${at}.ns`, wrongNs, ns);
    if (wrongName !== undefined) wrong(`${at}.name`, wrongName, name);
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{16}$/.test(sha256)) wrong(`${at}.sha256`, '16 hex digits', sha256);
    if (counted !== undefined && !isCount(counted)) wrong(`${at}.generation`, 'a whole number from 0', counted);
    if (kind === undefined || typeof ns !== 'string' || typeof name !== 'string' || typeof sha256 !== 'string') continue;
    listed.push({ key: { kind, namespace: ns, name }, sha256, ...(isCount(counted) && { generation: counted }) });
  }
  if (problems.length > 0 || !isCount(generation) || !isCount(parts)) return { ok: false, problems };
  return { ok: true, part: { generation, parts, entries: listed } };
}

/** All parts of one generation; undefined: some are not here, or of another one, and what they list nobody knows. */
export function wholeIndex(
  parts: ReadonlyMap<number, IndexPart>,
): { readonly generation: number; readonly entries: readonly Listed[] } | undefined {
  const first = parts.get(0);
  if (first === undefined) return undefined;
  const entries: Listed[] = [];
  for (let i = 0; i < first.parts; i++) {
    const part = parts.get(i);
    if (part?.generation !== first.generation || part.parts !== first.parts) return undefined;
    entries.push(...part.entries);
  }
  return { generation: first.generation, entries };
}

/** What a whole index deletes of `topics`; nothing when it is not newer than the one that was followed last. */
export function deletedBy<T extends { readonly topic: string }>(
  index: { readonly generation: number; readonly topics: ReadonlySet<string> | ReadonlyMap<string, unknown> },
  followed: number | undefined,
  topics: Iterable<T>,
): T[] {
  if (followed !== undefined && index.generation <= followed) return [];
  return [...topics].filter(({ topic }) => !index.topics.has(topic));
}

/** What was received last of a topic. */
export interface Received {
  readonly hash?: string | undefined;
  readonly generation?: number | undefined;
}

/** Whether a listed payload has not come: nothing was received, or something that is not newer and another. */
export function isMissing(listed: Pick<Listed, 'sha256' | 'generation'>, received: Received | undefined): boolean {
  if (received?.hash === undefined) return true;
  if (received.hash === listed.sha256) return false;
  // the object is newer than the index, which follows
  return !(listed.generation !== undefined && received.generation !== undefined && received.generation > listed.generation);
}
