/** Payloads as nobody means well: made from good ones by a seeded chance, so that a run can be had again. */

export interface Chance {
  /** 0 … n − 1. */
  below(n: number): number;
  pick<T>(items: readonly T[]): T;
}

export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return {
    below,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('nothing to pick from');
      return item;
    },
  };
}

const encoder = new TextEncoder();

/** Values that a reader did not think of, where it expects another. */
const oddValues: readonly unknown[] = [
  null,
  true,
  '',
  0,
  -1,
  1e308,
  2 ** 53,
  1.5,
  '..',
  '../../etc/passwd',
  '/',
  '.',
  'a'.repeat(300),
  '\u0000',
  '\ud800',
  '\ufeff',
  'constructor',
  '__proto__',
  'toString',
  '$(reboot)',
  ['$', '{NODE.NAME}'].join(''),
  '999999999999999999999',
  '-0',
  '0x10',
  [],
  {},
  [[]],
  { length: -1 },
  { toString: 1 },
  [null],
  Array.from({ length: 100 }, (_, i) => i),
];

const oddKeys = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'then', 'length', '', '..', 'a/b', '0'] as const;

/** Texts that a parser did not think of, instead of any payload. */
const oddTexts: readonly string[] = [
  '',
  ' ',
  '\n',
  '\0',
  '\ufeff{}',
  '{',
  '}',
  '[',
  '"',
  'null',
  'true',
  '0',
  '[]',
  '{}',
  '""',
  'NaN',
  '1e999',
  '{"a":1}{"a":2}',
  '{"a":1,}',
  '---\n---\n',
  '%YAML 9.9\n---\n{}',
  '!!js/function "x"',
  '&a [*a]',
  'a: &x [1]\nb: *x',
  '<<: {a: 1}',
  '? [a]\n: b',
  '"\\ud800"',
  '{"\\u0000":1}',
  '@'.repeat(1000),
  '- '.repeat(2000),
  '{"a":'.repeat(2000),
  '['.repeat(5000),
  '{a: '.repeat(500),
  `${'['.repeat(3000)}${']'.repeat(3000)}`,
];

/** One payload after the other; `seeds` are good ones, as JSON values or as text. */
export function hostileBytes(chance: Chance, seeds: readonly unknown[]): Uint8Array {
  const seed = chance.pick(seeds);
  switch (chance.below(8)) {
    case 0:
      return encoder.encode(chance.pick(oddTexts));
    case 1:
      return Uint8Array.from({ length: chance.below(200) }, () => chance.below(256));
    case 2:
    case 3:
      return bent(chance, encoder.encode(typeof seed === 'string' ? seed : JSON.stringify(seed)));
    default: {
      if (typeof seed === 'string') return bent(chance, encoder.encode(seed));
      let value = seed;
      for (let i = chance.below(3); i >= 0; i--) value = spoilt(chance, value);
      return encoder.encode(JSON.stringify(value) ?? '');
    }
  }
}

/** Bytes changed, put in, left out, cut off, said twice. */
function bent(chance: Chance, bytes: Uint8Array): Uint8Array {
  const out = [...bytes];
  for (let i = chance.below(4); i >= 0; i--) {
    const at = chance.below(out.length + 1);
    switch (chance.below(6)) {
      case 0:
        out[at] = chance.below(256);
        break;
      case 1:
        out.splice(at, 0, chance.below(256));
        break;
      case 2:
        out.splice(at, 1 + chance.below(10));
        break;
      case 3:
        out.length = Math.min(out.length, at);
        break;
      case 4:
        out.splice(at, 0, ...out.slice(at, at + chance.below(40)));
        break;
      default:
        out.splice(
          at,
          0,
          ...encoder.encode(chance.pick(['"', '{', '}', '[', ']', ':', ',', '\\', '\n', ' ', '\t', '#', '&', '*', '!', '\u{1f4a5}'])),
        );
    }
  }
  return Uint8Array.from(out, (b) => b ?? 0);
}

/** A value with something in it replaced, left out or added, anywhere. */
function spoilt(chance: Chance, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || chance.below(6) === 0) return chance.pick(oddValues);
  if (Array.isArray(value)) {
    const list = [...(value as readonly unknown[])];
    if (list.length === 0 || chance.below(5) === 0) return [...list, chance.pick(oddValues)];
    const at = chance.below(list.length);
    if (chance.below(5) === 0) list.splice(at, 1);
    else list[at] = spoilt(chance, list[at]);
    return list;
  }
  const entries = Object.entries(value);
  const at = chance.below(entries.length + 1);
  const entry = entries[at];
  // as an own key, which it is in JSON text
  if (entry === undefined) return Object.fromEntries([...entries, [chance.pick(oddKeys), chance.pick(oddValues)]]);
  if (chance.below(5) === 0) return Object.fromEntries(entries.filter((_, i) => i !== at));
  if (chance.below(8) === 0) return Object.fromEntries([...entries, [chance.pick(oddKeys), entry[1]]]);
  return Object.fromEntries(entries.map(([k, v], i) => [k, i === at ? spoilt(chance, v) : v]));
}

const levels = [
  'nodes',
  'desired',
  'groups',
  'all',
  'cmd',
  'reply',
  'rollouts',
  'pi-1',
  'attic',
  'default',
  'web',
  '_index',
  '_config',
  '_files',
] as const;
const oddLevels = [
  '',
  '..',
  '.',
  '#',
  '+',
  '$SYS',
  '_',
  '~',
  '~2',
  '~zz',
  ':',
  'pod:',
  'configmap:',
  'secret:a',
  'a~b',
  'a.b',
  '__proto__',
  'constructor',
  '\0',
  '\ud83d',
  'ü',
  'x'.repeat(300),
  '0',
  '1',
  '99',
  '100',
  '-',
  'A',
] as const;

/** A topic of the contract, nearly. */
export function hostileTopic(chance: Chance): string {
  const head = chance.below(10) === 0 ? chance.pick(['podsched/v2', 'podsched', '', 'podsched/v1/podsched/v1']) : 'podsched/v1';
  const parts = Array.from({ length: chance.below(7) }, () => (chance.below(4) === 0 ? chance.pick(oddLevels) : chance.pick(levels)));
  return [head, ...parts].join(chance.below(30) === 0 ? '//' : '/');
}
