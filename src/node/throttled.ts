// pure
/**
 * What the firmware of a Raspberry Pi says of its power, in words. The low four bits are now, the same four from 16 on were seen before;
 * who set the latter free, and when, differs by driver, so "since boot" is counted by `PowerWatch`.
 */
export const powerWords = ['under-voltage', 'frequency capped', 'throttled', 'soft temperature limit'] as const;
export type PowerWord = (typeof powerWords)[number];

/** Of one reading: a mask of four bits each, in the order of `powerWords`. */
export interface PowerBits {
  readonly now: number;
  readonly before: number;
}

export const underVoltageBit = 1;
const mask = 0xf;

/** The text of `get_throttled`: hexadecimal, with or without 0x; undefined: it is something else. */
export function decodeThrottled(text: string): PowerBits | undefined {
  const digits = /^(?:throttled=)?(?:0x)?([0-9a-f]{1,8})$/i.exec(text.trim())?.[1];
  if (digits === undefined) return undefined;
  const bits = Number.parseInt(digits, 16);
  return { now: bits & mask, before: (bits >>> 16) & mask };
}

/** The words of a mask, in order. */
export const wordsOf = (bits: number): readonly PowerWord[] => powerWords.filter((_, i) => (bits & (1 << i)) !== 0);

/** One line for a person: `under-voltage now, throttled since boot`; `ok` when there is nothing to tell. */
export function powerText(now: number, sinceBoot: number): string {
  const before = sinceBoot & ~now;
  const words = [...wordsOf(now).map((w) => `${w} now`), ...wordsOf(before).map((w) => `${w} since boot`)];
  return words.length === 0 ? 'ok' : words.join(', ');
}

/** Why the power chip of a Pi 5 reset the board the last time: `power_reset` of the device tree, a bit field. */
const resetWords = ['over-voltage', 'under-voltage', 'over-temperature', 'enable signal', 'watchdog'] as const;

/** The words of `power_reset` (32 bits, big-endian), in order; empty: an ordinary start, or none of them. */
export function resetReasons(bytes: Uint8Array): readonly string[] {
  if (bytes.length !== 4) return [];
  const bits = bytes[3] ?? 0;
  return resetWords.filter((_, i) => (bits & (1 << i)) !== 0);
}
