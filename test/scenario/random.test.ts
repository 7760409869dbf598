/** Whatever happens in whatever order, the world becomes what the manifests say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PodCache } from '../../src/container/cache.ts';
import { Completions } from '../../src/pod/completions.ts';
import { RandomStory } from './random.ts';
import { allConverge } from './randomSeeds.ts';

test('seeds 1 to 100 of edits, crashes, errors, hangs, lost events and restarts converge, and the invariants hold throughout', (t) =>
  allConverge(t, 1, 100, (seed) => new RandomStory(seed)));

/** The first of 40 seeds that notices; undefined: nobody does. */
async function firstToNotice(): Promise<number | undefined> {
  for (let seed = 1; seed <= 40; seed++) if ((await new RandomStory(seed).run()).length > 0) return seed;
  return undefined;
}

test('a planted bug is found: a worker that decides on old news', async (t) => {
  const real = PodCache.prototype.getNewerThan;
  t.after(() => {
    PodCache.prototype.getNewerThan = real;
  });
  PodCache.prototype.getNewerThan = function (uid, newerThan, signal) {
    const known = this.get(uid);
    return known === undefined ? real.call(this, uid, newerThan, signal) : Promise.resolve(known);
  };
  assert.notEqual(await firstToNotice(), undefined);
});

test('a planted bug is found: completions that are forgotten', async (t) => {
  const real = Completions.prototype.find;
  t.after(() => {
    Completions.prototype.find = real;
  });
  Completions.prototype.find = () => undefined;
  assert.notEqual(await firstToNotice(), undefined);
});
