// pure
/**
 * What is wrong with the board, as conditions. Their texts have no figures that move by themselves: a condition that stays is told once.
 */
import { type StorageCard, wornText } from './cardWear.ts';
import type { JudgedCondition } from './conditions.ts';
import type { PowerState } from './power.ts';
import { underVoltageBit, wordsOf } from './throttled.ts';

/** Ours are there only while something is wrong. */
export interface BoardCondition extends JudgedCondition {
  readonly status: 'True';
}

export interface BoardFacts {
  readonly power: PowerState;
  readonly overheated: boolean;
  readonly cards: readonly StorageCard[];
  /** Mount points nobody can write to. */
  readonly readOnly: readonly string[];
  /** undefined: nobody can say. */
  readonly clockSynced: boolean | undefined;
}

/** From here on the firmware of a Pi slows the processor. */
const hotDegrees = 80;
/** It must be this cool before the next heat is news. */
const coolDegrees = 75;

/** With hysteresis. `degrees` undefined: nobody can say, so nothing changes. */
export const isOverheated = (degrees: number | undefined, before: boolean): boolean =>
  degrees === undefined ? before : degrees >= (before ? coolDegrees : hotDegrees);

/** The types of `boardConditions`: each is also told as an event when it comes. */
export const boardConditionTypes: ReadonlySet<string> = new Set([
  'UnderVoltage',
  'Throttled',
  'Overheating',
  'ReadOnlyRoot',
  'SDCardWear',
  'ClockUnsynced',
]);

/** Only what is wrong now; all is well: none. */
export function boardConditions({ power, overheated, cards, readOnly, clockSynced }: BoardFacts): BoardCondition[] {
  const bad = (type: string, message: string): BoardCondition => ({ type, status: 'True', reason: type, message });
  const slowed = wordsOf(power.held & ~underVoltageBit);
  const worn = cards.flatMap((card) => wornText(card) ?? []);
  return [
    ...((power.held & underVoltageBit) === 0 ? [] : [bad('UnderVoltage', 'the supply voltage falls below what the board needs')]),
    ...(slowed.length === 0 ? [] : [bad('Throttled', `the firmware slows the processor: ${slowed.join(', ')}`)]),
    ...(overheated ? [bad('Overheating', `the processor is at ${hotDegrees} °C or more`)] : []),
    ...(readOnly.length === 0 ? [] : [bad('ReadOnlyRoot', `the kernel lets nobody write to ${readOnly.join(' and ')}`)]),
    ...(worn.length === 0 ? [] : [bad('SDCardWear', worn.join('; '))]),
    ...(clockSynced === false ? [bad('ClockUnsynced', 'the clock was not set from the network since the node started')] : []),
  ];
}
