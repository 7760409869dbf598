/** Small objects that set one field, made from the field table's types, and what decodeObject says to them. */
import { type Decoded, decodeObject } from '../../src/api/decode.ts';
import { fieldsOf, type Shape } from '../../src/api/fields.ts';
import type { Kind } from '../../src/api/objects.ts';
import { type FieldRow, fieldRows, keyOf, pathOf, stepsOf } from './fieldRows.ts';

type Plain = Record<string, unknown>;
const isPlain = (value: unknown): value is Plain => typeof value === 'object' && value !== null && !Array.isArray(value);

/** What a field of this name, or of this place, wants to hold; every other text is `x`. */
const wanted: readonly (readonly [RegExp, string])[] = [
  [/\.initContainers\[\]\.name$/, 'init'],
  [/\.ephemeralContainers\[\]\.name$/, 'debug'],
  [/\.items\[\]\.path$/, 'x'],
  [/\.(mountPath|path|devicePath)$/, '/x'],
  [/\.image$/, 'x:1'],
  [/\.apiVersion$/, 'v1'],
  [/\.fieldPath$/, 'metadata.name'],
  [/\.resource$/, 'limits.cpu'],
  [/\.matchFields\[\]\.key$/, 'metadata.name'],
  [/\.medium$/, 'Memory'],
  [/\.subPath$/, 'a/b'],
  [/\.(add|drop)\[\]$/, 'NET_ADMIN'],
  [/\.sysctls\[\]\.name$/, 'kernel.shm_rmid_forced'],
  [/\.priorityClassName$/, 'system-node-critical'],
  [/\.(ip|hostIP|nameservers\[\])$/, '192.0.2.1'],
  [/\[podsched\.dev\/crash-backoff\]$/, '1s,1m'],
  [/\[podsched\.dev\/rollback\]$/, '5m'],
  [/\[podsched\.dev\/hold\]$/, 'true'],
  [/\[podsched\.dev\/wait-for\]$/, 'time-sync'],
  [/\[podsched\.dev\/wait-timeout\]$/, '2m'],
  [/\[container\.apparmor\.security\.beta\.kubernetes\.io\/\*\]$/, 'runtime/default'],
];
/** What must stand beside a field, in the struct at the second place's end, for the pod to be right. */
const beside: readonly (readonly [field: RegExp, place: RegExp, fields: Plain])[] = [
  [/\.initContainers\[\]\.(\w+Probe|lifecycle)\b/, /\.initContainers\[\]$/, { restartPolicy: 'Always' }],
  [/\.matchFields\b/, /\.matchFields\[\]$/, { values: ['x'] }],
  [/\.volumeMounts\b/, /^spec$/, { volumes: [{ name: 'x' }] }],
  [/\.recursiveReadOnly$/, /\.volumeMounts\[\]$/, { readOnly: true }],
  [/\.mountPropagation$/, /\.(containers|initContainers)\[\]$/, { securityContext: { privileged: true } }],
  [/\.configMap\./, /\.configMap$/, { name: 'x' }],
  [/\.secret\./, /\.volumes\[\]\.secret$/, { secretName: 'x' }],
  [/\.secret\./, /\.sources\[\]\.secret$/, { name: 'x' }],
  [/\.downwardAPI\.items\[\]\.(path|mode)$/, /\.items\[\]$/, { fieldRef: { fieldPath: 'metadata.name' } }],
  [/\.volumes\[\].*\.resourceFieldRef\./, /\.resourceFieldRef$/, { containerName: 'x' }],
  [/\.requests\[devices\./, /\.resources$/, { limits: { 'devices.podsched.dev/x': '1' } }],
  [/\.limits\[hugepages-/, /\.resources$/, { requests: { cpu: '1' } }],
  [/\.requests\[hugepages-/, /\.resources$/, { limits: { cpu: '1', 'hugepages-2Mi': '64Mi' } }],
];
/** Tried after that, so that a field this list forgets is found all the same. */
const words = ['x', '/x', '192.0.2.1', 'metadata.name', 'limits.cpu', '1', '64Mi', '1s', 'true', 'NET_ADMIN', 'kernel.shm_rmid_forced'];
const mostTries = 6000;

function textsFor(place: string): string[] {
  const first = wanted.find(([places]) => places.test(place))?.[1] ?? 'x';
  return [first, ...words.filter((w) => w !== first)];
}

export class Prober {
  readonly #rows = new Map<string, FieldRow>();

  constructor(rows: readonly FieldRow[] = fieldRows()) {
    for (const row of rows) this.#rows.set(`${row.kind} ${row.place}`, row);
  }

  /** The first object with the field set to one of `values` to which the answer is as wished. */
  find(
    row: FieldRow,
    wished: (d: Decoded) => boolean,
    values: readonly unknown[] = this.valuesOf(row),
  ): { raw: Plain; decoded: Decoded } | undefined {
    let tries = 0;
    for (const raw of this.#objects(row, values)) {
      if (++tries > mostTries) return undefined;
      const decoded = decodeObject(raw, { strict: true });
      if (wished(decoded)) return { raw, decoded };
    }
    return undefined;
  }

  /** Values that say more than absence does. */
  valuesOf(row: FieldRow): unknown[] {
    const harmless = row.row.harmless ?? [];
    const empty = (v: unknown): boolean => isPlain(v) && Object.keys(v).length === 0;
    return this.#samples(row.kind, row.shape, row.place, 3).filter((v) => !harmless.some((h) => h === v || (h === '{}' && empty(v))));
  }

  /** The plainest object that has the field, or everything around it when `value` is undefined. */
  plain(row: FieldRow, value: unknown): Plain {
    return this.#build(row, value, undefined);
  }

  *#objects(row: FieldRow, values: readonly unknown[]): Generator<Plain> {
    for (const value of values) yield this.#build(row, value, undefined);
    // some fields want another beside them, or beside what they are part of: nearest first
    const owners = [...this.#rows.values()].filter(
      (r) => r.kind === row.kind && within(row.place, r.ownerPlace) && r.verdict.status === 'supported',
    );
    owners.sort((a, b) => b.ownerPlace.length - a.ownerPlace.length);
    for (const beside of owners) {
      if (within(row.place, beside.place) || beside.name.includes('[')) continue;
      for (const extra of this.#samples(beside.kind, beside.shape, beside.place, 2).slice(0, 40)) {
        for (const value of values.slice(0, 3)) yield this.#build(row, value, { place: beside.place, value: extra });
      }
    }
  }

  #build(row: FieldRow, value: unknown, extra: { readonly place: string; readonly value: unknown } | undefined): Plain {
    const make = (shape: Shape, place: string, steps: readonly string[]): unknown => {
      const [step, ...rest] = steps;
      if (step === undefined) return value;
      if (shape.kind === 'list') return [make(shape.of, `${place}[]`, rest)];
      if (shape.kind === 'map') return { [keyOf(step)]: make(shape.of, `${place}${step}`, rest) };
      if (shape.kind !== 'struct') throw new Error(`${place} has nothing under it`);
      const made = this.#required(row.kind, shape.type, place);
      for (const [field, at, fields] of beside) if (field.test(row.place) && at.test(place)) Object.assign(made, fields);
      const field = fieldsOf(shape.type).get(step);
      if (field === undefined) throw new Error(`${shape.type} has no ${step}`);
      if (extra !== undefined && parentOf(extra.place) === place)
        made[extra.place.slice(place === '' ? 0 : place.length + 1)] = extra.value;
      made[step] = make(field.shape, place === '' ? step : `${place}.${step}`, rest);
      if (made[step] === undefined) delete made[step];
      return made;
    };
    return make({ kind: 'struct', type: row.kind }, '', stepsOf(row.place)) as Plain;
  }

  #required(kind: Kind, type: string, place: string): Plain {
    const made: Plain = {};
    for (const f of fieldsOf(type).values()) {
      if (f.required) made[f.name] = this.#samples(kind, f.shape, place === '' ? f.name : `${place}.${f.name}`, 1)[0];
    }
    return made;
  }

  #samples(kind: Kind, shape: Shape, place: string, depth: number): unknown[] {
    const row = this.#rows.get(`${kind} ${place}`);
    if (place === 'kind') return [kind];
    if (place === 'apiVersion') return ['v1'];
    switch (shape.kind) {
      case 'string':
        return row?.row.only !== undefined ? [...row.row.only] : textsFor(place);
      case 'bool':
        return [true, false];
      case 'int':
        return /(^|\.)(defaultMode|mode)$/.test(place) ? [0o644] : [1, 2, 1000];
      case 'enum':
        return [...(row?.row.only ?? shape.values.filter((v) => v !== ''))];
      case 'quantity':
        return ['64Mi', '1', '1m'];
      case 'intOrString':
        return [80];
      case 'bytes':
        return ['eA=='];
      case 'any':
        return [{ matchLabels: { x: 'x' } }];
      case 'list':
        return this.#samples(kind, shape.of, `${place}[]`, depth).map((v) => [v]);
      case 'map':
        return ['x', 'cpu', 'memory'].flatMap((key) =>
          this.#samples(kind, shape.of, `${place}[${key}]`, depth)
            .slice(0, 2)
            .map((v) => ({ [key]: v })),
        );
      case 'struct':
        return this.#structs(kind, shape.type, place, depth);
    }
  }

  /** The required fields alone; then one more; then other values of the required ones. */
  #structs(kind: Kind, type: string, place: string, depth: number): Plain[] {
    const plain = this.#required(kind, type, place);
    const made: Plain[] = [plain];
    if (depth <= 1) return made;
    const fields = [...fieldsOf(type).values()];
    const samples = (name: string, shape: Shape, most: number): unknown[] =>
      this.#samples(kind, shape, `${place}.${name}`, depth - 1).slice(0, most);
    for (const f of fields) {
      if (f.required || this.#rows.get(`${kind} ${place}.${f.name}`)?.verdict.status === 'refused') continue;
      for (const value of samples(f.name, f.shape, 3)) made.push({ ...plain, [f.name]: value });
    }
    for (const f of fields)
      if (f.required) for (const value of samples(f.name, f.shape, 20).slice(1)) made.push({ ...plain, [f.name]: value });
    return made;
  }
}

