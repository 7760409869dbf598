// pure
/** What the guest wrote down, line by line, as results; and results as JUnit's XML. */

/** One line of the guest's diary: a check, the beginning or end of a suite, or a figure worth knowing. */
export type Line =
  | { readonly kind: 'check'; readonly suite: string; readonly name: string; readonly ms: number; readonly error?: string }
  | { readonly kind: 'begin' | 'end'; readonly suite: string }
  | { readonly kind: 'figure'; readonly suite: string; readonly name: string; readonly value: string }
  /** The guest asks for its power to be cut. */
  | { readonly kind: 'cut' };

export interface Result {
  readonly boot: string;
  readonly suite: string;
  readonly name: string;
  readonly ms: number;
  readonly error?: string;
}

/** The lines of a diary; a last line that is still being written is left out. */
export function lines(text: string): Line[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
}

/** All checks of a boot; a suite that never ended is a failure of its own. */
export function results(boot: string, wanted: readonly string[], told: readonly Line[], why: string): Result[] {
  const checks = told.flatMap((l): Result[] => {
    if (l.kind !== 'check') return [];
    return [{ boot, suite: l.suite, name: l.name, ms: l.ms, ...(l.error !== undefined && { error: l.error }) }];
  });
  const ended = new Set(told.flatMap((l) => (l.kind === 'end' ? [l.suite] : [])));
  const unended = wanted
    .filter((suite) => !ended.has(suite))
    .map((suite): Result => ({ boot, suite, name: 'the suite ends', ms: 0, error: `it did not: ${why}` }));
  return [...checks, ...unended];
}

const escapes: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;', "'": '&apos;' };
const escaped = (text: string): string => [...text].map((c) => escapes[c] ?? (c < ' ' && !'\t\n\r'.includes(c) ? '\ufffd' : c)).join('');

export function junit(all: readonly Result[]): string {
  const seconds = (ms: number): string => (ms / 1000).toFixed(3);
  const total = (some: readonly Result[]): string => seconds(some.reduce((sum, r) => sum + r.ms, 0));
  const failures = (some: readonly Result[]): number => some.filter((r) => r.error !== undefined).length;
  const suites = [...new Set(all.map((r) => `${r.boot}.${r.suite}`))].map((name) => {
    const some = all.filter((r) => `${r.boot}.${r.suite}` === name);
    const cases = some.map((r) => {
      const head = `    <testcase classname="${escaped(name)}" name="${escaped(r.name)}" time="${seconds(r.ms)}"`;
      if (r.error === undefined) return `${head}/>`;
      return `${head}>\n      <failure message="${escaped(r.error.split('\n')[0] ?? '')}">${escaped(r.error)}</failure>\n    </testcase>`;
    });
    const counts = `tests="${some.length}" failures="${failures(some)}" time="${total(some)}"`;
    return `  <testsuite name="${escaped(name)}" ${counts}>\n${cases.join('\n')}\n  </testsuite>`;
  });
  const counts = `tests="${all.length}" failures="${failures(all)}" time="${total(all)}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${counts}>\n${suites.join('\n')}\n</testsuites>\n`;
}
