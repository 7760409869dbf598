// pure
/** One key of the configuration, typed: from the file (YAML values) and from flags and environment (texts). */

import type { ConfigurationKey } from './configuration.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { isPlain } from './plain.ts';
import { parseDuration, parseQuantity, quantityValue } from './quantity.ts';
import { shown } from './scalars.ts';

export type Value = { readonly value: unknown } | { readonly problems: readonly Problem[] };

const wrong = (path: string, expected: string, raw: unknown, close?: string): Value => ({
  problems: [{ path, expected, got: shown(raw), ...(close !== undefined && { nearest: close }) }],
});

/** A value as the file holds it. `path` is what problems name. */
export function fileValue(path: string, key: ConfigurationKey, raw: unknown): Value {
  switch (key.kind) {
    case 'string':
      if (typeof raw === 'string') return word(path, key, raw);
      return wrong(path, typeof raw === 'number' || typeof raw === 'boolean' ? 'a string, quote it' : 'a string', raw);
    case 'bool':
      return typeof raw === 'boolean' ? { value: raw } : wrong(path, 'true or false', raw);
    case 'int':
      return typeof raw === 'number' ? integer(path, key, raw) : wrong(path, 'a whole number', raw);
    case 'durationMs':
      if (raw === 0) return duration(path, key, '0');
      if (typeof raw === 'number') return wrong(path, durationExample, raw, `${raw}s`);
      return typeof raw === 'string' ? duration(path, key, raw) : wrong(path, durationExample, raw);
    case 'bytes':
      return typeof raw === 'number' || typeof raw === 'string' ? bytes(path, key, raw) : wrong(path, bytesExample, raw);
    case 'list':
      return texts(path, raw);
    case 'map':
      return textMap(path, raw);
    case 'lists':
      return isPlain(raw)
        ? collect(Object.entries(raw).map(([name, list]) => [name, texts(`${path}.${name}`, list)]))
        : wrong(path, 'a mapping of lists', raw);
    case 'policy':
      return policy(path, raw);
  }
}

/** A value as a flag or the environment holds it: lists by comma, maps not at all. */
export function textValue(path: string, key: ConfigurationKey, text: string): Value {
  switch (key.kind) {
    case 'string':
      return word(path, key, text);
    case 'bool':
      return text === 'true' || text === 'false' ? { value: text === 'true' } : wrong(path, 'true or false', text);
    case 'int':
      return /^[-+]?\d+$/.test(text) ? integer(path, key, Number(text)) : wrong(path, 'a whole number', text);
    case 'durationMs':
      return duration(path, key, text);
    case 'bytes':
      return bytes(path, key, text);
    case 'list': {
      const parts = text.split(',').map((part) => part.trim());
      return { value: parts.filter((part) => part !== '') };
    }
    case 'map':
    case 'lists':
    case 'policy':
      return wrong(path, 'this key in the configuration file, which is the only place for maps', text);
  }
}

const durationExample = 'a duration such as 30s, 1m, 1h30m or 500ms';
const bytesExample = 'an amount of bytes such as 5Mi';

function word(path: string, key: ConfigurationKey, text: string): Value {
  if (key.oneOf === undefined || key.oneOf.includes(text)) return { value: text };
  return wrong(path, `one of ${key.oneOf.join(', ')}`, text, nearest(text, key.oneOf));
}

function integer(path: string, key: ConfigurationKey, n: number): Value {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = key;
  return Number.isInteger(n) && n >= min && n <= max ? { value: n } : wrong(path, `a whole number from ${min} to ${max}`, n);
}

function duration(path: string, key: ConfigurationKey, text: string): Value {
  const ms = parseDuration(text);
  if (ms === undefined) return wrong(path, durationExample, text, /^\d+$/.test(text) ? `${text}s` : undefined);
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = key;
  return ms >= min && ms <= max ? { value: ms } : wrong(path, `a duration from ${durationText(min)} to ${durationText(max)}`, text);
}

