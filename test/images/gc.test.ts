import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import { type Container, type ContainerId, labels, type SandboxId } from '../../src/container/words.ts';
import { diskUse } from '../../src/images/diskUse.ts';
import { ImageGc, type ImageGcSettings } from '../../src/images/gc.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

const minute = 60_000;
const day = 86_400_000;

/** A disk of 1000 bytes whose images take what the runtime says of them, and a collector that housekeeping asks. */
class Room {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly events: string[] = [];
  containers: Container[] = [];
  settings: ImageGcSettings = { highPercent: 85, lowPercent: 80, minimumAgeMs: 2 * minute };
  settled = true;
  offline = false;
  /** The runtime takes so long to list its containers. */
  slowMs = 0;
  known: string[] = [];
  imported: string[] = [];
  sandbox: string | undefined = 'localhost/pause:1';
  /** Bytes that others have on the disk. */
  others = 0;
  capacityBytes = 1000;
  /** Of an image's size, what its removal gives back at once. */
  gives = 1;
  changes = 0;
  readonly gc: ImageGc;

  constructor(images: Readonly<Record<string, number>> = {}) {
    this.runtime.images.clear();
    this.runtime.filesystems = [{ mountpoint: '/images', usedBytes: 0 }];
    for (const [name, sizeBytes] of Object.entries(images)) this.runtime.images.set(name, { state: 'present', sizeBytes });
    this.gc = new ImageGc({
      clock: this.clock,
      log: silentLog,
      images: this.runtime,
      containers: async () => {
        if (this.slowMs > 0) await this.clock.advance(this.slowMs);
        return this.containers;
      },
      sandboxImage: async () => this.sandbox,
      knownImages: () => this.known,
      imported: () => this.imported,
      diskUse: async (path) => {
        assert.equal(path, '/images');
        const { capacityBytes } = this;
        const gone = this.#bytes('pullable') * (1 - this.gives);
        return { capacityBytes, availableBytes: Math.max(0, capacityBytes - this.others - this.#bytes('present') - gone) };
      },
      settled: () => this.settled,
      offline: () => this.offline,
      settings: () => this.settings,
      event: (type, reason, message) => this.events.push(`${type} ${reason}: ${message}`),
      conditionChanged: () => this.changes++,
    });
  }

  #bytes(state: string): number {
    return [...this.runtime.images.values()].reduce((sum, i) => sum + (i.state === state ? (i.sizeBytes ?? 0) : 0), 0);
  }

  here(): string[] {
    return [...this.runtime.images].flatMap(([name, i]) => (i.state === 'present' ? [name] : [])).sort();
  }

  /** Pods that have containers of these images now, and no others. */
  run(...images: string[]): void {
    this.containers = images.map((image, n) => ({
      id: `c${n}` as ContainerId,
      sandboxId: 's' as SandboxId,
      name: 'c',
      attempt: 0,
      image,
      imageRef: image,
      state: 'running',
      createdAt: this.clock.now(),
      labels: { [labels.podName]: `pod${n}`, [labels.podNamespace]: 'default' },
      annotations: {},
    }));
  }

  /** Housekeeping comes by once a minute. */
  async housekeeping(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += minute) {
      if (this.gc.due()) await this.gc.collect();
      await this.clock.advance(minute);
    }
  }
}

const reasons = (room: Room): (string | undefined)[] => room.events.map((e) => e.split(':')[0]?.split(' ')[1]);
const calls = (room: Room, method: string): number => room.runtime.calls.filter((c) => c.method === method).length;

test('from the high threshold to the low one the image that was used longest ago goes, and is told', async () => {
  const room = new Room({ 'r/a:1': 100, 'r/b:1': 100, 'r/c:1': 100 });
  room.run('r/a:1', 'r/b:1', 'r/c:1');
  await room.housekeeping(6 * minute);
  room.run('r/a:1', 'r/c:1');
  await room.housekeeping(5 * minute);
  room.run('r/c:1');
  await room.housekeeping(5 * minute);
  room.others = 560; // 86 %
  await room.housekeeping(5 * minute);
  assert.deepEqual(room.here(), ['r/a:1', 'r/c:1']);
  assert.deepEqual(room.events, ['Normal ImageRemoved: Image "r/b:1" (100B) was removed: its disk is 86 % full']);
  await room.housekeeping(20 * minute);
  assert.deepEqual(room.here(), ['r/a:1', 'r/c:1'], '76 % is no reason');
});

test('below the high threshold nothing goes, and the runtime is asked every five minutes only', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.others = 740;
  await room.housekeeping(60 * minute);
  assert.deepEqual(room.here(), ['r/a:1']);
  assert.equal(calls(room, 'imageFilesystems'), 12);
  assert.equal(room.clock.sleeping, 0, 'nobody sleeps for it');
});

