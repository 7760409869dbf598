import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuListText } from '../../src/api/cpuList.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container, PodSpec } from '../../src/api/v1.ts';
import { CpuManager, type CpuManagerDeps } from '../../src/cm/cpuManager.ts';
import { HeldBack } from '../../src/container/heldBack.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId, RuntimePodStatus } from '../../src/container/words.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';

const app = (name: string, cpu?: string): Container => ({
  name,
  image: 'localhost/busybox:1',
  ...(cpu !== undefined && { resources: { limits: { cpu, memory: '10Mi' } } }),
});
const pod = (name: string, spec: Partial<PodSpec>): DesiredPod =>
  toDesiredPod(
    { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [app('c')], ...spec } },
    { uid: `uid-${name}` as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '2026-01-01T00:00:00Z' },
  );
/** One container that wants so many CPUs; none: it shares. */
const single = (name: string, cpu?: string): DesiredPod => pod(name, { containers: [app('c', cpu)] });

/** A machine of some CPUs, its pods, and one agent after the other. */
class Machine {
  readonly runtime = new FakeRuntime({ clock: new FakeClock() });
  readonly store = new MemoryStore();
  readonly pods = new Map<PodUid, DesiredPod>();
  readonly events: string[] = [];
  readonly woken: PodUid[] = [];
  cpus = 4;
  settings: Partial<CpuManagerDeps> = {};
  /** A runtime that does not say what its containers run on. */
  tellsCpus = true;
  manager = this.#newManager();
  #statuses = new Map<PodUid, RuntimePodStatus>();

  #newManager(): CpuManager {
    return new CpuManager({
      policy: 'static',
      reservedCpus: '0',
      reservedMilli: 0,
      cpuset: true,
      topology: async () => Array.from({ length: this.cpus }, (_, cpu) => ({ cpu, core: cpu, socket: 0, node: 0 })),
      store: this.store,
      log: silentLog,
      runtime: this.runtime,
      active: () => [...this.pods.values()],
      statuses: () => this.#statuses.values(),
      statusOf: (uid) => this.#statuses.get(uid),
      wake: (uids) => this.woken.push(...uids),
      event: (reason, message) => this.events.push(`${reason}: ${message}`),
      ...this.settings,
    });
  }

  /** A new agent, who has seen the runtime and every pod. */
  async restart(settings: Partial<CpuManagerDeps> = {}): Promise<this> {
    this.manager.stop();
    this.settings = settings;
    this.manager = this.#newManager();
    await this.manager.load();
    await this.round();
    return this;
  }

  async look(): Promise<void> {
    this.#statuses.clear();
    for (const s of await this.runtime.listSandboxes()) {
      const listed = await this.runtime.listContainers(s.uid);
      const containers = await Promise.all(listed.map((c) => this.runtime.containerStatus(c.id)));
      const told = containers.map(({ cpusetCpus, ...c }) => ({ ...c, ...(this.tellsCpus && cpusetCpus !== undefined && { cpusetCpus }) }));
      this.#statuses.set(s.uid, { uid: s.uid, name: s.name, namespace: s.namespace, ips: [], sandboxes: [], containers: told });
    }
  }

  /** What housekeeping does. */
  async round(): Promise<void> {
    await this.look();
    this.manager.retain(new Set(this.pods.keys()));
    await settle();
    await this.look();
  }

  /** Makes and starts a pod's containers as the agent does; `cpus` comes of each. */
  async start(desired: DesiredPod): Promise<void> {
    this.pods.set(desired.uid, desired);
    const config = sandboxConfig(desired.name, { uid: desired.uid });
    const sandbox = await this.runtime.runSandbox(config, '');
    for (const { name } of [...(desired.pod.spec.initContainers ?? []), ...desired.pod.spec.containers]) {
      const cpusetCpus = await this.manager.cpusFor(desired, name);
      const resources = cpusetCpus === undefined ? {} : { cpusetCpus };
      const id = await this.runtime.createContainer(sandbox, containerConfig(config, name, { resources }), config);
      this.manager.made(desired.uid, name, id, cpusetCpus);
      await this.runtime.startContainer(id);
      this.manager.started(id);
    }
    await settle();
    await this.look();
  }

  async end(desired: DesiredPod): Promise<void> {
    for (const s of await this.runtime.listSandboxes(desired.uid)) await this.runtime.removeSandbox(s.id);
    this.pods.delete(desired.uid);
    await this.look();
    this.manager.release(desired.uid);
    await settle();
    await this.look();
  }

  /** `pod/container cpus` of all there is. */
  on(): string[] {
    return [...this.runtime.containers.values()]
      .map((c) => `${this.runtime.sandboxes.get(c.sandboxId)?.config.name}/${c.config.name} ${c.config.resources.cpusetCpus ?? 'all'}`)
      .sort();
  }

  /** How often containers were moved since the last question. */
  moves(): number {
    return this.runtime.calls.splice(0).filter((c) => c.method === 'updateContainerResources').length;
  }

  id(name: string, container = 'c'): ContainerId {
    const found = this.runtime.find(name, container);
    assert.ok(found);
    return found.id;
  }
}

