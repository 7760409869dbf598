// pure
/** Typing of single values: each wrong one is answered with what was expected and how to write it. */
import type { Shape } from './fields.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { canonicalQuantity, parseQuantity } from './quantity.ts';

export type Scalar = { readonly value: unknown } | { readonly problem: Problem };

/** A value as shown in a problem: short, never more than its kind for lists and mappings. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case 'number':
    case 'boolean':
      return String(value);
    case 'undefined':
      return 'nothing';
    default:
      return value === null ? 'null' : Array.isArray(value) ? 'a list' : 'a mapping';
  }
}

const kindOf = (value: unknown): string =>
  typeof value === 'string' ? 'text' : typeof value === 'number' ? 'a number' : typeof value === 'boolean' ? 'a boolean' : shown(value);

/** Types one scalar. `secret` keeps the value out of the problem. */
export function decodeScalar(raw: unknown, shape: Shape, at: { readonly path: string }, secret: boolean): Scalar {
  const wrong = (expected: string, close?: string): Scalar => ({
    problem: {
      path: at.path,
      expected,
      got: secret ? kindOf(raw) : shown(raw),
      ...(close !== undefined && !secret && { nearest: close }),
    },
  });
  switch (shape.kind) {
    case 'string':
      if (typeof raw === 'string') return { value: raw };
      return wrong(typeof raw === 'boolean' || typeof raw === 'number' ? 'a string, quote it' : 'a string');
    case 'bool':
      if (typeof raw === 'boolean') return { value: raw };
      return wrong(
        typeof raw === 'string' && /^(true|false|yes|no|on|off|y|n)$/i.test(raw) ? 'true or false, without quotes' : 'true or false',
      );
    case 'int':
      return decodeInt(raw, shape, at.path, wrong);
    case 'enum':
      if (typeof raw !== 'string') return wrong(`one of ${words(shape.values)}`);
      // an empty word is an absent one, as in Go
      if (raw === '' || shape.values.includes(raw)) return { value: raw };
      return wrong(`one of ${words(shape.values)}`, nearest(raw, shape.values));
    case 'quantity':
      if ((typeof raw === 'string' || (typeof raw === 'number' && Number.isFinite(raw))) && parseQuantity(raw) !== undefined) {
        return { value: canonicalQuantity(raw) };
      }
      return wrong('a quantity such as 100m, 0.5 or 64Mi', typeof raw === 'string' ? meantQuantity(raw) : undefined);
    case 'intOrString':
      if (typeof raw === 'string' || (typeof raw === 'number' && Number.isInteger(raw) && Math.abs(raw) < 2 ** 31)) return { value: raw };
      return wrong('a whole number or a name');
    case 'bytes': {
      const text = typeof raw === 'string' ? raw.replace(/[\r\n]/g, '') : undefined;
      if (text !== undefined && /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return { value: text };
      return wrong('base64 text');
    }
    case 'list':
    case 'map':
    case 'struct':
    case 'any':
      return { value: raw };
  }
}

const words = (values: readonly string[]): string => values.filter((v) => v !== '').join(', ');

function decodeInt(
  raw: unknown,
  shape: { readonly min: number; readonly max: number },
  path: string,
  wrong: (expected: string, close?: string) => Scalar,
): Scalar {
  const mode = /(^|\.)(defaultMode|mode)$/.test(path);
  if (typeof raw !== 'number') {
    if (mode && typeof raw === 'string') return wrong('an octal mode from 0 to 0777, without quotes');
    return wrong(typeof raw === 'string' && /^[+-]?[0-9]+$/.test(raw) ? 'a whole number, without quotes' : 'a whole number');
  }
  if (!Number.isInteger(raw)) return wrong('a whole number');
  if (mode && (raw < 0 || raw > 0o777))
    return wrong('an octal mode from 0 to 0777', /^[0-7]{3}$/.test(String(raw)) ? `0${raw}` : undefined);
  if (raw < shape.min || raw > shape.max) return wrong(`a whole number from ${shape.min} to ${shape.max}`);
  return { value: raw === 0 ? 0 : raw }; // -0 is 0
}

/** What somebody meant by `64MB`, `1gi`, `512 Mi`. */
function meantQuantity(text: string): string | undefined {
  const match = /^\s*([0-9.]+)\s*([a-z]{1,2}?)(?:i?b(?:ytes?)?)?\s*$/i.exec(text);
  if (match === null) return undefined;
  const [, amount = '', unit = ''] = match;
  const binary = /ib?$/i.test(text.trim()) || /i$/i.test(unit);
  const letter = unit.replace(/i$/i, '').toUpperCase();
  const suffix = letter === '' ? '' : binary ? `${letter}i` : letter === 'K' ? 'k' : letter;
  const meant = `${amount}${suffix}`;
  return meant !== text && parseQuantity(meant) !== undefined ? meant : undefined;
}
