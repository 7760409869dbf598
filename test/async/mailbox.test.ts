import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Mailbox } from '../../src/async/mailbox.ts';
import { settle } from '../fakes/fakeClock.ts';

async function readAll(box: Mailbox<number>, into: number[], signal: AbortSignal, onItem: (n: number) => void = () => {}): Promise<void> {
  for await (const item of box.read(signal)) {
    into.push(item);
    onItem(item);
  }
}

test('items come out in the order in which they went in, also those pushed before anybody read', async () => {
  const box = new Mailbox<number>();
  const stop = new AbortController();
  const got: number[] = [];
  box.push(1);
  box.push(2);
  assert.equal(box.length, 2);
  const reading = readAll(box, got, stop.signal);
  await settle();
  box.push(3);
  await settle();
  assert.deepEqual(got, [1, 2, 3]);
  assert.equal(box.length, 0);
  stop.abort();
  await reading;
});

test('an item pushed while another is handled comes after it', async () => {
  const box = new Mailbox<number>();
  const stop = new AbortController();
  const got: number[] = [];
  const reading = readAll(box, got, stop.signal, (n) => {
    if (n === 1) box.push(3);
  });
  box.push(1);
  box.push(2);
  await settle();
  assert.deepEqual(got, [1, 2, 3]);
  stop.abort();
  await reading;
});

test('abort ends a reader that sleeps, and one that has more to read', async () => {
  const box = new Mailbox<number>();
  const asleep = new AbortController();
  const reading = readAll(box, [], asleep.signal);
  await settle();
  asleep.abort();
  await reading;

  const busy = new AbortController();
  const got: number[] = [];
  box.push(1);
  box.push(2);
  await readAll(box, got, busy.signal, () => busy.abort());
  assert.deepEqual(got, [1]);
});
