/**
 * One manifest file into objects, or into everything that is wrong with it, each mistake with file, line and column. Owns no truth.
 * A file may hold `---` documents and Lists of Pods, ConfigMaps and Secrets. What is good in a file with a broken document is still good;
 * whether the file is whole decides what may be taken for removed.
 */
import { type DecodeOptions, decodeObject, readKey } from '../api/decode.ts';
import { entryPath } from '../api/fieldPath.ts';
import { revision } from '../api/hash.ts';
import { type NodeValues, substituteNode } from '../api/nodeValues.ts';
import { type ApiObject, type KeyText, keyOf, keyText, type Problem } from '../api/objects.ts';
import { inFileOrder } from '../api/problems.ts';
import { isUnknown } from '../api/unknown.ts';
import type { FileText } from '../world/folder.ts';
import { maxFileBytes } from './folderReader.ts';
import { parseDocuments, type YamlDocument } from './yaml.ts';
import type { Place } from './yamlTree.ts';

export interface DecodedObject {
  readonly key: KeyText;
  readonly object: ApiObject;
  readonly revision: string;
  readonly warnings: readonly Problem[];
  /** The document it stands in, from 0. */
  readonly index: number;
  /** Of a ConfigMap or Secret: where that stands which an immutable one may not change. */
  readonly places?: ReadonlyMap<string, Place>;
}

export interface FileOptions extends DecodeOptions {
  /** What `${NODE.…}` stands for. Absent: nobody knows the node, so of a value that names it only the form is judged. */
  readonly node?: NodeValues;
}

export type RefusedReason = 'Invalid' | 'SourceUnreadable' | 'InsecurePermissions';

export interface DecodedFile {
  readonly name: string;
  readonly objects: readonly DecodedObject[];
  readonly problems: readonly Problem[];
  /** Of the file itself (permissions); those of objects are with the objects. */
  readonly warnings: readonly Problem[];
  /** Keys that could be read from what is refused, with what is wrong there. */
  readonly refused: readonly { readonly key: KeyText; readonly problems: readonly Problem[] }[];
  readonly refusedKeys: readonly KeyText[];
  /** Everything in the file was read and understood: what it does not name, it does not want. */
  readonly whole: boolean;
  /** Why something of it is refused, if something is. */
  readonly reason: RefusedReason;
}

/** Decodes a file. Never throws. `strict` refuses unknown fields, and files that others may write. */
export function decodeFile(file: FileText, o: FileOptions): DecodedFile {
  const refuse = (reason: RefusedReason, expected: string, got: string): DecodedFile => ({
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
  const text = toText(bytes);
  if (typeof text !== 'string') return located(refuse('Invalid', 'UTF-8', text.got), { line: text.line });
  const parsed = parseDocuments(text);
  const work = new FileWork(file.name, o);
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

const located = (file: DecodedFile, place: { readonly line: number }): DecodedFile => ({
  ...file,
  problems: file.problems.map((p) => ({ ...p, ...place, column: 1 })),
});

function toText(bytes: Uint8Array): string | { readonly got: string; readonly line: number } {
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

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isList = (value: unknown): value is Readonly<Record<string, unknown>> => isObject(value) && value.kind === 'List';
const listItems = (list: Readonly<Record<string, unknown>>): readonly unknown[] => (Array.isArray(list.items) ? list.items : []);

const inKey: ReadonlySet<string> = new Set(['kind', 'metadata.name', 'metadata.namespace']);

class FileWork {
  hasSomething = false;
  #objects: DecodedObject[] = [];
  #problems: Problem[] = [];
  #refused: { key: KeyText; problems: Problem[] }[] = [];

  constructor(
    private readonly name: string,
    private readonly options: FileOptions,
  ) {}

  problem(...problems: readonly Problem[]): void {
    for (const p of problems) this.#problems.push({ ...p, file: this.name });
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
    const { value, places, ...said } = substituteNode(raw, node);
    const decoded = decodeObject(value, this.options);
    const place = (p: Problem): Problem => {
      const path = prefix === '' || p.path === '' ? prefix + p.path : `${prefix}.${p.path}`;
      return { ...p, path, file: this.name, ...document.at(path) };
    };
    const unknown = new Set(said.problems.map((p) => p.path));
    // what is wrong with a value that is not known, or not known yet, is nothing to tell
    const judged = decoded.problems.filter((p) => !unknown.has(p.path) && (node !== undefined || !places.has(p.path)));
    const warnings = [...decoded.warnings, ...said.doubts].map(place);
    const mistakes = [...said.problems, ...judged].map((p) => place(p.path === 'kind' ? namedByDocument(p, document.index) : p));
    // in what is refused anyway, a misspelt field is a mistake too, and often the cause of the others
    const problems = mistakes.length === 0 ? [] : inFileOrder([...mistakes, ...warnings.filter(isUnknown)]);
    if (decoded.object !== undefined && problems.length === 0) {
      const { object } = decoded;
      const places = lastingPlaces(object, (path) => document.at(prefix === '' ? path : `${prefix}.${path}`));
      const accepted = { key: keyText(keyOf(object)), object, revision: revision(object), warnings, index: document.index };
      this.#objects.push({ ...accepted, ...(places !== undefined && { places }) });
      return;
    }
    this.problem(...problems);
    this.#refuse(raw, problems);
  }

  #refuse(raw: unknown, problems: readonly Problem[]): void {
    const { value, problems: unknown } = substituteNode(raw, this.options.node);
    // whose name it does not know, nobody can say what it is
    const key = unknown.some((p) => inKey.has(p.path)) ? undefined : readKey(value);
    if (key !== undefined) this.#refused.push({ key: keyText(key), problems: problems.map((p) => ({ ...p, file: this.name })) });
  }

  result(warnings: readonly Problem[]): DecodedFile {
    const counts = new Map<KeyText, DecodedObject[]>();
    for (const o of this.#objects) counts.set(o.key, [...(counts.get(o.key) ?? []), o]);
    for (const [key, same] of counts) {
      if (same.length < 2) continue;
      const got = `${key} in documents ${same.map((o) => o.index + 1).join(' and ')}`;
      const problem: Problem = { path: 'metadata.name', expected: 'each object once in a file', got, file: this.name };
      this.#problems.push(problem);
      this.#refused.push({ key, problems: [problem] });
    }
    return {
      name: this.name,
      objects: this.#objects.filter((o) => counts.get(o.key)?.length === 1),
      problems: inFileOrder(this.#problems),
      warnings,
      refused: this.#refused,
      refusedKeys: this.#refused.map((r) => r.key),
      whole: this.#problems.length === 0,
      reason: 'Invalid',
    };
  }
}

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
