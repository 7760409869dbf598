/** A rollout from creation to its end, with nodes that tell what they made of it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Rollout } from '../../src/api/messages.ts';
import { waveOf } from '../../src/api/rollout.ts';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import {
  abortRollout,
  type CreateOptions,
  createRollout,
  openRollout,
  parseWave,
  runRollout,
  showRollouts,
} from '../../src/cli/rollout.ts';
import { sync } from '../operations/view.ts';
import { type Bed, fleetBed, online, root } from './fleetBed.ts';

const dir = mkdtempSync(join(tmpdir(), 'podsched-rollout-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const manifest = join(dir, 'web.yaml');
writeFileSync(manifest, 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: "app:2"}]}\n');

const topic = `${root}/rollouts/r1`;
const source = 'mqtt:group/attic';
const stdin = async () => new Uint8Array();
const create = (bed: Bed, o: Partial<CreateOptions> = {}) =>
  bed.run(
    createRollout(
      'r1',
      { group: 'attic', filename: [manifest], wave: ['site=attic', '100%'], bake: '10m', ...o },
      { remote: bed.remote, stdin },
      bed.print,
    ),
  );
const retained = (bed: Bed): Rollout => JSON.parse(bed.retained()[topic] ?? 'null') as Rollout;
const ends = (code: number, text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof CommandError, String(e));
  assert.match(e.message, text);
  assert.equal(e.code, code);
  return true;
};

/** Nodes as they tell: waiting until their wave is open, then of the new generation, as `become` says. */
class Nodes {
  readonly took = new Map<string, number>();

  constructor(
    private readonly bed: Bed,
    private readonly names: Readonly<Record<string, Readonly<Record<string, string>>>>,
    private readonly become: (name: string) => { readonly phase: 'Running' | 'Waiting' | 'RolledBack'; readonly reason: string } = () => ({
      phase: 'Running',
      reason: 'Ready',
    }),
  ) {}

  start(): void {
    const { broker } = this.bed;
    for (const [name, labels] of Object.entries(this.names)) {
      broker.say(`${root}/nodes/${name}/online`, online(name, 'online', { heartbeatSeconds: 86_400 }), { retain: true });
      broker.say(`${root}/nodes/${name}/info`, JSON.stringify({ kind: 'Node', metadata: { name, labels }, status: { conditions: [] } }), {
        retain: true,
      });
    }
    const before = broker.onPublish;
    broker.onPublish = (p) => {
      if (p.topic === topic && p.payload !== '') queueMicrotask(() => this.look(JSON.parse(p.payload) as Rollout));
      return before(p);
    };
    this.look(undefined);
  }

  look(rollout: Rollout | undefined): void {
    for (const [name, labels] of Object.entries(this.names)) {
      const wave = rollout && waveOf(rollout, { name, labels });
      const open = rollout !== undefined && wave !== undefined && wave <= rollout.gate;
      if (open && !this.took.has(name)) this.took.set(name, this.bed.clock.monotonic());
      this.tell(name, open ? this.become(name) : undefined);
    }
  }

  tell(name: string, is: { readonly phase: 'Running' | 'Waiting' | 'RolledBack'; readonly reason: string } | undefined): void {
    const status = sync('web', {
      phase: is?.phase ?? 'Running',
      reason: is?.reason ?? 'Ready',
      desired: { source, revision: is === undefined ? 'old' : 'new', ...(is && { generation: 1 }) },
      running: { revision: is === undefined ? 'old' : 'new', uid: 'u' },
      sources: [
        {
          source,
          revision: 'new',
          ...(is && { generation: 1 }),
          phase: is === undefined ? 'Waiting' : 'Accepted',
          reason: is === undefined ? 'Rollout' : 'Accepted',
          message: '',
          problems: [],
        },
      ],
    });
    this.bed.broker.say(`${root}/nodes/${name}/sync/default/web`, JSON.stringify(status), { retain: true });
  }
}

const fleet = { 'pi-1': { site: 'attic' }, 'pi-2': { site: 'attic' }, 'pi-3': { site: 'cellar' } };

