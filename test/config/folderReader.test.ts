import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import type { watch as fsWatch } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { FsFolderReader } from '../../src/config/folderReader.ts';
import { systemClock } from '../../src/world/clock.ts';
import type { FolderListing } from '../../src/world/folder.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { until } from '../until.ts';

const roots: string[] = [];
const folder = async (): Promise<string> => {
  const root = await mkdtemp(join(tmpdir(), 'podsched-folder-'));
  roots.push(root);
  await mkdir(join(root, 'm'), { mode: 0o755 });
  return join(root, 'm');
};
after(async () => {
  for (const root of roots) await rm(root, { recursive: true, force: true });
});
const reader = (dir: string, pollMs = 60_000, watch?: typeof fsWatch): FsFolderReader =>
  new FsFolderReader(dir, { clock: systemClock, pollMs: () => pollMs, ...(watch === undefined ? {} : { watch }) });
const names = (l: FolderListing): string[] => (l.ok ? l.files.map((f) => f.name) : [l.message]);
const texts = (l: FolderListing): Record<string, string> =>
  l.ok
    ? Object.fromEntries(l.files.map((f) => [f.name, f.content.ok ? Buffer.from(f.content.bytes).toString() : f.content.message]))
    : { '': l.message };

/** Counts ticks and waits for the next one. */
const watching = (r: FsFolderReader) => {
  const stop = new AbortController();
  const state = { ticks: 0, degraded: [] as (string | undefined)[] };
  let wake = (): void => {};
  r.watch(
    () => {
      state.ticks++;
      wake();
    },
    (reason) => state.degraded.push(reason),
    stop.signal,
  );
  const next = async (ms = 30_000): Promise<void> => {
    const from = state.ticks;
    const end = performance.now() + ms;
    while (state.ticks === from) {
      assert.ok(performance.now() < end, 'no tick came');
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, 50);
      });
    }
  };
  return { state, next, stop: () => stop.abort() };
};

test('a signature beside a manifest is given with it, and is no manifest; one that cannot be read is none', async () => {
  const dir = await folder();
  await writeFile(join(dir, 'a.yaml'), 'a');
  await writeFile(join(dir, 'a.yaml.sig'), 'signed');
  await writeFile(join(dir, 'b.yaml'), 'b');
  await mkdir(join(dir, 'b.yaml.sig'));
  await writeFile(join(dir, 'c.yaml.sig'), 'alone');
  const listing = await reader(dir).read();
  assert.ok(listing.ok);
  assert.deepEqual(
    listing.files.map((f) => [f.name, f.signature === undefined ? undefined : Buffer.from(f.signature).toString()]),
    [
      ['a.yaml', 'signed'],
      ['b.yaml', undefined],
    ],
  );
});

test('manifests are given whole, by name; droppings, folders and the configuration are not given or named as what they are', async () => {
  const dir = await folder();
  for (const name of ['b.yaml', 'a.json', '.x.yaml', 'b.yaml~', '4913', 'podsched.yaml', 'c.txt'])
    await writeFile(join(dir, name), name, { mode: 0o644 });
  await mkdir(join(dir, 'd.yaml'));
  execFileSync('mkfifo', [join(dir, 'e.yaml')]);
  assert.deepEqual(texts(await reader(dir).read()), {
    'a.json': 'a.json',
    'b.yaml': 'b.yaml',
    'd.yaml': 'a folder, not a regular file',
    'e.yaml': 'a FIFO, not a regular file',
  });
});

test('B10: more than 1 MiB is not read; exactly 1 MiB is', async () => {
  const dir = await folder();
  await writeFile(join(dir, 'huge.yaml'), '');
  await truncate(join(dir, 'huge.yaml'), 50 << 20);
  await writeFile(join(dir, 'full.yaml'), Buffer.alloc(1 << 20, 0x20));
  await writeFile(join(dir, 'over.yaml'), Buffer.alloc((1 << 20) + 1, 0x20));
  const listing = await reader(dir).read();
  assert.ok(listing.ok);
  assert.deepEqual(
    listing.files.map((f) => [f.name, f.content.ok ? f.content.bytes.length : f.content.reason]),
    [
      ['full.yaml', 1 << 20],
      ['huge.yaml', 'TooLarge'],
      ['over.yaml', 'TooLarge'],
    ],
  );
});

test('B10: mode 000 is named (root reads it all the same)', async () => {
  const dir = await folder();
  await writeFile(join(dir, 'a.yaml'), 'x');
  await chmod(join(dir, 'a.yaml'), 0);
  const said = texts(await reader(dir).read())['a.yaml'];
  assert.equal(said, process.getuid?.() === 0 ? 'x' : 'permission denied');
});

