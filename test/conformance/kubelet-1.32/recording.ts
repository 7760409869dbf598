/** Two values of one shape, side by side. */

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Every place where two values differ, as `a.b[0].c`. */
export function differences(ours: Json | undefined, theirs: Json | undefined, at = ''): string[] {
  if (typeof ours !== 'object' || typeof theirs !== 'object' || ours === null || theirs === null) {
    return ours === theirs ? [] : [`${at}: ours ${JSON.stringify(ours)}, kubelet ${JSON.stringify(theirs)}`];
  }
  const read = (o: Json, k: string) => (o as { [key: string]: Json })[k];
  return [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].flatMap((k) =>
    differences(read(ours, k), read(theirs, k), Array.isArray(ours) ? `${at}[${k}]` : at === '' ? k : `${at}.${k}`),
  );
}
