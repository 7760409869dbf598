/** The image of sandboxes: ours is brought, another one only looked for. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ImportResult } from '../../src/images/importer.ts';
import { SandboxImage } from '../../src/images/sandboxImage.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

class Room {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly dir = mkdtempSync(join(tmpdir(), 'podsched-sandbox-'));
  readonly stop = new AbortController();
  readonly imported: string[] = [];
  readonly events: string[] = [];
  changes = 0;
  result: ImportResult = { ok: true, names: ['podsched.dev/pause:1'], problems: [] };
  readonly sandbox = new SandboxImage({
    clock: this.clock,
    log: silentLog,
    sandboxImage: () => this.runtime.sandboxImage(),
    images: this.runtime,
    runDir: this.dir,
    importFile: async (path) => {
      this.imported.push(basename(path));
      assert.ok(gunzipSync(readFileSync(path)).includes('podsched.dev/pause:1'));
      return this.result;
    },
    event: (type, reason, message) => this.events.push(`${type} ${reason}: ${message}`),
    changed: () => {
      this.changes++;
    },
  });

  constructor(t: TestContext) {
    t.after(() => {
      this.stop.abort();
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  async look(image: string | undefined): Promise<string | undefined> {
    this.runtime.pauseImage = image;
    await this.sandbox.look(this.stop.signal);
    return this.sandbox.condition();
  }
}

test('nothing is done where the image is here, and where nobody says which it is', async (t) => {
  const room = new Room(t);
  assert.equal(await room.look('localhost/busybox:1'), undefined);
  assert.equal(await room.look(undefined), undefined);
  assert.deepEqual(room.imported, []);
  assert.equal(room.changes, 0);
  assert.equal(room.clock.sleeping, 0);
});

test('ours is brought out of this program, and nothing of it stays in the folder', async (t) => {
  const room = new Room(t);
  assert.equal(await room.look('podsched.dev/pause:1'), undefined);
  assert.deepEqual(room.imported, ['pause.tar.gz']);
  assert.deepEqual(readdirSync(room.dir), []);
});

test('when ours cannot be brought, that is the condition', async (t) => {
  const room = new Room(t);
  room.result = { ok: false, message: 'pause.tar.gz: no space left on device' };
  assert.match((await room.look('podsched.dev/pause:1')) ?? '', /of this program could not be imported: pause\.tar\.gz: no space left/);
});

test('another one that is missing is a condition at once, one event when it stays, and over when the runtime has pulled it', async (t) => {
  const room = new Room(t);
  const condition = await room.look('registry.k8s.io/pause:3.6');
  assert.match(condition ?? '', /^the sandbox image registry\.k8s\.io\/pause:3\.6 is not on this node.*; `podsched doctor --fix`/);
  assert.deepEqual(room.imported, []);
  assert.deepEqual(room.events, []);
  assert.equal(room.changes, 1);
  for (let i = 0; i < 3; i++) await room.clock.advance(30_000);
  assert.deepEqual(room.events, [`Warning SandboxImageMissing: ${condition}`]);
  room.runtime.images.set('registry.k8s.io/pause:3.6', { state: 'present' });
  await room.clock.advance(30_000);
  assert.equal(room.sandbox.condition(), undefined);
  assert.equal(room.changes, 2);
  assert.equal(room.clock.sleeping, 0);
});

test('many looks wait once, and an abort ends the waiting', async (t) => {
  const room = new Room(t);
  for (let i = 0; i < 3; i++) await room.look('registry.k8s.io/pause:3.6');
  assert.equal(room.clock.sleeping, 1);
  room.stop.abort();
  await settle();
  assert.equal(room.clock.sleeping, 0);
});

test('a runtime that does not answer leaves what was known', async (t) => {
  const room = new Room(t);
  const condition = await room.look('registry.k8s.io/pause:3.6');
  room.runtime.failNext('sandboxImage', new RuntimeError('unavailable', 'away'));
  assert.equal(await room.look('localhost/busybox:1'), condition);
});

test('a first sandbox waits for the first look, but not for ever, and no longer than it is wanted', async (t) => {
  const room = new Room(t);
  let waits = 0;
  const wait = (signal = room.stop.signal) => {
    waits++;
    return room.sandbox.settled(signal).finally(() => waits--);
  };
  const first = wait();
  await settle();
  assert.equal(waits, 1);
  await room.look('localhost/busybox:1');
  await first;
  await wait();
  assert.equal(room.clock.sleeping, 0);
  const silent = new Room(t);
  let over = false;
  const patient = silent.sandbox.settled(silent.stop.signal).then(() => {
    over = true;
  });
  await silent.clock.advance(19_000);
  assert.equal(over, false);
  await silent.clock.advance(1000);
  await patient;
  const stop = new AbortController();
  const given = silent.sandbox.settled(stop.signal);
  stop.abort();
  await assert.rejects(given, { name: 'AbortError' });
});
