import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolders, type WriteOptions, writeFiles } from '../../src/volumes/atomicWriter.ts';
import { openFolder } from '../../src/volumes/descriptor.ts';
import { giveToGroup } from '../../src/volumes/ownership.ts';
import type { WallTime } from '../../src/world/clock.ts';
import { folder, mode, snapshot } from './house.ts';

type Files = Readonly<Record<string, string | readonly [string, number]>>;

const now = Date.UTC(2026, 10, 29, 20, 5, 9) as WallTime;

async function write(dir: string, files: Files, o: Partial<WriteOptions> = {}): Promise<boolean> {
  const root = await openFolder(dir);
  assert.ok(root);
  const all = Object.entries(files).map(([path, of]) => {
    const [text, bits] = typeof of === 'string' ? [of, 0o644] : of;
    return [path, { bytes: Buffer.from(text), mode: bits }] as const;
  });
  try {
    return await writeFiles(root, new Map(all), { now, kept: new Set(), ...o });
  } finally {
    await root.close();
  }
}

const names = (dir: string): string[] => readdirSync(dir).sort();
/** The volume as a container sees it, and its folder of the moment. */
const visible = (dir: string): string[] => names(dir).filter((n) => !n.startsWith('..'));
const moments = (dir: string): string[] => names(dir).filter((n) => n.startsWith('..2'));
const read = (dir: string, path: string): string => readFileSync(join(dir, path), 'utf8');

test('the layout is the kubelet’s: a folder of the moment, ..data that leads to it, each name through ..data', async () => {
  const dir = folder();
  assert.equal(await write(dir, { 'a.conf': 'A', 'sub/deep/b': 'B', 'sub/c': 'C' }), true);
  assert.deepEqual(visible(dir), ['a.conf', 'sub']);
  assert.match(moments(dir)[0] ?? '', /^\.\.2026_11_29_20_05_09\.[0-9a-z]+$/);
  assert.equal(readlinkSync(join(dir, '..data')), moments(dir)[0]);
  assert.deepEqual([readlinkSync(join(dir, 'a.conf')), readlinkSync(join(dir, 'sub'))], ['..data/a.conf', '..data/sub']);
  assert.deepEqual([read(dir, 'a.conf'), read(dir, 'sub/deep/b'), read(dir, 'sub/c')], ['A', 'B', 'C']);
  assert.equal(names(dir).length, 4);
});

test('modes are exact whatever the umask is; folders are open to read', async () => {
  const dir = folder();
  const before = process.umask(0o077);
  try {
    await write(dir, { a: ['x', 0o644], b: ['x', 0o400], c: ['x', 0o777], 'sub/d': ['x', 0o440], none: ['x', 0] });
  } finally {
    process.umask(before);
  }
  assert.deepEqual(
    ['a', 'b', 'c', 'sub/d', 'none', 'sub', '..data'].map((n) => mode(join(dir, n))),
    ['644', '400', '777', '440', '0', '755', '755'],
  );
});

test('unchanged content writes nothing, not even a time', async () => {
  const dir = folder();
  await write(dir, { a: 'x', 'sub/b': 'y' });
  const before = [...snapshot(dir), statSync(dir, { bigint: true }).mtimeNs];
  assert.equal(await write(dir, { 'sub/b': 'y', a: ['x', 0o400] }), false, 'a mode alone is no change, as with the kubelet');
  assert.deepEqual([...snapshot(dir), statSync(dir, { bigint: true }).mtimeNs], before);
});

test('a change makes a new folder, removes what is no longer named, and leaves nothing of the former one', async () => {
  const dir = folder();
  await write(dir, { a: 'x', b: 'y', 'sub/c': 'z' });
  const [first] = moments(dir);
  const link = lstatSync(join(dir, 'a'));
  for (const [next, seen] of [
    [{ a: 'X', b: 'y', 'sub/c': 'z' }, ['a', 'b', 'sub']],
    [{ a: 'X', 'sub/d': 'z' }, ['a', 'sub']],
    [{ a: 'X' }, ['a']],
    [{}, []],
    [{ new: '1' }, ['new']],
  ] as const) {
    assert.equal(await write(dir, next), true);
    assert.deepEqual(visible(dir), seen);
    assert.equal(moments(dir).length, 1);
    assert.notEqual(moments(dir)[0], first);
    if ('a' in next) assert.equal(lstatSync(join(dir, 'a')).ino, link.ino, 'a link that is right stays');
  }
});

