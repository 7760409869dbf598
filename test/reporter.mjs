/**
 * What a run of the tests prints: a line per file, each failure in full at its place, and the numbers of node's runner for run.ts. A
 * thousand passing names would hide the one that matters; PODSCHED_TEST_NAMES=1 prints them. (Not TypeScript: node loads a reporter
 * before tsx.)
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

const everyName = process.env.PODSCHED_TEST_NAMES === '1';
const built = process.env.PODSCHED_TEST_BUILT;
/** The source of a file, seen from here. */
const short = (file) => relative(built !== undefined && file.startsWith(built) ? built : process.cwd(), file).replace(/\.js$/, '.ts');

/** The error as a person wants it: node wraps what was thrown in an ERR_TEST_FAILURE. */
function reason(error) {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  return text
    .split('\n')
    .filter((line) => !/\(node:internal|at node:internal|node_modules\/tsx/.test(line))
    .map((line) => `      ${line}`)
    .join('\n');
}

function summary(name, file) {
  const mark = file.failed === 0 ? 'ok  ' : 'FAIL';
  const counts = [`${file.passed} passed`];
  if (file.failed > 0) counts.push(`${file.failed} failed`);
  if (file.skipped > 0) counts.push(`${file.skipped} skipped`);
  const said =
    file.failed > 0 && file.output !== '' ? `    what it printed:\n${file.output.slice(-6000).replaceAll(/^/gm, '    | ')}\n` : '';
  return `${said}${mark} ${name}: ${counts.join(', ')} (${(file.durationMs / 1000).toFixed(1)} s)\n`;
}

export default async function* report(events) {
  const counts = {};
  const files = new Map();
  let current;
  const stateOf = (path) => {
    if (!files.has(path)) files.set(path, { passed: 0, failed: 0, skipped: 0, durationMs: 0, output: '', open: new Set() });
    return files.get(path);
  };
  for await (const { type, data } of events) {
    if (type === 'test:stdout' || type === 'test:stderr') stateOf(data.file).output += data.message;
    if (type === 'test:enqueue' && data.file !== undefined && data.name !== data.file) stateOf(data.file).open.add(data.name);
    if ((type === 'test:pass' || type === 'test:fail') && data.file !== undefined) {
      const { file, name, nesting, details } = data;
      if (current !== undefined && current !== file) yield summary(short(current), stateOf(current));
      current = file;
      const state = stateOf(file);
      state.open.delete(name);
      if (nesting === 0) state.durationMs += details.duration_ms;
      const skipped = data.skip !== undefined || data.todo !== undefined;
      if (skipped) state.skipped++;
      else if (type === 'test:fail') {
        state.failed++;
        const waiting = name === file && state.open.size > 0 ? `\n      not ended: ${[...state.open].join(' | ')}` : '';
        yield `  ✗ ${name === file ? short(file) : name}\n${reason(details.error)}${waiting}\n`;
      } else if (details.type !== 'suite') state.passed++;
      if (skipped && typeof data.skip === 'string') yield `  - ${name} (skipped: ${data.skip})\n`;
      else if (everyName && type === 'test:pass') yield `  ✓ ${'  '.repeat(nesting)}${name}\n`;
    }
    if (type === 'test:diagnostic' && data.file === undefined && data.nesting === 0) {
      const [, word, value] = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/.exec(data.message) ?? [];
      if (word !== undefined) counts[word] = Number(value);
    }
  }
  if (current !== undefined) yield summary(short(current), stateOf(current));
  const to = process.env.PODSCHED_TEST_COUNTS;
  if (to !== undefined) appendFileSync(to, `${JSON.stringify(counts)}\n`);
}
