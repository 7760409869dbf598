import assert from 'node:assert/strict';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CgroupError } from '../error.ts';
import { type Counters, difference, type EventChange, watchCgroupEvents, watchMemoryEvents } from '../events.ts';
import { Hierarchy } from '../hierarchy.ts';
import { newTree, type Tree } from './tree.ts';

async function group(): Promise<Tree & { readonly dir: string }> {
  const tree = newTree();
  await new Hierarchy({ root: tree.root, fs: tree.fs }).create('g');
  return Object.assign(tree, { dir: join(tree.root, 'g') });
}

const text = (c: Partial<Record<string, number>>): string =>
  Object.entries({ low: 0, high: 0, max: 0, oom: 0, oom_kill: 0, oom_group_kill: 0, ...c })
    .map(([key, value]) => `${key} ${value}\n`)
    .join('');

const until = async (what: string, done: () => boolean): Promise<void> => {
  const end = performance.now() + 30_000;
  while (!done()) {
    if (performance.now() > end) assert.fail(`${what}: not in 30 s`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

test('a difference has only what changed, and new counters began at 0', () => {
  const table: readonly [before: Counters, now: Counters, delta: Counters][] = [
    [{ a: 1 }, { a: 1 }, {}],
    [{ a: 1, b: 2 }, { a: 1, b: 5 }, { b: 3 }],
    [{}, { a: 2, b: 0 }, { a: 2 }],
    [{ populated: 1 }, { populated: 0 }, { populated: -1 }],
  ];
  for (const [before, now, delta] of table) assert.deepEqual(difference(before, now), delta);
});

test('every change of memory.events is told as a difference, from what stood there before', async () => {
  const { dir, put } = await group();
  put('g/memory.events', text({ max: 7 }));
  const seen: EventChange[] = [];
  const abort = new AbortController();
  const first = await watchMemoryEvents(dir, (change) => seen.push(change), { signal: abort.signal });
  assert.equal(first.max, 7);
  put('g/memory.events', text({ max: 9, oom: 1, oom_kill: 2 }));
  const sum = (key: string): number => seen.reduce((n, change) => n + (change.delta[key] ?? 0), 0);
  await until('the kill', () => sum('oom_kill') === 2);
  assert.deepEqual([sum('max'), sum('oom'), seen.at(-1)?.now.max], [2, 1, 9]);
  abort.abort();
  put('g/memory.events', text({ max: 20 }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(sum('max'), 2, 'nothing after an abort');
});

test('a group that empties is seen', async () => {
  const { dir, fs } = await group();
  fs.setProcs(dir, [1]);
  let populated: number | undefined;
  const abort = new AbortController();
  const first = await watchCgroupEvents(dir, (change) => (populated = change.now.populated), { signal: abort.signal });
  assert.equal(first.populated, 1);
  fs.setProcs(dir, []);
  await until('empty', () => populated === 0);
  abort.abort();
});

test('the end of the group ends the watch, once', async () => {
  const { dir, root } = await group();
  const ends: (CgroupError | undefined)[] = [];
  await watchMemoryEvents(dir, () => undefined, { onEnd: (error) => ends.push(error) });
  renameSync(join(dir, 'memory.events'), join(root, 'away'));
  rmSync(dir, { recursive: true });
  await until('the end', () => ends.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.deepEqual(ends, [undefined]);
});

test('watching what is not there is ENOENT with the file', async () => {
  const { dir } = await group();
  await assert.rejects(
    watchMemoryEvents(join(dir, 'nothing'), () => undefined),
    (error: unknown) => {
      assert.ok(error instanceof CgroupError);
      assert.deepEqual([error.code, error.file], ['ENOENT', join(dir, 'nothing/memory.events')]);
      return true;
    },
  );
});

test('an aborted signal starts no watch', async () => {
  const { dir } = await group();
  await assert.rejects(watchMemoryEvents(dir, () => undefined, { signal: AbortSignal.abort() }));
});
