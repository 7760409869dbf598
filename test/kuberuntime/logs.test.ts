import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { fsLogFolders } from '../../src/kuberuntime/logs.ts';

const pod = { uid: 'uid-1' as PodUid, name: 'web', namespace: 'default' };

async function inFolder(work: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'podsched-logs-'));
  try {
    await work(join(root, 'pods'));
  } finally {
    await rm(root, { recursive: true });
  }
}

test('folders of pod and container are made 0755 whatever the umask is, and again without harm', async () => {
  await inFolder(async (root) => {
    const logs = fsLogFolders(root);
    const umask = process.umask(0o077);
    try {
      for (let i = 0; i < 2; i++) {
        await logs.ensure(pod);
        await logs.ensure(pod, 'c');
      }
    } finally {
      process.umask(umask);
    }
    for (const dir of ['default_web_uid-1', 'default_web_uid-1/c']) assert.equal((await stat(join(root, dir))).mode & 0o777, 0o755);
  });
});

test('the next attempt follows the highest number among logs, rotated ones too', async () => {
  await inFolder(async (root) => {
    const logs = fsLogFolders(root);
    assert.equal(await logs.nextAttempt(pod, 'c'), 0);
    await logs.ensure(pod);
    await logs.ensure(pod, 'c');
    assert.equal(await logs.nextAttempt(pod, 'c'), 0);
    for (const name of ['2.log', '10.log.20260101-000000.gz', '7.log', 'x.log', 'notes']) {
      await writeFile(join(root, 'default_web_uid-1', 'c', name), '');
    }
    assert.equal(await logs.nextAttempt(pod, 'c'), 11);
  });
});

test('a record’s log goes with its rotated parts, its neighbours stay', async () => {
  await inFolder(async (root) => {
    const logs = fsLogFolders(root);
    await logs.ensure(pod);
    await logs.ensure(pod, 'c');
    const dir = join(root, 'default_web_uid-1', 'c');
    for (const name of ['1.log', '1.log.20260101-000000', '10.log', '11.log.gz']) await writeFile(join(dir, name), '');
    await logs.removeLog(pod, 'c', 1);
    assert.deepEqual((await readdir(dir)).sort(), ['10.log', '11.log.gz']);
    await logs.removeLog(pod, 'other', 1);
  });
});

test('only folders that podsched made are listed; a folder of another agent stays out of it', async () => {
  await inFolder(async (root) => {
    const logs = fsLogFolders(root);
    assert.deepEqual(await logs.list(), []);
    await logs.ensure(pod);
    await logs.ensure(pod, 'c');
    await mkdir(join(root, 'kube-system_dns_uid-2'));
    await mkdir(join(root, 'something'));
    assert.deepEqual(await logs.list(), [pod]);
    await logs.removePod(pod);
    await logs.removePod(pod);
    assert.deepEqual((await readdir(root)).sort(), ['kube-system_dns_uid-2', 'something']);
  });
});

test('a folder that lost its mark, or was taken away under a running pod, is ours again with the next container', async () => {
  await inFolder(async (root) => {
    const logs = fsLogFolders(root);
    await mkdir(join(root, 'default_web_uid-1'), { recursive: true });
    assert.deepEqual(await logs.list(), []);
    await logs.ensure(pod);
    assert.deepEqual(await logs.list(), [pod]);
    await rm(join(root, 'default_web_uid-1'), { recursive: true });
    await logs.ensure(pod, 'c');
    assert.deepEqual(await logs.list(), [pod]);
    assert.deepEqual((await readdir(join(root, 'default_web_uid-1'))).sort(), ['.podsched', 'c']);
  });
});