const within = (place: string, of: string): boolean =>
  of === '' || place === of || place.startsWith(`${of}.`) || place.startsWith(`${of}[`);
const parentOf = (place: string): string => /^(.*)\.[^.[\]]+$/.exec(place)?.[1] ?? '';

/** What an object has at a place; lists are looked at by their first entry. */
export function valueAt(object: unknown, place: string): unknown {
  return stepsOf(place).reduce<unknown>((at, step) => {
    if (step === '[]') return Array.isArray(at) ? at[0] : undefined;
    const key = step.startsWith('[') ? keyOf(step) : step;
    return isPlain(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }, object);
}

const about = (path: string) => (p: { readonly path: string }) => within(p.path, path);

/** Accepted, kept, and nothing said of it. */
export const taken =
  (row: FieldRow) =>
  (d: Decoded): boolean =>
    d.object !== undefined && valueAt(d.object, row.place) !== undefined && !d.warnings.some(about(pathOf(row.place)));

/** Exactly what the row says, and nothing else. */
export const answered =
  (row: FieldRow) =>
  (d: Decoded): boolean => {
    const { status, by, reason } = row.verdict;
    if (status === 'supported') return taken(row)(d);
    const list = status === 'refused' ? d.problems : d.warnings;
    const [first] = list;
    return (
      (status === 'refused' || d.object !== undefined) &&
      list.length === 1 &&
      first?.path === pathOf(by) &&
      first.expected === `absent: ${reason}`
    );
  };
