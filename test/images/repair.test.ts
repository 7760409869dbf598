import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container as Spec } from '../../src/api/v1.ts';
import type { EnsureResult } from '../../src/container/ensureResult.ts';
import type { ImageInfo } from '../../src/container/runtime.ts';
import { type ContainerId, type ContainerState, type ContainerStatus, labels, type SandboxId } from '../../src/container/words.ts';
import { ImageRepair, type ImageRepairDeps } from '../../src/images/repair.ts';
import type { WallTime } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore, type Store } from '../../src/world/store.ts';

const app = 'r.example/app:1';
const digest = `r.example/app@sha256:${'d'.repeat(64)}`;
const damagedId = `sha256:${'a'.repeat(64)}`;
const sign = 'exec /bin/app: exec format error';

/** A node whose image is damaged; every deed is written down in the order in which it is done. */
class Room {
  readonly deeds: string[] = [];
  readonly events: string[] = [];
  readonly records: ContainerStatus[] = [];
  here: ImageInfo | undefined = {
    id: damagedId,
    tags: [app],
    digests: [digest],
    pinned: false,
    username: '',
    platform: { os: 'linux', architecture: 'arm64' },
  };
  /** What a pull answers; by default the same image. */
  pull: () => EnsureResult = () => ({ ok: true, image: { id: damagedId, username: '' } });
  archive: (() => Promise<boolean>) | undefined;
  log = `${sign}\n`;
  #image = this.here;
  repair: ImageRepair;

  constructor(readonly store: Store = new MemoryStore()) {
    this.repair = this.made();
  }

  made(o: Partial<ImageRepairDeps> = {}): ImageRepair {
    this.repair = new ImageRepair({
      log: silentLog,
      store: this.store,
      images: {
        imageStatus: async (name) =>
          this.here !== undefined && [this.here.id, ...this.here.tags, ...this.here.digests].includes(name) ? this.here : undefined,
      },
      content: {
        dropImage: async (name) => {
          this.deeds.push(`drop ${name}`);
          if (name === this.here?.id) this.here = undefined;
          if (this.here !== undefined)
            this.here = {
              ...this.here,
              tags: this.here.tags.filter((t) => t !== name),
              digests: this.here.digests.filter((t) => t !== name),
            };
        },
      },
      runtime: {
        listContainers: async () => this.records,
        removeContainer: async (id) => {
          this.deeds.push(`remove ${id}`);
          this.records.splice(
            this.records.findIndex((r) => r.id === id),
            1,
          );
        },
      },
      logEnd: async () => this.log,
      mine: (l) => l[labels.managed] === 'pi',
      sandboxImage: async () => 'registry.k8s.io/pause:3.9',
      nodePlatform: { os: 'linux', architecture: 'arm64' },
      ensure: async (_desired, { image, imagePullPolicy }) => {
        this.deeds.push(`pull ${image} (${imagePullPolicy})`);
        const answer = this.pull();
        if (answer.ok && answer.stale === undefined) this.here ??= this.#image;
        return answer;
      },
      reimport: async (name) => {
        if (this.archive === undefined || !(await this.archive())) return false;
        this.deeds.push(`import ${name}`);
        this.here ??= this.#image;
        return true;
      },
      event: (_pod, name, type, reason, message) => this.events.push(`${name} ${type} ${reason}: ${message}`),
      ...o,
    });
    return this.repair;
  }

  /** A record made from the image. */
  record(id: string, state: ContainerState, o: Partial<ContainerStatus> = {}): ContainerStatus {
    const record: ContainerStatus = {
      id: id as ContainerId,
      sandboxId: 's' as SandboxId,
      name: 'c',
      attempt: 0,
      image: app,
      imageRef: damagedId,
      state,
      createdAt: 0 as WallTime,
      labels: { [labels.managed]: 'pi', [labels.podName]: 'web', [labels.containerName]: id },
      annotations: {},
      exitCode: state === 'exited' ? 1 : 0,
      reason: '',
      message: '',
      logPath: '/var/log/pods/x/c/0.log',
      mounts: [],
      ...o,
    };
    this.records.push(record);
    return record;
  }

  async run(ended: ContainerStatus, spec: Partial<Spec> = {}): Promise<boolean> {
    const container: Spec = { name: 'c', image: app, imagePullPolicy: 'IfNotPresent', ...spec };
    const desired = toDesiredPod(
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [container] } },
      { uid: 'uid-1' as PodUid, source: 'file:x.yaml', nodeName: 'pi', firstSeen: '' },
    );
    return await this.repair.repair(desired, container, ended, new AbortController().signal);
  }
}

