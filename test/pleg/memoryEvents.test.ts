import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerId } from '../../src/container/words.ts';
import { killsIn, MemoryEvents, memoryEventsFiles } from '../../src/pleg/memoryEvents.ts';

const uid = 'aaaa-bbbb' as PodUid;
const id = 'c0ffee' as ContainerId;
const text = (kills: number, oom = kills): string => `low 0\nhigh 0\nmax 12\noom ${oom}\noom_kill ${kills}\noom_group_kill 0\n`;

/** A folder that stands for /sys/fs/cgroup, with real watches on it. */
class Room {
  readonly root = mkdtempSync(join(tmpdir(), 'podsched-cgroup-'));
  readonly killed: string[] = [];
  isNew = false;
  readonly events = new MemoryEvents({
    root: this.root,
    killed: (container, pod) => this.killed.push(`${container} of ${pod}`),
    isNew: () => this.isNew,
  });

  constructor(unified = true) {
    if (unified) writeFileSync(join(this.root, 'cgroup.controllers'), 'cpu memory pids\n');
  }

  write(file: string, content: string): void {
    const path = join(this.root, file);
    mkdirSync(dirname(path), { recursive: true });
    // as the kernel: the content changes, the file is never empty
    writeFileSync(path, content, { flag: 'r+' });
  }

  make(file: string, content: string): void {
    const path = join(this.root, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }

  async heard(n: number): Promise<void> {
    const end = performance.now() + 30_000;
    while (this.killed.length < n && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(this.killed.length, n);
  }

  /** Long enough for a change to be heard that must not count. */
  quiet(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 60));
  }

  end(): void {
    this.events.stop();
    rmSync(this.root, { recursive: true, force: true });
  }
}

async function inRoom(work: (room: Room) => Promise<void>, unified = true): Promise<void> {
  const room = new Room(unified);
  try {
    await work(room);
  } finally {
    room.end();
  }
}

const [slice = ''] = memoryEventsFiles(uid, id);

test('a container has its file under the slice of its pod and class, or under plain folders', () => {
  assert.deepEqual(memoryEventsFiles(uid, id), [
    '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaaaa_bbbb.slice/cri-containerd-c0ffee.scope/memory.events',
    '/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podaaaa_bbbb.slice/cri-containerd-c0ffee.scope/memory.events',
    '/kubepods.slice/kubepods-podaaaa_bbbb.slice/cri-containerd-c0ffee.scope/memory.events',
    '/kubepods/burstable/podaaaa-bbbb/c0ffee/memory.events',
    '/kubepods/besteffort/podaaaa-bbbb/c0ffee/memory.events',
    '/kubepods/podaaaa-bbbb/c0ffee/memory.events',
  ]);
});

for (const file of memoryEventsFiles(uid, id))
  test(`a kill that the kernel counts in ${file.replace('/memory.events', '')} is heard, each once`, () =>
    inRoom(async (room) => {
      room.make(file, text(0));
      room.events.podRuns(uid, [id]);
      room.write(file, text(1));
      await room.heard(1);
      room.write(file, text(2));
      await room.heard(2);
      await room.quiet();
      assert.deepEqual(room.killed, [`${id} of ${uid}`, `${id} of ${uid}`]);
    }));

test('what was counted before, and what is no kill, is not heard', () =>
  inRoom(async (room) => {
    room.make(slice, text(3));
    room.events.podRuns(uid, [id]);
    room.write(slice, text(3, 9));
    await room.quiet();
    assert.deepEqual(room.killed, []);
    room.write(slice, text(4, 9));
    await room.heard(1);
  }));

test('one watch per running container, gone when it has ended, and not made anew for one that goes on', () =>
  inRoom(async (room) => {
    const other = 'decaf' as ContainerId;
    const [otherFile = ''] = memoryEventsFiles(uid, other);
    room.make(slice, text(0));
    room.make(otherFile, text(0));
    room.events.podRuns(uid, [id, other]);
    assert.equal(room.events.watches, 2);
    room.events.podRuns(uid, [id, other]);
    assert.equal(room.events.watches, 2);
    room.events.podRuns(uid, [other]);
    assert.equal(room.events.watches, 1);
    room.write(slice, text(1));
    await room.quiet();
    assert.deepEqual(room.killed, []);
    room.write(otherFile, text(1));
    await room.heard(1);
    room.events.podRuns(uid, []);
    assert.equal(room.events.watches, 0);
  }));

test('a kill that is counted and not said yet is found when the container is seen to have ended', () =>
  inRoom(async (room) => {
    room.make(slice, text(0));
    room.events.podRuns(uid, [id]);
    room.write(slice, text(1));
    room.events.podRuns(uid, []);
    assert.deepEqual(room.killed, [`${id} of ${uid}`]);
  }));

test('a cgroup that goes takes its watch with it, without an error', () =>
  inRoom(async (room) => {
    room.make(slice, text(0));
    room.events.podRuns(uid, [id]);
    rmSync(join(room.root, dirname(slice)), { recursive: true });
    const end = performance.now() + 30_000;
    while (room.events.watches > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(room.events.watches, 0);
    assert.deepEqual(room.killed, []);
  }));

test('a file that is missing, and a machine with the older cgroups, are no error', async () => {
  await inRoom(async (room) => {
    room.events.podRuns(uid, [id]);
    assert.equal(room.events.watches, 0);
  });
  await inRoom(async (room) => {
    room.make(slice, text(0));
    room.events.podRuns(uid, [id]);
    assert.equal(room.events.watches, 0);
  }, false);
});

test('a text without the count says nothing', () => {
  assert.equal(killsIn(''), undefined);
  assert.equal(killsIn('oom_group_kill 7\n'), undefined);
  assert.equal(killsIn(text(7)), 7);
});

test('a child that was killed before its container was looked at is told when the container is new, and not once more after a restart of the agent', async () => {
  for (const isNew of [true, false]) {
    await inRoom(async (room) => {
      room.isNew = isNew;
      room.make(slice, text(1));
      room.events.podRuns(uid, [id]);
      assert.deepEqual(room.killed, isNew ? [`${id} of ${uid}`] : []);
    });
  }
});
