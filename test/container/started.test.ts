import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseStarted, startedAt, startedText } from '../../src/container/started.ts';
import { annotations } from '../../src/container/words.ts';
import type { Monotonic } from '../../src/world/clock.ts';

const boot = '5f2c1e0a-1111-2222-3333-444444444444';
const sandbox = (started?: string) => ({ annotations: started === undefined ? {} : { [annotations.started]: started } });

test('the annotation says the boot and whole monotonic milliseconds, and reads back', () => {
  assert.equal(startedText(boot, 1234.75 as Monotonic), `${boot}/1234`);
  assert.equal(parseStarted(`${boot}/1234`, boot), 1234);
});

for (const text of [
  undefined,
  '',
  boot,
  `${boot}/`,
  `${boot}/x`,
  `${boot}/-5`,
  `${boot}/1e9`,
  `${boot}/12/3`,
  `other/1234`,
  `${boot}x/12`,
]) {
  test(`no start of this boot: ${text}`, () => {
    assert.equal(parseStarted(text, boot), undefined);
  });
}

test('the start of an instance is its earliest in this boot; a new boot counts anew', () => {
  assert.equal(startedAt([sandbox(`${boot}/20`), sandbox(`${boot}/10`)], boot), 10);
  assert.equal(startedAt([sandbox(`${boot}/9`), sandbox('earlier/5')], boot), 9);
  assert.equal(startedAt([sandbox('earlier/5'), sandbox(), sandbox(`${boot}x/5`)], boot), undefined);
  assert.equal(startedAt([], boot), undefined);
});
