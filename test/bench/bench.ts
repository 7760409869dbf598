/**
 * What is promised, measured in one run on this machine: a private containerd, a private mosquitto, the real bundle. Times are judged
 * only as ratios to the same CRI calls made by hand in the same run, and probing to bare node:http. Prints a table, writes bench.json.
 * `--quick`: fewer repeats. `--only WHAT` (start, one, many, quiet, node, images, probes; more than once): not the rest, and no file. `--bundle FILE`:
 * another build. `--soak MINUTES`: only probed pods, and whether the agent's memory stays flat.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { silentLog } from '../../src/world/log.ts';
import { startAgent } from '../device/agent.ts';
import { startBed } from '../device/bed.ts';
import { startMosquitto } from '../device/mosquitto.ts';
import { watchTopics } from '../device/watcher.ts';
import { Bench } from './measures.ts';
import { measureNodeStatus } from './nodeStatus.ts';
import { keepsBudget, table, writeJson } from './report.ts';
import { soak } from './soak.ts';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    soak: { type: 'string' },
    bundle: { type: 'string' },
    json: { type: 'string' },
  },
});
const parts = ['start', 'one', 'many', 'quiet', 'node', 'images', 'probes'] as const;
const isWanted = (part: (typeof parts)[number]): boolean =>
  options.soak === undefined && (options.only.length === 0 || options.only.includes(part));
const unknown = options.only.filter((what) => !parts.some((part) => part === what));
if (unknown.length > 0) throw new Error(`--only ${unknown.join(', ')}: it is one of ${parts.join(', ')}`);
const soakMinutes = options.soak === undefined ? 0 : Number(options.soak);
if (options.soak !== undefined && !(soakMinutes > 0)) throw new Error(`--soak ${options.soak}: a number of minutes`);
// part of a run is not the record of one
const json = options.json ?? (options.only.length === 0 && options.soak === undefined ? 'bench.json' : undefined);
const images = { imageBytes: 8_000_000, archiveMegabytes: 200, changes: 5 };
const settings = options.quick
  ? {
      ...{ repeats: 3, rounds: 1, settleMs: 15_000, idleMs: 20_000, images: { ...images, updates: 3 } },
      probes: { pods: 25, warmMs: 8_000, windowMs: 10_000, windows: 2 },
    }
  : {
      ...{ repeats: 10, rounds: 3, settleMs: 70_000, idleMs: 60_000, images: { ...images, updates: 5 } },
      probes: { pods: 100, warmMs: 20_000, windowMs: 20_000, windows: 5 },
    };

const say = (text: string): void => console.log(`bench: ${text}`);

const undo: (() => Promise<unknown>)[] = [];
async function takeDown(): Promise<void> {
  for (const step of undo.splice(0).reverse()) await step().catch((e: unknown) => console.error(`bench: ${String(e)}`));
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void takeDown().then(() => process.exit(130)));

const [load = 0] = loadavg();
if (load > cpus().length) say(`the machine is busy (load ${load.toFixed(1)} on ${cpus().length} CPUs): take the figures with salt`);

try {
  say('starting containerd, mosquitto and the agent');
  const bed = await startBed({ name: 'bench' });
  undo.push(() => bed.stop());
  mkdirSync(join(bed.dir, 'raw'));
  const runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  undo.push(async () => runtime.close());
  const broker = await startMosquitto();
  undo.push(() => broker.stop());
  const watcher = await watchTopics(broker.url);
  undo.push(() => watcher.end());
  // on a node runDir is a tmpfs (/run), and what is written there wears no card
  const runDir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : bed.dir, 'podsched-bench-run-'));
  undo.push(async () => rmSync(runDir, { recursive: true, force: true }));
  const agent = await startAgent(bed, {
    servers: [broker.url],
    nodeName: 'bench',
    config: { runDir },
    ...(options.bundle === undefined ? {} : { env: { PODSCHED_BUNDLE: options.bundle } }),
  });
  undo.push(() => agent.remove());
  await watcher
    .until(agent.topic('online'), (v) => (v as { state?: string } | undefined)?.state === 'online', 20_000)
    .catch((e: unknown) => {
      throw new Error(`${String(e)}\n${agent.log().slice(-3000)}`);
    });
  const bench = new Bench({ bed, runtime, watcher, agent }, settings);
  if (isWanted('start')) {
    say('start → online');
    await bench.startToOnline();
  }
  if (isWanted('one')) {
    say(`one pod in, edited, out, ${settings.repeats} times, and the same by raw CRI calls in turns`);
    await bench.onePod();
  }
  if (isWanted('many')) {
    say(`25 pods at once, ${settings.rounds} times`);
    await bench.manyPods();
  }
  if (isWanted('quiet')) {
    say(`20 quiet pods: settling for ${settings.settleMs / 1000} s, then watching for ${settings.idleMs / 1000} s`);
    await bench.quiet();
  }
  if (isWanted('node')) {
    say('500 looks at the node');
    bench.rows.push(...(await measureNodeStatus(500, bed.dir)));
  }
  if (isWanted('images')) {
    const { updates, changes, archiveMegabytes } = settings.images;
    say(`${updates} images over a link of 2 MB/s, an archive of ${archiveMegabytes} MB, ${changes} changes of a ConfigMap`);
    await bench.images();
  }
  const { pods, windows, windowMs } = settings.probes;
  if (isWanted('probes')) {
    say(`${pods} pods with two http probes each second, ${windows} times ${windowMs / 1000} s, beside bare node:http`);
    await bench.probes();
  }
  if (soakMinutes > 0) {
    say(`${pods} pods with two http probes each second for ${soakMinutes} minutes`);
    bench.rows.push(...(await soak({ bed, runtime, watcher, agent }, { pods, minutes: soakMinutes, say })));
  }
  console.log(`\n${table(bench.rows)}\n`);
  const about = {
    at: new Date().toISOString(),
    quick: options.quick,
    node: process.version,
    machine: {
      cpus: cpus().length,
      loadBefore: load,
      model: cpus()[0]?.model,
      memoryBytes: totalmem(),
      kernel: readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim(),
    },
    runtime: await bed.cri.version(),
  };
  if (json !== undefined) writeJson(json, bench.rows, about);
  const missed = bench.rows.filter((r) => keepsBudget(r) === false);
  say(
    missed.length === 0
      ? `every budget is kept${json === undefined ? '' : `; figures in ${json}`}`
      : `over budget: ${missed.map((r) => r.what).join('; ')}`,
  );
  process.exitCode = missed.length === 0 ? 0 : 1;
} catch (e) {
  console.error(`bench: ${e instanceof Error ? e.message : String(e)}`);
  process.exitCode = 1;
} finally {
  await takeDown();
}
