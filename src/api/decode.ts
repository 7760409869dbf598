// pure
/**
 * From plain JS (what YAML or JSON was) to a typed object, or to a list of everything that is wrong with it. It owns no truth: it judges
 * one object by the field table (fields.ts), by what this version supports (support.ts) and by the kubelet's rules (validate.ts). It never
 * fills in defaults, never stops at the first mistake, never repeats the value of a secret or of an environment variable, and never trusts
 * a key: objects are built entry by entry, so `__proto__` is a key like any other. Unknown fields are warnings, problems when strict.
 * Mirrors the API machinery's typed decoding, which the kubelet's file source uses (kubelet v1.32 config/common.go).
 */
import { entryPath, fieldPath, itemPath } from './fieldPath.ts';
import { type Field, fieldsOf, type Shape } from './fields.ts';
import { nearest } from './nearest.ts';
import type { ApiObject, Kind, ObjectKey, Problem } from './objects.ts';
import { decodeScalar, shown } from './scalars.ts';
import { notYet, type SupportLevel, type SupportRow, supportOf } from './support.ts';
import { unknownField, unknownOwnKey } from './unknown.ts';
import { type ValidateOptions, validateObject } from './validate.ts';

export interface Decoded {
  /** Only when there is no problem. */
  readonly object?: ApiObject;
  readonly problems: Problem[];
  readonly warnings: Problem[];
}

export interface DecodeOptions extends ValidateOptions {
  readonly strict: boolean;
}

export const kinds: readonly Kind[] = ['Pod', 'ConfigMap', 'Secret'];
/** Kinds that hold pods: what is meant is a Pod. */
const workloads = ['Deployment', 'DaemonSet', 'StatefulSet', 'ReplicaSet', 'ReplicationController', 'Job', 'CronJob', 'PodTemplate'];
const deepest = 64;
const largest = 200_000;
const mostProblems = 100;

type Plain = Readonly<Record<string, unknown>>;
const isPlain = (value: unknown): value is Plain => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
};
const own = (object: Plain, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);

interface Walk {
  readonly kind: Kind;
  readonly strict: boolean;
  readonly problems: Problem[];
  readonly warnings: Problem[];
}
/** Where the walk is: the path with indexes (for people), the place without (for the support table). */
interface At {
  readonly path: string;
  readonly place: string;
  readonly level: SupportLevel;
}

/**
 * Types and judges one object. `strict` refuses unknown fields. The object comes back without defaults, quantities in Kubernetes' canonical
 * spelling; only when nothing is wrong.
 */