test('created: the rollout with its gate shut before the object, which names it and carries a generation', async () => {
  const bed = await fleetBed();
  await create(bed, { abortAfter: '3' });
  assert.deepEqual(retained(bed), {
    apiVersion: 'podsched.dev/v1',
    kind: 'Rollout',
    id: 'r1',
    waves: [{ selector: { site: 'attic' }, percent: 100 }, { percent: 100 }],
    gate: 0,
    bakeSeconds: 600,
    abortAfterFailures: 3,
    state: 'running',
  });
  const object = JSON.parse(bed.retained()[`${root}/desired/groups/attic/default/web`] ?? '') as { metadata: unknown };
  assert.deepEqual(object.metadata, { name: 'web', annotations: { 'podsched.dev/generation': '1', 'podsched.dev/rollout': 'r1' } });
  const order = bed.broker.publishes.filter((p) => p.retain).map((p) => p.topic);
  assert.deepEqual(order, [topic, `${root}/desired/groups/attic/default/web`, `${root}/desired/groups/attic/_index`]);
  await create(bed, { abortAfter: '3' });
  await assert.rejects(create(bed), ends(exitCodes.failed, /there is a rollout r1 already/));
});

test('wave after wave: each is ready for the bake time before the next one is open', async () => {
  const bed = await fleetBed();
  await create(bed);
  const nodes = new Nodes(bed, fleet);
  nodes.start();
  assert.equal(await bed.run(runRollout('r1', bed.remote, bed.print)), exitCodes.done);
  assert.equal(retained(bed).state, 'done');
  assert.equal(retained(bed).gate, 2);
  const [first, second, third] = ['pi-1', 'pi-2', 'pi-3'].map((name) => nodes.took.get(name) ?? Number.NaN);
  assert.equal(first, second);
  assert.ok(Number(third) - Number(first) >= 600_000, `${Number(third) - Number(first)} ms between the waves`);
  assert.match(bed.said(), /gate 1 of 2[\s\S]*gate 2 of 2[\s\S]*is done/);
});

test('a node that fails ends it: the gate stays, and the next waves keep what they have', async () => {
  const bed = await fleetBed();
  await create(bed);
  const nodes = new Nodes(bed, fleet, (name) =>
    name === 'pi-2' ? { phase: 'RolledBack', reason: 'RolledBack' } : { phase: 'Running', reason: 'Ready' },
  );
  nodes.start();
  await assert.rejects(
    bed.run(runRollout('r1', bed.remote, bed.print)),
    ends(exitCodes.failed, /aborted at gate 1: failed on pi-2 \(RolledBack\)/),
  );
  assert.equal(retained(bed).state, 'aborted');
  assert.equal(retained(bed).gate, 1);
  assert.equal(nodes.took.has('pi-3'), false);
});

test('whoever moves the gate may end and be started again anywhere: it goes on from the retained message', async () => {
  const bed = await fleetBed();
  await create(bed);
  const nodes = new Nodes(bed, fleet);
  nodes.start();
  const first = await bed.another();
  const lost = runRollout('r1', first, bed.print);
  lost.catch(() => {});
  for (let i = 0; i < 60; i++) await bed.clock.advance(1000);
  assert.equal(retained(bed).gate, 1);
  await first.close();
  bed.broker.cut('none');
  for (let i = 0; i < 30; i++) await bed.clock.advance(60_000);
  assert.equal(retained(bed).gate, 1, 'nobody moves it, and nothing changes');
  await bed.run(runRollout('r1', bed.remote, bed.print));
  assert.equal(retained(bed).state, 'done');
});

test('somebody aborts it elsewhere: the one who moves the gate ends', async () => {
  const bed = await fleetBed();
  await create(bed);
  new Nodes(bed, fleet).start();
  const other = await bed.another();
  const work = runRollout('r1', bed.remote, bed.print);
  work.catch(() => {});
  for (let i = 0; i < 30; i++) await bed.clock.advance(1000);
  await bed.run(abortRollout('r1', other, bed.print));
  await assert.rejects(bed.run(work), ends(exitCodes.failed, /was aborted at gate 1/));
  assert.equal(retained(bed).state, 'aborted');
});

