/** Critical pods on a full node, on the whole agent in virtual time: who ends, what is told, what comes back, and agents that die amid it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EvictionWorld } from '../../src/kubeletEviction.ts';
import { manifest, World } from './world.ts';

/** A node that is short only when it is said so. */
class Node {
  pressed = false;
  readonly world: World;

  constructor() {
    const disk = { device: 1, capacityBytes: 100, availableBytes: 90, inodes: 0, inodesFree: 0 };
    const eviction: EvictionWorld = {
      thresholds: [{ kind: 'hard', signal: 'pid.available', amount: { percent: 10 }, graceMs: 0 }],
      pressureTransitionMs: 30_000,
      memory: () => ({ totalBytes: 100, availableBytes: 90, swapFreeBytes: 0, anonBytes: 0, zram: false }),
      processes: () => ({ most: 1000, running: this.pressed ? 950 : 100 }),
      filesystem: async () => disk,
      folderUsage: async () => ({ bytes: 0, inodes: 0 }),
      podsDir: '/var/lib/podsched/pods',
    };
    this.world = new World({ eviction });
  }
}

const grace = 5;
const pod = (name: string, resources: string, lines: readonly string[] = []) =>
  manifest(name, {
    containers: [`{name: app, image: localhost/busybox:1, command: [sleep, "100"], resources: ${resources}}`],
    lines: [`terminationGracePeriodSeconds: ${grace}`, ...lines],
  });
const asking = (name: string, cpu: string, lines: readonly string[] = []) => pod(name, `{requests: {cpu: "${cpu}"}}`, lines);
const critical = ['priorityClassName: system-cluster-critical'];
const uid = (w: World, name: string): string | undefined => w.pod(name)?.metadata.uid;
const phase = (w: World, name: string): string => `${w.sync(name)?.phase} ${w.sync(name)?.reason}`;
const running = (w: World): string[] =>
  w.runtime
    .running()
    .map((r) => r.replace(/\/app$/, ''))
    .sort();

/** Containers use up their grace. */
async function node(files: Readonly<Record<string, string>>): Promise<Node> {
  const n = new Node();
  n.world.runtime.onStart(() => ({ ignoresTerm: true }));
  for (const [name, text] of Object.entries(files)) n.world.folder.write(`${name}.yaml`, text);
  await n.world.start();
  await n.world.advance(8);
  return n;
}

test('a critical pod comes: the pod that must go is told as the kubelet tells it, waits for room, and is back when there is some', async () => {
  const { world: w } = await node({ big: asking('big', '3'), small: asking('small', '500m') });
  const [big, small] = [uid(w, 'big'), uid(w, 'small')];
  w.folder.write('db.yaml', asking('db', '2', critical));
  await w.advance(2);
  assert.equal(phase(w, 'db'), 'Waiting WaitingForRoom');
  assert.equal(w.sync('db')?.message, 'room is being made for this critical pod: it starts when default/big has ended');
  assert.equal(phase(w, 'big'), 'Terminating Preempting');
  assert.deepEqual(running(w), ['big', 'small'], 'it has its grace');
  await w.advance(8);
  assert.equal(phase(w, 'db'), 'Running Ready');
  assert.deepEqual(running(w), ['db', 'small']);
  assert.deepEqual([uid(w, 'small'), uid(w, 'big')], [small, big]);
  const told = w.pod('big')?.status;
  assert.deepEqual([told?.phase, told?.reason, told?.message], ['Failed', 'Preempting', 'Preempted in order to admit critical pod']);
  const target = told?.conditions?.find((c) => c.type === 'DisruptionTarget');
  assert.deepEqual([target?.status, target?.reason], ['True', 'TerminationByKubelet']);
  const events = w.events.filter((e) => e.reason === 'Preempting');
  assert.deepEqual(
    events.map((e) => [e.involvedObject.name, e.type]),
    [['big', 'Warning']],
  );
  await w.advance(600);
  assert.equal(phase(w, 'big'), 'Failed OutOfcpu');
  assert.notEqual(uid(w, 'big'), big);
  assert.deepEqual(running(w), ['db', 'small'], 'nothing goes to and fro');
  assert.equal(w.events.filter((e) => e.reason === 'Preempting').length, 1);
  w.folder.remove('db.yaml');
  await w.advance(60);
  assert.deepEqual(running(w), ['big', 'small']);
  assert.deepEqual(w.runtime.violations, []);
});

