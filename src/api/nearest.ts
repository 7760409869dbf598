// pure
/** "Did you mean": the known word that is nearest to an unknown one. */

const plain = (word: string): string => word.toLowerCase().replace(/[^a-z0-9]/g, '');

/** How many letters must be changed, left out, put in or swapped; stops counting above `limit`. */
function distance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let nearestYet = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
      if (least < nearestYet) nearestYet = least;
    }
    // a swap reaches back two rows, and costs one more
    if (nearestYet > limit + 1) return limit + 1;
    before = last;
    last = row;
  }
  return last[b.length] ?? limit + 1;
}

/** A manifest may name thousands of volumes and miss each of them: no more words than a person can have in mind are compared. */
const mostKnown = 200;

/**
 * The nearest of `known`; undefined when none is near enough to be meant. Case, `_` and `-` do not count, so `image_pull_policy` finds
 * imagePullPolicy.
 */
export function nearest(word: string, known: Iterable<string>, atMost = 3): string | undefined {
  const wanted = plain(word.slice(0, 80));
  if (wanted === '') return undefined;
  const limit = Math.min(atMost, wanted.length <= 4 ? 1 : wanted.length <= 8 ? 2 : 3);
  let best: { readonly word: string; readonly distance: number } | undefined;
  let seen = 0;
  for (const candidate of known) {
    if (++seen > mostKnown) break;
    const d = distance(wanted, plain(candidate), limit);
    if (d <= limit && (best === undefined || d < best.distance)) best = { word: candidate, distance: d };
  }
  return best?.word;
}
