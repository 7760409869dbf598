/**
 * A fleet of two: the real bundle twice on one broker, and whoever looks after it from outside. Rollouts by waves, Home Assistant, what is
 * configured from afar, a card that was copied, and a node that leaves.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Rollout } from '../../src/api/messages.ts';
import type { NodeOnline } from '../../src/api/payloads.ts';
import { type Agent, startAgent } from './agent.ts';
import { startBed } from './bed.ts';
import { commander } from './commands.ts';
import { cli, desired, type Fleet, type FleetNode, ownTopic, runs, setPolicy, sourceOf, startFleet, syncOf } from './fleet.ts';
import { container, exit, type Fields, manifest, pod, serve } from './manifest.ts';
import { podsOf } from './story.ts';
import { told } from './told.ts';
import { agreed, footprint, gone, type Seen, toldPod, toldSync } from './truth.ts';
import { retainedNow, watchTopics } from './watcher.ts';

const looking = ['get', 'resync', 'identify'];
const verbs = (more: readonly string[]) => ({ file: { allow: 'all' }, mqtt: { verbs: [...looking, ...more] } });

let fleet: Fleet;
/** In the attic; Home Assistant knows it. */
let one: FleetNode;
let two: FleetNode;
before(async () => {
  const common = { fileCheckFrequency: '1s', nodeStatusUpdateFrequency: '5s', mqtt: { groups: ['cams'] } };
  fleet = await startFleet('fleet', {
    one: { config: { ...common, nodeLabels: { site: 'attic' }, homeAssistant: { enabled: true }, policy: verbs(['restart']) } },
    two: { config: { ...common, policy: verbs(['decommission']) } },
  });
  one = fleet.node('one');
  two = fleet.node('two');
});
after(() => fleet?.stop());

const server = (): string[] => ['--server', fleet.broker.url];
const written = (agent: Agent, name: string, text: string): string => {
  const path = join(agent.dir, name);
  writeFileSync(path, text);
  return path;
};
const online = (node: FleetNode): NodeOnline | undefined => fleet.watcher.values.get(node.agent.topic('online')) as NodeOnline | undefined;

