import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { after, systemClock, toRfc3339, type WallTime } from '../../src/world/clock.ts';

test('times in a status are whole seconds, cut and not rounded', () => {
  const table = [
    ['2026-01-01T00:00:00.999Z', '2026-01-01T00:00:00Z'],
    ['1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00Z'],
    ['2038-01-19T03:14:08.500Z', '2038-01-19T03:14:08Z'],
  ] as const;
  for (const [at, text] of table) assert.equal(toRfc3339(Date.parse(at) as WallTime), text);
});

test('the monotonic clock rises, in milliseconds with a fraction, and is the machine’s, not the process’s', async () => {
  const { readFile } = await import('node:fs/promises');
  const first = systemClock.monotonic();
  await systemClock.sleep(20);
  const later = systemClock.monotonic();
  assert.ok(later - first >= 19 && later - first < 60_000);
  const uptimeMs = Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0]) * 1000;
  // uptime may count a suspended time that CLOCK_MONOTONIC does not
  assert.ok(later <= uptimeMs + 1000);
  assert.equal(after(later, 5) - later, 5);
});

test('a sleep ends early with the reason of its signal, and leaves no listener behind', async () => {
  const stop = new AbortController();
  const reason = new Error('no longer');
  const sleeping = assert.rejects(systemClock.sleep(60_000, stop.signal), reason);
  stop.abort(reason);
  await sleeping;
  await assert.rejects(systemClock.sleep(1, stop.signal), reason);
  const calm = new AbortController();
  await systemClock.sleep(1, calm.signal);
  assert.equal(getEventListeners(calm.signal, 'abort').length, 0);
});

test('a sleep of years does not end at once, and a negative one does', async () => {
  const stop = new AbortController();
  let woke = false;
  const long = systemClock.sleep(2 ** 40, stop.signal).then(
    () => {
      woke = true;
    },
    () => {},
  );
  await systemClock.sleep(-5);
  await systemClock.sleep(10);
  assert.equal(woke, false);
  stop.abort();
  await long;
});
