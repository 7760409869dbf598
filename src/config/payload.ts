/**
 * The payload of one desired topic into the object it stands for, or into everything that is wrong with it. JSON or YAML, one object, which
 * must be the one that the topic names. Owns nothing; never throws. What is wrong with signature, policy or generation others say.
 */

import { readKey } from '../api/decode.ts';
import { stateAnnotation } from '../api/delivery.ts';
import { keyText, type Problem } from '../api/objects.ts';
import { isPlain } from '../api/plain.ts';
import { type DecodedObject, type DocumentOptions, decodeDocument, isList, toText } from './decode.ts';
import { type Delivery, deliveryPath, takeDelivery } from './delivery.ts';
import type { ObjectPlace } from './desiredTopics.ts';
import { parseDocuments, type YamlDocument } from './yaml.ts';
import { maxDepth } from './yamlTree.ts';

export type Payload =
  | { readonly ok: true; readonly delivery: Delivery /** undefined: a tombstone. */; readonly decoded: DecodedObject | undefined }
  | {
      readonly ok: false;
      readonly reason: 'Invalid' | 'NameMismatch';
      readonly problems: readonly Problem[];
      readonly generation?: number;
    };

type Refused = Extract<Payload, { ok: false }>;

const invalid = (problems: readonly Problem[], delivery: Delivery = {}): Refused => ({
  ok: false,
  reason: 'Invalid',
  problems,
  ...(delivery.generation !== undefined && { generation: delivery.generation }),
});

/** Decodes what stands at `place`. `signed`: it says its namespace itself, or it is for `default`; else it could be moved to any. */
export function decodePayload(bytes: Uint8Array, place: ObjectPlace, o: DocumentOptions, signed = false): Payload {
  const text = toText(bytes);
  if (typeof text !== 'string') return invalid([{ path: '', expected: 'UTF-8', got: text.got, line: text.line, column: 1 }]);
  const json = readJson(text);
  const payload = json === undefined ? undefined : readOne(json, place, o, signed);
  // the slow way knows where a mistake stands
  if (payload?.ok === true) return payload;
  const parsed = parseDocuments(text);
  if (parsed.problems.length > 0) return invalid(parsed.problems);
  const documents = parsed.documents.filter((d) => d.value !== null);
  const [document] = documents;
  if (document === undefined) return invalid([{ path: '', expected: 'a manifest', got: 'nothing' }]);
  if (documents.length > 1)
    return invalid([{ path: '', expected: 'one object: each has a topic of its own', got: `${documents.length} documents` }]);
  return readOne(document, place, o, signed);
}

/** What an index, `_config` or a rollout says; undefined: it is no JSON, or too deep. */
export function readJsonValue(bytes: Uint8Array): unknown {
  const text = toText(bytes);
  return typeof text === 'string' ? readJson(text)?.value : undefined;
}

function readOne(document: YamlDocument, place: ObjectPlace, o: DocumentOptions, signed: boolean): Payload {
  if (isList(document.value))
    return invalid([{ path: 'kind', expected: 'one object: each has a topic of its own', got: 'a List', ...document.at('kind') }]);
  const { value, delivery, problems } = takeDelivery(document.value);
  const located = problems.map((p) => ({ ...p, ...document.at(p.path) }));
  const named = signed ? value : withNamespace(value, place.key.namespace);
  const mismatch = mismatchOf(named, place, document, delivery.absent === true);
  if (mismatch !== undefined) {
    return {
      ok: false,
      reason: 'NameMismatch',
      problems: [mismatch],
      ...(delivery.generation !== undefined && { generation: delivery.generation }),
    };
  }
  if (located.length > 0) return invalid(located, delivery);
  if (delivery.absent === true) return readTombstone(named, delivery, document);
  const decoded = decodeDocument({ ...document, value: named }, o);
  if (decoded.object === undefined) return invalid(decoded.problems, delivery);
  // what `${NODE.…}` stands for may have made another name of it
  if (decoded.object.key !== place.text) {
    const got = decoded.object.key;
    return { ok: false, reason: 'NameMismatch', problems: [{ path: 'metadata.name', expected: `${place.text}, as the topic says`, got }] };
  }
  return { ok: true, delivery, decoded: decoded.object };
}

/** An absent namespace is the topic's. */
function withNamespace(value: unknown, namespace: string): unknown {
  if (!isPlain(value) || !isPlain(value.metadata)) return value;
  const said = value.metadata.namespace;
  if (said !== undefined && said !== null && said !== '') return value;
  if (namespace === 'default') return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, key === 'metadata' && isPlain(inner) ? { ...inner, namespace } : inner]),
  );
}

function mismatchOf(value: unknown, place: ObjectPlace, document: YamlDocument, asWritten: boolean): Problem | undefined {
  const key = readKey(value);
  // what it is nobody can say: that is another mistake; and a name may yet become the right one, but for a tombstone's
  if (key === undefined || (!asWritten && [key.name, key.namespace].some((part) => part.includes('${')))) return undefined;
  const wrong = (['kind', 'namespace', 'name'] as const).find((part) => key[part] !== place.key[part]);
  if (wrong === undefined) return undefined;
  const path = wrong === 'kind' ? 'kind' : `metadata.${wrong}`;
  return { path, expected: `${place.text}, as the topic says`, got: keyText(key).slice(0, 200), ...document.at(path) };
}

/** Only metadata: whoever writes more means something else. */
function readTombstone(value: unknown, delivery: Delivery, document: YamlDocument): Payload {
  const fields = isPlain(value) ? Object.keys(value) : [];
  const more = fields.find((f) => f !== 'apiVersion' && f !== 'kind' && f !== 'metadata');
  const version = isPlain(value) ? value.apiVersion : undefined;
  const problems: Problem[] = [];
  if (version !== 'v1')
    problems.push({
      path: 'apiVersion',
      expected: 'v1',
      got: version === undefined ? 'nothing' : 'something else',
      ...document.at('apiVersion'),
    });
  if (readKey(value) === undefined) problems.push({ path: '', expected: 'kind and metadata.name', got: 'something else' });
  if (more !== undefined)
    problems.push({ path: more.slice(0, 60), expected: `nothing beside metadata: ${deliveryPath(stateAnnotation)} is absent`, got: 'set' });
  return problems.length > 0 ? invalid(problems, delivery) : { ok: true, delivery, decoded: undefined };
}

/** JSON as a document without places; undefined when it is none, or deeper than YAML may be. */
function readJson(text: string): YamlDocument | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isDeep(value, 0) ? undefined : { index: 0, value, problems: [], at: () => undefined };
  } catch {
    return undefined; // YAML in flow style, or broken: the other parser says which
  }
}

function isDeep(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth >= maxDepth || Object.values(value).some((inner) => isDeep(inner, depth + 1));
}