test('permissions of file and folder are judged behind links; group and others count', async () => {
  const dir = await folder();
  for (const [name, mode] of [
    ['ok.yaml', 0o644],
    ['group.yaml', 0o664],
    ['all.yaml', 0o666],
  ] as const) {
    await writeFile(join(dir, name), 'x');
    await chmod(join(dir, name), mode);
  }
  await symlink('all.yaml', join(dir, 'link.yaml'));
  const listing = await reader(dir).read();
  assert.ok(listing.ok);
  assert.deepEqual(Object.fromEntries(listing.files.map((f) => [f.name, f.insecure])), {
    'all.yaml': 'the file has mode 0666: others may write',
    'group.yaml': 'the file has mode 0664: its group may write',
    'link.yaml': 'the file has mode 0666: others may write',
    'ok.yaml': undefined,
  });
  assert.equal(listing.insecure, undefined);
  await chmod(dir, 0o775);
  const again = await reader(dir).read();
  assert.equal(again.ok && again.insecure, 'the folder has mode 0775: its group may write');
});

test('a missing folder, or a file in its place, is a fault with its reason', async () => {
  const dir = await folder();
  assert.deepEqual(await reader(join(dir, 'no')).read(), { ok: false, message: `${join(dir, 'no')} does not exist` });
  await writeFile(join(dir, 'file'), 'x');
  assert.deepEqual(await reader(join(dir, 'file')).read(), { ok: false, message: `${join(dir, 'file')} is not a folder` });
});

test('A5: a link to nothing is there and cannot be read; when its target comes it is read; removed it is absent', async () => {
  const dir = await folder();
  await symlink('/proc/nowhere/web.yaml', join(dir, 'web.yaml'));
  await symlink('loop.yaml', join(dir, 'loop.yaml'));
  const r = reader(dir);
  assert.deepEqual(texts(await r.read()), { 'loop.yaml': 'a link that leads to itself', 'web.yaml': 'a link that leads nowhere' });
  await unlink(join(dir, 'loop.yaml'));
  await unlink(join(dir, 'web.yaml'));
  await symlink('../late.yaml', join(dir, 'web.yaml'));
  await writeFile(join(dir, '../late.yaml'), 'late');
  assert.deepEqual(texts(await r.read()), { 'web.yaml': 'late' });
  await unlink(join(dir, 'web.yaml'));
  assert.deepEqual(await r.read(), { ok: true, files: [] });
});

test('A5: the folder is a link that is flipped five times, as git-sync does: each flip within one poll, and the watch follows', async () => {
  const dir = await folder();
  const root = join(dir, '..');
  for (let i = 0; i <= 5; i++) {
    await mkdir(join(root, `rev${i}`));
    await writeFile(join(root, `rev${i}`, 'web.yaml'), `rev${i}`);
  }
  const flip = async (i: number): Promise<void> => {
    await symlink(`rev${i}`, join(root, 'x'));
    await rename(join(root, 'x'), join(root, 'current'));
  };
  await flip(0);
  const r = reader(join(root, 'current'), 100);
  const w = watching(r);
  for (let i = 1; i <= 5; i++) {
    await flip(i);
    await w.next();
    assert.deepEqual(texts(await r.read()), { 'web.yaml': `rev${i}` });
  }
  w.stop();
});

test('A6: fifty atomic replaces: each is noticed, by the watch alone', async () => {
  const dir = await folder();
  await writeFile(join(dir, 'web.yaml'), '0');
  const r = reader(dir);
  const w = watching(r);
  for (let i = 1; i <= 50; i++) {
    const beside = join(dir, '..', 'new');
    await writeFile(beside, `${i}`);
    const noticed = w.next(); // asked first: the tick may come before rename says that it is done
    await rename(beside, join(dir, 'web.yaml'));
    await noticed;
    assert.deepEqual(texts(await r.read()), { 'web.yaml': `${i}` });
  }
  w.stop();
});

/** A watch whose events the test makes, and the ticks that come of them. */
function played(dir: string) {
  const stop = new AbortController();
  const clock = new FakeClock();
  const state = { ticks: 0 };
  let happens: (type: 'rename' | 'change', name: string) => void = () => {};
  const watch = ((_: string, listener: typeof happens) => {
    happens = listener;
    return { on: () => {}, close: () => {} };
  }) as unknown as typeof fsWatch;
  const tick = (): void => {
    state.ticks++;
  };
  new FsFolderReader(dir, { clock, pollMs: () => 60_000, watch }).watch(tick, () => {}, stop.signal);
  return { clock, state, happens: (type: 'rename' | 'change', name: string) => happens(type, name), stop: () => stop.abort() };
}

test('a burst of events is one tick after 20 quiet ms; events without end tick once a second all the same', async () => {
  const p = played(await folder());
  for (let i = 0; i < 20; i++) {
    p.happens('change', 'web.yaml');
    await p.clock.advance(19);
  }
  assert.equal(p.state.ticks, 0);
  await p.clock.advance(1);
  assert.equal(p.state.ticks, 1);
  await p.clock.advance(1000);
  assert.equal(p.state.ticks, 1);
  for (let ms = 0; ms < 2300; ms += 5) {
    p.happens('change', 'web.yaml');
    await p.clock.advance(5);
  }
  assert.equal(p.state.ticks, 3, 'a writer without end does not silence the others');
  p.stop();
});

