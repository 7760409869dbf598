/** What lies in the folder of images: imported once, told once, pinned for as long as it lies there. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ImportOptions, ImportResult } from '../../src/images/importer.ts';
import { Preload } from '../../src/images/preload.ts';
import { isArchiveName, readRecords } from '../../src/images/preloadRecords.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';

type Answer = ImportResult | (() => Promise<ImportResult>);

class Room {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly dir = mkdtempSync(join(tmpdir(), 'podsched-preload-'));
  readonly folder = join(this.dir, 'images');
  readonly store = new MemoryStore();
  readonly events: string[] = [];
  readonly imports: string[] = [];
  readonly order: string[] = [];
  readonly came: string[] = [];
  readonly answers = new Map<string, Answer>();
  readonly signal = new AbortController();
  changes = 0;
  preload = this.start();

  constructor(t: TestContext) {
    t.after(() => {
      this.signal.abort();
      rmSync(this.dir, { recursive: true, force: true });
    });
  }

  /** As after a restart of the agent. */
  start(): Preload {
    this.preload = new Preload({
      clock: this.clock,
      log: silentLog,
      folder: this.folder,
      store: this.store,
      images: this.runtime,
      content: this.runtime,
      importFile: (path, o) => this.#import(path, o),
      sandboxImage: { look: async () => void this.order.push('sandbox') },
      event: (type, reason, message) => this.events.push(`${type} ${reason}: ${message}`),
      changed: () => {
        this.changes++;
      },
      imported: (names) => this.came.push(...names),
      ownerUid: process.getuid?.() ?? 0,
    });
    return this.preload;
  }

  look(): Promise<void> {
    return this.preload.look(this.signal.signal);
  }

  async file(name: string, content = 'x'): Promise<string> {
    await this.look(); // makes the folder
    const path = join(this.folder, name);
    writeFileSync(path, content, { mode: 0o644 });
    return path;
  }

  async #import(path: string, o: ImportOptions): Promise<ImportResult> {
    const name = basename(path);
    this.imports.push(name);
    this.order.push(name);
    const stats = statSync(path, { throwIfNoEntry: false });
    const refused = stats && o.refuse?.(stats);
    if (refused !== undefined) return { ok: false, message: `${name}: ${refused}` };
    const answer = this.answers.get(name) ?? { ok: true, names: [`localhost/${name.split('.')[0]}:1`], problems: [] };
    const result = typeof answer === 'function' ? await answer() : answer;
    if (result.ok) for (const image of result.names) this.runtime.images.set(image, { state: 'present' });
    return result;
  }
}

test('archives are known by their names', () => {
  for (const name of ['a.tar', 'a.tar.gz', 'a.tgz', 'a.tar.zst']) assert.equal(isArchiveName(name), true, name);
  for (const name of ['.a.tar', 'a.tar.part', 'a.zip', 'a.gz', 'tar', 'a.tar~']) assert.equal(isArchiveName(name), false, name);
});

test('every archive of the folder is imported, told and pinned, and pods hear of it', async (t) => {
  const room = new Room(t);
  await room.file('b.tar.gz');
  await room.file('notes.txt');
  await room.file('a.tar');
  await room.look();
  assert.deepEqual(room.imports.sort(), ['a.tar', 'b.tar.gz']);
  assert.deepEqual([...room.preload.imported()].sort(), ['localhost/a:1', 'localhost/b:1']);
  assert.deepEqual(room.came.sort(), ['localhost/a:1', 'localhost/b:1']);
  assert.ok(room.events.includes('Normal Imported: Imported localhost/a:1 from a.tar in 0.0s'));
  assert.equal(room.preload.condition(), undefined);
});

test('an archive that is unchanged is not read again, not after a restart of the agent either, and nothing is written', async (t) => {
  const room = new Room(t);
  await room.file('a.tar');
  await room.look();
  const stored = room.store.entries.get('images/imports');
  let writes = 0;
  room.store.put = async () => {
    writes++;
  };
  room.start();
  await room.look();
  await room.preload.runtimeUp(room.signal.signal);
  assert.equal(room.imports.length, 1);
  assert.equal(writes, 0);
  assert.equal(room.store.entries.get('images/imports'), stored);
  assert.deepEqual(room.preload.imported(), ['localhost/a:1']);
});

test('an archive is imported again when it changed, and when the runtime lost one of its images', async (t) => {
  const room = new Room(t);
  const path = await room.file('a.tar');
  await room.look();
  utimesSync(path, 1, 1);
  await room.look();
  assert.equal(room.imports.length, 2);
  room.runtime.images.delete('localhost/a:1');
  await room.look();
  assert.equal(room.imports.length, 3);
  await room.look();
  assert.equal(room.imports.length, 3);
});

