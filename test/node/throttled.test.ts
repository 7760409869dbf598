import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeThrottled, powerText, resetReasons, wordsOf } from '../../src/node/throttled.ts';

for (const [text, now, before] of [
  ['0', [], []],
  ['50000', [], ['under-voltage', 'throttled']],
  ['0x50005\n', ['under-voltage', 'throttled'], ['under-voltage', 'throttled']],
  ['e0008', ['soft temperature limit'], ['frequency capped', 'throttled', 'soft temperature limit']],
  ['throttled=0x20002', ['frequency capped'], ['frequency capped']],
  [
    'F000F',
    ['under-voltage', 'frequency capped', 'throttled', 'soft temperature limit'],
    ['under-voltage', 'frequency capped', 'throttled', 'soft temperature limit'],
  ],
] as const)
  test(`the firmware's ${JSON.stringify(text)} is put into words`, () => {
    const bits = decodeThrottled(text);
    assert.deepEqual(wordsOf(bits?.now ?? -1), now);
    assert.deepEqual(wordsOf(bits?.before ?? -1), before);
  });

test('what is no number of the firmware tells nothing', () => {
  for (const text of ['', 'ok', '0x', '123456789', '-1', '5 0', 'VCHI initialization failed'])
    assert.equal(decodeThrottled(text), undefined, text);
});

test('what is now is not told again as something of before', () => {
  assert.equal(powerText(0, 0), 'ok');
  assert.equal(powerText(1, 5), 'under-voltage now, throttled since boot');
  assert.equal(powerText(0, 1), 'under-voltage since boot');
});

test('a Pi 5 says why its power chip reset it', () => {
  assert.deepEqual(resetReasons(Uint8Array.of(0, 0, 0, 2)), ['under-voltage']);
  assert.deepEqual(resetReasons(Uint8Array.of(0, 0, 0, 0x11)), ['over-voltage', 'watchdog']);
  assert.deepEqual(resetReasons(Uint8Array.of(0, 0, 0, 0)), []);
  assert.deepEqual(resetReasons(Uint8Array.of(1, 2)), []);
});
