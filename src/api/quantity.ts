// pure
/**
 * Amounts as text: Kubernetes quantities (`100m`, `64Mi`, `1e3`), durations (`1m30s`). A quantity is held exactly, in billionths, as the
 * kubelet's resource.Quantity holds it: finer digits are rounded away from zero, and nothing exceeds 2^63 − 1.
 */
import type { Quantity } from './v1.ts';

type Format = 'decimal' | 'binary' | 'exponent';
export interface ParsedQuantity {
  /** Billionths. */
  readonly nano: bigint;
  /** How it was written; it decides the spelling, never the value. */
  readonly format: Format;
}

const NANO = 1_000_000_000n;
const MAX = (2n ** 63n - 1n) * NANO;
const decimalSuffixes: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

const abs = (n: bigint): bigint => (n < 0n ? -n : n);
/** Division that rounds away from zero, as the kubelet rounds amounts up. */
function divideUp(n: bigint, by: bigint): bigint {
  const quotient = abs(n) / by + (abs(n) % by === 0n ? 0n : 1n);
  return n < 0n ? -quotient : quotient;
}

/** Reads a quantity; undefined when it is none. A missing number is zero (`Mi` is 0 in Kubernetes too). */
export function parseQuantity(q: Quantity): ParsedQuantity | undefined {
  const text = typeof q === 'number' ? String(q) : q;
  if (text.length > 100 || text === '') return undefined;
  const match = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]+))?$/.exec(text);
  if (match === null) return undefined;
  const [, sign = '', whole = '', fraction = '', binary, suffix, exponent] = match;
  const digits = BigInt(`${whole}${fraction}` || '0');
  const value = sign === '-' ? -digits : digits;
  if (binary !== undefined) {
    const scaled = value * 1024n ** BigInt(binarySuffixes.indexOf(binary)) * NANO;
    return { nano: clamp(divideUp(scaled, 10n ** BigInt(fraction.length))), format: 'binary' };
  }
  const power = exponent !== undefined ? Number(exponent) : (decimalSuffixes.get(suffix ?? '') ?? 0);
  const format = exponent !== undefined && typeof q === 'string' ? 'exponent' : 'decimal';
  // beyond these powers nothing is left but the limits; it also bounds the arithmetic
  const shift = Math.max(-200, Math.min(200, power)) - fraction.length + 9;
  const nano = shift >= 0 ? value * 10n ** BigInt(shift) : divideUp(value, 10n ** BigInt(-shift));
  return { nano: clamp(nano), format };
}

const clamp = (n: bigint): bigint => (n > MAX ? MAX : n < -MAX ? -MAX : n);

/** The integer value (bytes, cores), rounded up; 0 for what is no quantity. */
export function quantityValue(q: Quantity | undefined): number {
  const parsed = q === undefined ? undefined : parseQuantity(q);
  return parsed === undefined ? 0 : Number(divideUp(parsed.nano, NANO));
}

/** Thousandths (milli-CPU), rounded up, never beyond 2^63 − 1; 0 for what is no quantity. */
export function quantityMilliValue(q: Quantity | undefined): number {
  const parsed = q === undefined ? undefined : parseQuantity(q);
  if (parsed === undefined) return 0;
  const milli = divideUp(parsed.nano, 1_000_000n);
  const limit = 2n ** 63n - 1n;
  return Number(milli > limit ? limit : milli < -limit ? -limit : milli);
}

/** −1, 0 or 1, exactly; what is no quantity counts as zero. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  const left = parseQuantity(a)?.nano ?? 0n;
  const right = parseQuantity(b)?.nano ?? 0n;
  return left < right ? -1 : left > right ? 1 : 0;
}

/**
 * The spelling Kubernetes shows: no fraction, the largest suffix that keeps the value whole, in the writer's family (binary, decimal,
 * exponent). `0.5` → `500m`, `1.5Gi` → `1536Mi`, `0.1Gi` → `107374182400m`. What is no quantity comes back unchanged.
 */
export function canonicalQuantity(q: Quantity): string {
  const parsed = parseQuantity(q);
  if (parsed === undefined) return String(q);
  const { nano, format } = parsed;
  if (nano === 0n) return '0';
  if (format === 'binary' && nano % NANO === 0n && abs(nano) >= 1024n * NANO) {
    let value = nano / NANO;
    let power = 0;
    for (; power < binarySuffixes.length - 1 && value % 1024n === 0n; power++) value /= 1024n;
    return `${value}${binarySuffixes[power] ?? ''}`;
  }
  let value = nano;
  let power = -9;
  for (; power < 18 && value % 1000n === 0n; power += 3) value /= 1000n;
  if (format === 'exponent') return power === 0 ? String(value) : `${value}e${power}`;
  for (const [suffix, of] of decimalSuffixes) if (of === power) return `${value}${suffix}`;
  return String(value);
}

/** One spelling for one value, whatever the family: a plain decimal number. For hashes; it never changes. */
export function exactQuantity(q: Quantity): string {
  const parsed = parseQuantity(q);
  if (parsed === undefined) return String(q);
  const whole = abs(parsed.nano) / NANO;
  const fraction = (abs(parsed.nano) % NANO).toString().padStart(9, '0').replace(/0+$/, '');
  return `${parsed.nano < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

const unitsMs: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of a duration as Go writes it (`10s`, `1m30s`, `1.5h`, `0`); undefined when it is none. Never negative. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (text.length > 64 || !/^(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount = '0', unit = 's'] of text.matchAll(/([0-9]+(?:\.[0-9]*)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * (unitsMs[unit] ?? 0);
  }
  return Number.isFinite(total) ? total : undefined;
}