test('F3: what is used, pinned or imported stays on a full disk, and that it is not enough is told', async () => {
  const room = new Room({ 'r/used:1': 10, 'docker.io/library/named:1': 10, 'r/imported:1': 10, 'localhost/pause:1': 10, 'r/free:1': 10 });
  room.runtime.images.set('r/cri:1', { state: 'present', sizeBytes: 10, pinned: true });
  room.run('r/used:1');
  room.known = ['named:1'];
  room.imported = ['r/imported:1'];
  room.others = 890;
  await room.housekeeping(3 * minute);
  assert.deepEqual(room.here(), ['docker.io/library/named:1', 'localhost/pause:1', 'r/cri:1', 'r/imported:1', 'r/used:1']);
  assert.deepEqual(reasons(room), ['ImageRemoved', 'FreeDiskSpaceFailed']);
  assert.match(
    room.events[1] ?? '',
    /150B should be freed on the disk of images \(95 % full\), and images that may go had 10B: something else/,
  );
  await room.housekeeping(5 * minute);
  assert.deepEqual(reasons(room).slice(2), ['FreeDiskSpaceFailed', 'ImageGCFailed'], 'the second in a row');
  room.others = 0;
  await room.housekeeping(5 * minute);
  room.others = 890;
  const before = room.events.length;
  await room.housekeeping(5 * minute);
  assert.deepEqual(reasons(room).slice(before), ['FreeDiskSpaceFailed'], 'after a success it is the first again');
});

test('an image of several names goes whole, and stays whole when one of them is pinned', async () => {
  const room = new Room();
  const id = `sha256:${'a'.repeat(64)}`;
  room.runtime.images.set('r/x:1', { state: 'present', id, sizeBytes: 50 });
  room.runtime.images.set('r/x:latest', { state: 'present', id, sizeBytes: 50 });
  room.known = ['r/x'];
  const [listed, ...more] = await room.gc.list();
  assert.deepEqual([listed?.tags, listed?.sizeBytes, more], [['r/x:1', 'r/x:latest'], 50, []], 'it is one image');
  room.others = 850;
  await room.housekeeping(10 * minute);
  assert.deepEqual(room.here(), ['r/x:1', 'r/x:latest']);
  room.known = [];
  await room.housekeeping(5 * minute);
  assert.deepEqual(room.here(), []);
  assert.equal(calls(room, 'removeImage'), 1);
});

test('a threshold of 100 removes nothing, ever', async () => {
  const room = new Room({ 'r/a:1': 100, 'r/b:1': 100 });
  room.settings = { highPercent: 100, lowPercent: 80, minimumAgeMs: 0 };
  room.others = 800;
  await room.housekeeping(30 * day);
  assert.deepEqual(room.here(), ['r/a:1', 'r/b:1']);
  assert.deepEqual(room.events, []);
  assert.match(room.gc.condition()?.message ?? '', /100 % full; no image goes by itself .* prune would remove r\/a:1, r\/b:1 \(200B\)$/);
});

test('with a threshold of 100 and room on the disk nobody lists images', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.settings = { highPercent: 100, lowPercent: 80, minimumAgeMs: 0 };
  await room.housekeeping(60 * minute);
  assert.equal(calls(room, 'listImages'), 0);
});

test('a person’s prune works with a threshold of 100 and on an empty disk, and keeps to the pins', async () => {
  const room = new Room({ 'r/a:1': 100, 'r/b:1': 100, 'r/named:1': 1, 'r/used:1': 1, 'r/imported:1': 1, 'localhost/pause:1': 1 });
  room.settings = { highPercent: 100, lowPercent: 80, minimumAgeMs: 2 * minute };
  room.known = ['r/named:1'];
  room.imported = ['r/imported:1'];
  room.run('r/used:1');
  const dry = await room.gc.prune(true);
  assert.deepEqual([dry?.removed.map((i) => i.names[0]), dry?.freedBytes], [['r/a:1', 'r/b:1'], 200]);
  assert.equal(room.here().length, 6, 'a dry run only tells');
  assert.equal(await room.gc.prune(false, 'for want of room'), undefined);
  assert.equal(room.here().length, 6, 'at 100 nothing goes for want of room, ever');
  const pruned = await room.gc.prune(false);
  assert.deepEqual([pruned?.removed.map((i) => i.names[0]), pruned?.freedBytes, pruned?.failed], [['r/a:1', 'r/b:1'], 200, []]);
  assert.deepEqual(room.here(), ['localhost/pause:1', 'r/imported:1', 'r/named:1', 'r/used:1']);
  assert.deepEqual(room.events, ['Normal ImageRemoved: 2 unused images were removed on request: 200B']);
  assert.deepEqual((await room.gc.prune(false))?.removed, []);
});