test('a broken archive is told once, stands in the conditions, is tried again at the next start, and the rest goes on', async (t) => {
  const room = new Room(t);
  room.answers.set('a.tar', { ok: false, message: 'a.tar: unexpected EOF (the file is cut short)' });
  await room.file('b.tar');
  const path = await room.file('a.tar');
  for (let i = 0; i < 3; i++) await room.look();
  assert.deepEqual(room.imports, ['b.tar', 'a.tar']);
  assert.deepEqual(room.preload.imported(), ['localhost/b:1']);
  const told = () => room.events.filter((e) => e.includes('ImportFailed'));
  assert.deepEqual(told(), ['Warning ImportFailed: a.tar: unexpected EOF (the file is cut short)']);
  room.start();
  await room.look();
  assert.deepEqual(room.imports, ['b.tar', 'a.tar', 'a.tar']);
  assert.equal(told().length, 1);
  assert.equal(room.preload.condition(), 'a.tar: unexpected EOF (the file is cut short)');
  const changes = room.changes;
  room.answers.delete('a.tar');
  writeFileSync(path, 'whole');
  await room.look();
  assert.equal(room.preload.condition(), undefined);
  assert.equal(room.changes, changes + 1);
});

test('a new content that is broken leaves the old images pinned', async (t) => {
  const room = new Room(t);
  const path = await room.file('a.tar');
  await room.look();
  room.answers.set('a.tar', { ok: false, message: 'a.tar: broken' });
  writeFileSync(path, 'broken');
  await room.look();
  assert.deepEqual(room.preload.imported(), ['localhost/a:1']);
  room.start();
  await room.look();
  assert.equal(room.imports.length, 3); // tried again at the start, though the old images are here
});

test('what is wrong with a part of an archive is told, and the part that is right is pinned', async (t) => {
  const room = new Room(t);
  room.answers.set('a.tar', { ok: true, names: ['localhost/a:1'], problems: ['WrongPlatform: image arm64, node amd64 (localhost/arm:1)'] });
  await room.file('a.tar');
  await room.look();
  await room.look();
  assert.equal(room.imports.length, 1);
  assert.deepEqual(room.preload.imported(), ['localhost/a:1']);
  assert.match(room.preload.condition() ?? '', /WrongPlatform/);
  assert.equal(room.events.filter((e) => e.includes('WrongPlatform')).length, 1);
});

test('a file that others may write is not imported, and is once that is mended', async (t) => {
  const room = new Room(t);
  const path = await room.file('a.tar');
  chmodSync(path, 0o666);
  await room.look();
  assert.deepEqual(room.preload.imported(), []);
  assert.match(room.events[0] ?? '', /a\.tar: others may write it \(mode 0666\): chmod o-w/);
  chmodSync(path, 0o644);
  await room.look();
  assert.deepEqual(room.preload.imported(), ['localhost/a:1']);
});

test('a link that leads nowhere is told and ends nothing', async (t) => {
  const room = new Room(t);
  await room.file('b.tar');
  symlinkSync('/no/such/file', join(room.folder, 'a.tar'));
  room.answers.set('a.tar', { ok: false, message: 'a.tar: ENOENT' });
  await room.look();
  assert.deepEqual(room.preload.imported(), ['localhost/b:1']);
});

test('with the file its pin goes, unless another archive brought the same image; the image stays', async (t) => {
  const room = new Room(t);
  room.answers.set('a.tar', { ok: true, names: ['localhost/a:1', 'localhost/both:1'], problems: [] });
  room.answers.set('b.tar', { ok: true, names: ['localhost/both:1'], problems: [] });
  const path = await room.file('a.tar');
  await room.file('b.tar');
  await room.look();
  rmSync(path);
  await room.look();
  assert.deepEqual(room.preload.imported(), ['localhost/both:1']);
  assert.deepEqual(
    room.runtime.calls.filter((c) => c.method === 'labelImage').map((c) => c.args),
    [['localhost/a:1', { 'io.cri-containerd.pinned': '' }]],
  );
  assert.ok(room.runtime.images.has('localhost/a:1'));
});

test('a file that grew while it was imported is nothing yet: not told, not remembered, and read when it is whole', async (t) => {
  const room = new Room(t);
  const path = await room.file('a.tar');
  room.answers.set('a.tar', async () => {
    writeFileSync(path, 'more than before');
    return { ok: false, message: 'a.tar: unexpected EOF' };
  });
  await room.look();
  assert.deepEqual(room.events, []);
  assert.equal(room.preload.condition(), undefined);
  room.answers.delete('a.tar');
  await room.look();
  assert.deepEqual(room.preload.imported(), ['localhost/a:1']);
});