const waits: readonly [string, readonly (readonly ['rename' | 'change', string])[], number][] = [
  ['a file moved in is whole: 5 ms', [['rename', 'whole.yaml']], 5],
  ['a file removed: 5 ms', [['rename', 'gone.yaml']], 5],
  ['a file made and not written yet: 20 ms', [['rename', 'empty.yaml']], 20],
  ['a file being written: 20 ms', [['change', 'whole.yaml']], 20],
  [
    'written, and another moved in after it: 20 ms',
    [
      ['change', 'whole.yaml'],
      ['rename', 'whole.yaml'],
    ],
    20,
  ],
  ['a link made by git-sync or a ConfigMap mount: 5 ms', [['rename', '..data']], 5],
  [
    'what is no manifest is written and then moved: 5 ms',
    [
      ['change', '.new'],
      ['rename', '.new'],
      ['rename', 'whole.yaml'],
    ],
    5,
  ],
];
for (const [claim, events, ms] of waits) {
  test(`the folder is read when it was quiet: ${claim}`, async () => {
    const dir = await folder();
    await writeFile(join(dir, 'whole.yaml'), 'x');
    await writeFile(join(dir, 'empty.yaml'), '');
    const p = played(dir);
    for (const event of events) p.happens(...event);
    await p.clock.advance(ms - 1);
    assert.equal(p.state.ticks, 0);
    await p.clock.advance(1);
    assert.equal(p.state.ticks, 1);
    p.stop();
  });
}

test('A1: vim -c :wq twenty times: what is read is always the file, never its absence', async (t) => {
  const dir = await folder();
  await writeFile(join(dir, 'web.yaml'), 'same');
  // how long an editor takes for its steps, and a reader for a look, is the machine's; by this clock the file is away for no time
  const clock = new FakeClock();
  const r = new FsFolderReader(dir, { clock, pollMs: () => 60_000 });
  await r.read();
  const seen = new Set<string>();
  let reading = true;
  let reads = 0;
  const read = async (): Promise<void> => {
    for (; reading; reads++) seen.add(JSON.stringify(names(await r.read())));
  };
  const ended = read();
  t.after(() => {
    reading = false;
  });
  for (let i = 0; i < 20; i++) {
    // the steps of vim: probe, back-up by renaming, write anew, remove the back-up
    await writeFile(join(dir, '4913'), '');
    await unlink(join(dir, '4913'));
    await rename(join(dir, 'web.yaml'), join(dir, 'web.yaml~'));
    await until('the reader misses it', () => clock.sleeping === 1);
    await writeFile(join(dir, 'web.yaml'), 'same');
    await unlink(join(dir, 'web.yaml~'));
    const before = reads;
    await clock.advance(5);
    await until('it has read on', () => reads > before);
  }
  reading = false;
  await ended;
  assert.deepEqual([...seen], ['["web.yaml"]']);
});

test('A7: inotify is exhausted: told with its remedy, polled on, and watched again as soon as it works', async () => {
  const dir = await folder();
  const { watch } = await import('node:fs');
  let full = true;
  const scarce = ((...args: Parameters<typeof fsWatch>) => {
    if (full) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
    return watch(...args);
  }) as typeof fsWatch;
  const r = reader(dir, 50, scarce);
  const w = watching(r);
  assert.match(w.state.degraded[0] ?? '', /ENOSPC, raise fs\.inotify\.max_user_watches\): polling only/);
  await writeFile(join(dir, 'web.yaml'), 'x');
  await w.next();
  assert.deepEqual(names(await r.read()), ['web.yaml']);
  full = false;
  await w.next();
  await w.next();
  assert.deepEqual(w.state.degraded.slice(1), [undefined]);
  w.stop();
});

test('A7: a watcher that fails later does not throw: polling goes on and it is armed again', async () => {
  const dir = await folder();
  const { watch } = await import('node:fs');
  const handles: ReturnType<typeof watch>[] = [];
  const r = reader(dir, 50, ((...args: Parameters<typeof fsWatch>) => {
    const handle = watch(...args);
    handles.push(handle);
    return handle;
  }) as typeof fsWatch);
  const w = watching(r);
  handles[0]?.emit('error', Object.assign(new Error('queue'), { code: 'EIO' }));
  assert.match(w.state.degraded[0] ?? '', /EIO/);
  await w.next();
  assert.equal(handles.length, 2);
  assert.deepEqual(w.state.degraded.slice(1), [undefined]);
  w.stop();
});

test('the folder is removed and made again: a fault meanwhile, then watched again', async () => {
  const dir = await folder();
  await writeFile(join(dir, 'web.yaml'), 'x');
  const r = reader(dir, 100);
  const w = watching(r);
  await rm(dir, { recursive: true });
  await w.next();
  assert.equal((await r.read()).ok, false);
  await mkdir(dir);
  await w.next();
  await w.next();
  await writeFile(join(dir, 'web.yaml'), 'y');
  await w.next();
  assert.deepEqual(texts(await r.read()), { 'web.yaml': 'y' });
  w.stop();
});

test('abort ends watch and poll', async () => {
  const dir = await folder();
  const r = reader(dir, 20);
  const w = watching(r);
  w.stop();
  await writeFile(join(dir, 'web.yaml'), 'x');
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(w.state.ticks, 0);
});
