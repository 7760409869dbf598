// pure
/**
 * Eviction thresholds as configured, in the kubelet's syntax (`memory.available: 100Mi`, `nodefs.available: 10%`), and the defaults where
 * evictionHard says nothing. An amount in percent is of the capacity, which is known only on the node: it is worked out there.
 * Mirrors kubelet v1.32 eviction/helpers.go ParseThresholdConfig (facts 14.1), but the defaults, which fit a board from 512 MB and a card
 * from 8 GB upwards: the kubelet's 100Mi are a quarter of a small board, and its 10 % of a large disk are more than all pods ever write.
 */
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { parseDuration, parseQuantity, quantityValue } from './quantity.ts';

/** What can be configured. `containerfs.*` is taken and has no effect, as in the kubelet: it follows from the other two. */
const configurable = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'pid.available',
] as const;
const derived = ['containerfs.available', 'containerfs.inodesFree', 'allocatableMemory.available'] as const;

export type EvictionSignal = (typeof configurable)[number] | 'allocatableMemory.available';

/** So much, or a share of the capacity between two bounds. */
export type EvictionAmount = { readonly value: number } | { readonly percent: number; readonly least?: number; readonly most?: number };

export interface EvictionThreshold {
  readonly signal: EvictionSignal;
  readonly kind: 'hard' | 'soft';
  /** Met when less is available. */
  readonly amount: EvictionAmount;
  /** Once met, so much more than the amount must be available until it is met no more. Absent: nothing more. */
  readonly minimumReclaim?: EvictionAmount;
  /** Soft ones: how long it must have been met. 0 for hard ones. */
  readonly graceMs: number;
}

const MiB = 2 ** 20;
const GiB = 2 ** 30;

/** What holds where evictionHard is empty. */
const scaled: Readonly<
  Record<Exclude<EvictionSignal, 'allocatableMemory.available'>, Omit<EvictionThreshold, 'signal' | 'kind' | 'graceMs'>>
> = {
  // 40Mi on 512 MB, 80Mi on 1 GB, the kubelet's 100Mi from 1.25 GB on
  'memory.available': {
    amount: { percent: 8, least: 40 * MiB, most: 100 * MiB },
    minimumReclaim: { percent: 2, least: 10 * MiB, most: 25 * MiB },
  },
  // the kubelet's share on a card of up to 20 GB, and enough for an image beyond it
  'nodefs.available': { amount: { percent: 10, most: 2 * GiB }, minimumReclaim: { percent: 1, most: 256 * MiB } },
  'nodefs.inodesFree': { amount: { percent: 5, most: 50_000 }, minimumReclaim: { percent: 1, most: 10_000 } },
  // on a Pi it is the same file system: a greater share would only be the real threshold of both
  'imagefs.available': { amount: { percent: 10, most: 2 * GiB }, minimumReclaim: { percent: 1, most: 256 * MiB } },
  'imagefs.inodesFree': { amount: { percent: 5, most: 50_000 }, minimumReclaim: { percent: 1, most: 10_000 } },
  // the kubelet has none, and a machine without process ids cannot even be looked at
  'pid.available': { amount: { percent: 5, most: 2000 } },
};

/** The hard thresholds of a node that configures none. */
export const defaultEvictionHard = (): readonly EvictionThreshold[] =>
  configurable.map((signal) => ({ signal, kind: 'hard', graceMs: 0, ...scaled[signal] }));

/** In the unit of the signal: bytes, inodes, processes. */
export function amountOf(amount: EvictionAmount, capacity: number): number {
  if ('value' in amount) return amount.value;
  const share = Math.floor((capacity * amount.percent) / 100);
  return Math.min(Math.max(share, amount.least ?? 0), amount.most ?? Number.POSITIVE_INFINITY, Math.max(0, capacity));
}

/**
 * What is kept free of a resource by hard thresholds: it is no part of what pods may ask for (facts 11.4). 0 where no threshold is set.
 */
export function reservedByEviction(thresholds: readonly EvictionThreshold[], signal: EvictionSignal, capacity: number): number {
  const hard = thresholds.find((t) => t.kind === 'hard' && t.signal === signal);
  return hard === undefined ? 0 : amountOf(hard.amount, capacity);
}

type Texts = Readonly<Record<string, string>>;

/** The maps of the configuration, as they stand in it. */
export interface EvictionMaps {
  readonly evictionHard: Texts;
  readonly evictionSoft: Texts;
  readonly evictionSoftGracePeriod: Texts;
  readonly evictionMinimumReclaim: Texts;
}

const mapOf = (value: unknown): Texts =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).filter((e): e is [string, string] => typeof e[1] === 'string'))
    : {};

/** From a whole configuration by dotted path. */
export const evictionMaps = (v: Readonly<Record<string, unknown>>): EvictionMaps => ({
  evictionHard: mapOf(v.evictionHard),
  evictionSoft: mapOf(v.evictionSoft),
  evictionSoftGracePeriod: mapOf(v.evictionSoftGracePeriod),
  evictionMinimumReclaim: mapOf(v.evictionMinimumReclaim),
});

