/** Many probed pods for a long time: whether the agent's memory stays what it was. Not part of a usual run. */
import { sleep } from '../device/process.ts';
import { processBooks, slope, spread } from './measure.ts';
import type { BenchWorld } from './measures.ts';
import { ProbedPods } from './probes.ts';
import type { Row } from './report.ts';

export interface SoakSettings {
  readonly pods: number;
  readonly minutes: number;
  /** Called once a minute. */
  readonly say: (text: string) => void;
}

const everyMs = 5_000;
/** 2 MB in half an hour: less cannot be told from the heap's breathing. */
const flatMbPerHour = 4;

/** Samples the RSS; the first fifth of the time, at most 5 minutes, is warm-up and not judged. */
export async function soak(world: BenchWorld, { pods: count, minutes, say }: SoakSettings): Promise<Row[]> {
  const pods = new ProbedPods(world, count);
  try {
    await pods.start();
    const start = performance.now();
    const warmMs = Math.min(5, minutes / 5) * 60_000;
    const samples: { readonly ms: number; readonly mb: number }[] = [];
    let latestMs = 0;
    await pods.seen();
    for (let next = start; next <= start + minutes * 60_000; next += everyMs) {
      await sleep(Math.max(0, next - performance.now()));
      const ms = performance.now() - start;
      const mb = processBooks(world.agent.pid).rssBytes / 1e6;
      samples.push({ ms, mb });
      if (samples.length % (60_000 / everyMs) !== 1) continue;
      if (ms > everyMs) latestMs = Math.max(latestMs, pods.probesOf(await pods.seen()).latestMs);
      say(`after ${(ms / 60_000).toFixed(0)} min: RSS ${mb.toFixed(1)} MB, latest probe ${latestMs.toFixed(0)} ms late`);
    }
    const judged = samples.filter((s) => s.ms >= warmMs);
    const rss = spread(judged.map((s) => s.mb));
    const what = `${count} probed pods, ${minutes} min`;
    return [
      { what: `${what}: RSS`, unit: 'MB', value: rss.median, min: rss.min, max: rss.max, n: rss.n },
      {
        what: `${what}: RSS rises by`,
        unit: 'MB/h',
        value: slope(judged.map((s) => [s.ms / 3_600_000, s.mb])),
        budget: { of: 'value', limit: flatMbPerHour },
      },
      { what: `${what}: latest probe`, unit: 'ms', value: latestMs, budget: { of: 'value', limit: 1_000 } },
    ];
  } finally {
    await pods.close();
  }
}
