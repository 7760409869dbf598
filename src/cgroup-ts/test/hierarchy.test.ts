import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CgroupError } from '../error.ts';
import { Hierarchy } from '../hierarchy.ts';
import { newTree, type Tree } from './tree.ts';

const over = (tree: Tree, kill?: (pid: number) => void): Hierarchy =>
  new Hierarchy({ root: tree.root, fs: tree.fs, sleep: tree.sleep, ownPid: 99_999, ...(kill && { kill }) });

const isError = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof CgroupError && error.code === code && text.test(error.message);

/** Takes everything and does nothing. */
const deaf = { write: async () => undefined, mkdir: async () => undefined, rmdir: async () => undefined };

test('a group is made with its parents, and every level hands on what is available', async () => {
  const tree = newTree({ controllers: ['cpu', 'memory', 'pids'] });
  const result = await over(tree).create('kubepods/burstable/pod1');
  assert.deepEqual(result, { enabled: ['cpu', 'memory', 'pids'], refused: [] });
  assert.equal(tree.text('cgroup.subtree_control'), 'cpu memory pids');
  assert.equal(tree.text('kubepods/burstable/cgroup.subtree_control'), 'cpu memory pids');
  assert.equal(tree.text('kubepods/burstable/pod1/cgroup.subtree_control'), '', 'the group itself may hold processes');
  assert.equal(tree.text('kubepods/burstable/pod1/memory.max'), 'max');
});

test('creating again writes nothing', async () => {
  const tree = newTree();
  await over(tree).create('a/b');
  const before = tree.fs.calls.length;
  await over(tree).create('a/b');
  assert.deepEqual(
    tree.fs.calls.slice(before).filter((call) => call.startsWith('write')),
    [],
  );
});

test('only wanted controllers are handed on', async () => {
  const tree = newTree();
  const { enabled } = await over(tree).create('a/b', ['memory', 'pids', 'nonsense']);
  assert.deepEqual(enabled, ['memory', 'pids']);
});

test('a controller that one level refuses is told, and the others come through', async () => {
  const tree = newTree({ controllers: ['cpu', 'memory'] });
  tree.fs.fail.set('write cgroup.subtree_control', ['EINVAL', 'EINVAL']); // both at once, then the first alone
  const { enabled, refused } = await over(tree).create('a');
  assert.deepEqual(enabled, ['memory']);
  assert.equal(refused.length, 1);
  assert.equal(refused[0]?.controller, 'cpu');
  assert.equal(refused[0]?.error.value, '+cpu');
});

test('a parent that holds processes cannot hand on: EBUSY is told, the group is there', async () => {
  const tree = newTree({ controllers: ['memory'] });
  const h = over(tree);
  await h.create('busy');
  await h.move('busy', 41);
  const { enabled, refused } = await h.create('busy/child');
  assert.deepEqual(enabled, []);
  assert.deepEqual(
    refused.map((r) => [r.controller, r.at, r.error.code]),
    [['memory', 'busy', 'EBUSY']],
  );
  assert.ok(await h.exists('busy/child'));
});

test('names that leave the tree or hit a kernel file are refused before anything is touched', async () => {
  const tree = newTree();
  for (const name of ['../x', 'a/../../x', 'a/./b', 'cgroup.procs', 'a\0b']) {
    assert.throws(() => over(tree).path(name), isError('EINVAL', /no name of a cgroup/), name);
    await assert.rejects(async () => over(tree).create(name), isError('EINVAL', /no name of a cgroup/), name);
  }
  assert.equal(over(tree).path('/a//b/'), `${tree.root}/a/b`);
  assert.deepEqual(tree.fs.calls, []);
});

test('children, subtree, pids and the populated state are read from the kernel', async () => {
  const tree = newTree();
  const h = over(tree);
  for (const name of ['a/c1', 'a/c2/deep']) await h.create(name);
  await h.move('a/c1', 10);
  await h.move('a/c2/deep', 11);
  assert.deepEqual(await h.list('a'), ['a/c1', 'a/c2']);
  assert.deepEqual(await h.list(''), ['a']);
  assert.deepEqual(await h.subtree('a'), ['a', 'a/c1', 'a/c2', 'a/c2/deep']);
  assert.deepEqual(await h.procs('a'), []);
  assert.deepEqual(await h.procsOfSubtree('a'), [10, 11]);
  assert.equal(await h.populated('a'), true);
  assert.equal(await h.populated('a/c2'), true);
  assert.equal(await h.populated('gone'), false);
  assert.deepEqual(await h.procsOfSubtree('gone'), []);
  await assert.rejects(h.list('gone'), isError('ENOENT', /gone/));
});

test('moving a pid that cannot be one is refused; the kernel’s own error names file and value', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a');
  await assert.rejects(h.move('a', 0), isError('EINVAL', /cgroup\.procs/));
  tree.fs.fail.set('write a/cgroup.procs', ['ESRCH']);
  await assert.rejects(h.move('a', 4242), (error: unknown) => {
    assert.ok(error instanceof CgroupError);
    assert.deepEqual([error.code, error.value, error.file], ['ESRCH', '4242', `${tree.root}/a/cgroup.procs`]);
    return true;
  });
});

