/** A container that is heard all the time: how long it was down when another took its place. */
import { type Diary, note } from './story.ts';

/**
 * Writes `beat <version>` into the diary ten times in a second; the version is a word of shell. Asked to end it writes no more, and takes
 * the whole of its grace.
 */
export const beating = (version: string): string =>
  `${note}trap 'over=1' TERM; while [ -z "$over" ]; do note "beat ${version}"; sleep 0.1; done; sleep 100`;

/** Seconds between the last beat of one version and the first of the next. */
export function gap(diary: Diary, from: string, to: string): number {
  const entries = diary.entries();
  const first = entries.find((e) => e.text === `beat ${to}`)?.at ?? Number.NaN;
  const last = entries.filter((e) => e.text === `beat ${from}` && e.at <= first).at(-1)?.at ?? Number.NaN;
  return first - last;
}

/** The longest silence between `since` and `until`, both in seconds since boot. */
export function longestSilence(diary: Diary, since: number, until = Number.POSITIVE_INFINITY): number {
  const times = diary
    .entries()
    .map((e) => e.at)
    .filter((at) => at >= since && at <= until);
  return Math.max(0, ...times.slice(1).map((at, i) => at - (times[i] ?? at)));
}
