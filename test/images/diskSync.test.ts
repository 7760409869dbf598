import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { DiskSync, flushFilesystem, pullsToDisk } from '../../src/images/diskSync.ts';
import type { Log } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

class Room {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly warned: string[] = [];
  readonly flushed: string[] = [];
  #ends: (() => void)[] = [];
  fails: Error | undefined;
  /** Each flush lasts until it is let go. */
  held = false;
  readonly disk: DiskSync;

  constructor() {
    const log: Log = { debug: () => {}, info: () => {}, warn: (_n, s) => this.warned.push(s), error: () => {}, child: () => log };
    this.runtime.filesystems = [{ mountpoint: '/var/lib/containerd/overlayfs', usedBytes: 1 }];
    this.disk = new DiskSync({
      clock: this.clock,
      log,
      images: this.runtime,
      flush: async (path) => {
        this.flushed.push(path);
        if (this.fails !== undefined) throw this.fails;
        if (this.held) await new Promise<void>((resolve) => this.#ends.push(resolve));
      },
    });
  }

  async letGo(): Promise<void> {
    this.#ends.shift()?.();
    await settle();
  }
}

test('a pull that fetched something ends when it is on the disk, and one that fetched nothing writes nothing', async () => {
  const room = new Room();
  room.held = true;
  const images = pullsToDisk(room.runtime, room.disk);
  room.runtime.images.set('r.example/x:1', { state: 'pullable' });
  let pulled = false;
  const pull = images.pullImage('r.example/x:1').then((id) => {
    pulled = true;
    return id;
  });
  await settle();
  assert.deepEqual([room.flushed, pulled], [['/var/lib/containerd/overlayfs'], false]);
  await room.letGo();
  assert.equal(await pull, (await images.imageStatus('r.example/x:1'))?.id);
  await images.pullImage('r.example/x:1');
  assert.equal(room.flushed.length, 1);
  assert.equal(room.clock.sleeping, 0, 'no timer is left');
});

test('a pull that failed writes nothing, and is told as it was', async () => {
  const room = new Room();
  await assert.rejects(pullsToDisk(room.runtime, room.disk).pullImage('r.example/absent:1'), /not found/);
  assert.deepEqual(room.flushed, []);
});

test('whoever comes while the disk is written waits for the next round, together with the others', async () => {
  const room = new Room();
  room.held = true;
  const done: string[] = [];
  for (const name of ['first', 'second', 'third']) {
    void room.disk.sync().then(() => done.push(name));
    await settle();
  }
  assert.equal(room.flushed.length, 1);
  await room.letGo();
  assert.deepEqual([done, room.flushed.length], [['first'], 2]);
  await room.letGo();
  assert.deepEqual([done, room.flushed.length], [['first', 'second', 'third'], 2]);
});

test('a card that takes longer than half a minute holds nothing up for longer', async () => {
  const room = new Room();
  room.held = true;
  let over = false;
  void room.disk.sync().then(() => {
    over = true;
  });
  await room.clock.advance(29_000);
  assert.equal(over, false);
  await room.clock.advance(1_000);
  assert.equal(over, true);
});

test('a disk that cannot be asked is told once, and nothing fails for it', async () => {
  const room = new Room();
  room.fails = new Error('spawn sync ENOENT');
  await room.disk.sync();
  await room.disk.sync();
  assert.equal(room.warned.length, 1);
});

test('the file system of a path is written by the real sync, and a path that is not there is said', async () => {
  await flushFilesystem(tmpdir());
  await assert.rejects(flushFilesystem('/nowhere/at/all'), /No such file/);
});