test('a reboot lets the critical pod in first: nobody is started to be ended again', async () => {
  const { world: w } = await node({ big: asking('big', '3') });
  w.folder.write('db.yaml', asking('db', '2', critical));
  await w.advance(60);
  await w.reboot();
  await w.advance(60);
  assert.deepEqual([running(w), phase(w, 'big')], [['db'], 'Failed OutOfcpu']);
  assert.equal(w.events.filter((e) => e.reason === 'Preempting').length, 1);
});

for (const [when, ms] of [
  ['in its first moment', 0],
  ['while the victim is being stopped', 2_000],
  ['when the victim has just ended', 5_050],
  ['when the critical pod has come in', 8_000],
] as const) {
  test(`the agent is killed amid a preemption, ${when}: the next one brings it to the same end`, async () => {
    const { world: w } = await node({ big: asking('big', '3'), small: asking('small', '500m') });
    const small = uid(w, 'small');
    w.folder.write('db.yaml', asking('db', '2', critical));
    while (!w.events.some((e) => e.reason === 'Preempting')) await w.advance(0.05);
    await w.advance(ms / 1000);
    await w.restart();
    await w.advance(120);
    assert.deepEqual(
      [running(w), phase(w, 'db'), phase(w, 'big'), uid(w, 'small')],
      [['db', 'small'], 'Running Ready', 'Failed OutOfcpu', small],
    );
    assert.deepEqual(
      w.events
        .filter((e) => e.reason === 'Preempting')
        .map((e) => e.involvedObject.name)
        .filter((name) => name !== 'big'),
      [],
    );
    assert.deepEqual(w.runtime.violations, []);
  });
}

test('a critical pod that is removed or edited while it waits: nothing of it is left, and the newest text gets the room', async () => {
  const { world: w } = await node({ big: asking('big', '3') });
  w.folder.write('db.yaml', asking('db', '2', critical));
  w.folder.write('cache.yaml', asking('cache', '1', critical));
  await w.advance(2);
  assert.deepEqual([phase(w, 'db'), phase(w, 'cache')], ['Waiting WaitingForRoom', 'Running Ready']);
  w.folder.write('db.yaml', asking('db', '3', critical));
  await w.advance(20);
  assert.deepEqual([running(w), w.pod('db')?.spec.containers[0]?.resources?.requests?.cpu], [['cache', 'db'], '3']);
  w.folder.remove('db.yaml');
  await w.advance(60);
  assert.deepEqual(running(w), ['big', 'cache']);
  w.folder.write('db.yaml', asking('db', '2', critical));
  await w.advance(2);
  assert.equal(phase(w, 'db'), 'Waiting WaitingForRoom');
  w.folder.remove('db.yaml');
  await w.advance(120);
  assert.deepEqual([w.pod('db'), w.sync('db'), running(w)], [undefined, undefined, ['big', 'cache']]);
  assert.deepEqual(w.runtime.violations, []);
});

test('the better classes of service are spared, and for a port or a place nobody goes', async () => {
  const guaranteed = pod('guaranteed', '{limits: {cpu: "1", memory: 10Mi}}');
  const port = (name: string, lines: readonly string[] = []) =>
    manifest(name, {
      containers: ['{name: app, image: localhost/busybox:1, command: [sleep, "100"], ports: [{containerPort: 80, hostPort: 80}]}'],
      lines,
    });
  const { world: w } = await node({ guaranteed, burstable: asking('burstable', '2500m'), web: port('web') });
  w.folder.write('db.yaml', asking('db', '2', critical));
  w.folder.write('other.yaml', asking('other', '2', [...critical, 'nodeSelector: {no: x}']));
  w.folder.write('door.yaml', port('door', critical));
  await w.advance(60);
  assert.deepEqual(running(w), ['db', 'guaranteed', 'web']);
  assert.deepEqual([phase(w, 'other'), phase(w, 'door')], ['Failed NodeAffinity', 'Failed NodePorts']);
});