export function decodeObject(raw: unknown, o: DecodeOptions): Decoded {
  const refuse = (problem: Problem): Decoded => ({ problems: [problem], warnings: [] });
  if (!isPlain(raw)) return refuse({ path: '', expected: 'an object with apiVersion, kind and metadata', got: shown(raw) });
  const size = { left: largest };
  const deep = tooMuch(raw, size, 0);
  if (deep !== undefined) {
    const expected = size.left < 0 ? `at most ${largest} values` : `at most ${deepest} levels`;
    return refuse({ path: deep, expected, got: 'more' });
  }
  const kind = own(raw, 'kind');
  const known = kinds.find((k) => k === kind);
  if (known === undefined) return refuse(unknownKind(kind));
  const walk: Walk = { kind: known, strict: o.strict, problems: [], warnings: [] };
  const version = own(raw, 'apiVersion');
  if (version !== 'v1') walk.problems.push({ path: 'apiVersion', expected: 'v1', got: shown(version), nearest: 'v1' });
  const decoded = decodeStruct(walk, raw, known, { path: '', place: '', level: 'supported' });
  // What could not be typed is absent here; validation looks at the rest, so that all mistakes are told at once.
  const object = decoded as unknown as ApiObject;
  const told = walk.problems.map((p) => p.path);
  const under = (path: string, place: string): boolean => path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`);
  // where something was refused, that nothing is left is no mistake of its own
  const covered = ({ path, got }: Problem): boolean => told.some((t) => under(path, t) || (got === 'nothing' && under(t, path)));
  const problems = [...walk.problems, ...validateObject(object, o).filter((p) => !covered(p))];
  const warnings = cap(walk.warnings.filter(({ path }) => !holdsInMemory(object, path)));
  return problems.length > 0 ? { problems: cap(problems), warnings } : { object, problems, warnings };
}

/** The one field whose effect depends on another: a volume in memory keeps to its limit. */
function holdsInMemory(object: ApiObject, path: string): boolean {
  const index = /^spec\.volumes\[(\d+)\]\.emptyDir\.sizeLimit$/.exec(path)?.[1];
  return index !== undefined && object.kind === 'Pod' && object.spec.volumes?.[Number(index)]?.emptyDir?.medium === 'Memory';
}

/** The key of a raw object, as far as it can be read: what is refused keeps its last good by it. */
export function readKey(raw: unknown): ObjectKey | undefined {
  if (!isPlain(raw)) return undefined;
  const kind = kinds.find((k) => k === own(raw, 'kind'));
  const metadata = own(raw, 'metadata');
  if (kind === undefined || !isPlain(metadata)) return undefined;
  const name = own(metadata, 'name');
  const namespace = own(metadata, 'namespace') ?? 'default';
  if (typeof name !== 'string' || name === '' || typeof namespace !== 'string') return undefined;
  return { kind, name, namespace: namespace === '' ? 'default' : namespace };
}

function cap(list: readonly Problem[]): Problem[] {
  if (list.length <= mostProblems) return [...list];
  return [...list.slice(0, mostProblems), { path: '', expected: 'fewer mistakes', got: `${list.length - mostProblems} more` }];
}

function unknownKind(kind: unknown): Problem {
  const expected = `one of ${kinds.join(', ')}`;
  if (typeof kind !== 'string') return { path: 'kind', expected, got: kind === undefined || kind === null ? 'nothing' : shown(kind) };
  const close = workloads.includes(kind) ? 'Pod' : nearest(kind, kinds);
  return { path: 'kind', expected, got: kind.slice(0, 60), ...(close !== undefined && { nearest: close }) };
}

/** The path of the first value that lies too deep or is one too many. */
function tooMuch(value: unknown, size: { left: number }, depth: number): string | undefined {
  size.left--;
  if (typeof value !== 'object' || value === null) return size.left < 0 ? '' : undefined;
  if (depth >= deepest || size.left < 0) return '';
  for (const [key, inner] of Object.entries(value)) {
    const rest = tooMuch(inner, size, depth + 1);
    if (rest === undefined) continue;
    const step = Array.isArray(value) ? `[${key}]` : fieldPath('', key);
    const joined = rest === '' || rest.startsWith('[') ? `${step}${rest}` : `${step}.${rest}`;
    return joined.slice(0, 200);
  }
  return undefined;
}

function decodeStruct(walk: Walk, raw: unknown, type: string, at: At): Plain | undefined {
  if (!isPlain(raw)) {
    walk.problems.push({ path: at.path, expected: 'a mapping', got: shown(raw) });
    return undefined;
  }
  const fields = fieldsOf(type);
  const entries: [string, unknown][] = [];
  for (const [name, value] of Object.entries(raw)) {
    const path = fieldPath(at.path, name);
    const field = fields.get(name);
    if (field === undefined) {
      if (at.path === '' && name === 'status') continue; // the told side of an exported object
      (walk.strict ? walk.problems : walk.warnings).push(unknownField(walk.kind, path, name, fields));
    } else if (value !== null && value !== undefined) {
      const typed = decodeField(walk, value, field, { path, place: at.place === '' ? name : `${at.place}.${name}`, level: at.level });
      // Go's zero of a plain field is its absence
      const zero =
        !field.pointer && !field.required && (typed === '' || typed === false || typed === 0) && field.shape.kind !== 'intOrString';
      if (typed !== undefined && !zero) entries.push([name, typed]);
    }
  }
  for (const field of fields.values()) {
    if (!field.required || (own(raw, field.name) ?? undefined) !== undefined) continue;
    if (field.name === 'apiVersion' && at.path === '') continue; // told already
    walk.problems.push({ path: fieldPath(at.path, field.name), expected: 'a value (it is required)', got: 'nothing' });
  }
  return Object.fromEntries(entries);
}

/** One present field or map entry: what this version makes of it, then its type. */
function decodeField(walk: Walk, value: unknown, field: Pick<Field, 'shape' | 'pointer'>, at: At): unknown {
  const row = supportOf(at.place, at.level);
  const says = saysSomething(value, field, row);
  if (row.level === 'refused' && says) {
    walk.problems.push({ path: at.path, expected: `absent: ${row.reason ?? notYet}`, got: 'set' });
    return undefined;
  }
  if (row.level === 'ignored' && says) walk.warnings.push({ path: at.path, expected: `absent: ${row.reason ?? ''}`, got: 'ignored' });
  const typed = decodeShape(walk, value, field.shape, { ...at, level: row.level === 'inside' ? 'inside' : 'supported' });
  if (typed === '' && field.pointer && field.shape.kind === 'enum' && !field.shape.values.includes('')) {
    walk.problems.push({ path: at.path, expected: `one of ${field.shape.values.join(', ')}`, got: shown(typed) });
    return undefined;
  }
  if (row.only !== undefined && typed !== undefined && typed !== '' && !row.only.some((v) => v === typed)) {
    walk.problems.push({ path: at.path, expected: `${row.only.join(' or ')}: others are ${notYet}`, got: shown(typed) });
    return undefined;
  }
  return typed;
}

/** Whether a value says more than its absence: empty lists and maps do not, Go's zero of a plain field does not. */
function saysSomething(value: unknown, field: Pick<Field, 'shape' | 'pointer'>, row: SupportRow): boolean {
  if (row.harmless?.some((v) => v === value)) return false;
  if (typeof value === 'object' && value !== null) {
    const mayBeEmpty = field.shape.kind !== 'struct' || row.harmless?.includes('{}') === true;
    return !mayBeEmpty || Object.keys(value).length > 0;
  }
  return field.pointer || !(value === false || value === 0 || value === '');
}

function decodeShape(walk: Walk, raw: unknown, shape: Shape, at: At): unknown {
  switch (shape.kind) {
    case 'struct':
      return decodeStruct(walk, raw, shape.type, at);
    case 'list':
      return decodeList(walk, raw, shape.of, at);
    case 'map':
      return decodeMap(walk, raw, shape.of, at);
    case 'any':
      return raw;
    default: {
      const result = decodeScalar(raw, shape, at, isSecret(walk, at.place));
      if (!('problem' in result)) return result.value;
      const plain = shape.kind === 'bytes' ? `; plain text goes under ${walk.kind === 'Secret' ? 'stringData' : 'data'}` : '';
      walk.problems.push({ ...result.problem, expected: result.problem.expected + plain });
      return undefined;
    }
  }
}

const isSecret = (walk: Walk, place: string): boolean =>
  place.endsWith('.env[].value') || (walk.kind === 'Secret' && (place.startsWith('data[') || place.startsWith('stringData[')));

function decodeList(walk: Walk, raw: unknown, of: Shape, at: At): unknown {
  if (!Array.isArray(raw)) {
    walk.problems.push({ path: at.path, expected: of.kind === 'string' ? 'a list of strings' : 'a list', got: shown(raw) });
    return undefined;
  }
  const items = raw.map((item: unknown, index) => {
    const place = `${at.place}[]`;
    const level = supportOf(place, at.level).level;
    return decodeShape(walk, item, of, { path: itemPath(at.path, index), place, level });
  });
  // a place holder keeps the indexes of the others; the object is refused anyway
  return items.map((item) => item ?? (of.kind === 'struct' ? {} : ''));
}

function decodeMap(walk: Walk, raw: unknown, of: Shape, at: At): unknown {
  if (!isPlain(raw)) {
    const got = walk.kind === 'Secret' && typeof raw !== 'object' ? 'a single value' : shown(raw);
    walk.problems.push({ path: at.path, expected: 'a mapping', got });
    return undefined;
  }
  const entries: [string, unknown][] = [];
  for (const [key, value] of Object.entries(raw)) {
    const path = entryPath(at.path, key);
    const unknown = unknownOwnKey(path, at.place, key);
    if (unknown !== undefined) (walk.strict ? walk.problems : walk.warnings).push(unknown);
    // `label:` with nothing behind it is the empty text, as in Kubernetes
    const given = value === null && of.kind === 'string' ? '' : value;
    const typed = decodeField(walk, given, { shape: of, pointer: true }, { path, place: `${at.place}[${key}]`, level: at.level });
    if (typed !== undefined) entries.push([key, typed]);
  }
  return Object.fromEntries(entries);
}
