import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PressureMonitor, type PressureReading } from '../pressureMonitor.ts';
import { type Pressure, type Pressures, pressures, systemPressures } from '../psi.ts';
import { temporaryFolder } from './tree.ts';

const some = (avg10: number, total = 0): Pressure => ({ some: { avg10, avg60: 0, avg300: 0, total } });
const text = (avg10: number): string => `some avg10=${avg10.toFixed(2)} avg60=0.00 avg300=0.00 total=5\n`;

/** Readings in order, the last for ever; sleeps are noted and end at once; after `rounds` of them the signal is aborted. */
async function watch(
  readings: readonly (Pressures | Error)[],
  rounds: number,
  options: Partial<ConstructorParameters<typeof PressureMonitor>[0]> = {},
) {
  const abort = new AbortController();
  const slept: number[] = [];
  const seen: PressureReading[] = [];
  let at = 0;
  let next = 0;
  const monitor = new PressureMonitor({
    read: async () => {
      const reading = readings[Math.min(next++, readings.length - 1)] ?? {};
      if (reading instanceof Error) throw reading;
      return reading;
    },
    onReading: (reading) => seen.push(reading),
    now: () => at,
    sleep: async (ms) => {
      slept.push(ms);
      at += ms;
      if (slept.length >= rounds) {
        abort.abort();
        throw abort.signal.reason;
      }
    },
    ...options,
  });
  await monitor.run(abort.signal);
  return { slept, seen, monitor };
}

test('quiet times are read every 10 s, pressure every second, and back', async () => {
  const calm = { memory: some(0) };
  const { slept, seen } = await watch([calm, { memory: some(3) }, { memory: some(1) }, { memory: some(0.9) }, calm], 5);
  assert.deepEqual(slept, [10_000, 1000, 1000, 10_000, 10_000]);
  assert.deepEqual(
    seen.map((r) => r.under),
    [[], ['memory'], ['memory'], [], []],
  );
});

test('each resource has its own threshold, and it can be set', async () => {
  const busy = { cpu: some(30), io: some(25) };
  assert.deepEqual((await watch([busy], 1)).seen[0]?.under, ['io']);
  const own = await watch([busy], 1, { thresholds: { cpu: 10, io: Number.POSITIVE_INFINITY }, quietMs: 7, pressedMs: 3 });
  assert.deepEqual([own.seen[0]?.under, own.slept], [['cpu'], [3]]);
});

test('the share since the last reading is exact where the averages lag', async () => {
  const { seen } = await watch([{ memory: some(0, 1_000_000) }, { memory: some(0, 3_500_000) }, { memory: some(0, 100) }], 3);
  assert.deepEqual(
    seen.map((r) => r.share.memory),
    [undefined, 25, undefined], // 2.5 s of 10 s; a total that fell is another group
  );
});

test('a kernel without PSI is read in quiet, and tells nothing', async () => {
  const { slept, seen, monitor } = await watch([{}], 2);
  assert.deepEqual([slept, seen[0]?.under, monitor.last?.pressures], [[10_000, 10_000], [], {}]);
});

test('a reading that fails is told and tried again; without a listener it ends the run', async () => {
  const errors: unknown[] = [];
  const broken = new Error('EIO');
  const { seen } = await watch([broken, { memory: some(0) }], 2, { onError: (error) => errors.push(error) });
  assert.deepEqual([errors, seen.length], [[broken], 1]);
  await assert.rejects(watch([broken], 2), /EIO/);
});

test('groups and the machine are read from their files, and absent ones are left out', async () => {
  const dir = temporaryFolder();
  assert.deepEqual(await pressures(dir), {});
  for (const [resource, value] of [
    ['cpu', 1],
    ['memory', 2],
  ] as const)
    writeFileSync(join(dir, `${resource}.pressure`), text(value));
  const found = await pressures(dir);
  assert.deepEqual([found.cpu?.some.avg10, found.memory?.some.avg10, found.io], [1, 2, undefined]);
  mkdirSync(join(dir, 'pressure'));
  writeFileSync(join(dir, 'pressure/io'), text(4));
  assert.equal((await systemPressures(dir)).io?.some.avg10, 4);
});
