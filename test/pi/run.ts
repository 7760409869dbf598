/**
 * `npm run test:pi`: makes or finds the emulated Pi, boots it, installs the package in it with apt, lets the guest tell its stories, and reports
 * them. `--only WORD…`: suites with the word in their name. `--keep`: the disk's layers stay; `--on FILE`: begins on such a layer, with the
 * program that is built now in place of the one that is installed there.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { mustRun } from '../device/process.ts';
import { type Booted, begun, boot, emulatorFailed, spoilt, tail } from './emulator.ts';
import { cacheFolder, type Image, imageKey, packages, piImage } from './image.ts';
import { type BootPlan, planned } from './plan.ts';
import { busyboxArchive } from './podImages.ts';
import { junit, type Line, lines, type Result, results } from './report.ts';

const top = new URL('../../', import.meta.url).pathname;
const here = new URL('.', import.meta.url).pathname;
const startedAt = performance.now();
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const say = (line: string): void => console.log(`[${String(Math.round((performance.now() - startedAt) / 1000)).padStart(4)} s] ${line}`);

/** On a machine that others use too, everything may take so many times longer. */
const patience = Number(process.env.PODSCHED_PI_PATIENCE ?? 1);
/** A guest that has not begun by then never will. */
const beginMs = 240_000;
/** Then nothing goes on, with or without a new image: whoever waits for the whole of it learns why. */
const wholeMs = 55 * 60_000;

interface Arguments {
  readonly only: readonly string[];
  readonly keep: boolean;
  readonly on?: string;
}

function parse(argv: readonly string[]): Arguments {
  const only: string[] = [];
  let keep = false;
  let on: string | undefined;
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i];
    if (word === '--keep') keep = true;
    else if (word === '--on') on = argv[++i];
    else if (word === '--only') while (argv[i + 1]?.startsWith('--') === false) only.push(argv[++i] ?? '');
    else throw new Error(`${word}: --only WORD…, --keep and --on FILE are known`);
  }
  return { only, keep, ...(on !== undefined && { on }) };
}

/** What the guest finds on its shared folder. */
async function fillShare(share: string, image: Image): Promise<void> {
  const debs = join(share, 'deb');
  mkdirSync(debs, { recursive: true });
  const { version } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8')) as { version: string };
  for (const DEB_VERSION of [version.replace('-', '~'), `${version.replace('-', '~')}+next`])
    await mustRun(process.execPath, [join(top, 'bundle/deb.mjs'), debs], { env: { ...process.env, DEB_VERSION } });
  await build({
    entryPoints: [join(here, 'guest/main.ts')],
    outfile: join(share, 'guest.mjs'),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'warning',
  });
  await busyboxArchive(image, 'localhost/busybox:1', 1, join(share, 'busybox1.tar'));
  await busyboxArchive(image, 'docker.io/library/unused:1', 2, join(share, 'unused.tar'));
  const recordings = join(top, 'test/conformance/kubelet-1.32');
  for (const name of readdirSync(recordings).filter((n) => n.startsWith('cgroup-v2-')))
    copyFileSync(join(recordings, name), join(share, name));
  copyFileSync(join(here, 'guest/run.sh'), join(share, 'run.sh'));
  copyFileSync(join(top, 'bundle/podsched.cjs'), join(share, 'podsched.cjs'));
}

const diary = (share: string): string => join(share, 'diary');
const told = (share: string): Line[] => (existsSync(diary(share)) ? lines(readFileSync(diary(share), 'utf8')) : []);

/** The whole of it, which the guest writes at its end; else what it followed until then. */
const journals = ['journal.log', 'journal-live.log'] as const;

/** Says what is new in the diary. */
function narrator(share: string): () => boolean {
  let seen = 0;
  return () => {
    const all = told(share);
    for (const line of all.slice(seen)) {
      if (line.kind === 'begin') say(`  ${line.suite}`);
      else if (line.kind === 'figure') say(`    ·    ${line.name}: ${line.value}`);
      else if (line.kind === 'check') {
        say(`    ${line.error === undefined ? 'ok  ' : 'FAIL'} ${line.name} (${seconds(line.ms)})`);
        if (line.error !== undefined) console.log(line.error.replaceAll(/^/gm, '           '));
      }
    }
    seen = all.length;
    return all.at(-1)?.kind === 'cut';
  };
}

/** Why a guest did not come to its end, with the last it said. */
function excuse(b: Booted, share: string): string {
  const out = join(share, 'out.log');
  const words = {
    off: 'the machine went off before',
    cut: 'its power was cut before',
    timeout: 'the boot took too long',
    silent: 'it never began',
    crashed: `the emulator died of ${b.exit} before`,
  };
  return `${words[b.how]}\n--- console\n${tail(b.console)}\n--- out.log\n${tail(out)}`;
}