async function machine(settings: Partial<CpuManagerDeps> = {}): Promise<Machine> {
  const m = new Machine();
  return m.restart(settings);
}

test('under none nobody is kept to CPUs, nothing is read of the machine, and nothing is stored', async () => {
  const m = await machine({ policy: 'none', topology: () => Promise.reject(new Error('asked')) });
  await m.start(single('big', '2'));
  await m.round();
  assert.deepEqual([m.on(), m.moves(), m.store.entries.size, m.events], [['big/c all'], 0, 0, []]);
  assert.equal(m.manager.exclusiveCpus(), undefined);
  assert.equal(m.manager.view(), undefined);
});

test('a Guaranteed container has its CPUs from the start, and all others move off them at once', async () => {
  const m = await machine();
  await m.start(single('small'));
  await m.start(single('part', '1500m'));
  assert.deepEqual(m.on(), ['part/c 0-3', 'small/c 0-3']);
  await m.start(single('big', '2'));
  assert.deepEqual(m.on(), ['big/c 1-2', 'part/c 0,3', 'small/c 0,3']);
  assert.equal(m.moves(), 2);
  await m.start(single('late'));
  assert.deepEqual(m.on(), ['big/c 1-2', 'late/c 0,3', 'part/c 0,3', 'small/c 0,3']);
  assert.deepEqual([m.manager.exclusiveCpus(), m.manager.view()?.shared, m.manager.view()?.reserved], [3, '0,3', '0']);
  await m.round();
  assert.equal(m.moves(), 0);
});

test('the end of a pod gives its CPUs back to all', async () => {
  const m = await machine();
  const big = single('big', '3');
  await m.start(single('small'));
  await m.start(big);
  assert.deepEqual(m.on(), ['big/c 1-3', 'small/c 0']);
  await m.end(big);
  assert.deepEqual(m.on(), ['small/c 0-3']);
  assert.deepEqual((await m.store.get('cpus')) as object, { policyName: 'static', online: '0-3', reserved: '0', entries: {} });
});

test('a pod whose CPUs another still has waits, and is woken by the other’s end', async () => {
  const m = await machine();
  const first = single('first', '2');
  const next = single('next', '2');
  await m.start(first);
  m.pods.set(next.uid, next);
  const refused = (e: unknown) =>
    e instanceof HeldBack &&
    e.reason === 'WaitingForCPUs' &&
    e.message === 'not enough cpus available to satisfy request: requested=2, available=1';
  await assert.rejects(m.manager.cpusFor(next, 'c'), refused);
  assert.deepEqual(m.woken, []);
  await m.end(first);
  assert.deepEqual(m.woken, [next.uid]);
  assert.equal(await m.manager.cpusFor(next, 'c'), '1-2');
});

