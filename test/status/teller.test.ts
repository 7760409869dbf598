import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Teller } from '../../src/status/teller.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

function setUp() {
  const clock = new FakeClock();
  const told: { topic: string; payload: string | undefined; at: number }[] = [];
  let seq = 0;
  const teller = new Teller({
    clock,
    tell: (topic, payload) => told.push({ topic, payload, at: clock.monotonic() }),
    boot: () => 3,
    seq: () => ++seq,
  });
  const set = (n: unknown, o?: { urgent?: boolean }) =>
    teller.set('t', { body: { n }, stamp: (body, s) => ({ ...body, ...s }), expirySeconds: 60, volatile: ['retry'] }, o);
  return { clock, told, teller, set };
}

test('an unchanged value is told once; boot and seq are of the moment of telling', () => {
  const { told, set, teller } = setUp();
  set(1);
  set(1);
  assert.deepEqual(
    told.map((t) => t.payload),
    ['{"n":1,"boot":3,"seq":1}'],
  );
  assert.deepEqual(teller.get('t'), { n: 1, boot: 3, seq: 1 });
});

test('a normal start is never late, a flapping value is told once in 5 s, the last one always', async () => {
  const { clock, told, set } = setUp();
  for (let n = 0; n < 120; n++) {
    set(n);
    await clock.advance(500);
  }
  assert.ok(
    told.slice(0, 4).every((t, i) => t.at - 1_000_000 === i * 500),
    'four changes at once',
  );
  assert.ok(told.length <= 4 + 60 / 5, `${told.length} in a minute`);
  await clock.advance(5_000);
  assert.match(told.at(-1)?.payload ?? '', /"n":119,/);
  assert.equal(clock.sleeping, 0, 'nothing is owed: no timer');
});

test('after the burst no two of a flapping topic are nearer than five seconds', async () => {
  const { clock, told, set } = setUp();
  for (let n = 0; n < 400; n++) {
    set(n);
    await clock.advance(100);
  }
  const gaps = told.slice(6).map((t, i) => t.at - (told[i + 5]?.at ?? 0));
  assert.ok(gaps.length > 3 && gaps.every((gap) => gap >= 4_990), gaps.join());
});

test('a value that came back to what is told is not told again', async () => {
  const { clock, told, set } = setUp();
  for (let n = 1; n <= 5; n++) set(n);
  set(4);
  await clock.advance(60_000);
  assert.deepEqual(
    told.map((t) => JSON.parse(t.payload ?? '').n),
    [1, 2, 3, 4],
  );
});

test('a quiet topic may change four times at once again', async () => {
  const { clock, told, set } = setUp();
  for (let n = 0; n < 4; n++) set(n);
  await clock.advance(20_000);
  for (let n = 4; n < 8; n++) set(n);
  assert.equal(told.length, 8);
});

test('an end is told at once, and clearing leaves nothing behind', async () => {
  const { clock, told, set, teller } = setUp();
  for (let n = 0; n < 6; n++) set(n);
  set('ending', { urgent: true });
  assert.match(told.at(-1)?.payload ?? '', /ending/);
  set('later');
  teller.set('t', undefined);
  await clock.advance(60_000);
  assert.equal(told.at(-1)?.payload, undefined);
  assert.equal(told.length, 6);
  assert.deepEqual(teller.topics(), []);
});

test('a field that changes by itself is no reason to tell', () => {
  const { told, teller } = setUp();
  for (const retry of [5, 4, 3]) {
    teller.set('t', { body: { n: 1, retry }, stamp: (body, s) => ({ ...body, ...s }), expirySeconds: 60, volatile: ['retry'] });
  }
  assert.equal(told.length, 1);
});
