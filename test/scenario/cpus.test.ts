/** CPUs of one's own (`cpuManagerPolicy: static`): the whole agent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const topology = async () => [0, 1, 2, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, node: 0 }));
const cpus = { policy: 'static', reservedCpus: '0', reservedMilli: 0, cpuset: true, topology } as const;
const wants = (name: string, cpu: string, lines: readonly string[] = []) =>
  manifest(name, {
    lines: ['terminationGracePeriodSeconds: 5', ...lines],
    containers: [`{name: app, image: localhost/busybox:1, command: [sleep, "100"], resources: {limits: {cpu: "${cpu}", memory: 10Mi}}}`],
  });
const phase = (w: World, name: string): string => `${w.sync(name)?.phase} ${w.sync(name)?.reason}`;
const on = (w: World, name: string): string | undefined => w.runtime.find(name, 'app')?.config.resources.cpusetCpus;
const moves = (w: World): number => w.runtime.calls.filter((c) => c.method === 'updateContainerResources').length;

async function started(files: Readonly<Record<string, string>>): Promise<World> {
  const w = new World({ cpus });
  for (const [name, text] of Object.entries(files)) w.folder.write(name, text);
  await w.start();
  await w.advance(10);
  return w;
}

test('a pod gets its CPUs, the others move off them and back, and a restart of the agent moves nobody', async () => {
  const w = await started({ 'small.yaml': manifest('small'), 'big.yaml': wants('big', '2') });
  assert.deepEqual([phase(w, 'big'), on(w, 'big'), on(w, 'small')], ['Running Ready', '1-2', '0,3']);
  await w.advance(120);
  const before = moves(w);
  await w.restart();
  await w.advance(120);
  assert.deepEqual([on(w, 'big'), on(w, 'small'), moves(w)], ['1-2', '0,3', before]);
  w.folder.remove('big.yaml');
  await w.advance(60);
  assert.equal(on(w, 'small'), '0-3');
});

test('a pod for which too few are left is refused as the kubelet does, and comes when another has gone', async () => {
  const w = await started({ 'a.yaml': wants('a', '2') });
  w.folder.write('b.yaml', wants('b', '2'));
  await w.advance(30);
  assert.equal(phase(w, 'b'), 'Failed UnexpectedAdmissionError');
  assert.equal(
    w.pod('b')?.status.message,
    'Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: requested=2, available=1, which is unexpected',
  );
  w.folder.remove('a.yaml');
  await w.advance(60);
  assert.deepEqual([phase(w, 'b'), on(w, 'b')], ['Running Ready', '1-2']);
});

test('an edited pod that is replaced has its CPUs when its predecessor has gone', async () => {
  const w = await started({ 'a.yaml': wants('a', '3') });
  assert.equal(on(w, 'a'), '1-3');
  w.folder.write('a.yaml', wants('a', '3', ['hostPID: true']));
  await w.advance(60);
  assert.deepEqual([phase(w, 'a'), on(w, 'a')], ['Running Ready', '1-3']);
});

test('a reboot and a lost checkpoint: everybody has CPUs again, and nothing restarts for it', async () => {
  const w = await started({ 'small.yaml': manifest('small'), 'big.yaml': wants('big', '2') });
  await w.reboot();
  await w.advance(30);
  assert.deepEqual([phase(w, 'big'), on(w, 'big'), on(w, 'small')], ['Running Ready', '1-2', '0,3']);
  const ids = [...w.runtime.containers.keys()];
  await w.stateStore.remove('cpus');
  await w.restart();
  await w.advance(60);
  assert.deepEqual([on(w, 'big'), on(w, 'small')], ['1-2', '0,3']);
  assert.deepEqual([...w.runtime.containers.keys()], ids);
});

test('a one-shot pod that has ended keeps no CPUs from others', async () => {
  const w = new World({ cpus });
  w.runtime.onStart((name) => (name === 'app' ? { exitAfterMs: 2000, exitCode: 0 } : {}));
  w.folder.write('once.yaml', wants('once', '3', ['restartPolicy: Never']));
  await w.start();
  await w.advance(60);
  assert.equal(phase(w, 'once'), 'Completed Succeeded');
  assert.equal(w.kubelet.resources.cpus.view()?.shared, '0-3');
});
