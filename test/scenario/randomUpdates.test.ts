/** Whatever comes in the way of an update, it is carried out when the way is free, and nothing is stopped for what is not here. */
import { test } from 'node:test';
import { allConverge } from './randomSeeds.ts';
import { RandomUpdates } from './randomUpdates.ts';

test('25 seeds of edits, sick images, a flapping registry, holds, full cards, restarts and power cuts converge', (t) =>
  allConverge(t, 1, 25, (seed) => new RandomUpdates(seed)));
