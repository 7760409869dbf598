/** What the mounts of a container are asked with: its environment, a way to images; and how what is held back is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container } from '../../src/api/v1.ts';
import { HeldBack } from '../../src/container/heldBack.ts';
import type { ContainerConfig } from '../../src/container/runtime.ts';
import { container, desiredPod, House } from './house.ts';

const meta = (name: string) => ({ name, namespace: 'default' });

const envOf = (o: Partial<Container>) =>
  container('c', {
    env: [
      { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'DIR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'dir' } } },
      { name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'login', key: 'password' } } },
      { name: 'BOTH', value: '$(POD)-$(DIR)' },
    ],
    ...o,
  });

function house(): House {
  const h = new House();
  h.objects.set('ConfigMap/default/settings', { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta('settings'), data: { dir: 'logs' } });
  h.objects.set('Secret/default/login', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: meta('login'),
    stringData: { password: 'hunter2/x' },
  });
  return h;
}

test('mounts are asked with the very environment that the container gets', async () => {
  const h = house();
  const seen: (string | undefined)[] = [];
  h.mounts = async (_name, _attempt, _ips, { env }) => {
    for (const name of ['POD', 'DIR', 'PASSWORD', 'BOTH', 'NONE']) seen.push(env(name));
    return [];
  };
  await h.sync(desiredPod({ containers: [envOf({})] }));
  assert.deepEqual(seen, ['web', 'logs', 'hunter2/x', 'web-logs', undefined]);
  const config = h.runtime.calls.find((c) => c.method === 'createContainer')?.args[1] as ContainerConfig;
  assert.deepEqual(
    config.envs.map((e) => e.value),
    ['web', 'logs', 'hunter2/x', 'web-logs'],
  );
});

test('a path that was made of a Secret is told without its value; other mounts are told as they are', async () => {
  const h = house();
  h.mounts = async () => {
    throw new Error("unable to provision SubPath `hunter2/x/..`: must not contain '..'");
  };
  const message = async (subPathExpr?: string): Promise<string | undefined> => {
    const mount = { name: 'own', mountPath: '/o', ...(subPathExpr !== undefined && { subPathExpr }) };
    const pod = desiredPod({ volumes: [{ name: 'own' }], containers: [envOf({ volumeMounts: [mount] })] });
    return (await h.sync(pod)).results.find((r) => r.target === 'c')?.error?.message;
  };
  assert.equal(await message('$(PASSWORD)/..'), "unable to provision SubPath `…/..`: must not contain '..'");
  assert.doesNotMatch([...h.events, ...h.logged].join('\n'), /hunter2/);
});

test('what is held back is told with its own reason, and tried again when it says', async () => {
  const h = house();
  h.mounts = async () => {
    throw new HeldBack('WaitingForMount', '/mnt/ssd is not a mount point', 5000);
  };
  const { results, nextWaitMs } = await h.sync(desiredPod({}));
  const error = { reason: 'WaitingForMount', message: '/mnt/ssd is not a mount point' };
  assert.deepEqual(
    results.find((r) => r.target === 'c'),
    { action: 'StartContainer', target: 'c', error, waitMs: 5000 },
  );
  assert.equal(nextWaitMs, 5000);
  assert.ok(!h.deeds().some((d) => d.startsWith('createContainer')));
});

test('what is held back is no try of the container: it starts at once when it may, and its back-off is that of its exit', async () => {
  const h = house();
  const pod = desiredPod({});
  await h.sync(pod);
  h.runtime.exit(h.id('c'), 1);
  let away = true;
  h.mounts = async () => {
    if (away) throw new HeldBack('WaitingForMount', '/mnt/ssd is not a mount point', 5000);
    return [];
  };
  const reason = async () => (await h.sync(pod)).results.find((r) => r.target === 'c')?.error?.reason;
  for (let i = 0; i < 4; i++) {
    assert.equal(await reason(), 'WaitingForMount');
    await h.clock.advance(5000);
  }
  away = false;
  assert.equal(await reason(), undefined);
  h.runtime.exit(h.id('c'), 1);
  assert.equal(await reason(), 'CrashLoopBackOff');
  const told = (await h.sync(pod)).results.find((r) => r.target === 'c')?.error?.message;
  assert.match(told ?? '', /^back-off 10s /);
});

test('the image of a volume is asked for as a container’s is, by its own policy', async () => {
  const h = house();
  h.mounts = async (_name, _attempt, _ips, { ensureImage }) => {
    const ensured = await ensureImage({ reference: 'localhost/files:1', pullPolicy: 'Never' });
    assert.ok(ensured.ok);
    return [{ containerPath: '/f', hostPath: '', readonly: true, image: ensured.image.id }];
  };
  h.image = () => ({ ok: true, image: { id: 'sha256:abc', username: '' } });
  await h.sync(desiredPod({}));
  const config = h.runtime.calls.find((c) => c.method === 'createContainer')?.args[1] as ContainerConfig;
  assert.equal(config.mounts[0]?.image, 'sha256:abc');
});

test('a sync that is called off while it waits for an image of a volume says nothing of the container', async () => {
  const h = house();
  const stop = new AbortController();
  h.mounts = async () => {
    stop.abort();
    throw stop.signal.reason;
  };
  const { results } = await h.sync(desiredPod({}), stop.signal);
  assert.equal(
    results.find((r) => r.target === 'c'),
    undefined,
  );
  assert.ok(!h.events.some((e) => e.includes('Failed')));
});