test('an image that nobody has looked at before is no younger than what is asked for', async () => {
  for (const why of ['on request', 'for want of room'] as const) {
    const room = new Room({ 'r/a:1': 100 });
    room.slowMs = 5;
    assert.deepEqual(
      (await room.gc.prune(false, why))?.removed.map((i) => i.names[0]),
      ['r/a:1'],
      why,
    );
  }
});

test('what cannot be pruned is told with its reason, and the rest goes', async () => {
  const room = new Room({ 'r/a:1': 100, 'r/b:1': 100 });
  room.runtime.failNext('removeImage', new RuntimeError('unknown', 'snapshot is busy'));
  const pruned = await room.gc.prune(false);
  assert.deepEqual(
    pruned?.failed.map((f) => f.message),
    ['image "r/a:1" could not be removed: snapshot is busy'],
  );
  assert.deepEqual(
    pruned?.removed.map((i) => i.names[0]),
    ['r/b:1'],
  );
});

test('before the manifests were read and the runtime was listed nothing goes, and nobody may prune', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.others = 900;
  room.settled = false;
  await room.housekeeping(30 * minute);
  assert.equal(await room.gc.prune(false), undefined);
  assert.equal(room.runtime.calls.length, 0);
  room.settled = true;
  await room.housekeeping(3 * minute);
  assert.deepEqual(room.here(), []);
});

test('what was lost between two removals ends them', async () => {
  const room = new Room({ 'r/a:1': 10, 'r/b:1': 10 });
  room.others = 900;
  await room.housekeeping(minute);
  await room.clock.advance(2 * minute);
  const release = room.runtime.hang('removeImage');
  const collecting = room.gc.collect();
  await room.clock.advance(0);
  room.settled = false;
  release();
  await room.clock.advance(0);
  await collecting;
  assert.deepEqual(room.here(), ['r/b:1']);
});

test('a pod that comes while images go keeps the image it names', async () => {
  const room = new Room({ 'r/a:1': 10, 'r/b:1': 10, 'r/c:1': 10 });
  room.others = 900;
  await room.housekeeping(minute);
  await room.clock.advance(2 * minute);
  const release = room.runtime.hang('removeImage', ([id]) => String(id).includes(Buffer.from('r/a:1').toString('hex')));
  const collecting = room.gc.collect();
  await room.clock.advance(0);
  room.known = ['r/b:1'];
  room.run('r/c:1');
  release();
  await room.clock.advance(0);
  await collecting;
  assert.deepEqual(room.here(), ['r/b:1', 'r/c:1']);
});

test('young images are waited for, without an alarm, and go when they are old enough', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.others = 800;
  await room.housekeeping(minute);
  assert.deepEqual([room.here(), room.events], [['r/a:1'], []]);
  await room.housekeeping(2 * minute);
  assert.deepEqual(room.here(), [], 'two minutes after it was seen, not five');
});

test('F3: while nothing can be pulled, what was used within a week stays', async () => {
  const room = new Room({ 'r/lately:1': 100, 'r/old:1': 100 });
  room.run('r/lately:1', 'r/old:1');
  await room.housekeeping(6 * minute);
  room.run('r/lately:1');
  await room.housekeeping(8 * day);
  room.run();
  room.offline = true;
  room.others = 790;
  await room.housekeeping(10 * minute);
  assert.deepEqual(room.here(), ['r/lately:1']);
  room.others = 850;
  await room.housekeeping(6 * minute);
  assert.deepEqual(room.here(), ['r/lately:1']);
  assert.match(room.events.at(-1) ?? '', /what was used within 7 days stays while nothing can be pulled/);
  room.offline = false;
  await room.housekeeping(6 * minute);
  assert.deepEqual(room.here(), [], 'it can be pulled again');
});

test('a disk that gives space back late does not lose more than was needed', async () => {
  const room = new Room({ 'r/a:1': 50, 'r/b:1': 50, 'r/c:1': 50 });
  room.others = 700;
  room.gives = 0;
  await room.housekeeping(3 * minute);
  assert.equal(room.here().length, 2, '50 bytes were needed: one image');
});

test('where an image gives back more than the runtime says, no more goes than must', async () => {
  const room = new Room({ 'r/a:1': 30, 'r/b:1': 30, 'r/c:1': 30 });
  room.others = 770; // 86 %: 60 are needed, which are two images by their sizes
  const removing = room.runtime.removeImage.bind(room.runtime);
  room.runtime.removeImage = async (id) => {
    await removing(id);
    room.others -= 100;
  };
  await room.housekeeping(3 * minute);
  assert.equal(room.here().length, 2);
});