test('init containers lend their CPUs on, and a pod gets all or none', async () => {
  const m = await machine();
  await m.start(pod('web', { initContainers: [app('init', '2')], containers: [app('a', '2'), app('b', '1')] }));
  assert.deepEqual(m.on(), ['web/a 1-2', 'web/b 3', 'web/init 1-2']);
  const late = pod('late', { containers: [app('a', '1')] });
  await assert.rejects(m.manager.cpusFor(late, 'a'), HeldBack);
  assert.equal(m.manager.view()?.exclusive.has(late.uid), false);
});

test('a restart of the agent touches nothing, whether the runtime says what containers run on or not', async () => {
  for (const tellsCpus of [true, false]) {
    const m = await machine();
    m.tellsCpus = tellsCpus;
    await m.start(single('small'));
    await m.start(single('big', '2'));
    const before = [m.on(), m.store.entries.get('cpus')];
    m.moves();
    await m.restart();
    await m.round();
    assert.deepEqual([m.on(), m.store.entries.get('cpus')], before);
    // where it does not say so, each is told once more what it has
    assert.equal(m.moves(), tellsCpus ? 0 : 2);
    await m.round();
    assert.equal(m.moves(), 0);
    await m.start(single('third', '1'));
    assert.deepEqual(m.on(), ['big/c 1-2', 'small/c 0', 'third/c 3']);
  }
});

test('a container that ends and starts again has the same CPUs; one that has ended for good frees them', async () => {
  const m = await machine();
  const once = pod('once', { restartPolicy: 'OnFailure', containers: [app('a', '1'), app('b', '1')] });
  await m.start(once);
  assert.deepEqual(m.on(), ['once/a 1', 'once/b 2']);
  m.runtime.exit(m.id('once', 'a'), 1);
  await m.round();
  assert.equal(await m.manager.cpusFor(once, 'a'), '1');
  m.runtime.exit(m.id('once', 'b'), 0);
  await m.round();
  assert.equal(m.manager.view()?.shared, '0,2-3');
  // the other one's start does not take them again
  assert.equal(await m.manager.cpusFor(once, 'a'), '1');
  assert.equal(m.manager.view()?.shared, '0,2-3');
});

test('a checkpoint of another machine or policy is told and made anew from what runs', async () => {
  const more = (m: Machine): void => {
    m.cpus = 6;
  };
  const table: readonly (readonly [string, (m: Machine) => unknown, RegExp])[] = [
    ['another number of CPUs', more, /made for CPUs 0-3, and this machine has 0-5/],
    ['not JSON', (m) => m.store.entries.set('cpus', '{'), /cannot be read/],
    ['not ours', (m) => m.store.entries.set('cpus', '{"policyName":"none"}'), /cannot be understood/],
    ['not there', (m) => m.store.entries.delete('cpus'), /^$/],
  ];
  for (const [name, spoil, told] of table) {
    const m = await machine();
    const gone = single('gone', '1');
    await m.start(gone);
    await m.start(single('small'));
    await m.start(single('big', '2'));
    await m.end(gone);
    assert.deepEqual(m.on(), ['big/c 2-3', 'small/c 0-1'], name);
    spoil(m);
    m.moves();
    await m.restart();
    const rest = cpuListText([0, 1, 4, 5].filter((cpu) => cpu < m.cpus));
    assert.deepEqual(m.on(), ['big/c 2-3', `small/c ${rest}`], name);
    assert.equal(m.moves(), m.cpus === 4 ? 0 : 1, name);
    assert.match(m.events.join('\n'), told, name);
    assert.equal(m.events.length, told.source === '^$' ? 0 : 1, name);
    await m.restart();
    assert.equal(m.moves(), 0, name);
  }
});

