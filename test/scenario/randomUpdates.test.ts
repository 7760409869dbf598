/** Whatever comes in the way of an update, it is carried out when the way is free, and nothing is stopped for what is not here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RandomUpdates } from './randomUpdates.ts';

const alone = process.env.SEED;
const seeds = alone === undefined ? Array.from({ length: 25 }, (_, i) => i + 1) : [Number(alone)];

test('25 seeds of edits, sick images, a flapping registry, holds, full cards, restarts and power cuts converge', async (t) => {
  const failed: string[] = [];
  for (const seed of seeds) {
    const story = new RandomUpdates(seed);
    const faults = await story.run();
    if (faults.length === 0) continue;
    failed.push(`seed ${seed}: ${faults.join('; ')}`);
    if (alone !== undefined) t.diagnostic([...story.log, ...faults].join('\n'));
  }
  assert.deepEqual(failed, []);
});