describe('a fleet of two', { concurrency: true }, () => {
  test('a rollout goes by waves: the second waits until the first was well for long enough; who moves it may die; a bad revision ends it', async () => {
    const revision = (command: readonly string[], n: number): string =>
      written(
        one.agent,
        `rolled-${n}.json`,
        manifest(pod('rolled', { containers: [container('main', command, { env: [{ name: 'REVISION', value: String(n) }] })] })),
      );
    await cli(one.agent, 'apply', '-f', revision(serve, 1), '--group', 'cams', ...server());
    const both = async (check: (seen: Seen) => void): Promise<void> => {
      for (const node of [one, two]) check(await agreed(node, 'rolled', (p, s) => runs(p) && s.phase === 'Running'));
    };
    let first: string | undefined;
    await both(({ sync }) => {
      first = sync.running?.revision;
    });
    const waves = ['--wave', 'site=attic', '--wave', '100%', '--bake', '3s'];
    const rollout = (id: string): Rollout | undefined => fleet.watcher.values.get(`podsched/v1/rollouts/${id}`) as Rollout | undefined;
    const create = (id: string, file: string) =>
      cli(one.agent, 'rollout', 'create', id, '--group', 'cams', '-f', file, ...waves, ...server());
    const waits = (node: FleetNode, revision: string | undefined) =>
      syncOf(node, 'rolled', 'waits for the rollout', (s) => {
        const said = sourceOf(s, 'mqtt:group/cams');
        return said?.phase === 'Waiting' && said.reason === 'Rollout' && s.running?.revision === revision;
      });
    await create('web-2', revision(serve, 2));
    const before = await agreed(two, 'rolled', runs);
    for (const node of [one, two]) await waits(node, first);
    const mover = one.agent.begin('rollout', 'run', 'web-2', ...server());
    const moved = await agreed(one, 'rolled', (p, s) => runs(p) && s.phase === 'Running' && s.running?.revision !== first);
    const second = moved.sync.running?.revision;
    await fleet.watcher.untilAll('the gate is at 1', () => rollout('web-2')?.gate === 1);
    mover.signal('SIGKILL');
    assert.equal(await mover.exited, 'SIGKILL');
    await waits(two, first);
    assert.deepEqual(footprint((await agreed(two, 'rolled', runs)).shown), footprint(before.shown), 'what ran goes on');
    const ranAgain = performance.now();
    await cli(one.agent, 'rollout', 'run', 'web-2', ...server());
    const opened = fleet.watcher.heard.find((h) => h.topic === 'podsched/v1/rollouts/web-2' && (JSON.parse(h.text) as Rollout).gate === 2);
    assert.ok(opened !== undefined && opened.at - ranAgain >= 3_000, 'a wave is watched whole by whoever opens the next');
    assert.equal(rollout('web-2')?.state, 'done');
    await both(({ sync }) => assert.equal(sync.running?.revision, second));

    await create('web-3', revision(exit(1), 3));
    const ended = await one.agent.cli('rollout', 'run', 'web-3', ...server());
    assert.equal(ended.code, 1, ended.stdout + ended.stderr);
    assert.match(ended.stderr, /aborted.*one/);
    assert.deepEqual([rollout('web-3')?.state, rollout('web-3')?.gate], ['aborted', 1]);
    await waits(two, second);
    assert.ok(runs((await agreed(two, 'rolled')).pod));
    assert.match(await cli(one.agent, 'rollout', 'status', 'web-3', ...server()), /two\s+2\s+no/);
    await cli(one.agent, 'delete', 'rolled', '--group', 'cams', ...server());
    for (const node of [one, two]) await gone(node, 'rolled');
  });

  test('Home Assistant: the node and its labelled pod with a button that restarts in place, where the policy lets it; announced again when asked', async () => {
    const topic = 'homeassistant/device/one/config';
    const stub = await watchTopics(fleet.broker.url, 'homeassistant/#');
    try {
      const cmps = (): Readonly<Record<string, Component>> => (stub.values.get(topic) as Device | undefined)?.cmps ?? {};
      const cam = (labels: Fields): string => manifest(pod('cam', {}, { labels }));
      one.agent.drop('cam.yaml', cam({ 'podsched.dev/ha': 'true' }));
      await stub.untilAll('the pod has its button', () => cmps().pod_default_cam_restart !== undefined);
      assert.deepEqual(
        Object.entries(cmps())
          .filter(([id]) => id.includes('cam') || id === 'connectivity')
          .map(([id, { p }]) => [id, p]),
        [
          ['connectivity', 'binary_sensor'],
          ['pod_default_cam', 'binary_sensor'],
          ['pod_default_cam_restart', 'button'],
        ],
      );
      const first = await agreed(one, 'cam', runs);
      const button = cmps().pod_default_cam_restart;
      await fleet.watcher.client.publishAsync(button?.cmd_t ?? '', button?.pl_prs ?? '', { qos: 1 });
      const again = await agreed(one, 'cam', (p) => runs(p) && p.status.containerStatuses?.[0]?.restartCount === 1);
      assert.equal(again.pod.metadata.uid, first.pod.metadata.uid, 'in place');

      await setPolicy(one.agent, verbs([]));
      await stub.untilAll('the button goes', () => isOnlyPlatform(cmps().pod_default_cam_restart));
      assert.equal(isOnlyPlatform(cmps().pod_default_cam), false);
      await fleet.watcher.client.publishAsync(button?.cmd_t ?? '', button?.pl_prs ?? '', { qos: 1 });
      one.agent.drop('cam.yaml', cam({}));
      await stub.untilAll('the pod goes', () => isOnlyPlatform(cmps().pod_default_cam));
      assert.equal(
        (await agreed(one, 'cam', runs)).pod.status.containerStatuses?.[0]?.restartCount,
        1,
        'a press without the verb does nothing',
      );
      const announced = () => stub.heard.filter((h) => h.topic === topic && h.text !== '').length;
      const before = announced();
      await stub.client.publishAsync('homeassistant/status', 'online', { qos: 1 });
      await stub.untilAll('it is announced again', () => announced() > before);
      assert.ok(cmps().connectivity !== undefined && cmps().pod_default_cam === undefined, 'what left is said once');
      assert.ok(!stub.heard.some((h) => h.topic === 'homeassistant/device/two/config'), 'the other node was not asked to');
    } finally {
      await stub.end();
    }
  });

  test('`_config` from afar: groups bring their objects and take them along, labels and heartbeat are told', async () => {
    await fleet.keep(desired('groups/late/default/late'), manifest(pod('late')));
    const configTopic = desired('nodes/two/_config');
    const config = (more: Fields): string => JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'NodeConfig', ...more });
    await fleet.keep(configTopic, config({ groups: ['cams', 'late'], labels: { floor: 'two' }, heartbeatSeconds: 7 }));
    await agreed(two, 'late', (p, s) => runs(p) && s.desired?.source === 'mqtt:group/late');
    await fleet.watcher.until(two.agent.topic('info'), (v) => told(v).metadata?.labels?.floor === 'two');
    await fleet.watcher.until(two.agent.topic('online'), (v) => (v as NodeOnline | undefined)?.heartbeatSeconds === 7);
    assert.equal(online(one)?.heartbeatSeconds, 5);
    assert.equal(toldPod(one, 'late'), undefined, 'the other node is in no such group');
    await fleet.keep(configTopic, config({ groups: ['cams'] }));
    await gone(two, 'late');
    await fleet.watcher.until(two.agent.topic('info'), (v) => told(v).metadata?.labels?.floor === undefined);
    // back to what the file says
    await fleet.keep(configTopic, '');
    await fleet.watcher.until(two.agent.topic('online'), (v) => (v as NodeOnline | undefined)?.heartbeatSeconds === 5);
  });

  test('a copied card in another board says that it is a duplicate, and takes nothing that is meant for the first', async () => {
    await fleet.watcher.untilAll('the first is online', () => online(one)?.state === 'online');
    const bed = await startBed({ name: 'copied' });
    try {
      const copy = await startAgent(bed, {
        ...{ servers: [fleet.broker.url], nodeName: 'one', started: false, mac: '02:00:00:00:00:99' },
        config: { fileCheckFrequency: '1s', nodeStatusUpdateFrequency: '5s' },
      });
      try {
        const state = (agent: Agent): string => join(agent.stateDir, 'state');
        mkdirSync(state(copy), { recursive: true, mode: 0o700 });
        for (const name of ['identity.json', 'boot.json']) copyFileSync(join(state(one.agent), name), join(state(copy), name));
        copy.start();
        const duplicates = one.agent.topic('duplicates/');
        const said = (): NodeOnline | undefined =>
          [...fleet.watcher.values].find(([topic]) => topic.startsWith(duplicates))?.[1] as NodeOnline | undefined;
        await fleet.watcher.untilAll('the copy says what it is', () => said()?.state === 'duplicate');
        assert.notEqual(said()?.machine, online(one)?.machine);
        const { session } = online(one) ?? {};
        await fleet.keep(ownTopic(one, 'only'), manifest(pod('only')));
        await agreed(one, 'only', runs);
        const heartbeats = () => fleet.watcher.heard.filter((h) => h.topic.startsWith(duplicates)).length;
        const before = heartbeats();
        await fleet.watcher.untilAll('it has said so for a while', () => heartbeats() > before + 1);
        assert.deepEqual(await podsOf(copy), []);
        assert.deepEqual(await bed.cri.sandboxes(), []);
        assert.deepEqual([online(one)?.state, online(one)?.session], ['online', session], 'the first was not disturbed');
        await fleet.keep(ownTopic(one, 'only'), '');
        await gone(one, 'only');
      } finally {
        await copy.remove();
      }
    } finally {
      await bed.stop();
    }
  });
});

