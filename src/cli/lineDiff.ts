// pure
/** Two texts, line by line, as `diff -u` shows what is another. */

interface Line {
  readonly sign: ' ' | '-' | '+';
  readonly text: string;
}

const context = 3;
/** More cells than this cost more than a reader gains: then everything between the common ends is another. */
const mostCells = 4_000_000;

/** The unified difference; empty when there is none. */
export function unifiedDiff(before: string, after: string, names: { readonly before: string; readonly after: string }): string {
  if (before === after) return '';
  const lines = compared(linesOf(before), linesOf(after));
  return [`--- ${names.before}`, `+++ ${names.after}`, ...hunks(lines), ''].join('\n');
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

function compared(a: readonly string[], b: readonly string[]): Line[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = (text: string): Line => ({ sign: ' ', text });
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ];
}

/** By the longest common subsequence. */
function middle(a: readonly string[], b: readonly string[]): Line[] {
  const gone = (text: string): Line => ({ sign: '-', text });
  const come = (text: string): Line => ({ sign: '+', text });
  if (a.length * b.length > mostCells) return [...a.map(gone), ...b.map(come)];
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: ' ', text: a[i] ?? '' });
      i++;
      j++;
    } else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1))) lines.push(gone(a[i++] ?? ''));
    else lines.push(come(b[j++] ?? ''));
  }
  return lines;
}

function hunks(lines: readonly Line[]): string[] {
  const shown = lines.map((_, i) => lines.slice(Math.max(0, i - context), i + context + 1).some((l) => l.sign !== ' '));
  const out: string[] = [];
  let [a, b] = [1, 1];
  for (let i = 0; i < lines.length; ) {
    if (!shown[i]) {
      a++;
      b++;
      i++;
      continue;
    }
    const hunk: Line[] = [];
    while (i < lines.length && shown[i]) hunk.push(lines[i++] ?? { sign: ' ', text: '' });
    const [olds, news] = [hunk.filter((l) => l.sign !== '+').length, hunk.filter((l) => l.sign !== '-').length];
    out.push(`@@ -${range(a, olds)} +${range(b, news)} @@`, ...hunk.map((l) => l.sign + l.text));
    a += olds;
    b += news;
  }
  return out;
}

/** As diff counts: an empty range stands behind the line before it, a single line needs no length. */
const range = (start: number, count: number): string => (count === 1 ? `${start}` : `${count === 0 ? start - 1 : start},${count}`);
