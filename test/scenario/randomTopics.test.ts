/** Whatever happens to links, brokers and agents, each pod is what its strongest source said last. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RemoteSource } from '../../src/config/remote.ts';
import { allConverge } from './randomSeeds.ts';
import { RandomTopics } from './randomTopics.ts';

test('20 seeds of wishes by files and topics, taken back and lost, over broken links, brokers that forget, kills and power cuts converge', (t) =>
  allConverge(t, 1, 20, (seed) => new RandomTopics(seed)));

/** The first of ten seeds that notices; undefined: nobody does. */
async function firstToNotice(): Promise<number | undefined> {
  for (let seed = 1; seed <= 10; seed++) if ((await new RandomTopics(seed).run()).length > 0) return seed;
  return undefined;
}

test('a planted bug is found: a tombstone that nobody reads', async (t) => {
  const real = RemoteSource.prototype.message;
  t.after(() => {
    RemoteSource.prototype.message = real;
  });
  RemoteSource.prototype.message = function (m) {
    if (!new TextDecoder().decode(m.payload).includes('"absent"')) real.call(this, m);
  };
  assert.notEqual(await firstToNotice(), undefined);
});

test('a planted bug is found: what is known of topics does not outlive the agent', async (t) => {
  const real = RemoteSource.prototype.load;
  t.after(() => {
    RemoteSource.prototype.load = real;
  });
  RemoteSource.prototype.load = function (_, checkpointRead) {
    return real.call(this, [], checkpointRead);
  };
  assert.notEqual(await firstToNotice(), undefined);
});