test('of pods whose CPUs were lost, those that still run on CPUs of their own keep them, whoever comes first', async () => {
  const m = await machine();
  const [gone, other] = [single('gone', '1'), single('other', '1')];
  await m.start(gone);
  await m.start(other);
  await m.start(single('web', '1'));
  await m.end(gone);
  await m.runtime.updateContainerResources(m.id('other'), { cpusetCpus: '0-3' });
  await m.runtime.updateContainerResources(m.id('web'), { cpusetCpus: '1' });
  m.store.entries.delete('cpus');
  await m.restart();
  assert.deepEqual(m.on(), ['other/c 2', 'web/c 1']);
});

test('a round in which nothing changed writes nothing', async () => {
  const m = await machine();
  await m.start(single('big', '2'));
  await m.restart();
  let writes = 0;
  const put = m.store.put.bind(m.store);
  m.store.put = (key, value) => {
    writes++;
    return put(key, value);
  };
  await m.round();
  await m.round();
  assert.equal(writes, 0);
  await m.start(single('more', '1'));
  assert.equal(writes, 1);
});

test('where the runtime does not say what runs where, lost CPUs are given anew without a restart', async () => {
  const m = await machine();
  m.tellsCpus = false;
  const gone = single('gone', '1');
  await m.start(gone);
  await m.start(single('big', '2'));
  await m.end(gone);
  m.store.entries.delete('cpus');
  m.runtime.calls.splice(0);
  await m.restart();
  assert.deepEqual(m.on(), ['big/c 1-2']);
  assert.deepEqual(
    m.runtime.deeds.filter((d) => /^(stop|remove|create|start)/.test(d)),
    [],
  );
});

test('pods of before the policy get their CPUs as they run', async () => {
  const m = await machine({ policy: 'none' });
  await m.start(single('big', '2'));
  await m.start(single('small'));
  assert.deepEqual(m.on(), ['big/c all', 'small/c all']);
  await m.restart();
  assert.deepEqual(m.on(), ['big/c 1-2', 'small/c 0,3']);
});

test('back to none: all run on all again, and then it is forgotten', async () => {
  const m = await machine();
  await m.start(single('big', '2'));
  await m.start(single('small'));
  m.runtime.failNext('updateContainerResources', new RuntimeError('unavailable', 'gone for a moment'));
  await m.restart({ policy: 'none' });
  assert.equal(m.store.entries.has('cpus'), true);
  await m.round();
  assert.deepEqual(m.on(), ['big/c 0-3', 'small/c 0-3']);
  assert.equal(m.store.entries.has('cpus'), false);
  m.moves();
  await m.round();
  assert.equal(m.moves(), 0);
});

test('a move that fails is told once and tried again; a container that is gone is nobody’s trouble', async () => {
  const m = await machine();
  await m.start(single('a'));
  await m.start(single('b'));
  m.runtime.failNext('updateContainerResources', new RuntimeError('unknown', 'no cpuset here'), 2);
  await m.start(single('big', '2'));
  assert.deepEqual(m.on(), ['a/c 0-3', 'b/c 0-3', 'big/c 1-2']);
  m.runtime.failNext('updateContainerResources', new RuntimeError('unknown', 'no cpuset here'), 1);
  await m.round();
  assert.deepEqual(m.on(), ['a/c 0-3', 'b/c 0,3', 'big/c 1-2']);
  await m.round();
  assert.deepEqual(m.on(), ['a/c 0,3', 'b/c 0,3', 'big/c 1-2']);
  assert.deepEqual(
    m.events,
    [1, 2].map(() => 'CPUManagerFailed: container c could not be moved to CPUs 0,3: no cpuset here'),
  );
  m.runtime.failNext('updateContainerResources', new RuntimeError('notFound', 'not found'), 2);
  await m.start(single('more', '1'));
  assert.equal(m.events.length, 2);
});

