/**
 * One manifest file into objects, or into everything that is wrong with it, each mistake with file, line and column. Owns no truth.
 * A file may hold `---` documents and Lists of Pods, ConfigMaps and Secrets. What is good in a file with a broken document is still good;
 * whether the file is whole decides what may be taken for removed.
 */

import { type DecodeOptions, decodeObject, readKey } from '../api/decode.ts';
import { audienceAnnotation, generationAnnotation, stateAnnotation } from '../api/delivery.ts';
import { entryPath } from '../api/fieldPath.ts';
import { revision } from '../api/hash.ts';
import { type NodeValues, substituteNode } from '../api/nodeValues.ts';
import { type ApiObject, type KeyText, keyOf, keyText, type Problem } from '../api/objects.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import { inFileOrder } from '../api/problems.ts';
import { rolloutAnnotation } from '../api/rollout.ts';
import { shown } from '../api/scalars.ts';
import { isUnknown } from '../api/unknown.ts';
import type { FileText } from '../world/folder.ts';
import { denialOf } from './allowed.ts';
import { type Delivery, deliveryPath, isMeantFor, takeDelivery } from './delivery.ts';
import { maxFileBytes } from './folderReader.ts';
import { fileSource } from './merge.ts';
import type { PolicyPort } from './remoteWords.ts';
import { parseDocuments, type YamlDocument } from './yaml.ts';
import type { Place } from './yamlTree.ts';

export interface DecodedObject {
  readonly key: KeyText;
  readonly object: ApiObject;
  readonly revision: string;
  readonly warnings: readonly Problem[];
  /** The document it stands in, from 0. */
  readonly index: number;
  /** Of a signed file: the id of the key, and the generation it was judged with. */
  readonly signed?: string;
  readonly generation?: number;
  /** Values of the node stand in it. */
  readonly substituted?: true;
  /** Of a ConfigMap or Secret: where that stands which an immutable one may not change. */
  readonly places?: ReadonlyMap<string, Place>;
}

/** What is needed to make an object of a document. */
export interface DocumentOptions extends DecodeOptions {
  /** What `${NODE.…}` stands for. Absent: nobody knows the node, so of a value that names it only the form is judged. */
  readonly node?: NodeValues;
}

export interface FileOptions extends DocumentOptions {
  /** Groups of the node, by which an object knows whether it is meant. Absent: nobody knows, and any is. */
  readonly groups?: readonly string[];
  /** Rises with each change of policy or keys. */
  readonly judged?: number;
  /** Absent: everything is allowed, and nothing is signed. */
  readonly policy?: PolicyPort;
}

export interface RefusedObject {
  readonly key: KeyText;
  readonly problems: readonly Problem[];
  /** Absent: that of the file. */
  readonly reason?: string;
}

export interface DecodedFile {
  readonly name: string;
  readonly objects: readonly DecodedObject[];
  readonly problems: readonly Problem[];
  /** Of the file itself (permissions); those of objects are with the objects. */
  readonly warnings: readonly Problem[];
  /** Keys that could be read from what is refused, with what is wrong there. */
  readonly refused: readonly RefusedObject[];
  readonly refusedKeys: readonly KeyText[];
  /** Everything in the file was read and understood: what it does not name, it does not want. */
  readonly whole: boolean;
  /** Why something of it is refused, if something is. */
  readonly reason: string;
}