test('a reader that looks all the time sees all of the old or all of the new', async (t) => {
  const dir = folder();
  const of = (n: number): Files => ({ one: `${n}`, 'sub/two': `${n}`, long: `${n}`.repeat(5000) });
  await write(dir, of(1));
  // opens the folder of the moment, as a program does that wants files that belong together
  const script = join(folder(), 'reader.cjs');
  writeFileSync(
    script,
    `const fs = require('fs'); const dir = ${JSON.stringify(dir)}; let looks = 0; let stop = false; let enough = false; const seen = new Set(); const wrong = [];
     process.on('message', () => { stop = true; });
     (function look() {
       for (let i = 0; i < 50; i++) {
         try {
           const at = dir + '/' + fs.readlinkSync(dir + '/..data');
           const [one, two, long] = ['one', 'sub/two', 'long'].map((n) => fs.readFileSync(at + '/' + n, 'utf8'));
           looks++; seen.add(one);
           if (one !== two || long !== one.repeat(5000)) wrong.push([one, two, long.length]);
         } catch (e) { if (e.code !== 'ENOENT') wrong.push(e.code); }
         // by its name there is always one of them
         try { fs.readFileSync(dir + '/one'); } catch (e) { if (e.code !== 'ENOENT') wrong.push('one ' + e.code); else { try { fs.readFileSync(dir + '/one'); } catch (again) { wrong.push('one twice ' + again.code); } } }
       }
       if (looks > 20 && seen.size > 2 && !enough) { enough = true; process.send('enough'); }
       if (stop) process.send({ looks, seen: seen.size, wrong: wrong.slice(0, 5) }, () => process.exit(0)); else setImmediate(look);
     })();
     process.send('ready');`,
  );
  const reader = fork(script, { execArgv: [] });
  t.after(() => reader.kill());
  await once(reader, 'message');
  // a reader that does not run sees nothing change
  let enough = false;
  reader.once('message', () => {
    enough = true;
  });
  for (let n = 2, end = performance.now() + 30_000; n <= 80 || (!enough && performance.now() < end); n++) await write(dir, of(n));
  const told = new Promise<{ looks: number; seen: number; wrong: unknown[] }>((resolve) => {
    reader.on('message', (message: 'enough' | { looks: number; seen: number; wrong: unknown[] }) => {
      if (message !== 'enough') resolve(message);
    });
  });
  reader.send('stop');
  const result = await told;
  assert.deepEqual(result.wrong, []);
  assert.ok(result.looks > 20 && result.seen > 2, JSON.stringify(result));
});

test('what a crash left in the midst of a change is set right, and nothing else is touched', async () => {
  const dir = folder();
  await write(dir, { a: 'x', b: 'y' });
  const [current] = moments(dir);
  // killed while it wrote the next folder, and before it was renamed
  mkdirSync(join(dir, '..2026_11_29_20_06_00.dead', 'sub'), { recursive: true });
  writeFileSync(join(dir, '..2026_11_29_20_06_00.dead', 'sub', 'a'), 'half');
  symlinkSync('..2026_11_29_20_06_00.dead', join(dir, '..data_tmp'));
  assert.equal(await write(dir, { a: 'x', b: 'y' }), false);
  assert.deepEqual(names(dir), ['..data', current, 'a', 'b'].sort());
  // killed after the rename: links of the former content
  symlinkSync('..data/old', join(dir, 'old'));
  renameSync(join(dir, 'b'), join(dir, '..link_tmp'));
  assert.equal(await write(dir, { a: 'x', b: 'y' }), false);
  assert.deepEqual(names(dir), ['..data', current, 'a', 'b'].sort());
  // a power cut: the folder is there and its files are empty
  writeFileSync(join(dir, '..data', 'a'), '');
  assert.equal(await write(dir, { a: 'x', b: 'y' }), true);
  assert.deepEqual([read(dir, 'a'), moments(dir).length], ['x', 1]);
});