/** One boot of the plan; repeated once when the emulator failed, never when a check had failed. */
async function runBoot(
  plan: BootPlan,
  o: { image: Image; dir: string; share: string; under?: string; renew: boolean },
): Promise<{ booted: Booted; found: Result[] }> {
  for (const again of [false, true]) {
    for (const name of ['diary', 'out.log', ...journals]) rmSync(join(o.share, name), { force: true });
    writeFileSync(join(o.share, 'boot.json'), JSON.stringify({ suites: plan.suites, cut: plan.cut === true, renew: o.renew, patience }));
    say(`boot ${plan.name}${again ? ', once more' : ''} (${plan.memoryMb} MB${plan.kernel === undefined ? '' : `, ${plan.kernel}`})`);
    const booted = await boot({
      ...plan,
      ...o,
      beginMs: beginMs * patience,
      timeoutMs: Math.min(plan.minutes * 60_000, startedAt + wholeMs - performance.now()) * patience,
      look: narrator(o.share),
    });
    const heard = told(o.share);
    const errors = heard.flatMap((line) => (line.kind === 'check' ? [line.error] : []));
    if (!again && spoilt(booted.how, errors)) {
      say(`  the emulator failed, and no check had: ${excuse(booted, o.share)}`);
      continue;
    }
    const found = results(plan.name, plan.suites, heard, excuse(booted, o.share));
    for (const r of found.filter((f) => f.name === 'the suite ends')) say(`    FAIL ${r.suite}: ${r.error}`);
    say(`  off after ${seconds(booted.ms)}${begun(o.share) ? '' : ', and the guest never began'}`);
    return { booted, found };
  }
  throw new Error('not reached');
}

const given = parse(process.argv.slice(2));
const plan = planned(given.only, given.on !== undefined);
if (plan.length === 0) {
  console.error(`no suite has ${given.only.join(' or ')} in its name`);
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130)); // qemu ends with its parent

const warm = existsSync(join(cacheFolder(process.env), imageKey(packages, readFileSync(join(here, 'make-image.sh'), 'utf8'))));
const image = await piImage(say);
const dir = mkdtempSync(join(tmpdir(), 'podsched-pi-'));
const kept = join(tmpdir(), 'podsched-pi-report');
rmSync(kept, { recursive: true, force: true });
mkdirSync(kept, { recursive: true });
const all: Result[] = [];
const layers: string[] = [];
process.once('exit', () => {
  if (given.keep) for (const layer of layers) console.log(`kept: ${layer} (--on ${layer})`);
  else rmSync(dir, { recursive: true, force: true });
});
try {
  const share = join(dir, 'share');
  mkdirSync(share);
  await fillShare(share, image);
  let under = given.on;
  for (const b of plan) {
    const { booted, found } = await runBoot(b, {
      image,
      dir,
      share,
      ...(under !== undefined && { under }),
      renew: under !== undefined && under === given.on,
    });
    all.push(...found);
    layers.push(booted.layer);
    const journal = journals.find((name) => existsSync(join(share, name))) ?? journals[0];
    for (const name of [journal, 'out.log', 'diary'])
      if (existsSync(join(share, name))) copyFileSync(join(share, name), join(kept, `${b.name}-${name}`));
    if (existsSync(booted.console)) copyFileSync(booted.console, join(kept, `${b.name}-console.log`));
    under = booted.layer;
    if (emulatorFailed(booted.how)) break; // nothing that follows could be judged
  }
} finally {
  writeFileSync(join(kept, 'report.xml'), junit(all));
}
const missing = plan.flatMap((b) => b.suites).filter((suite) => !all.some((r) => r.suite === suite));
for (const suite of missing) console.log(`FAIL ${suite}: not a single check was made`);
const failed = all.filter((r) => r.error !== undefined);
for (const r of failed) console.log(`FAIL ${r.boot} / ${r.suite}: ${r.name}`);
console.log(`${all.length} checks, ${failed.length} failed, ${seconds(performance.now() - startedAt)}; report and journals: ${kept}`);
// rounded up: a minute that has begun is not within the limit; only told, since the machine may have others to serve
const minutes = Math.ceil((performance.now() - startedAt) / 60_000);
console.log(`from a ${warm ? 'warm' : 'cold'} cache: ${minutes} of at most ${warm ? 25 : 40} minutes`);
process.exit(failed.length > 0 || missing.length > 0 ? 1 : 0);