test('an image that cannot be removed is passed over, and named when it is missed', async () => {
  const room = new Room({ 'r/a:1': 100, 'r/b:1': 100 });
  room.others = 700;
  room.runtime.failNext('removeImage', new RuntimeError('unknown', 'snapshot is busy'));
  await room.housekeeping(3 * minute);
  assert.deepEqual(room.here(), ['r/a:1']);
  assert.deepEqual(reasons(room), ['ImageRemoved']);
  room.others = 800;
  room.runtime.failNext('removeImage', new RuntimeError('unknown', 'snapshot is busy'), 9);
  await room.housekeeping(5 * minute);
  assert.match(room.events.at(-1) ?? '', /FreeDiskSpaceFailed: .*image "r\/a:1" could not be removed: snapshot is busy/);
});

test('a disk without size removes nothing and is told', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.capacityBytes = 0;
  await room.housekeeping(6 * minute);
  assert.deepEqual(reasons(room), ['InvalidDiskCapacity', 'InvalidDiskCapacity', 'ImageGCFailed']);
  assert.deepEqual(room.here(), ['r/a:1']);
  room.runtime.filesystems = [];
  await room.housekeeping(5 * minute);
  assert.match(room.events.at(-1) ?? '', /the runtime does not say where it is/);
});

test('a runtime that is away is no failure of the images', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.runtime.setDown(true);
  await room.housekeeping(30 * minute);
  assert.deepEqual(room.events, []);
  await assert.rejects(room.gc.prune(true));
  await assert.rejects(room.gc.list());
});

test('while nobody can say what the sandbox image is nothing goes', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.others = 900;
  Object.defineProperty(room, 'sandbox', { get: () => assert.fail('no answer') });
  await room.housekeeping(10 * minute);
  assert.deepEqual(room.here(), ['r/a:1']);
});

test('ten points below the threshold the node says what would go, and stops saying it when there is room', async () => {
  const room = new Room({ 'r/a:1': 30, 'r/b:1': 40, 'r/c:1': 30 });
  room.others = 640;
  await room.housekeeping(minute);
  assert.equal(room.gc.condition(), undefined, '74 %');
  room.others = 650;
  await room.housekeeping(5 * minute);
  assert.deepEqual(room.gc.condition(), {
    type: 'ImageDiskFilling',
    status: 'True',
    reason: 'ImageDiskFilling',
    message: 'the file system of /images is 75 % full; at 85 % images go, in this order: r/a:1, r/b:1 (70B)',
  });
  assert.equal(room.changes, 1);
  await room.housekeeping(30 * minute);
  assert.equal(room.changes, 1, 'what stays as it is is no news');
  room.others = 630;
  await room.housekeeping(5 * minute);
  assert.match(room.gc.condition()?.message ?? '', /73 % full/, 'near the line it stays');
  room.others = 610;
  await room.housekeeping(5 * minute);
  assert.equal(room.gc.condition(), undefined, '71 %');
  assert.equal(room.changes, 3);
});

test('what came a moment ago is named, too: it will be old enough then', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.others = 680;
  await room.gc.collect();
  assert.match(room.gc.condition()?.message ?? '', /in this order: r\/a:1 \(100B\)$/);
});

test('a person may prune what cannot be pulled again now, and is told', async () => {
  const room = new Room({ 'r/a:1': 100 });
  room.offline = true;
  const pruned = await room.gc.prune(false);
  assert.deepEqual([pruned?.removed.map((i) => i.names[0]), pruned?.offline], [['r/a:1'], true]);
});

test('the condition says when no image can go, and when those that can are too few', async () => {
  const room = new Room({ 'r/a:1': 10 });
  room.others = 780;
  room.known = ['r/a:1'];
  await room.housekeeping(minute);
  assert.match(room.gc.condition()?.message ?? '', /79 % full; no image can go: each is used or pinned$/);
  room.known = [];
  await room.housekeeping(5 * minute);
  assert.match(room.gc.condition()?.message ?? '', /at 85 % images go, in this order: r\/a:1 \(10B\); that is not enough, 50B are needed$/);
});

test('who uses an image and why it stays is listed', async () => {
  const room = new Room({ 'docker.io/library/web:1': 10, 'r/b:1': 20 });
  room.run('web:1', 'docker.io/library/web:1');
  room.known = ['web:1'];
  const listed = (await room.gc.list()).map((i) => [i.tags, i.sizeBytes, i.usedBy, i.pins]);
  assert.deepEqual(listed, [
    [['docker.io/library/web:1'], 10, ['default/pod0', 'default/pod1'], ['pod']],
    [['r/b:1'], 20, [], []],
  ]);
});

test('the kernel is asked how full a disk is', async () => {
  const disk = await diskUse('/');
  assert.ok(disk.capacityBytes > 0 && disk.availableBytes <= disk.capacityBytes);
  await assert.rejects(diskUse('/nowhere/at/all'));
});