/** `90000` → `1m30s`. */
export function durationText(ms: number): string {
  if (ms === 0) return '0s';
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(ms / 3_600_000), 'h'],
    [Math.floor(ms / 60_000) % 60, 'm'],
    [Math.floor(ms / 1000) % 60, 's'],
    [ms % 1000, 'ms'],
  ];
  return parts.map(([n, unit]) => (n === 0 ? '' : `${n}${unit}`)).join('');
}

function bytes(path: string, key: ConfigurationKey, raw: number | string): Value {
  if (parseQuantity(raw) === undefined) return wrong(path, bytesExample, raw);
  const n = quantityValue(raw);
  return n >= (key.min ?? 0) ? { value: n } : wrong(path, `at least ${key.min} bytes`, raw);
}

function texts(path: string, raw: unknown): Value {
  if (!Array.isArray(raw)) return wrong(path, 'a list of strings', raw);
  const problems = raw.flatMap((item: unknown, i) =>
    typeof item === 'string' ? [] : [{ path: `${path}[${i}]`, expected: 'a string', got: shown(item) }],
  );
  return problems.length === 0 ? { value: raw } : { problems };
}

/** Label values and thresholds: a number is meant as its text (`memory.available: 10`). */
function textMap(path: string, raw: unknown): Value {
  if (!isPlain(raw)) return wrong(path, 'a mapping', raw);
  return collect(
    Object.entries(raw).map(([name, value]) => [
      name,
      typeof value === 'string'
        ? { value }
        : typeof value === 'number'
          ? { value: String(value) }
          : wrong(`${path}.${name}`, typeof value === 'boolean' ? 'a string, quote it' : 'a string', value),
    ]),
  );
}

function collect(entries: readonly (readonly [string, Value])[]): Value {
  const problems = entries.flatMap(([, v]) => ('problems' in v ? v.problems : []));
  if (problems.length > 0) return { problems };
  return { value: Object.fromEntries(entries.map(([name, v]) => [name, 'value' in v ? v.value : undefined])) };
}

/** What a source may ask for; absent means no. */
const policyKeys: Readonly<Record<string, 'bool' | 'list' | 'count' | 'all'>> = {
  allow: 'all',
  privileged: 'bool',
  hostNetwork: 'bool',
  hostPID: 'bool',
  hostIPC: 'bool',
  hostPorts: 'bool',
  hostPath: 'list',
  devices: 'list',
  capabilities: 'list',
  sysctls: 'list',
  unconfined: 'bool',
  registries: 'list',
  digestOnly: 'bool',
  maxPods: 'count',
  namespaces: 'list',
  verbs: 'list',
  mayRead: 'list',
  requireSignature: 'bool',
  locked: 'bool',
};

function policy(path: string, raw: unknown): Value {
  if (!isPlain(raw)) return wrong(path, 'a mapping of what is allowed', raw);
  return collect(Object.entries(raw).map(([name, value]) => [name, policyValue(`${path}.${name}`, name, value)]));
}

function policyValue(path: string, name: string, value: unknown): Value {
  const kind = Object.hasOwn(policyKeys, name) ? policyKeys[name] : undefined;
  switch (kind) {
    case undefined:
      return { problems: [unknownKey(path, nearest(name, Object.keys(policyKeys)))] };
    case 'bool':
      return typeof value === 'boolean' ? { value } : wrong(path, 'true or false', value);
    case 'all':
      return value === 'all' ? { value } : wrong(path, 'the word all', value);
    case 'count':
      return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 10_000
        ? { value }
        : wrong(path, 'a whole number from 0 to 10000', value);
    case 'list':
      return texts(path, value);
  }
}

export const unknownKey = (path: string, close: string | undefined): Problem => ({
  path,
  expected: 'a known key',
  got: 'unknown key',
  ...(close !== undefined && { nearest: close }),
});
