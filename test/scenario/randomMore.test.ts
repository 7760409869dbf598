/** The other half of the random worlds of random.test.ts: two files run beside each other. */
import { test } from 'node:test';
import { RandomStory } from './random.ts';
import { allConverge } from './randomSeeds.ts';

test('seeds 101 to 150 converge as well', (t) => allConverge(t, 101, 150, (seed) => new RandomStory(seed)));