const damaged = `Image "${app}" is damaged (${sign}), as after a power cut`;
const was = damaged.replace(' is ', ' was ');

test('G1: an image is asked for at its registry, then let go of with all its names and its dead containers, then pulled again, and told', async () => {
  const room = new Room();
  room.record('other', 'exited', { exitCode: 0 });
  assert.equal(await room.run(room.record('dead', 'exited')), true);
  assert.deepEqual(room.deeds, [
    `pull ${app} (Always)`,
    'remove other',
    'remove dead',
    `drop ${damagedId}`,
    `drop ${app}`,
    `drop ${digest}`,
    `pull ${app} (Always)`,
  ]);
  assert.deepEqual(room.events, [`c Warning ImageRepaired: ${was}; it was removed and pulled again`]);
});

test('an image whose archive is here is imported again, and no registry is asked', async () => {
  const room = new Room();
  room.archive = async () => true;
  await room.run(room.record('dead', 'exited'), { imagePullPolicy: 'Never' });
  assert.equal(room.deeds[0], `import ${app}`);
  assert.equal(room.deeds.at(-1), `import ${app}`);
  assert.ok(!room.deeds.some((d) => d.startsWith('pull')));
  assert.deepEqual(room.events, [`c Warning ImageRepaired: ${was}; it was removed and imported again from its archive`]);
});

const kept: readonly (readonly [what: string, why: string, prepare: (room: Room) => Partial<Spec> | undefined])[] = [
  [
    'the registry does not answer',
    'its registry has not answered: connection refused',
    (room) => {
      room.pull = () => ({ ok: true, image: { id: damagedId, username: '' }, stale: 'connection refused' });
      return undefined;
    },
  ],
  [
    'the registry does not have it any more',
    'it cannot be pulled again now: manifest unknown',
    (room) => {
      room.pull = () => ({ ok: false, reason: 'ErrImagePull', message: 'manifest unknown' });
      return undefined;
    },
  ],
  ['it may not be pulled', 'its pull policy is Never and no archive has it', () => ({ imagePullPolicy: 'Never' })],
  [
    'another container runs from it',
    'container busy of pod web runs from it',
    (room) => {
      room.record('busy', 'running');
      return undefined;
    },
  ],
  [
    'somebody else made a container from it',
    'container theirs of pod (none), which is not podsched’s, was made from it',
    (room) => {
      room.record('theirs', 'exited', { labels: { [labels.containerName]: 'theirs' } });
      return undefined;
    },
  ],
  [
    'sandboxes are made of it',
    'sandboxes are made of it',
    (room) => {
      room.made({ sandboxImage: async () => app });
      return undefined;
    },
  ],
];

for (const [what, why, prepare] of kept) {
  test(`nothing is removed while ${what}: it is only told, and tried again at the next end`, async () => {
    const room = new Room();
    const dead = room.record('dead', 'exited');
    const spec = prepare(room);
    await room.run(dead, spec);
    assert.deepEqual(
      room.deeds.filter((d) => /^(drop|remove)/.test(d)),
      [],
    );
    assert.deepEqual(room.events, [`c Warning ImageRepairFailed: ${damaged}; it is kept, because ${why}`]);
    await room.run(dead, spec);
    assert.equal(room.events.length, 2);
  });
}

test('a pin of ours, which the runtime shows, keeps no damaged image', async () => {
  const room = new Room();
  if (room.here !== undefined) room.here = { ...room.here, pinned: true };
  assert.equal(await room.run(room.record('dead', 'exited')), true);
});

test('an image of another platform, or of none that is told, is left to those who say so', async () => {
  for (const platform of [{ os: 'linux', architecture: 'amd64' }, undefined]) {
    const room = new Room();
    const { platform: _, ...rest } = room.here ?? assert.fail();
    room.here = { ...rest, ...(platform && { platform }) };
    await room.run(room.record('dead', 'exited'));
    assert.deepEqual([room.deeds, room.events], [[], []]);
  }
});