/** Decodes a file. Never throws. `strict` refuses unknown fields, and files that others may write. */
export function decodeFile(file: FileText, o: FileOptions): DecodedFile {
  const refuse = (reason: string, expected: string, got: string): DecodedFile => ({
    name: file.name,
    objects: [],
    problems: [{ path: '', expected, got, file: file.name }],
    warnings: [],
    refused: [],
    refusedKeys: [],
    whole: false,
    reason,
  });
  if (file.insecure !== undefined && o.strict) return refuse('InsecurePermissions', 'a file that only its owner may write', file.insecure);
  if (!file.content.ok) {
    // a FIFO or a folder is a mistake of its owner; what may not or cannot be read is a fault
    const mistake = file.content.reason === 'NotAFile' || file.content.reason === 'TooLarge';
    return refuse(mistake ? 'Invalid' : 'SourceUnreadable', 'a file that can be read', file.content.message);
  }
  const { bytes } = file.content;
  if (bytes.length > maxFileBytes) return refuse('Invalid', `at most ${maxFileBytes} bytes`, `${bytes.length} bytes`);
  const opened = o.policy?.openFile?.(bytes, { source: fileSource(file.name), signature: file.signature }) ?? { ok: true, bytes };
  if (!opened.ok) return refuse(opened.reason, 'nothing', opened.message);
  const text = toText(opened.bytes);
  if (typeof text !== 'string') return located(refuse('Invalid', 'UTF-8', text.got), { line: text.line });
  const parsed = parseDocuments(text);
  const work = new FileWork(file.name, o, opened.signed);
  work.problem(...parsed.problems);
  for (const document of parsed.broken) work.readRefused(document);
  for (const document of parsed.documents) if (document.value !== null) work.readDocument(document);
  if (!work.hasSomething && parsed.problems.length === 0) return refuse('Invalid', 'a manifest', 'an empty file');
  const warnings =
    file.insecure === undefined
      ? []
      : [{ path: '', expected: 'a file that only its owner may write', got: file.insecure, file: file.name }];
  return work.result(warnings);
}

/** One document as one object, of a topic: no file stands in its problems. Policy is not asked. */
export function decodeDocument(
  document: YamlDocument,
  o: DocumentOptions,
): { readonly object?: DecodedObject; readonly problems: readonly Problem[] } {
  const work = new FileWork(undefined, o, undefined);
  work.readDocument(document);
  const { objects, problems } = work.result([]);
  const [object] = objects;
  return { problems, ...(object !== undefined && { object }) };
}

const located = (file: DecodedFile, place: { readonly line: number }): DecodedFile => ({
  ...file,
  problems: file.problems.map((p) => ({ ...p, ...place, column: 1 })),
});

/** The text of UTF-8 bytes, or what they are instead and in which line. */
export function toText(bytes: Uint8Array): string | { readonly got: string; readonly line: number } {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) return { got: 'UTF-16', line: 1 };
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // the first line that does not decode by itself is the one
    let line = 1;
    for (const part of lines(bytes)) {
      try {
        new TextDecoder('utf-8', { fatal: true }).decode(part);
        line++;
      } catch {
        break;
      }
    }
    return { got: 'bytes that are no UTF-8', line };
  }
}

function* lines(bytes: Uint8Array): Generator<Uint8Array> {
  let start = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    yield bytes.subarray(start, end);
    start = end + 1;
  }
  yield bytes.subarray(start);
}

export const isList = (value: unknown): value is Plain => isPlain(value) && value.kind === 'List';
const listItems = (list: Readonly<Record<string, unknown>>): readonly unknown[] => (Array.isArray(list.items) ? list.items : []);

/** Of values that nobody knows: each is looked for in the text, and one more says nothing new. */
const mostUnknown = 100;
const inKey: ReadonlySet<string> = new Set(['kind', 'metadata.name', 'metadata.namespace']);

class FileWork {
  hasSomething = false;
  #objects: DecodedObject[] = [];
  #problems: Problem[] = [];
  #refused: RefusedObject[] = [];

  constructor(
    /** undefined: it is the payload of a topic, of which its own reader has taken the delivery and asks the policy. */
    private readonly name: string | undefined,
    private readonly options: FileOptions,
    private readonly signed: string | undefined,
  ) {}

  problem(...problems: readonly Problem[]): void {
    for (const p of problems) this.#problems.push(this.#inFile(p));
  }

