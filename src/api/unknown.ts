// pure
/** Fields and keys nobody knows, each with what may have been meant. */
import { type Fields, fieldsOf } from './fields.ts';
import { nearest } from './nearest.ts';
import type { Kind, Problem } from './objects.ts';
import { ownKeys } from './support.ts';

const unknownFieldText = 'unknown field';
const unknownKeyText = 'unknown key';

/** Is it about a name that nobody knows? Such a one is a mistake only when strict, and otherwise a hint. */
export const isUnknown = ({ got }: Problem): boolean => got === unknownFieldText || got === unknownKeyText;

/** The problem of a field that its type does not have: a slip of the pen, else a field of another place, else what is nearest. */
export function unknownField(kind: Kind, path: string, name: string, fields: Fields): Problem {
  const close = nearest(name, fields.keys(), 1) ?? places(kind).get(name) ?? nearest(name, fields.keys());
  return { path, expected: 'a known field', got: unknownFieldText, ...(close !== undefined && { nearest: close }) };
}

/** The problem of a `podsched.dev/` annotation or label that podsched does not know; undefined for every other key. */
export function unknownOwnKey(path: string, place: string, key: string): Problem | undefined {
  if (!key.startsWith('podsched.dev/') || (place !== 'metadata.annotations' && place !== 'metadata.labels')) return undefined;
  const known = ownKeys(place);
  if (known.includes(key)) return undefined;
  const other = place === 'metadata.labels' ? 'metadata.annotations' : 'metadata.labels';
  const close = ownKeys(other).includes(key) ? `${other}[${key}]` : nearest(key, known);
  return { path, expected: 'a key that podsched knows', got: unknownKeyText, ...(close !== undefined && { nearest: close }) };
}

const placesByKind = new Map<Kind, ReadonlyMap<string, string>>();

/** Where each field name stands, nearest to the top first, for fields written at the wrong place. */
function places(kind: Kind): ReadonlyMap<string, string> {
  const known = placesByKind.get(kind);
  if (known !== undefined) return known;
  const found = new Map<string, string>();
  let level: { readonly path: string; readonly type: string }[] = [{ path: '', type: kind }];
  for (let depth = 0; depth < 4; depth++) {
    const next: typeof level = [];
    for (const { path, type } of level) {
      for (const field of fieldsOf(type).values()) {
        // these two repeat what `containers` has
        if (field.name === 'initContainers' || field.name === 'ephemeralContainers') continue;
        const { shape } = field;
        const here = path === '' ? field.name : `${path}.${field.name}`;
        if (!found.has(field.name)) found.set(field.name, here);
        if (shape.kind === 'struct') next.push({ path: here, type: shape.type });
        if (shape.kind === 'list' && shape.of.kind === 'struct') next.push({ path: `${here}[]`, type: shape.of.type });
      }
    }
    level = next;
  }
  placesByKind.set(kind, found);
  return found;
}