test('an end for another reason costs nothing, and one without error not even a look at the log', async () => {
  const room = new Room();
  let looks = 0;
  room.made({
    logEnd: async () => {
      looks++;
      return 'no such option\n';
    },
  });
  await room.run(room.record('wrong', 'exited'));
  assert.equal(looks, 1);
  await room.run(room.record('well', 'exited', { exitCode: 0 }));
  assert.equal(looks, 1);
  assert.deepEqual([room.deeds, room.events], [[], []]);
});

test('one image is replaced once in a boot, by the next agent neither, and that it did not help is told once', async () => {
  const room = new Room();
  await room.run(room.record('dead', 'exited'));
  const done = room.deeds.length;
  await room.run(room.record('dead-again', 'exited'));
  await room.run(room.record('dead-again-2', 'exited'));
  assert.equal(room.deeds.length, done);
  assert.equal(room.events.length, 2);
  assert.match(room.events[1] ?? '', /ImageRepairFailed: .*its repair was tried once already in this boot/);

  const next = new Room(room.store);
  await next.repair.load();
  await next.run(next.record('dead', 'exited'));
  assert.deepEqual(next.deeds, []);
});

test('it is written down before anything is removed: an agent that is killed meanwhile does not begin again', async () => {
  const room = new Room();
  const known: unknown[] = [];
  room.made({
    content: {
      dropImage: async () => {
        known.push(await room.store.get('image-repairs'));
        throw new Error('killed');
      },
    },
  });
  await room.run(room.record('dead', 'exited'));
  assert.deepEqual(known, [[damagedId]]);
});

test('another pod that still has a removed record in hand does not take the new image for damaged', async () => {
  const room = new Room();
  const other = room.record('other', 'exited');
  await room.run(room.record('dead', 'exited'));
  const { length } = room.events;
  await room.run(other);
  assert.equal(room.events.length, length);
});

test('two pods with the same damaged image replace it once', async () => {
  const room = new Room();
  const [one, two] = [room.record('one', 'exited'), room.record('two', 'exited')];
  await Promise.all([room.run(one), room.run(two)]);
  assert.equal(room.deeds.filter((d) => d === `drop ${damagedId}`).length, 1);
  assert.equal(room.events.length, 1);
});

test('a tag that names a newer image by now is not removed', async () => {
  const room = new Room();
  const newer = `sha256:${'b'.repeat(64)}`;
  const old = room.here ?? assert.fail();
  room.made({
    images: { imageStatus: async (name) => (name === app && room.deeds.length > 0 ? { ...old, id: newer } : old) },
  });
  await room.run(room.record('dead', 'exited'));
  assert.deepEqual(room.deeds, [`pull ${app} (Always)`]);
  assert.match(room.events[0] ?? '', /ImageRepaired: .*a newer one under this name/);
});

test('an image that the manifest does not name any more is left alone', async () => {
  const room = new Room();
  await room.run(room.record('dead', 'exited'), { image: 'r.example/app:2' });
  assert.deepEqual([room.deeds, room.events], [[], []]);
});

test('an image that is removed and cannot be fetched is told, and the start goes on to pull it like any other', async () => {
  const room = new Room();
  let pulls = 0;
  room.pull = () =>
    pulls++ === 0 ? { ok: true, image: { id: damagedId, username: '' } } : { ok: false, reason: 'ErrImagePull', message: 'the line broke' };
  await room.run(room.record('dead', 'exited'));
  assert.deepEqual(room.events, [
    `c Warning ImageRepairFailed: ${was}; it was removed and cannot be fetched yet, which is tried again: the line broke`,
  ]);
});

test('a runtime that does not remove it is told as it says', async () => {
  const room = new Room();
  room.made({ content: { dropImage: async () => {} } });
  await room.run(room.record('dead', 'exited'));
  assert.deepEqual(room.events, [
    `c Warning ImageRepairFailed: ${damaged}; it could not be replaced: the runtime still has it after its removal`,
  ]);
});

test('whoever asks for the image meanwhile waits until it is back, and for another image does not', async () => {
  const room = new Room();
  let letGo = (): void => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let pulls = 0;
  room.made({
    ensure: async () => {
      if (pulls++ > 0) await gate;
      return { ok: true, image: { id: damagedId, username: '' } };
    },
  });
  const repairing = room.run(room.record('dead', 'exited'));
  while (pulls < 2) await new Promise((resolve) => setImmediate(resolve));
  const { signal } = new AbortController();
  let back = false;
  const waiting = room.repair.settled(app, signal).then(() => {
    back = true;
  });
  await room.repair.settled('r.example/other:1', signal);
  assert.equal(back, false);
  letGo();
  await Promise.all([repairing, waiting]);
  assert.equal(back, true);
});

