import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Counted, generationProblem } from '../../src/config/generationRule.ts';
import { Generations, mostRemembered } from '../../src/config/generations.ts';
import { CountingStore } from './builders.ts';

const table: readonly (readonly [claim: string, known: Counted, said: Counted, reason: string | undefined])[] = [
  ['nothing is known', {}, { generation: 1, hash: 'a' }, undefined],
  ['nothing is counted', { hash: 'a' }, { hash: 'b' }, undefined],
  ['it rises', { generation: 1, hash: 'a' }, { generation: 2, hash: 'b' }, undefined],
  ['it rises by many', { generation: 1 }, { generation: 900, hash: 'b' }, undefined],
  ['it falls', { generation: 2, hash: 'a' }, { generation: 1, hash: 'b' }, 'GenerationFell'],
  ['it falls to zero', { generation: 1 }, { generation: 0, hash: 'b' }, 'GenerationFell'],
  ['it falls with the same payload', { generation: 2, hash: 'a' }, { generation: 1, hash: 'a' }, 'GenerationFell'],
  ['the same with another payload', { generation: 2, hash: 'a' }, { generation: 2, hash: 'b' }, 'GenerationConflict'],
  ['the same payload again', { generation: 2, hash: 'a' }, { generation: 2, hash: 'a' }, undefined],
  ['one without counts for nothing: the annotation is optional', { generation: 2, hash: 'a' }, { hash: 'b' }, undefined],
  ['the other payload is not known any more', { generation: 2 }, { generation: 2, hash: 'b' }, undefined],
];
for (const [claim, known, said, reason] of table) {
  test(`generation: ${claim}`, () => assert.equal(generationProblem(known, said)?.reason, reason));
}

test('a deletion is remembered over restarts, with the greatest generation of its topic', async () => {
  const store = new CountingStore();
  const one = new Generations(store);
  await one.load();
  one.add('t', { by: 'payload', generation: 7, hash: 'a' });
  one.add('t', { by: 'tombstone', generation: 3, hash: 'b' });
  await one.save();
  const two = new Generations(store);
  await two.load();
  assert.deepEqual(two.get('t'), { by: 'tombstone', generation: 7, hash: 'b' });
});

test('what nobody would ask for is not remembered, and what is not different not written', async () => {
  const store = new CountingStore();
  const g = new Generations(store);
  g.add('a', { by: 'payload', hash: 'x' });
  await g.save();
  assert.equal(g.size, 0);
  assert.deepEqual(store.writes, []);
  g.add('b', { by: 'index', hash: 'x' });
  await g.save();
  g.add('b', { by: 'index', hash: 'x' });
  await g.save();
  assert.deepEqual(store.writes, ['put mqtt/deleted']);
});

test('1,000 deletions are remembered, the newest; the file stays small', async () => {
  const store = new CountingStore();
  const g = new Generations(store);
  for (let i = 0; i < 1500; i++)
    g.add(`podsched/v1/desired/nodes/pi/default/pod-${i}`, { by: 'payload', generation: i + 1, hash: '0123456789abcdef' });
  await g.save();
  assert.equal(g.size, mostRemembered);
  assert.equal(g.get('podsched/v1/desired/nodes/pi/default/pod-499'), undefined);
  assert.equal(g.get('podsched/v1/desired/nodes/pi/default/pod-500')?.generation, 501);
  const again = new Generations(store);
  await again.load();
  assert.equal(again.size, mostRemembered);
  assert.ok((store.entries.get('mqtt/deleted') ?? '').length < 200_000);
});

test('an object that stands there again needs no memory, unless it has no generation of its own', async () => {
  const g = new Generations(new CountingStore());
  g.add('a', { by: 'tombstone', generation: 4, hash: 'x' });
  g.returned('a', 5);
  assert.equal(g.get('a'), undefined);
  g.add('b', { by: 'index', generation: 4, hash: 'x' });
  g.returned('b', undefined);
  assert.deepEqual(g.get('b'), { by: 'payload', generation: 4, hash: 'x' });
});

// what somebody may have written into the file
for (const stored of [null, 5, [], {}, { deleted: 5 }, { deleted: [null, 'a', ['t'], [1, 'index', 2], ['t', 'other', 2]] }]) {
  test(`a stored ${JSON.stringify(stored)} is read as nothing`, async () => {
    const store = new CountingStore();
    await store.put('mqtt/deleted', stored);
    const g = new Generations(store);
    await g.load();
    assert.equal(g.size, 0);
  });
}