test('a restart within the bake time begins it anew', async () => {
  const bed = await fleetBed();
  await create(bed);
  const nodes = new Nodes(bed, fleet);
  nodes.start();
  const pod = (restartCount: number): void =>
    bed.broker.say(`${root}/nodes/pi-1/pods/default/web`, JSON.stringify({ status: { containerStatuses: [{ restartCount }] } }), {
      retain: true,
    });
  pod(0);
  const work = runRollout('r1', bed.remote, bed.print);
  for (let i = 0; i < 500; i++) await bed.clock.advance(1000);
  pod(1);
  const restarted = bed.clock.monotonic();
  await bed.run(work);
  assert.ok(Number(nodes.took.get('pi-3')) - restarted >= 600_000);
});

test('a node that is away is not waited for', async () => {
  const bed = await fleetBed();
  await create(bed, { bake: '1m' });
  const nodes = new Nodes(bed, fleet, (name) =>
    name === 'pi-2' ? { phase: 'Waiting', reason: 'ContainersNotReady' } : { phase: 'Running', reason: 'Ready' },
  );
  nodes.start();
  bed.broker.say(`${root}/nodes/pi-2/online`, online('pi-2', 'lost'), { retain: true });
  await bed.run(runRollout('r1', bed.remote, bed.print));
  assert.equal(retained(bed).state, 'done');
});

test('by hand the gate rises and never falls; status shows each node with its wave', async () => {
  const bed = await fleetBed();
  await create(bed);
  new Nodes(bed, fleet).start();
  await bed.run(openRollout('r1', undefined, bed.remote, bed.print));
  assert.equal(retained(bed).gate, 1);
  await assert.rejects(bed.run(openRollout('r1', '1', bed.remote, bed.print)), ends(exitCodes.usage, /only rises/));
  await assert.rejects(bed.run(openRollout('r1', '3', bed.remote, bed.print)), ends(exitCodes.usage, /2 waves/));
  bed.said();
  await bed.run(showRollouts('r1', {}, bed.remote, bed.print));
  const shown = bed.said();
  assert.match(shown, /^rollout\/r1: running, gate 1 of 2; pod\/web generation 1$/m);
  assert.match(shown, /^pi-1 +1 +yes +ready +<none>$/m);
  assert.match(shown, /^pi-3 +2 +no +waiting +Rollout$/m);
  await bed.run(showRollouts(undefined, {}, bed.remote, bed.print));
  assert.match(bed.said(), /^r1 +running +1\/2 +600s$/m);
});

test('what is no rollout is said: unknown, without objects, of one node', async () => {
  const bed = await fleetBed();
  await assert.rejects(bed.run(runRollout('r9', bed.remote, bed.print)), ends(exitCodes.notFound, /there is no rollout "r9"/));
  await assert.rejects(bed.run(abortRollout('r9', bed.remote, bed.print)), ends(exitCodes.notFound, /there is no rollout/));
  await assert.rejects(bed.run(abortRollout('r/9', bed.remote, bed.print)), ends(exitCodes.usage, /the id of a rollout/));
  bed.broker.say(topic, JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'Rollout', id: 'r1', waves: [], gate: 0 }), { retain: true });
  await assert.rejects(bed.run(runRollout('r1', bed.remote, bed.print)), ends(exitCodes.notFound, /no desired object/));
  const ofOne: CreateOptions = { node: 'pi-1', filename: [manifest], wave: [] };
  await assert.rejects(
    createRollout('r2', ofOne, { remote: bed.remote, stdin }, bed.print),
    ends(exitCodes.usage, /a single node has no waves/),
  );
});

const waves: readonly [string, Rollout['waves'][number] | undefined][] = [
  ['100%', { percent: 100 }],
  ['0%', { percent: 0 }],
  ['site=attic', { selector: { site: 'attic' }, percent: 100 }],
  ['site=attic:10%', { selector: { site: 'attic' }, percent: 10 }],
  ['site=attic,rack=2:10%', { selector: { site: 'attic', rack: '2' }, percent: 10 }],
  ['example.org/site=:10%', { selector: { 'example.org/site': '' }, percent: 10 }],
  ['101%', undefined],
  ['10', undefined],
  ['', undefined],
  ['%', undefined],
  ['site', undefined],
  ['=attic', undefined],
  ['si te=attic', undefined],
  ['site=at tic:10%', undefined],
];
for (const [text, is] of waves) {
  test(`a wave as it is written: ${JSON.stringify(text)}`, () => {
    if (is === undefined) assert.throws(() => parseWave(text), ends(exitCodes.usage, /--wave/));
    else assert.deepEqual(parseWave(text), is);
  });
}