/** Two images with a layer in common that is damaged: each is whole for containerd for as long as the other is there. */
class SharedRoom {
  readonly deeds: string[] = [];
  readonly events: string[] = [];
  readonly names: Readonly<Record<string, string>> = { a: `sha256:${'1'.repeat(64)}`, b: `sha256:${'2'.repeat(64)}` };
  readonly here = new Set(['a', 'b']);
  readonly records: ContainerStatus[] = [];
  damagedLayer = true;
  readonly room = new Room();
  readonly repair = this.room.made({
    images: { imageStatus: async (name) => this.image(name) },
    content: {
      dropImage: async (name) => {
        const found = Object.keys(this.names).find((n) => this.names[n] === name);
        if (found === undefined || !this.here.delete(found)) return;
        this.deeds.push(`drop ${found}`);
        if (this.here.size === 0) this.damagedLayer = false;
      },
    },
    runtime: {
      listContainers: async () => this.records,
      removeContainer: async (id) => {
        this.records.splice(
          this.records.findIndex((r) => r.id === id),
          1,
        );
      },
    },
    ensure: async (_desired, { image }) => {
      const [, name = ''] = /^r.example\/(.):1$/.exec(image) ?? [];
      if (!this.here.has(name)) this.deeds.push(`pull ${name}`);
      this.here.add(name);
      return { ok: true, image: { id: this.names[name] ?? '', username: '' } };
    },
  });

  image(text: string): ImageInfo | undefined {
    const name = [...this.here].find((n) => text === `r.example/${n}:1` || text === this.names[n]);
    if (name === undefined) return undefined;
    const tags = [`r.example/${name}:1`];
    return { id: this.names[name] ?? '', tags, digests: [], pinned: false, username: '', platform: { os: 'linux', architecture: 'arm64' } };
  }

  /** A container of it is started, and ends as the layer is. */
  async start(name: string, id: string): Promise<void> {
    const ref = `r.example/${name}:1`;
    const record = this.room.record(id, this.damagedLayer ? 'exited' : 'running', { image: ref, imageRef: this.names[name] ?? '' });
    this.records.push(record);
    if (record.state === 'exited') await this.room.run(record, { image: ref });
  }
}

test('images that each failed again because they share what is damaged are let go of together, once', async () => {
  const shared = new SharedRoom();
  await shared.start('a', 'a1');
  await shared.start('b', 'b1');
  assert.deepEqual(shared.deeds.splice(0), ['drop a', 'pull a', 'drop b', 'pull b']);
  await shared.start('a', 'a2');
  assert.deepEqual(shared.deeds, []);
  await shared.start('b', 'b2');
  assert.deepEqual(shared.deeds, ['drop b', 'drop a', 'pull b']);
  assert.equal(shared.damagedLayer, false);
  assert.match(
    shared.room.events.at(-1) ?? '',
    /ImageRepaired: .*; it and what may share the damage \(r.example\/a:1\) were removed, and it was pulled again/,
  );
});

test('an image that is at fault itself is not let go of again and again with another one', async () => {
  const shared = new SharedRoom();
  await shared.start('a', 'a1');
  await shared.start('b', 'b1');
  await shared.start('a', 'a2');
  await shared.start('b', 'b2');
  shared.deeds.length = 0;
  shared.damagedLayer = true;
  shared.here.add('a');
  await shared.start('b', 'b3');
  assert.deepEqual(shared.deeds, []);
  await shared.start('a', 'a3');
  await shared.start('a', 'a4');
  await shared.start('b', 'b4');
  assert.deepEqual(shared.deeds, ['drop a', 'drop b', 'pull a']);
});

test('an image that runs keeps what it shares', async () => {
  const shared = new SharedRoom();
  await shared.start('a', 'a1');
  await shared.start('b', 'b1');
  await shared.start('a', 'a2');
  shared.records.push(shared.room.record('a-runs', 'running', { image: 'r.example/a:1', imageRef: shared.names.a ?? '' }));
  shared.deeds.length = 0;
  await shared.start('b', 'b2');
  assert.deepEqual(shared.deeds, []);
  assert.match(shared.room.events.at(-1) ?? '', /ImageRepairFailed: .*its repair was tried once already in this boot/);
});
