/** What `apply`, `delete` and `rollout` publish, heard by what listens to it on a node. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { SyncStatus } from '../../src/api/payloads.ts';
import { applyRemote, type PublishOptions } from '../../src/cli/apply.ts';
import { deleteRemote } from '../../src/cli/delete.ts';
import { createRollout, openRollout } from '../../src/cli/rollout.ts';
import { type Progress, progressOf } from '../../src/cli/rolloutGate.ts';
import { computeSyncStatus, type LivePod } from '../../src/status/sync.ts';
import { type RemoteRig, online as startNode, web } from '../config/remoteBuilders.ts';
import { type Bed, fleetBed } from './fleetBed.ts';

const dir = mkdtempSync(join(tmpdir(), 'podsched-node-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const stdin = async () => new Uint8Array();
const scope = { group: 'attic' } as const;
const source = 'mqtt:group/attic';
let files = 0;
const file = (...objects: readonly object[]): string => {
  const path = join(dir, `${++files}.yaml`);
  writeFileSync(path, objects.map((o) => JSON.stringify(o)).join('\n---\n'));
  return path;
};
const pod = (name: string, image = 'app:1') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image }] },
});
const map = (value: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'app' }, data: { a: value } });

interface Both {
  readonly bed: Bed;
  readonly node: RemoteRig;
  /** Does it, and lets the node hear what was published, in order. */
  hear(work: Promise<unknown>): Promise<void>;
  apply(objects: readonly object[], o?: PublishOptions): Promise<void>;
  remove(names: readonly string[], o?: { readonly tombstone?: true }): Promise<void>;
}

async function both(): Promise<Both> {
  const bed = await fleetBed();
  const node = await startNode({}, { groups: ['attic'], labels: { site: 'attic' } });
  let heard = 0;
  const hear = async (work: Promise<unknown>): Promise<void> => {
    await bed.run(work);
    for (const { topic, payload } of bed.broker.publishes.slice(heard)) await node.publish(topic, payload);
    heard = bed.broker.publishes.length;
  };
  return {
    bed,
    node,
    hear,
    apply: (objects, o = {}) => hear(applyRemote({ filename: [file(...objects)], ...o }, scope, { remote: bed.remote, stdin }, bed.print)),
    remove: (names, o = {}) => hear(deleteRemote(names, { namespace: 'default', ...o }, scope, { remote: bed.remote, stdin }, bed.print)),
  };
}

test('applied, changed and deleted: the node has it, changes it and lets it go, and nothing is wrong on the way', async () => {
  const { node, apply, remove } = await both();
  await apply([map('x'), pod('web')]);
  assert.deepEqual(node.take(), ['ADD web']);
  assert.equal(node.told('ConfigMap/default/app'), 'Accepted Accepted');
  await apply([pod('web')]);
  assert.deepEqual(node.take(), []);
  await apply([map('y'), pod('web', 'app:2')], { generation: 5 });
  assert.deepEqual(node.take(), ['UPDATE web']);
  await apply([pod('web', 'app:3')]);
  assert.deepEqual(node.take(), ['UPDATE web']);
  await remove(['web']);
  assert.deepEqual(node.take(), ['REMOVE web']);
  assert.equal(node.told('ConfigMap/default/app'), 'Accepted Accepted', 'the others stay');
  assert.deepEqual(node.config.view().files, []);
});

test('what was deleted while the node was away is gone when it is back, by the index alone and by a tombstone', async () => {
  for (const tombstone of [undefined, true] as const) {
    const { bed, node, apply } = await both();
    await apply([pod('web'), pod('cam')]);
    node.take();
    node.remote.disconnected();
    await bed.run(
      deleteRemote(['web'], { namespace: 'default', ...(tombstone && { tombstone }) }, scope, { remote: bed.remote, stdin }, bed.print),
    );
    node.broker.topics.clear();
    for (const [topic, payload] of Object.entries(bed.retained())) node.broker.set(topic, payload);
    await node.connect();
    assert.deepEqual(node.take(), ['REMOVE web'], `tombstone: ${tombstone}`);
  }
});

test('deleted and applied again: a generation that the node remembers is not fallen below', async () => {
  const { node, apply, remove } = await both();
  await apply([pod('web')], { sign: (payload) => payload });
  await apply([pod('web', 'app:2')], { sign: (payload) => payload });
  await remove(['web']);
  node.take();
  await apply([pod('web', 'app:3')], { sign: (payload) => payload });
  assert.deepEqual(node.take(), ['ADD web']);
  assert.equal(node.row(web, source), 'Accepted Accepted');
});

const running = (revision: string): LivePod => ({
  state: 'sync',
  running: { revision, uid: 'u' },
  status: {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '' }],
    containerStatuses: [
      { name: 'c', state: { running: { startedAt: '' } }, lastState: {}, ready: true, restartCount: 0, image: '', imageID: '' },
    ],
  },
});

test('a rollout: the node waits until its wave is open, and what it tells is what the gate reads', async () => {
  const { bed, node, hear, apply } = await both();
  await apply([pod('web')]);
  node.take();
  const view = () => node.config.view().objects.find((o) => o.key === web) ?? assert.fail('no web');
  const before = view().winner?.revision ?? '';
  const progress = (generation: number, live: LivePod): Progress => {
    const body = { ...computeSyncStatus(view(), live), boot: 1, seq: 1 } as SyncStatus;
    return progressOf(body, { key: { kind: 'Pod', namespace: 'default', name: 'web' }, source, generation }).progress;
  };
  const options = { group: 'attic', filename: [file(pod('web', 'app:2'))], wave: ['site=cellar', 'site=attic'] };
  await hear(createRollout('r1', options, { remote: bed.remote, stdin }, bed.print));
  const generation = Number(
    JSON.parse(bed.retained()['podsched/v1/desired/groups/attic/default/web'] ?? '').metadata.annotations['podsched.dev/generation'],
  );
  assert.deepEqual(node.take(), []);
  assert.equal(node.row(web, source), 'Waiting Rollout');
  assert.equal(progress(generation, running(before)), 'waiting');

  await hear(openRollout('r1', undefined, bed.remote, bed.print));
  assert.equal(progress(generation, running(before)), 'waiting', 'the first wave is another site');
  await hear(openRollout('r1', undefined, bed.remote, bed.print));
  assert.deepEqual(node.take(), ['UPDATE web']);
  assert.equal(progress(generation, running(before)), 'updating');
  assert.equal(progress(generation, running(view().winner?.revision ?? '')), 'ready');
});