test('a container that was being made while the rest changed is moved when it is there', async () => {
  const m = await machine();
  const small = single('small');
  m.pods.set(small.uid, small);
  const config = sandboxConfig('small', { uid: small.uid });
  const sandbox = await m.runtime.runSandbox(config, '');
  const cpusetCpus = await m.manager.cpusFor(small, 'c');
  assert.equal(cpusetCpus, '0-3');
  await m.start(single('big', '2'));
  const id = await m.runtime.createContainer(sandbox, containerConfig(config, 'c', { resources: { cpusetCpus: '0-3' } }), config);
  m.manager.made(small.uid, 'c', id, '0-3');
  await settle();
  assert.deepEqual(m.on(), ['big/c 1-2', 'small/c 0,3']);
});

test('a container that was moved while it was being started is moved once more: the runtime may have made its process already', async () => {
  const m = await machine();
  const small = single('small');
  m.pods.set(small.uid, small);
  const config = sandboxConfig('small', { uid: small.uid });
  const sandbox = await m.runtime.runSandbox(config, '');
  const id = await m.runtime.createContainer(sandbox, containerConfig(config, 'c', { resources: { cpusetCpus: '0-3' } }), config);
  m.manager.made(small.uid, 'c', id, '0-3');
  await m.start(single('big', '2'));
  assert.deepEqual(m.on(), ['big/c 1-2', 'small/c 0,3']);
  assert.equal(m.moves(), 1);
  // what was started has what it was made with
  const made = m.runtime.containers.get(id);
  assert.ok(made);
  m.runtime.containers.set(id, { ...made, config: { ...made.config, resources: { cpusetCpus: '0-3' } } });
  await m.runtime.startContainer(id);
  m.manager.started(id);
  await settle();
  assert.equal(m.moves(), 1);
  assert.deepEqual(m.on(), ['big/c 1-2', 'small/c 0,3']);
  // and one that is started while the move is on its way
  m.manager.started(id);
  await settle();
  assert.equal(m.moves(), 0);
});

test('what cannot work is told, and containers run on all CPUs as before', async () => {
  const table: readonly (readonly [Partial<CpuManagerDeps>, RegExp])[] = [
    [{ cpuset: false }, /no effect: the kernel has no cpuset controller/],
    [{ topology: () => Promise.reject(new Error('no /sys')) }, /no effect: no \/sys/],
  ];
  for (const [settings, told] of table) {
    const m = await machine(settings);
    await m.start(single('big', '2'));
    assert.deepEqual(m.on(), ['big/c all']);
    assert.match(m.events.join('\n'), told);
  }
});

test('reserved are the named CPUs that exist, else the lowest ones that the reservations come to', async () => {
  const table: readonly (readonly [string, number, string, number])[] = [
    ['3', 0, '3', 0],
    ['2-5', 0, '2-3', 1],
    ['8-9', 500, '0', 1],
    ['', 500, '0', 0],
    ['', 1001, '0-1', 0],
    ['', 0, '0', 0],
    ['', 9000, '0-3', 0],
  ];
  for (const [reservedCpus, reservedMilli, reserved, told] of table) {
    const m = await machine({ reservedCpus, reservedMilli });
    assert.equal(m.manager.view()?.reserved, reserved, `${reservedCpus} ${reservedMilli}`);
    assert.equal(m.events.length, told, m.events.join('\n'));
  }
});

test('an edit in place to another number of CPUs gives others, and to none gives them back', async () => {
  const m = await machine();
  await m.start(single('web', '1'));
  assert.equal(await m.manager.cpusFor(single('web', '2'), 'c'), '1-2');
  const shared = single('web', '500m');
  m.pods.set(shared.uid, shared);
  assert.equal(await m.manager.cpusFor(shared, 'c'), '0-3');
  await m.round();
  assert.equal(m.manager.view()?.exclusive.size, 0);
});

test('a store that fails holds up nobody, and is tried again', async () => {
  const m = await machine();
  const put = m.store.put.bind(m.store);
  m.store.put = () => Promise.reject(new Error('read-only file system'));
  await m.start(single('big', '2'));
  assert.deepEqual(m.on(), ['big/c 1-2']);
  m.store.put = put;
  await m.round();
  assert.match(m.store.entries.get('cpus') ?? '', /"uid-big":\{"c":"1-2"\}/);
});
