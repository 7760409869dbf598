/** Rotation (field case G6) on a real containerd: a container that floods its log, and the runtime that must go on in a new file. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ContainerStatus } from '../../src/container/words.ts';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { lastWords } from '../../src/kuberuntime/lastWords.ts';
import { LogRotation } from '../../src/kuberuntime/logRotation.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { startBed } from './bed.ts';
import { until } from './process.ts';

const image = 'localhost/busybox:1';
const MiB = 2 ** 20;
/** The last bytes of a file; '' where it was just rotated away. */
const endOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').slice(-1000);
  } catch {
    return '';
  }
};
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('a flood on containerd stays under its cap, no line is torn, and what is said afterwards is in the new log', async () => {
  const bed = await startBed({ name: 'rotate' });
  const runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const stop = new AbortController();
  const warnings: string[] = [];
  try {
    const pod = sandboxConfig('flood', { logDirectory: `${bed.dir}/logs/flood` });
    const dir = join(pod.logDirectory, 'main');
    mkdirSync(dir, { recursive: true });
    const sandbox = await runtime.runSandbox(pod, '');
    // two hundred bytes a line, as fast as it can, until it is asked to end
    const script = `trap 'kill $!; wait; echo the end; exit 3' TERM; yes ${'y'.repeat(200)} & wait; wait`;
    const annotations = { 'io.kubernetes.container.terminationMessagePolicy': 'FallbackToLogsOnError' };
    const config = containerConfig(pod, 'main', { image, command: ['/bin/sh', '-c', script], annotations });
    const id = await runtime.createContainer(sandbox, config, pod);
    const rotated: number[] = [];
    let told: readonly ContainerStatus[] = [];
    const rotation: LogRotation = new LogRotation({
      clock: systemClock,
      log: { ...silentLog, warn: (nouns, text) => void warnings.push(`${text} ${JSON.stringify(nouns)}`) },
      runtime: {
        reopenLog: async (c) => {
          await runtime.reopenLog(c);
          rotated.push(performance.now());
        },
      },
      maxSizeBytes: () => MiB,
      maxFiles: () => 3,
      containers: () => told.map((c) => ({ id: c.id, uid: pod.uid, name: c.name, logPath: c.logPath, running: c.state === 'running' })),
    });
    const ended = rotation.run(stop.signal);
    await runtime.startContainer(id);
    const begun = performance.now();
    told = [await runtime.containerStatus(id)];
    rotation.look();

    const sizes = (): number[] => readdirSync(dir).map((n) => statSync(join(dir, n), { throwIfNoEntry: false })?.size ?? 0);
    let most = 0;
    let written = 0;
    let before = 0;
    // for so long, and on a busy machine until there was enough of it
    const enough = (): boolean => performance.now() > begun + 4_000 && written > 10 * MiB && rotated.length >= 3;
    for (const end = begun + 60_000; !enough() && performance.now() < end; await wait(10)) {
      const now = sizes().reduce((a, b) => a + b, 0);
      most = Math.max(most, now);
      written += Math.max(0, now - before);
      before = now;
    }
    const perSecond = (written / (performance.now() - begun)) * 1000;
    assert.ok(written > 10 * MiB, `it was no flood: ${written} bytes`);
    // on a busy machine a look comes late: what counts is what was written between two of them
    const moments = [begun, ...rotated, performance.now()];
    const longestMs = Math.max(...moments.slice(1).map((at, n) => at - (moments[n] ?? at)));
    assert.ok(rotated.length >= 3, `${rotated.length} rotations: it is rotated all the time`);
    assert.ok(
      most <= 3 * MiB + (2 * perSecond * longestMs) / 1000,
      `${most} bytes on disk at ${perSecond} bytes a second, ${longestMs} ms between two rotations`,
    );

    await runtime.stopContainer(id, 45);
    const over = await runtime.containerStatus(id);
    told = [over];
    rotation.look();
    assert.equal(over.exitCode, 3);
    // what stood in the pipe at its end comes into the log after it; it may have been rotated at its very last line
    const ends = (): string => {
      const parts = readdirSync(dir).filter((n) => n !== '0.log');
      return [...parts.sort(), '0.log'].map((n) => endOf(join(dir, n))).join('');
    };
    await until('its last line', 45_000, () => / y*the end\n$/.test(ends()), 200);
    const lateAt = performance.now() + 5_000;
    const isUnder = (): boolean => {
      if (sizes().reduce((a, b) => a + b, 0) <= 3 * MiB) return true;
      // some of it came after that look: to be looked at as if it were new
      if (performance.now() > lateAt)
        for (const now of [[], [over]]) {
          told = now;
          rotation.look();
        }
      return false;
    };
    await until('the logs are under the cap', 45_000, isUnder, 1000);
    await wait(200);
    const names = readdirSync(dir).sort();
    assert.ok(names.length <= 3 && names.includes('0.log'), names.join());
    for (const name of names) {
      const lines = readFileSync(join(dir, name), 'utf8').split('\n');
      assert.equal(lines.pop(), '', name);
      const bad = lines.find((l) => !/^\d{4}-\S+ stdout [FP] y*(the end)?$/.test(l));
      assert.equal(bad, undefined, name);
    }
    assert.equal(over.logPath, join(dir, '0.log'));
    assert.match(ends(), / y*the end\n$/);
    const words = await lastWords(over);
    assert.match(words, /^y+\n(y+\n)+y*the end\n$/);
    assert.ok(Buffer.byteLength(words) <= 2048);
    assert.deepEqual(warnings, []);
    stop.abort();
    await ended;
    await runtime.removeSandbox(sandbox);
  } finally {
    stop.abort();
    runtime.close();
    await bed.stop();
  }
});
