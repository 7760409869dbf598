/** Field cases C10 and D9: pods that may not run here, told and tried again; edits that have no room: the whole agent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifest, World } from './world.ts';

const port = (name: string, n: number, more: readonly string[] = []) =>
  manifest(name, {
    containers: [`{name: app, image: localhost/busybox:1, command: [sleep, "100"], ports: [{containerPort: ${n}, hostPort: ${n}}]}`],
    lines: ['terminationGracePeriodSeconds: 5', ...more],
  });
const asking = (name: string, cpu: string) =>
  manifest(name, {
    containers: [`{name: app, image: localhost/busybox:1, command: [sleep, "100"], resources: {requests: {cpu: "${cpu}"}}}`],
  });
const uid = (w: World, name: string): string | undefined => w.pod(name)?.metadata.uid;
const phase = (w: World, name: string): string => `${w.sync(name)?.phase} ${w.sync(name)?.reason}`;

async function started(files: Readonly<Record<string, string>>): Promise<World> {
  const w = new World();
  for (const [name, text] of Object.entries(files)) w.folder.write(name, text);
  await w.start();
  await w.advance(5);
  return w;
}

test('037: a pod for other nodes is Failed as the kubelet tells it, no sandbox is made, and a label lets it in as a new instance', async () => {
  const w = await started({
    'web.yaml': manifest('web', { lines: ['nodeSelector: {disktype: nvme}'] }),
  });
  const first = uid(w, 'web');
  const { status } = w.pod('web') ?? {};
  assert.deepEqual(
    [status?.phase, status?.reason, status?.message],
    ['Failed', 'NodeAffinity', "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"],
  );
  assert.equal(phase(w, 'web'), 'Failed NodeAffinity');
  assert.equal(w.events.filter((e) => e.reason === 'NodeAffinity').length, 1);
  assert.equal(w.runtime.sandboxes.size, 0);
  await w.advance(600);
  assert.equal(uid(w, 'web'), first);
  w.nodeLabels = { disktype: 'nvme' };
  w.kubelet.admission.again();
  await w.advance(5);
  assert.equal(phase(w, 'web'), 'Running Ready');
  assert.notEqual(uid(w, 'web'), first);
});

test('D9: two manifests with one port: the second names the first, and comes when it has gone', async () => {
  const w = await started({ 'a.yaml': port('a', 8080) });
  w.folder.write('b.yaml', port('b', 8080));
  await w.advance(30);
  assert.equal(phase(w, 'b'), 'Failed NodePorts');
  assert.match(w.pod('b')?.status.message ?? '', /port 8080\/TCP is used by pod default\/a$/);
  w.folder.remove('a.yaml');
  await w.advance(60);
  assert.equal(phase(w, 'b'), 'Running Ready');
  assert.equal(w.pod('a'), undefined);
});

test('D9: hostNetwork and a port that the host listens on: refused, tried again with a back-off, and let in when it is free', async () => {
  const w = new World();
  w.hostSockets.push({ protocol: 'TCP', port: 22, ip: '0.0.0.0' });
  w.socketHolder = 'sshd (pid 812)';
  w.folder.write('ssh.yaml', port('ssh', 22, ['hostNetwork: true']));
  await w.start();
  await w.advance(5);
  assert.match(w.pod('ssh')?.status.message ?? '', /port 22\/TCP is used by sshd \(pid 812\), which listens on 0\.0\.0\.0:22$/);
  w.hostSockets.length = 0;
  await w.advance(20);
  assert.equal(phase(w, 'ssh'), 'Running Ready');
  // now its own process listens
  w.hostSockets.push({ protocol: 'TCP', port: 22, ip: '0.0.0.0' });
  const running = uid(w, 'ssh');
  await w.restart();
  await w.advance(120);
  assert.deepEqual([phase(w, 'ssh'), uid(w, 'ssh')], ['Running Ready', running]);
  w.folder.write('ssh.yaml', port('ssh', 22, ['hostNetwork: true', 'hostPID: true']));
  await w.advance(60);
  assert.equal(phase(w, 'ssh'), 'Running Ready', 'its own socket does not stand against its successor');
  assert.notEqual(uid(w, 'ssh'), running);
});

test('an edit that has no room: the old one goes on, over a restart and a reboot, and the edit comes when there is room', async () => {
  const w = await started({
    'a.yaml': asking('a', '2'),
    'b.yaml': asking('b', '1'),
  });
  const before = uid(w, 'b');
  w.folder.write('b.yaml', asking('b', '3'));
  await w.advance(30);
  assert.equal(phase(w, 'b'), 'UpdateBlocked OutOfcpu');
  assert.match(
    w.sync('b')?.message ?? '',
    /^revision [0-9a-f]{12} stays: Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000$/,
  );
  assert.notEqual(w.sync('b')?.desired?.revision, w.sync('b')?.running?.revision);
  assert.equal(uid(w, 'b'), before);
  for (const again of [() => w.restart(), () => w.reboot()]) {
    await again();
    await w.advance(60);
    assert.deepEqual([phase(w, 'b'), uid(w, 'b')], ['UpdateBlocked OutOfcpu', before]);
  }
  w.folder.remove('a.yaml');
  await w.advance(120);
  assert.equal(phase(w, 'b'), 'Running Ready');
  assert.equal(w.sync('b')?.desired?.revision, w.sync('b')?.running?.revision);
});

test('a job that ends by itself gives its room to the pod that waits', async () => {
  const w = await started({});
  w.folder.write('job.yaml', asking('job', '3').replace('spec:', 'spec:\n  restartPolicy: Never'));
  await w.advance(30);
  w.folder.write('b.yaml', asking('b', '2'));
  await w.advance(30);
  assert.equal(phase(w, 'b'), 'Failed OutOfcpu');
  const [container] = [...w.runtime.containers.values()];
  assert.ok(container);
  w.runtime.exit(container.id, 0);
  await w.advance(30);
  assert.equal(phase(w, 'b'), 'Running Ready');
  assert.equal(w.sync('job')?.phase, 'Completed');
});

test('after a reboot the one that is refused stays refused, the others run, and nothing is told that is not so', async () => {
  const w = await started({ 'a.yaml': port('a', 8080) });
  w.folder.write('b.yaml', port('b', 8080));
  await w.advance(30);
  await w.reboot();
  await w.advance(120);
  assert.deepEqual([phase(w, 'a'), phase(w, 'b')].sort(), ['Failed NodePorts', 'Running Ready']);
  assert.equal(w.toldPods().length, 2);
});
