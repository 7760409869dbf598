/** Admission and config together, wired as the kubelet wires them, with workers that end when the test says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Refusal } from '../../src/admission/admit.ts';
import type { HostSocket } from '../../src/admission/hostPorts.ts';
import { Admission } from '../../src/admission/manager.ts';
import type { DesiredPod, PodUpdate } from '../../src/api/desired.ts';
import type { PodUid } from '../../src/api/objects.ts';
import { Config } from '../../src/config/manager.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeFolder, pod as manifest } from '../config/builders.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { node } from './build.ts';

let uids = 0;

class Rig {
  readonly clock = new FakeClock();
  readonly folder: FakeFolder;
  readonly store: MemoryStore;
  /** What an earlier agent of this boot told. */
  readonly told: Map<PodUid, 'admitted' | Refusal>;
  readonly host: HostSocket[] = [];
  labels = node().labels;
  readonly known = new Map<PodUid, DesiredPod>();
  readonly desired = new Set<PodUid>();
  /** Workers: what runs, or is ending. */
  readonly working = new Map<PodUid, 'sync' | 'terminating' | 'finished'>();
  readonly refused = new Map<string, string>();
  readonly admission: Admission;
  readonly config: Config;
  #queue: PodUpdate[] = [];

  constructor(before?: Rig) {
    this.folder = before?.folder ?? new FakeFolder();
    this.store = before?.store ?? new MemoryStore();
    this.told = before?.told ?? new Map();
    const { hostPortsInUse: _, ...bare } = node();
    this.admission = new Admission({
      clock: this.clock,
      node: () => ({ ...bare, labels: this.labels }),
      known: () => [...this.known.values()],
      isDesired: (uid) => this.desired.has(uid),
      hasEnded: ({ uid }) => this.working.get(uid) === 'finished',
      earlier: (uid) => (this.working.has(uid) ? undefined : before?.told.get(uid)),
      lives: () => false,
      hostSockets: () => this.host,
      renew: (uid) => this.config.renewInstance(uid),
      retryEdits: () => this.config.retryBlocked(),
      retell: ({ name }, { message }) => this.refused.set(name, message),
      failed: (e) => {
        throw e;
      },
    });
    this.config = new Config({
      clock: this.clock,
      log: silentLog,
      store: this.store,
      folder: this.folder,
      nodeName: 'pi-07',
      strict: () => false,
      newUid: () => `u${++uids}` as PodUid,
      instanceState: (uid) => ({
        sandboxDead: false,
        finished: this.working.get(uid) === 'finished',
        initUnfinished: false,
        terminating: this.working.get(uid) === 'terminating',
      }),
      runtimeUid: () => undefined,
      judgeEdits: (edits) => this.admission.judgeEdits(edits),
      emit: (u) => this.#queue.push(u),
      changed: () => {},
      event: () => {},
    });
  }

  async start(): Promise<void> {
    await this.config.load();
    await this.read({});
  }

  /** The folder has these files instead; undefined: it is gone. */
  async read(files: Readonly<Record<string, string | undefined>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      if (text === undefined) this.folder.files.delete(name);
      else this.folder.files.set(name, text);
    }
    let done = false;
    const reading = this.config.readFolder().then(() => {
      done = true;
    });
    // it lets others go first now and then
    while (!done) await this.clock.advance(1);
    await reading;
    await this.settle();
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 4; i++) {
      this.#drain();
      await this.clock.advance(1);
    }
  }

  #drain(): void {
    for (const { op, pods } of this.#queue.splice(0)) {
      if (op !== 'REMOVE') for (const p of pods) this.#set(p);
      for (const p of pods) {
        if (op === 'ADD') this.#add(p);
        if (op === 'REMOVE') this.#remove(p);
      }
    }
  }

  #set(p: DesiredPod): void {
    this.known.set(p.uid, p);
    this.desired.add(p.uid);
  }

  #add(p: DesiredPod): void {
    const verdict = this.admission.admit(p);
    assert.ok(verdict !== 'later');
    if (verdict.admit) {
      this.working.set(p.uid, 'sync');
      this.told.set(p.uid, 'admitted');
      this.refused.delete(p.name);
    } else {
      this.refused.set(p.name, verdict.message);
      this.told.set(p.uid, verdict);
    }
  }

  #remove({ uid }: DesiredPod): void {
    this.desired.delete(uid);
    if (this.working.has(uid)) this.working.set(uid, 'terminating');
    else this.known.delete(uid);
    this.admission.forget(uid);
  }

  /** Whatever is ending has ended. */
  async finish(): Promise<void> {
    for (const [uid, state] of [...this.working]) {
      if (state !== 'terminating') continue;
      this.working.delete(uid);
      this.known.delete(uid);
      this.admission.forget(uid);
    }
    await this.settle();
  }

  /** `a 8080`: running pods that are wanted, with their ports; `a 8080 ending`; `a refused`. */
  state(): string[] {
    return [...this.known.values()]
      .map((p) => {
        const ports = p.pod.spec.containers.flatMap((c) => c.ports ?? []).map((port) => ` ${port.hostPort}`);
        const ending = this.working.get(p.uid) === 'terminating' ? ' ending' : '';
        return `${p.name}${ports.join('')}${this.admission.isRefused(p.uid) ? ' refused' : ending}`;
      })
      .sort();
  }

  blocked(name: string): string | undefined {
    return this.config.view().objects.find((o) => o.key === `Pod/default/${name}`)?.blockedEdit?.message;
  }

  uid(name: string): PodUid | undefined {
    return this.config.view().objects.find((o) => o.key === `Pod/default/${name}`)?.uid;
  }
}

