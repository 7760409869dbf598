/** A node whose registry is out of reach, and whose agent is started anew: what is on the card is enough. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { type ImageRegistry, startImageRegistry } from './imageRegistry.ts';
import { container, manifest, pod } from './manifest.ts';
import { until } from './process.ts';
import { conditionOf, podsOf, statusOf } from './story.ts';

let bed: Bed;
let registry: ImageRegistry;
let agent: Agent;
before(async () => {
  [bed, registry] = await Promise.all([startBed({ name: 'registry-gone' }), startImageRegistry()]);
  agent = await startAgent(bed, { nodeName: 'registry-gone' });
});
after(async () => {
  await agent?.remove();
  await Promise.allSettled([registry?.stop(), bed?.stop()]);
});

const text = (name: string, image: string, imagePullPolicy: string): string =>
  manifest(pod(name, { containers: [{ ...container('main', ['sleep', '1000']), image, imagePullPolicy }] }));
const told = async (name: string) => (await podsOf(agent).catch(() => [])).find((p) => p.metadata.name === name);
const main = async (name: string) => statusOf(await told(name), 'main');
const runs = (name: string) => until(`${name} to run`, 90_000, async () => (await main(name))?.state.running !== undefined);

test('F2: registry gone and agent started anew: what ran goes on, and new pods of local images start, an Always one too, told stale', async () => {
  const image = await registry.push(undefined, { name: 'field/app:1' });
  agent.drop('first.yaml', text('first', image, 'IfNotPresent'));
  await runs('first');
  const id = (await main('first'))?.containerID;
  await registry.setGone(true);
  await agent.kill9();
  agent.drop('second.yaml', text('second', image, 'IfNotPresent'));
  agent.drop('third.yaml', text('third', image, 'Always'));
  agent.start();
  for (const name of ['second', 'third', 'first']) await runs(name);
  assert.equal((await main('first'))?.containerID, id);
  // it was to be refreshed and runs what is here: that is said, by an agent that never saw the registry
  const isStale = async () => conditionOf(await told('third'), 'podsched.dev/ImageStale') === 'True';
  await until('third to be told stale', 60_000, isStale);
});