test('who needs an image waits for the first look of this run, and for no later one', async (t) => {
  const room = new Room(t);
  let waits = true;
  const waiting = room.preload.settled(room.signal.signal).then(() => {
    waits = false;
  });
  await settle();
  assert.equal(waits, true);
  await room.look();
  await waiting;
  let finish: (r: ImportResult) => void = () => {};
  room.answers.set('a.tar', () => new Promise((resolve) => (finish = resolve)));
  writeFileSync(join(room.folder, 'a.tar'), 'x');
  const looking = room.look();
  await room.preload.settled(room.signal.signal);
  while (room.imports.length === 0) await settle();
  finish({ ok: false, message: 'a.tar: no' });
  await looking;
});

test('a wait for the first look ends with the signal of who waits', async (t) => {
  const room = new Room(t);
  const stop = new AbortController();
  const waiting = room.preload.settled(stop.signal);
  stop.abort();
  await assert.rejects(waiting, { name: 'AbortError' });
});

test('a runtime that is away ends the look and nothing else: the wait is over, and the next look imports', async (t) => {
  const room = new Room(t);
  await room.file('a.tar');
  await room.look();
  room.start();
  room.runtime.setDown(true);
  await room.look();
  await room.preload.settled(room.signal.signal);
  assert.deepEqual(room.preload.imported(), ['localhost/a:1']); // known from before, and still pinned
  room.runtime.setDown(false);
  room.runtime.images.delete('localhost/a:1');
  await room.preload.runtimeUp(room.signal.signal);
  assert.equal(room.imports.length, 2);
});

test('the folder is looked at again when it was quiet for a while after a change', async (t) => {
  const room = new Room(t);
  await room.look();
  await room.preload.run(room.signal.signal);
  writeFileSync(join(room.folder, 'a.tar'), 'x');
  while (room.clock.nextInMs === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
  await room.clock.advance(4000);
  writeFileSync(join(room.folder, 'a.tar'), 'xx');
  while ((room.clock.nextInMs ?? 0) < 4000) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(room.imports, []);
  await room.clock.advance(5000);
  await room.look();
  assert.deepEqual(room.imports, ['a.tar']);
});

test('what a person brings from elsewhere is pinned while it is here, and a failure is the answer and nothing else', async (t) => {
  const room = new Room(t);
  const path = join(room.dir, 'c.tar');
  writeFileSync(path, 'x', { mode: 0o666 });
  const result = await room.preload.importByHand(path, room.signal.signal);
  assert.deepEqual(result, { ok: true, names: ['localhost/c:1'], problems: [] });
  room.answers.set('d.tar', { ok: false, message: 'd.tar: no' });
  writeFileSync(join(room.dir, 'd.tar'), 'x');
  assert.equal((await room.preload.importByHand(join(room.dir, 'd.tar'), room.signal.signal)).ok, false);
  assert.equal(room.preload.condition(), undefined);
  rmSync(path);
  room.start();
  await room.look();
  assert.deepEqual(room.preload.imported(), ['localhost/c:1']);
  room.runtime.images.delete('localhost/c:1');
  await room.look();
  assert.deepEqual(room.preload.imported(), []);
});

test('an image that is broken can be had again from its archive, by any spelling of its name', async (t) => {
  const room = new Room(t);
  room.answers.set('a.tar', { ok: true, names: ['docker.io/library/a:1'], problems: [] });
  const path = await room.file('a.tar');
  await room.look();
  assert.equal(await room.preload.importAgain('a:1', room.signal.signal), true);
  assert.equal(room.imports.length, 2);
  assert.equal(await room.preload.importAgain('b:1', room.signal.signal), false);
  rmSync(path);
  assert.equal(await room.preload.importAgain('a:1', room.signal.signal), false);
  assert.equal(room.imports.length, 2);
});

test('what the store gives is taken as far as it is what was put there', () => {
  const good = { signature: '1 2', names: ['localhost/a:1'] };
  const table = [
    [undefined, {}],
    [null, {}],
    ['x', {}],
    [{ 'a.tar': good }, { 'a.tar': good }],
    [{ 'a.tar': { ...good, problem: 'p', failed: true } }, { 'a.tar': { ...good, problem: 'p', failed: true } }],
    [{ 'a.tar': { ...good, names: [1] }, 'b.tar': good, 'c.tar': null }, { 'b.tar': good }],
  ] as const;
  for (const [stored, expected] of table) assert.deepEqual(Object.fromEntries(readRecords(stored)), expected);
});

test('the image of sandboxes comes before every archive', async (t) => {
  const room = new Room(t);
  await room.file('a.tar');
  room.order.length = 0;
  await room.look();
  assert.deepEqual(room.order, ['sandbox', 'a.tar']);
});
