// pure
/** The field table, ready to walk: what shape each field of a Pod, ConfigMap or Secret has. Parsed from fieldTable.ts when first asked. */
import { enumLines, typeLines } from './fieldTable.ts';

export type Shape =
  | { readonly kind: 'string' | 'bool' | 'bytes' | 'quantity' | 'intOrString' | 'any' }
  | { readonly kind: 'int'; readonly min: number; readonly max: number }
  | { readonly kind: 'enum'; readonly values: readonly string[] }
  | { readonly kind: 'list' | 'map'; readonly of: Shape }
  | { readonly kind: 'struct'; readonly type: string };

export interface Field {
  readonly name: string;
  readonly shape: Shape;
  readonly required: boolean;
  /** A pointer in Go: absent and zero are two things. */
  readonly pointer: boolean;
}
export type Fields = ReadonlyMap<string, Field>;

const splitLines = (text: string): Map<string, string[]> =>
  new Map(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const [name = '', ...words] = line.split(' ');
        return [name.slice(0, -1), words] as const;
      }),
  );

let lines: Map<string, string[]> | undefined;
let enums: Map<string, string[]> | undefined;
const parsed = new Map<string, Fields>();
const none: Fields = new Map();

const scalars: Readonly<Record<string, Shape>> = {
  string: { kind: 'string' },
  bool: { kind: 'bool' },
  int32: { kind: 'int', min: -(2 ** 31), max: 2 ** 31 - 1 },
  // JS numbers are exact up to here; no field has a use for more
  int64: { kind: 'int', min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER },
  Quantity: { kind: 'quantity' },
  IntOrString: { kind: 'intOrString' },
  '[]byte': { kind: 'bytes' },
  Time: { kind: 'string' },
  ResourceList: { kind: 'map', of: { kind: 'quantity' } },
  // types the table does not hold: selectors and bookkeeping of the API server, kept as they are
  LabelSelector: { kind: 'any' },
  OwnerReference: { kind: 'any' },
  ManagedFieldsEntry: { kind: 'any' },
};

function shapeOf(goType: string): Shape {
  const type = goType.replace(/^\*/, '');
  const scalar = Object.hasOwn(scalars, type) ? scalars[type] : undefined;
  if (scalar !== undefined) return scalar;
  if (type.startsWith('[]')) return { kind: 'list', of: shapeOf(type.slice(2)) };
  if (type.startsWith('map[string]')) return { kind: 'map', of: shapeOf(type.slice('map[string]'.length)) };
  enums ??= splitLines(enumLines);
  const values = enums.get(type);
  if (values !== undefined) return { kind: 'enum', values: values.map((v) => (v === '""' ? '' : v)) };
  lines ??= splitLines(typeLines);
  // an open set of words (resource names, media, capabilities) is a string
  return lines.has(type) ? { kind: 'struct', type } : { kind: 'string' };
}

/** The fields of a type of the table, in the table's order; empty for a type it does not hold. */
export function fieldsOf(type: string): Fields {
  const known = parsed.get(type);
  if (known !== undefined) return known;
  lines ??= splitLines(typeLines);
  const words = lines.get(type);
  if (words === undefined) return none;
  const fields: Fields = new Map(
    words.map((word) => {
      const at = word.indexOf('=');
      const required = word[at - 1] === '!';
      const name = word.slice(0, required ? at - 1 : at);
      const goType = word.slice(at + 1);
      return [name, { name, shape: shapeOf(goType), required, pointer: goType.startsWith('*') }];
    }),
  );
  parsed.set(type, fields);
  return fields;
}