  #inFile(p: Problem): Problem {
    return this.name === undefined ? p : { ...p, file: this.name };
  }

  readDocument(document: YamlDocument): void {
    this.hasSomething = true;
    const { value } = document;
    if (!isList(value)) {
      this.#readObject(value, document, '');
    } else if (value.apiVersion !== 'v1') {
      this.problem({ path: 'apiVersion', expected: 'v1', got: String(value.apiVersion ?? 'nothing'), ...document.at('apiVersion') });
    } else if (Array.isArray(value.items ?? [])) {
      for (const [i, item] of listItems(value).entries()) this.#readObject(item, document, `items[${i}]`);
    } else {
      this.problem({ path: 'items', expected: 'a list of objects', got: 'something else', ...document.at('items') });
    }
  }

  /** A document with YAML mistakes: what it was meant to be is known by its key, if that can be read. */
  readRefused(document: YamlDocument): void {
    const { value, problems } = document;
    for (const raw of isList(value) ? listItems(value) : [value]) this.#refuse(raw, problems);
  }

  #readObject(raw: unknown, document: YamlDocument, prefix: string): void {
    const { node } = this.options;
    const taken = takeDelivery(raw);
    const { value, places, ...said } = substituteNode(taken.value, node);
    const decoded = decodeObject(value, this.options);
    const place = (p: Problem): Problem => {
      const path = prefix === '' || p.path === '' ? prefix + p.path : `${prefix}.${p.path}`;
      return this.#inFile({ ...p, path, ...document.at(path) });
    };
    const unknown = new Set(said.problems.map((p) => p.path));
    // what is wrong with a value that is not known, or not known yet, is nothing to tell
    const judged = decoded.problems.filter((p) => !unknown.has(p.path) && (node !== undefined || !places.has(p.path)));
    const idle = this.name === undefined ? [] : idleInFiles(taken.delivery, this.signed !== undefined);
    const warnings = [...decoded.warnings, ...idle, ...said.doubts].map(place);
    const mistakes = [...taken.problems, ...ofTopics(taken.delivery), ...said.problems.slice(0, mostUnknown), ...judged].map((p) =>
      place(p.path === 'kind' ? namedByDocument(p, document.index) : p),
    );
    // in what is refused anyway, a misspelt field is a mistake too, and often the cause of the others
    const problems = mistakes.length === 0 ? [] : inFileOrder([...mistakes, ...warnings.filter(isUnknown)]);
    if (decoded.object !== undefined && problems.length === 0) {
      const { object } = decoded;
      const denied = this.name === undefined ? undefined : this.#denied(object, taken.delivery, this.name);
      if (denied !== undefined) {
        const problems = denied.problems.map(place);
        this.problem(...problems);
        this.#refuse(raw, problems, denied.reason);
        return;
      }
      const lasting = lastingPlaces(object, (path) => document.at(prefix === '' ? path : `${prefix}.${path}`));
      const words = this.#words(taken.delivery.generation);
      const accepted = { key: keyText(keyOf(object)), object, revision: revision(object), warnings, index: document.index, ...words };
      const substituted = this.name === undefined && places.size > 0 && { substituted: true as const };
      this.#objects.push({ ...accepted, ...substituted, ...(lasting !== undefined && { places: lasting }) });
      return;
    }
    this.problem(...problems);
    this.#refuse(raw, problems);
  }

  /** What policy and keys say against an object of a file. */
  #denied(
    object: ApiObject,
    delivery: Delivery,
    name: string,
  ): { readonly reason: string; readonly problems: readonly Problem[] } | undefined {
    const { groups, node, policy } = this.options;
    const { audience, generation } = delivery;
    if (audience !== undefined && groups !== undefined && node !== undefined && !isMeantFor(audience, node.name, groups)) {
      return { reason: 'WrongAudience', problems: [audienceProblem(audience)] };
    }
    if (policy === undefined) return undefined;
    const arrived = { object, source: fileSource(name), ...this.#words(generation), ...(audience !== undefined && { audience }) };
    return denialOf(arrived, policy);
  }

  /** Only of what is signed: by that it is judged again when policy or keys change. */
  #words(generation: number | undefined): { readonly signed?: string; readonly generation?: number } {
    return this.signed === undefined ? {} : { signed: this.signed, ...(generation !== undefined && { generation }) };
  }

  #refuse(raw: unknown, problems: readonly Problem[], reason?: string): void {
    const { value, problems: unknown } = substituteNode(raw, this.options.node);
    // whose name it does not know, nobody can say what it is
    const key = unknown.some((p) => inKey.has(p.path)) ? undefined : readKey(value);
    const told = problems.map((p) => this.#inFile(p));
    if (key !== undefined) this.#refused.push({ key: keyText(key), problems: told, ...(reason !== undefined && { reason }) });
  }

  /** Where all that is refused has one reason of its own, that is the file's. */
  #fileReason(): string {
    const reasons = new Set(this.#refused.map((r) => r.reason ?? 'Invalid'));
    return reasons.size === 1 && this.#refused.flatMap((r) => r.problems).length >= this.#problems.length
      ? ([...reasons][0] ?? 'Invalid')
      : 'Invalid';
  }

  result(warnings: readonly Problem[]): DecodedFile {
    const counts = new Map<KeyText, DecodedObject[]>();
    for (const o of this.#objects) counts.set(o.key, [...(counts.get(o.key) ?? []), o]);
    for (const [key, same] of counts) {
      if (same.length < 2) continue;
      const got = `${key} in documents ${same.map((o) => o.index + 1).join(' and ')}`;
      const problem = this.#inFile({ path: 'metadata.name', expected: 'each object once in a file', got });
      this.#problems.push(problem);
      this.#refused.push({ key, problems: [problem] });
    }
    return {
      name: this.name ?? '',
      objects: this.#objects.filter((o) => counts.get(o.key)?.length === 1),
      problems: inFileOrder(this.#problems),
      warnings,
      refused: this.#refused,
      refusedKeys: this.#refused.map((r) => r.key),
      whole: this.#problems.length === 0,
      reason: this.#fileReason(),
    };
  }
}

/** What only a topic may say: a file goes when it is removed. */
function ofTopics({ absent }: Delivery): readonly Problem[] {
  return absent === undefined ? [] : [{ path: deliveryPath(stateAnnotation), expected: 'absent: a file is removed instead', got: 'set' }];
}

/** Words of delivery that count for topics only. */
function idleInFiles({ generation, rollout }: Delivery, signed: boolean): readonly Problem[] {
  const ignored = (name: string, reason: string): Problem => ({ path: deliveryPath(name), expected: `absent: ${reason}`, got: 'ignored' });
  return [
    ...(generation !== undefined && !signed ? [ignored(generationAnnotation, 'it counts for objects that come over MQTT')] : []),
    ...(rollout !== undefined ? [ignored(rolloutAnnotation, 'it counts for objects of groups and of all')] : []),
  ];
}

/** As it is told of an object that is meant for others. */
export const audienceProblem = (audience: string): Problem => ({
  path: deliveryPath(audienceAnnotation),
  expected: 'this node, group:<one of its groups> or *',
  got: shown(audience),
});

function lastingPlaces(object: ApiObject, at: (path: string) => Place | undefined): ReadonlyMap<string, Place> | undefined {
  if (object.kind === 'Pod') return undefined;
  const bytes = object.kind === 'ConfigMap' ? { binaryData: object.binaryData } : { stringData: object.stringData };
  const keys = Object.entries({ data: object.data, ...bytes }).flatMap(([field, map]) =>
    Object.keys(map ?? {}).map((k) => entryPath(field, k)),
  );
  const places = ['immutable', 'type', ...(object.immutable === true ? keys : [])].map((path) => [path, at(path)] as const);
  return new Map(places.flatMap(([path, place]) => (place === undefined ? [] : [[path, place] as const])));
}

/** Among several documents, a kind that is none of ours is named with its document. */
const namedByDocument = (p: Problem, index: number): Problem => (index === 0 ? p : { ...p, got: `${p.got} (document ${index + 1})` });