test('freezing waits until the kernel says that all are frozen', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a');
  const waiting = new Hierarchy({ root: tree.root, fs: deaf, sleep: tree.sleep }); // a kernel that takes its time
  tree.onSleep = () => {
    if (tree.slept.length === 3) tree.put('a/cgroup.events', 'populated 1\nfrozen 1\n');
  };
  await waiting.freeze('a');
  assert.deepEqual(tree.slept, [10, 20, 40]);
  await h.thaw('a');
  assert.equal(tree.text('a/cgroup.freeze'), '0');
});

test('a group that does not freeze is ETIMEDOUT after the time given', async () => {
  const tree = newTree();
  await over(tree).create('a');
  const h = new Hierarchy({ root: tree.root, fs: deaf, sleep: tree.sleep });
  await assert.rejects(h.freeze('a', { timeoutMs: 1000 }), isError('ETIMEDOUT', /not frozen after 1000 ms/));
  assert.equal(
    tree.slept.reduce((a, b) => a + b, 0),
    1000,
  );
});

test('killing takes one write where the kernel has cgroup.kill', async () => {
  const tree = newTree();
  const h = over(tree, () => assert.fail('no signals needed'));
  await h.create('a/b');
  tree.fs.setProcs(`${tree.root}/a/b`, [10, 11]);
  await h.kill('a');
  assert.deepEqual(
    tree.fs.calls.filter((c) => c.includes('cgroup.kill')),
    ['write a/cgroup.kill 1'],
  );
  assert.deepEqual(await h.procsOfSubtree('a'), []);
});

test('on an old kernel every pid gets SIGKILL, round after round, those born meanwhile too', async () => {
  const tree = newTree({ killFile: false });
  const killed: number[] = [];
  const h = over(tree, (pid) => {
    killed.push(pid);
    if (pid === 12) throw Object.assign(new Error('gone'), { code: 'ESRCH' });
  });
  await h.create('a/b');
  tree.fs.setProcs(`${tree.root}/a`, [10]);
  tree.fs.setProcs(`${tree.root}/a/b`, [11, 12]);
  tree.onSleep = () => {
    tree.fs.setProcs(`${tree.root}/a`, []);
    tree.fs.setProcs(`${tree.root}/a/b`, tree.slept.length === 1 ? [13] : []);
  };
  await h.kill('a');
  assert.deepEqual(killed, [10, 11, 12, 13]);
  assert.equal(tree.slept.length, 2);
});

test('what cannot die is told with its pid, after a bounded number of rounds', async () => {
  const tree = newTree({ killFile: false });
  let signals = 0;
  const h = over(tree, () => void signals++);
  await h.create('a');
  tree.fs.setProcs(`${tree.root}/a`, [77]);
  await assert.rejects(h.kill('a'), isError('ETIMEDOUT', /still alive after SIGKILL: pid 77/));
  assert.equal(signals, 10);
});

test('a group that holds this process is never killed', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a');
  tree.fs.setProcs(`${tree.root}/a`, [10, 99_999]);
  await assert.rejects(h.kill('a'), isError('EPERM', /this process itself/));
  await assert.rejects(h.delete('a'), isError('EPERM', /this process itself/));
  assert.deepEqual(await h.procs('a'), [10, 99_999]);
});

test('deleting goes leaf first', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a/b/c');
  await h.create('a/d');
  tree.fs.setProcs(`${tree.root}/a/b/c`, [10]);
  await h.delete('a');
  assert.equal(await h.exists('a'), false);
  assert.deepEqual(
    tree.fs.calls.filter((c) => c.startsWith('rmdir')),
    ['rmdir a/d', 'rmdir a/b/c', 'rmdir a/b', 'rmdir a'],
  );
});

test('a busy group is tried again with longer and longer pauses, then it is gone', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a');
  tree.fs.fail.set('rmdir a', ['EBUSY', 'EBUSY', 'EBUSY']);
  await h.delete('a');
  assert.deepEqual(tree.slept, [10, 20, 40]);
  assert.equal(await h.exists('a'), false);
});

test('a straggler that comes in between is killed as well', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a');
  tree.fs.fail.set('rmdir a', ['EBUSY']);
  tree.onSleep = () => {
    if (tree.slept.length === 1) tree.fs.setProcs(`${tree.root}/a`, [55]);
  };
  await h.delete('a');
  assert.equal(await h.exists('a'), false);
  assert.ok(tree.fs.calls.includes('write a/cgroup.kill 1'));
});

test('a group that stays busy is EBUSY with its pids, after 3 s in all', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a');
  tree.fs.setProcs(`${tree.root}/a`, [66]);
  await assert.rejects(h.delete('a', { kill: false }), isError('EBUSY', /66/));
  assert.equal(
    tree.slept.reduce((a, b) => a + b, 0),
    3000,
  );
});

test('an error that waiting does not heal comes at once, and a group that is not there is none', async () => {
  const tree = newTree();
  const h = over(tree);
  await h.create('a');
  tree.fs.fail.set('rmdir a', ['EACCES']);
  await assert.rejects(h.delete('a'), isError('EACCES', /permission/));
  assert.deepEqual(tree.slept, []);
  await h.delete('never-made');
  await assert.rejects(h.delete(''), isError('EPERM', /root group/));
});