test('a preempted Never pod has run: it does not come back', async () => {
  const { world: w } = await node({ job: asking('job', '3', ['restartPolicy: Never']) });
  w.folder.write('db.yaml', asking('db', '2', critical));
  await w.advance(60);
  w.folder.remove('db.yaml');
  await w.advance(600);
  assert.deepEqual([w.pod('job')?.status.phase, w.pod('job')?.status.reason, running(w)], ['Failed', 'Preempting', []]);
});

test('an edit that needs more room goes through for a critical pod', async () => {
  const { world: w } = await node({ big: asking('big', '3'), db: asking('db', '1', critical) });
  w.folder.write('db.yaml', asking('db', '2', critical));
  await w.advance(90);
  assert.deepEqual([running(w), phase(w, 'db'), phase(w, 'big')], [['db'], 'Running Ready', 'Failed OutOfcpu']);
  assert.equal(w.pod('db')?.spec.containers[0]?.resources?.requests?.cpu, '2');
});

test('under a pressure only critical pods come in, edits go on, and the rest comes when it is over', async () => {
  const n = await node({ web: asking('web', '1') });
  const w = n.world;
  n.pressed = true;
  await w.advance(15);
  w.folder.write('late.yaml', asking('late', '100m'));
  w.folder.write('db.yaml', asking('db', '100m', critical));
  await w.advance(15);
  assert.equal(phase(w, 'db'), 'Running Ready');
  assert.deepEqual(
    [w.pod('late')?.status.reason, w.pod('late')?.status.message],
    ['Evicted', 'Pod was rejected: The node had condition: [PIDPressure]. '],
  );
  n.pressed = false;
  await w.advance(90);
  assert.equal(phase(w, 'late'), 'Running Ready');
  assert.equal(phase(w, 'web'), 'Running Ready');
});

test('devices: who finds one taken is refused with what is there, comes when there are more, and goes for a critical pod', async () => {
  const n = new Node();
  const w = n.world;
  const wanting = (name: string) => pod(name, '{limits: {devices.podsched.dev/serial: 1}}');
  w.deviceClasses = { serial: ['/dev/ttyUSB*'] };
  w.folder.write('a.yaml', wanting('a'));
  w.folder.write('b.yaml', wanting('b'));
  await w.start();
  await w.advance(5);
  assert.deepEqual(
    [phase(w, 'a'), phase(w, 'b')],
    ['Waiting WaitingForDevice', 'Waiting WaitingForDevice'],
    'what is absent is no refusal',
  );
  w.deviceFiles.plug('/dev/ttyUSB0', 0);
  await w.advance(10);
  assert.deepEqual([phase(w, 'a'), phase(w, 'b')].sort(), ['Running Ready', 'Waiting WaitingForDevice']);
  w.folder.write('c.yaml', wanting('c'));
  await w.advance(10);
  assert.equal(
    w.sync('c')?.message,
    "Pod was rejected: Node didn't have enough resource: devices.podsched.dev/serial, requested: 1, used: 2, capacity: 1",
  );
  assert.equal(phase(w, 'c'), 'Failed OutOfdevices.podsched.dev/serial');
  for (const n of [1, 2]) w.deviceFiles.plug(`/dev/ttyUSB${n}`, n);
  await w.advance(20);
  assert.deepEqual(running(w), ['a', 'b', 'c']);
  w.folder.write('db.yaml', pod('db', '{limits: {devices.podsched.dev/serial: 1}}', critical));
  await w.advance(30);
  assert.equal(phase(w, 'db'), 'Running Ready');
  assert.equal(running(w).length, 3);
  assert.deepEqual(w.runtime.violations, []);
});