const port = (name: string, n: number): string => manifest(name, { extra: `    ports: [{containerPort: ${n}, hostPort: ${n}}]` });

test('a port moves from one manifest to another: the taker goes on as it was until the giver has ended', async () => {
  const r = new Rig();
  await r.start();
  await r.read({ 'a.yaml': port('a', 8080), 'b.yaml': port('b', 9090) });
  await r.read({ 'a.yaml': port('a', 8081), 'b.yaml': port('b', 8080) });
  assert.deepEqual(r.state(), ['a 8080 ending', 'a 8081', 'b 9090']);
  assert.equal(r.blocked('b'), 'Predicate NodePorts failed: port 8080/TCP is used by pod default/a, which is ending');
  await r.finish();
  assert.deepEqual(r.state(), ['a 8081', 'b 8080', 'b 9090 ending']);
  await r.finish();
  assert.deepEqual(r.state(), ['a 8081', 'b 8080']);
});

test('two manifests swap their ports: both end, and each comes when the other is gone', async () => {
  const r = new Rig();
  await r.start();
  await r.read({ 'a.yaml': port('a', 8080), 'b.yaml': port('b', 9090) });
  await r.read({ 'a.yaml': port('a', 9090), 'b.yaml': port('b', 8080) });
  await r.finish();
  assert.deepEqual(r.state(), ['a 9090', 'b 8080']);
  assert.deepEqual([...r.refused], []);
});

test('only the namespace changes: the new pod comes when the old one has ended', async () => {
  const r = new Rig();
  await r.start();
  await r.read({ 'web.yaml': port('web', 8080) });
  await r.read({ 'web.yaml': port('web', 8080).replace('name: web', 'name: web\n  namespace: shop') });
  assert.deepEqual(r.state(), ['web 8080 ending', 'web 8080 refused']);
  assert.equal(r.refused.get('web'), 'Predicate NodePorts failed: port 8080/TCP is used by pod default/web, which is ending');
  await r.finish();
  assert.deepEqual(r.state(), ['web 8080']);
});

test('a pod is moved off the node by an edit, refused under a new UID, and comes back by an edit or by a label', async () => {
  const r = new Rig();
  await r.start();
  await r.read({ 'web.yaml': manifest('web') });
  const first = r.uid('web');
  await r.read({ 'web.yaml': manifest('web', { extra: '  nodeSelector: {disktype: nvme}' }) });
  assert.deepEqual(r.state(), ['web ending', 'web refused']);
  await r.finish();
  const away = r.uid('web');
  await r.settle();
  assert.equal(r.uid('web'), away, 'as long as it is refused it keeps its UID');
  r.labels = { ...r.labels, disktype: 'nvme' };
  r.admission.again();
  await r.settle();
  assert.deepEqual(r.state(), ['web']);
  assert.equal(new Set([first, away, r.uid('web')]).size, 3);
  await r.read({ 'web.yaml': manifest('web', { extra: '  nodeSelector: {disktype: sata}' }) });
  await r.finish();
  await r.read({ 'web.yaml': manifest('web') });
  assert.deepEqual(r.state(), ['web']);
});

test('an edit that needs a port of the host is blocked, over a restart of the agent too, and carried out when it is free', async () => {
  const r = new Rig();
  await r.start();
  await r.read({ 'web.yaml': port('web', 8080) });
  const uid = r.uid('web');
  r.host.push({ protocol: 'TCP', port: 22, ip: '0.0.0.0' });
  await r.read({ 'web.yaml': port('web', 22) });
  assert.deepEqual([r.state(), r.uid('web')], [['web 8080'], uid]);

  const again = new Rig(r);
  again.host.push(...r.host);
  await again.start();
  assert.deepEqual([again.state(), again.uid('web')], [['web 8080'], uid]);
  assert.match(again.blocked('web') ?? '', /port 22\/TCP is used by a process of the host/);
  again.host.length = 0;
  await again.clock.advance(10_000);
  await again.settle();
  assert.deepEqual(again.state(), ['web 22', 'web 8080 ending']);
  assert.equal(again.blocked('web'), undefined);
});

test('the agent starts again with one pod running and one refused, the refused one first by age: nothing changes', async () => {
  const r = new Rig();
  await r.start();
  await r.read({ 'b.yaml': port('b', 8080) });
  await r.read({ 'a.yaml': port('a', 8080) });
  const uids = ['a', 'b'].map((n) => r.uid(n));
  assert.deepEqual(r.state(), ['a 8080 refused', 'b 8080']);
  const again = new Rig(r);
  await again.start();
  assert.deepEqual([again.state(), ['a', 'b'].map((n) => again.uid(n))], [['a 8080 refused', 'b 8080'], uids]);
  await again.read({ 'b.yaml': undefined });
  await again.finish();
  assert.deepEqual(again.state(), ['a 8080']);
  assert.notEqual(again.uid('a'), uids[0]);
});