test('links are never followed out of the volume', async () => {
  const outside = folder();
  writeFileSync(join(outside, 'a'), 'theirs');
  const dir = folder();
  symlinkSync(outside, join(dir, '..data'));
  symlinkSync(join(outside, 'a'), join(dir, 'a'));
  symlinkSync(outside, join(dir, 'sub'));
  mkdirSync(join(dir, 'empty'));
  await write(dir, { a: 'ours', 'sub/b': 'ours', empty: 'ours' });
  assert.deepEqual([read(dir, 'a'), read(dir, 'sub/b'), read(dir, 'empty')], ['ours', 'ours', 'ours']);
  assert.deepEqual([names(outside), read(outside, 'a')], [['a'], 'theirs']);
  // a folder of the moment that holds a link to a file with the right content is not the right content
  const [current = ''] = moments(dir);
  renameSync(join(dir, current, 'a'), join(outside, 'moved'));
  symlinkSync(join(outside, 'moved'), join(dir, current, 'a'));
  assert.equal(await write(dir, { a: 'ours', 'sub/b': 'ours', empty: 'ours' }), true);
});

test('a folder with something in it is in the way of a name, and is told; so is a place where something is mounted', async () => {
  const dir = folder();
  mkdirSync(join(dir, 'a', 'full'), { recursive: true });
  await assert.rejects(write(dir, { a: 'x' }), { message: '"a" cannot be made in it (EISDIR)' });
  assert.ok(existsSync(join(dir, 'a', 'full')));
  const other = folder();
  await assert.rejects(write(other, { a: 'x' }, { kept: new Set(['a']) }), /"a" is a file of it, and another volume is mounted there/);
  assert.deepEqual(names(other), []);
});

test('a write that fails leaves the former content and nothing of itself; the text has no content', async () => {
  const dir = folder();
  await write(dir, { a: 'x' });
  const failing = { give: async () => Promise.reject(Object.assign(new Error('full: s3cret'), { code: 'ENOSPC' })) };
  await assert.rejects(write(dir, { a: 's3cret' }, failing), { message: 'no space left for its files' });
  assert.deepEqual([read(dir, 'a'), moments(dir).length, names(dir).length], ['x', 1, 3]);
});

test('the group gets what is new before anybody sees it', async () => {
  const dir = folder();
  await write(dir, { a: 'x' });
  chownSync(dir, 0, 0);
  let seen = '';
  const give = async (made: string): Promise<void> => {
    seen = read(dir, 'a');
    await giveToGroup(made, { fsGroup: 2000, fileBits: 0o440 });
  };
  await write(dir, { a: ['y', 0o400], 'sub/b': ['y', 0o604] }, { give });
  assert.equal(seen, 'x');
  const of = (path: string): string => `${statSync(join(dir, path)).gid} ${mode(join(dir, path))}`;
  assert.deepEqual(['a', 'sub/b', 'sub', '..data'].map(of), ['2000 440', '2000 644', '2000 2755', '2000 2755']);
});

test('folders to mount on are made with all above them, and never through a link', async () => {
  const dir = folder();
  const outside = folder();
  const root = await openFolder(dir);
  assert.ok(root);
  try {
    await makeFolders(root, ['a/b', 'a/c']);
    assert.deepEqual([names(join(dir, 'a')), mode(join(dir, 'a/b'))], [['b', 'c'], '755']);
    symlinkSync(outside, join(dir, 'link'));
    await assert.rejects(makeFolders(root, ['link/x']), /is a file of it/);
    await assert.rejects(makeFolders(root, ['../x']), /leads out/);
    assert.deepEqual(names(outside), []);
  } finally {
    await root.close();
  }
});