/** All thresholds and all mistakes; what is wrong is left out of the thresholds. */
export function parseEviction(maps: EvictionMaps): {
  readonly thresholds: readonly EvictionThreshold[];
  readonly problems: readonly Problem[];
} {
  const problems: Problem[] = [];
  const complain = (path: string, expected: string, got: string, close?: string): void => {
    problems.push({ path, expected, got, ...(close !== undefined && { nearest: close }) });
  };
  const each = (key: keyof EvictionMaps, take: (signal: EvictionSignal, text: string, path: string) => void): void => {
    for (const [name, text] of Object.entries(maps[key])) {
      const path = `${key}.${name}`;
      const signal = configurable.find((s) => s === name);
      if (signal !== undefined) take(signal, text, path);
      else if (!derived.some((s) => s === name)) complain(path, `a signal: ${configurable.join(', ')}`, name, nearest(name, configurable));
    }
  };
  const amounts = (key: 'evictionHard' | 'evictionSoft' | 'evictionMinimumReclaim', mayBeZero: boolean) => {
    const found = new Map<EvictionSignal, EvictionAmount | 'off'>();
    each(key, (signal, text, path) => {
      const amount = readAmount(text, signal, mayBeZero);
      if ('expected' in amount) complain(path, amount.expected, text);
      else found.set(signal, isOff(amount) ? 'off' : amount);
    });
    return found;
  };

  const reclaim = amounts('evictionMinimumReclaim', true);
  const hard = amounts('evictionHard', false);
  const soft = amounts('evictionSoft', false);
  const graces = new Map<EvictionSignal, number>();
  each('evictionSoftGracePeriod', (signal, text, path) => {
    const ms = parseDuration(text);
    if (ms === undefined) complain(path, 'a duration such as 30s or 1m30s', text);
    else graces.set(signal, ms);
  });
  for (const signal of soft.keys()) {
    const path = `evictionSoftGracePeriod.${signal}`;
    if (!Object.hasOwn(maps.evictionSoftGracePeriod, signal)) complain(path, 'a duration: a soft threshold needs one', 'nothing');
  }
  for (const signal of Object.keys(maps.evictionSoftGracePeriod)) {
    if (Object.hasOwn(maps.evictionSoft, signal) || !configurable.some((s) => s === signal)) continue;
    complain(`evictionSoftGracePeriod.${signal}`, `a threshold for it in evictionSoft`, 'none');
  }

  const withReclaim = (threshold: EvictionThreshold): EvictionThreshold => {
    const more = reclaim.get(threshold.signal);
    return more === undefined || more === 'off' ? threshold : { ...threshold, minimumReclaim: more };
  };
  const thresholds: EvictionThreshold[] = [];
  if (Object.keys(maps.evictionHard).length === 0) thresholds.push(...defaultEvictionHard());
  for (const [signal, amount] of hard) if (amount !== 'off') thresholds.push({ signal, kind: 'hard', amount, graceMs: 0 });
  for (const [signal, amount] of soft) {
    const graceMs = graces.get(signal);
    if (amount !== 'off' && graceMs !== undefined) thresholds.push({ signal, kind: 'soft', amount, graceMs });
  }
  return { thresholds: thresholds.map(withReclaim), problems };
}

/** 0 % and 100 % switch a signal off. */
const isOff = (amount: EvictionAmount): boolean => 'percent' in amount && (amount.percent === 0 || amount.percent === 100);

const example = (signal: EvictionSignal): string =>
  signal === 'memory.available' || signal === 'nodefs.available' || signal === 'imagefs.available'
    ? 'an amount such as 100Mi, or a share such as 10%'
    : 'a number such as 1000, or a share such as 5%';

function readAmount(text: string, signal: EvictionSignal, mayBeZero: boolean): EvictionAmount | { readonly expected: string } {
  if (text.endsWith('%')) {
    const percent = /^\d{1,3}(\.\d{1,6})?%$/.test(text) ? Number(text.slice(0, -1)) : Number.NaN;
    return percent >= 0 && percent <= 100 ? { percent } : { expected: 'a share from 0% to 100%' };
  }
  const quantity = parseQuantity(text);
  // a quantity without a number is 0 to Kubernetes, and meant by nobody
  if (quantity === undefined || !/\d/.test(text)) return { expected: example(signal) };
  if (quantity.nano < 0n || (quantity.nano === 0n && !mayBeZero)) return { expected: mayBeZero ? 'no negative amount' : 'more than 0' };
  return { value: quantityValue(text) };
}

/**
 * All mistakes of the thresholds in a whole configuration by dotted path. `memoryBytes`: of the machine it is meant for, where it is known: a
 * threshold of all its memory would be met for ever.
 */
export function checkEviction(v: Readonly<Record<string, unknown>>, memoryBytes?: number): Problem[] {
  const maps = evictionMaps(v);
  const { thresholds, problems } = parseEviction(maps);
  const tooMuch = thresholds.filter(
    (t) => t.signal === 'memory.available' && 'value' in t.amount && memoryBytes !== undefined && t.amount.value >= memoryBytes,
  );
  return [
    ...problems,
    ...tooMuch.map(({ kind, signal }) => {
      const key = kind === 'hard' ? 'evictionHard' : 'evictionSoft';
      return { path: `${key}.${signal}`, expected: `less than the node's memory (${memoryBytes} bytes)`, got: maps[key][signal] ?? '' };
    }),
  ];
}
