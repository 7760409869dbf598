import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DueQueue } from '../../src/async/dueQueue.ts';

test('the queue of moments is what a sorted list would be', () => {
  const step = fc.record({ key: fc.integer({ min: 0, max: 8 }), at: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new DueQueue<string>();
      const plain = new Map<string, number>();
      for (const { key, at } of steps) {
        if (at === undefined) {
          queue.delete(`${key}`);
          plain.delete(`${key}`);
        } else {
          queue.set(`${key}`, at);
          plain.set(`${key}`, at);
        }
        const first = queue.first();
        assert.equal(first?.at, plain.size === 0 ? undefined : Math.min(...plain.values()));
        if (first !== undefined) assert.equal(plain.get(first.key), first.at);
      }
    }),
  );
});