test('a node that leaves ends what came by topics and clears what it told; files go on', async () => {
  two.agent.drop('filed.yaml', manifest(pod('filed')));
  await fleet.keep(ownTopic(two, 'topical'), manifest(pod('topical')));
  const filed = await agreed(two, 'filed', runs);
  await agreed(two, 'topical', runs);
  const asker = await commander(fleet.broker.url, 'two', 5);
  try {
    const unconfirmed = await asker.ask('decommission', { args: { confirm: 'one' } });
    assert.equal(unconfirmed.last.reason, 'NotConfirmed', JSON.stringify(unconfirmed.last));
    assert.equal((await asker.ask('decommission', { args: { confirm: 'two' } })).last.status, 'ok');
  } finally {
    await asker.end();
  }
  // metrics are not retained
  const own = (topic: string): boolean => topic.startsWith('podsched/v1/nodes/two/') && !topic.endsWith('/metrics');
  await fleet.watcher.untilAll('nothing is told of it', (values) => ![...values.keys()].some(own));
  const sandboxes = (await fleet.bed.cri.sandboxes()).filter((s) => s.ready && ['filed', 'topical'].includes(s.name));
  assert.deepEqual(
    sandboxes.map((s) => s.name),
    ['filed'],
  );
  assert.deepEqual(
    (await podsOf(two.agent)).map((p) => p.metadata.name),
    ['filed'],
  );
  assert.deepEqual(
    sandboxes.map((s) => s.id),
    [filed.shown.sandboxes[0]?.id],
  );
  assert.deepEqual([...(await retainedNow(fleet.broker.url)).keys()].filter(own), []);
  assert.equal(toldSync(two, 'filed'), undefined);
  assert.deepEqual(fleet.witness.offences, []);
});

interface Component {
  readonly p: string;
  readonly cmd_t?: string;
  readonly pl_prs?: string;
}
interface Device {
  readonly cmps: Readonly<Record<string, Component>>;
}
const isOnlyPlatform = (c: Component | undefined): boolean => c !== undefined && Object.keys(c).length === 1;
