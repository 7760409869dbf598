/**
 * Runs the tests with node's runner in four lanes: what starts real containerds, three files at a time; what needs brokers only; what needs nothing
 * but Node; and, for what is left of the processor, the random worlds. Everything runs in a temporary folder of the run's own; at the end nothing
 * of the run may be left. Arguments are parts of file names: only files that have one of them run.
 */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { builtPath, builtTests } from './built.ts';
import { sweepBeds } from './device/bed.ts';
import { killPid, until } from './device/process.ts';
import { leftovers, machineTraces, runMark } from './leftovers.ts';

const root = new URL('..', import.meta.url).pathname;
process.chdir(root);
/** Against a run that hangs. A quiet machine of this kind needs 12 minutes: a limit near that would be about its speed. */
const totalMs = 20 * 60_000;
const startedAt = performance.now();

const patterns = process.argv.slice(2);
const files = ['test', 'src/cgroup-ts/test']
  .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((f) => join(folder, f)))
  .filter((f) => f.endsWith('.test.ts'))
  .filter((f) => patterns.length === 0 || patterns.some((p) => f.includes(p)))
  .sort();
if (files.length === 0) {
  console.error(`no test file has ${patterns.join(' or ')} in its name`);
  process.exit(1);
}
const real = (f: string): boolean => /^test\/(device|contract|pi)\/|\/real\.test\.ts$/.test(f);
/** Programs that mostly wait, and no containerd among them. */
const brokers = (f: string): boolean => /^test\/(device\/broker[A-Z]|broker\/real|cli\/remoteReal|api\/mosquittoFiles)/.test(f);

const folder = mkdtempSync(join(tmpdir(), 'podsched-run-'));
chmodSync(folder, 0o755); // brokers of tests give up root and must reach their files
const mark = basename(folder);
const countsFile = join(folder, 'counts');
const cache = process.env.PODSCHED_TEST_CACHE ?? join(tmpdir(), 'podsched-test-cache');
// tsx keeps what it compiled in the system's temporary folder: let what a test starts use that
const compiled = `tsx-${process.getuid?.() ?? ''}`;
mkdirSync(join(tmpdir(), compiled), { recursive: true });
symlinkSync(join(tmpdir(), compiled), join(folder, compiled));
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
const built = join(folder, 'built');

let interrupted: string | undefined;

/** One run of node's runner over some files; `niceness`: 0, or more where others go first. */
function runFiles(some: readonly string[], concurrency: number, fileTimeoutMs: number, niceness = 0): Promise<number> {
  return new Promise((resolve) => {
    const args = ['--enable-source-maps', '--test', `--test-concurrency=${concurrency}`, `--test-timeout=${fileTimeoutMs}`];
    const node = [process.execPath, ...args, '--test-reporter=./test/reporter.mjs', ...some.map((f) => builtPath(f, built))];
    const child = spawn('nice', ['-n', String(niceness), ...node], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        TMPDIR: folder,
        PODSCHED_TEST_CACHE: cache,
        PODSCHED_TEST_COUNTS: countsFile,
        PODSCHED_TEST_BUILT: built,
        [runMark]: mark,
      },
    });
    const stop = (why: string) => () => {
      interrupted ??= why;
      child.kill('SIGTERM');
    };
    const timer = setTimeout(stop(`the whole run took longer than ${totalMs / 60_000} minutes`), totalMs - (performance.now() - startedAt));
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop(signal));
    child.once('exit', (code) => {
      clearTimeout(timer);
      resolve(code ?? 1);
    });
  });
}

await builtTests(root, files, built);
const swept = await sweepBeds();
if (swept.length > 0) console.log(`cleared away what an earlier run left: ${swept.join(', ')}`);
const before = machineTraces();
const device = files.filter((f) => real(f) && !brokers(f));
const long = files.filter((f) => !real(f) && f.startsWith('test/scenario/random'));
const unit = files.filter((f) => !real(f) && !brokers(f) && !long.includes(f));
console.log(
  `${files.length} test files (${unit.length + long.length} need only Node, ${files.length - unit.length - long.length} use a real runtime or broker)`,
);
let failed = false;
let phases = 0;
/** Runs of node's runner one after the other; none is started when there is nothing to run, or nobody wants to know any more. */
async function lane(
  ...runs: readonly (readonly [some: readonly string[], concurrency: number, fileTimeoutMs: number, niceness?: number])[]
): Promise<void> {
  for (const run of runs) {
    if (run[0].length === 0 || interrupted !== undefined) continue;
    phases++;
    if ((await runFiles(...run)) !== 0) failed = true;
  }
}
// real runtimes and brokers are mostly waited for, so three files at a time; what only needs a processor goes on beside them, and worlds in
// virtual time take what is left of it
await Promise.all([
  lane([device, 3, 300_000]),
  lane([files.filter(brokers), 1, 300_000]),
  lane([unit, device.length > 0 ? 1 : 2, 300_000]),
  lane([long, 2, 900_000, 15]),
]);

// Nothing may be left. What is, is named and cleared away, and the run has failed.
let left = leftovers(mark, folder, before);
await until('the last processes to end', 20_000, () => {
  left = leftovers(mark, folder, before);
  return left.processes.length === 0;
}).catch(() => {});
const complaints = [
  ...left.processes.map((p) => `process ${p.pid}: ${p.what}`),
  ...left.mounts.map((m) => `mount ${m}`),
  ...left.beds.map((b) => `test bed ${b}`),
  ...left.others,
];
for (const { pid } of left.processes) killPid(pid, 'SIGKILL');
await sweepBeds();
const total: Record<string, number> = {};
const counted = existsSync(countsFile) ? readFileSync(countsFile, 'utf8').split('\n').filter(Boolean) : [];
for (const line of counted) {
  for (const [word, n] of Object.entries(JSON.parse(line) as Record<string, number>)) total[word] = (total[word] ?? 0) + n;
}
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

if (complaints.length > 0) console.log(`  ✗ the run left behind:\n      ${complaints.join('\n      ')}`);
else console.log(`ok   nothing is left behind (processes, mounts, network devices, cgroups, ${relative('/', folder)})`);
if (interrupted !== undefined) console.log(`  ✗ stopped: ${interrupted}`);
const brokenRunner = counted.length < phases;
if (brokenRunner) console.log("  ✗ node's runner ended without its numbers");
failed ||= complaints.length > 0 || interrupted !== undefined || brokenRunner;

// a skipped check is one that nobody made
if ((total.skipped ?? 0) + (total.todo ?? 0) > 0) {
  console.log('  ✗ tests were skipped');
  failed = true;
}

const own = complaints.length === 0 ? 'pass' : 'fail';
total.tests = (total.tests ?? 0) + 1;
total[own] = (total[own] ?? 0) + 1;
if (interrupted !== undefined || brokenRunner) total.fail = (total.fail ?? 0) + 1;
total.duration_ms = Math.round(performance.now() - startedAt);
for (const word of ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo', 'duration_ms'])
  console.log(`# ${word} ${total[word] ?? 0}`);
process.exit(failed ? 1 : 0);
