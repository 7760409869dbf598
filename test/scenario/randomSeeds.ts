/** Random worlds in order of their seeds; SEED in the environment asks for one alone, and shows what happened in it. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

interface Story {
  readonly log: readonly string[];
  /** What went wrong, in sentences. */
  run(): Promise<readonly string[]>;
}

/** Every world from one seed to another ends well. */
export async function allConverge(t: TestContext, first: number, last: number, world: (seed: number) => Story): Promise<void> {
  const alone = process.env.SEED;
  const seeds = alone === undefined ? Array.from({ length: last - first + 1 }, (_, i) => first + i) : [Number(alone)];
  const failed: string[] = [];
  for (const seed of seeds) {
    const story = world(seed);
    const faults = await story.run();
    if (faults.length === 0) continue;
    failed.push(`seed ${seed}: ${faults.join('; ')}`);
    if (alone !== undefined) t.diagnostic([...story.log, ...faults].join('\n'));
  }
  assert.deepEqual(failed, []);
}
