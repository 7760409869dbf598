/** When two looks are taken, and when one is enough. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nanoCores } from '../../src/operations/statsRates.ts';
import { StatsWindow } from '../../src/operations/statsWindow.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

function counting(covers: (before: number, now: number) => boolean = () => true) {
  const clock = new FakeClock();
  let reads = 0;
  const window = new StatsWindow<number>({ clock, read: async () => ++reads, covers });
  /** The values of both looks and the time between them; what sleeps is woken. */
  const ask = async () => {
    const asked = window.look();
    await clock.advance(0);
    while (clock.sleeping > 0) await clock.advance(clock.nextInMs ?? 0);
    const { before, now } = await asked;
    return [before.value, now.value, now.at - before.at];
  };
  return { clock, window, ask, reads: () => reads };
}

test('nothing is read before somebody asks, and the first question takes two looks a second apart', async () => {
  const { clock, ask, reads } = counting();
  await clock.advance(60_000);
  assert.equal(reads(), 0);
  assert.deepEqual(await ask(), [1, 2, 1000]);
});

test('a question within half a minute is measured against the look before, at once', async () => {
  const { clock, ask } = counting();
  await ask();
  await clock.advance(15_000);
  assert.deepEqual(await ask(), [2, 3, 15_000]);
  await clock.advance(30_000);
  assert.deepEqual(await ask(), [3, 4, 30_000]);
});

test('an older look is of no use', async () => {
  const { clock, ask } = counting();
  await ask();
  await clock.advance(30_001);
  assert.deepEqual(await ask(), [3, 4, 1000]);
});

test('many questions in one second are one', async () => {
  const { clock, ask, reads } = counting();
  await ask();
  await clock.advance(999);
  assert.deepEqual(await ask(), [1, 2, 1000]);
  assert.equal(reads(), 2);
  await clock.advance(1);
  assert.deepEqual(await ask(), [2, 3, 1000]);
});

test('who asks while an answer is on its way shares it', async () => {
  const { clock, window, reads } = counting();
  const both = [window.look(), window.look()];
  await clock.advance(1000);
  const [a, b] = await Promise.all(both);
  assert.equal(a, b);
  assert.equal(reads(), 2);
});

test('where something has started since the last look, two new ones are taken', async () => {
  const { clock, ask } = counting((before) => before !== 2);
  await ask();
  await clock.advance(5000);
  assert.deepEqual(await ask(), [3, 4, 1000]);
});

test('a look that fails ends the question and not the next one', async () => {
  const clock = new FakeClock();
  let fails = true;
  const read = async () => {
    if (fails) throw new Error('away');
    return 1;
  };
  const window = new StatsWindow<number>({ clock, read, covers: () => true });
  await assert.rejects(window.look(), /away/);
  fails = false;
  const asked = window.look();
  await settle();
  await clock.advance(1000);
  assert.equal((await asked).now.value, 1);
});

test('a rate is in billionths of a core, by the readings’ own times', () => {
  const at = (atMs: number, usageNs: number) => ({ atMs, usageNs });
  // half a core over 1.25 s, of which the monotonic clock saw 1.3
  assert.equal(nanoCores(at(1000, 0), at(2250, 625_000_000), 1300), 500_000_000);
  assert.equal(nanoCores(at(1000, 5), at(2000, 5), 1000), 0);
});

test('where the clock was set between two readings, the monotonic one counts', () => {
  const at = (atMs: number, usageNs: number) => ({ atMs, usageNs });
  for (const jump of [3_600_000, -3_600_000, 0]) {
    assert.equal(nanoCores(at(1000, 0), at(1000 + jump, 1_000_000_000), 1000), 1_000_000_000, String(jump));
  }
});

test('no rate is made up', () => {
  const at = (atMs: number, usageNs: number) => ({ atMs, usageNs });
  assert.equal(nanoCores(undefined, at(1, 1), 1000), undefined);
  assert.equal(nanoCores(at(1, 1), undefined, 1000), undefined);
  assert.equal(nanoCores(at(0, 100), at(1000, 99), 1000), undefined); // it began anew
  assert.equal(nanoCores(at(0, 1), at(0, 2), 0), undefined);
  assert.equal(nanoCores(at(0, 0), at(1000, Number.POSITIVE_INFINITY), 1000), undefined);
});
