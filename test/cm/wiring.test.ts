/** The wiring's half of cgroups: what it asks of others, and that a machine with cgroup v1 is only read. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { cgroupParent } from '../../src/api/resources.ts';
import { CmSide, type CmWorld, sandboxParents } from '../../src/kubeletCm.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { podWith, temporaryFolder } from './cgroupBed.ts';

const reserved = { cpuMilli: 0, memoryBytes: 0, ephemeralBytes: 0, pids: 0 };

function side(facts: CmWorld['facts'], pods: readonly DesiredPod[] = []) {
  const dir = temporaryFolder();
  for (const folder of ['cgroup/memory/kubepods/burstable/pod0000-web', 'proc', 'boot/firmware'])
    mkdirSync(join(dir, folder), { recursive: true });
  writeFileSync(join(dir, 'cgroup/memory/kubepods/burstable/pod0000-web/memory.usage_in_bytes'), '4096\n');
  const told: string[] = [];
  const cm = new CmSide(
    {
      clock: new FakeClock(),
      log: silentLog,
      runStore: new MemoryStore(),
      conditionsChanged: () => told.push('conditions'),
      hugepageSizes: ['2MB'],
    },
    {
      roots: { cgroups: join(dir, 'cgroup'), proc: join(dir, 'proc'), boot: join(dir, 'boot') },
      facts,
      capacity: { cpuMilli: 1000, memoryBytes: 2 ** 30, hugepages: {} },
      reserved,
      pageBytes: undefined,
    },
    { cgroupRoot: '', cgroupsPerQos: true, podPidsLimit: -1 },
    {
      pods: { list: () => pods },
      admission: () => ({ isAdmitted: () => true }),
      status: () => ({ get: () => undefined }),
      event: (pod, type, reason, message) => void told.push(`${pod.name}: ${type} ${reason} ${message}`),
      nodeEvent: (type, reason, message) => void told.push(`node: ${type} ${reason} ${message}`),
      runtime: () => ({ driver: async () => 'cgroupfs' }),
    },
  );
  return { cm, told, dir };
}

test('on cgroup v1 the whole life of a pod writes nothing, and its use is read', async () => {
  const { cm, told, dir } = side({ version: 'v1', controllers: new Set(['cpu', 'memory', 'pids']) });
  const pod = podWith('web', { requests: { cpu: '50m' }, limits: { memory: '64Mi' } });
  const before = readdirSync(dir, { recursive: true });
  await cm.load();
  await cm.manager.runtimeUp();
  await cm.manager.ensurePod(pod, { runs: false });
  await cm.manager.updatePod(pod);
  assert.equal((await cm.usage.pod(pod.uid))?.memory?.usageBytes, 4096);
  assert.equal(cm.podsMemory(), undefined);
  cm.retain(new Set());
  await cm.manager.removePod(pod.uid);
  assert.deepEqual(readdirSync(dir, { recursive: true }), before);
  assert.deepEqual(told, ['web: Warning LimitsNotEnforced pod level']);
  assert.match(cm.manager.nodeProblems()[0]?.message ?? '', /boot\/firmware\/cmdline\.txt/);
});

test('the runtime is told the place by the settings, by default the kubelet’s', () => {
  const pod = podWith('web', { limits: { memory: '64Mi' } });
  for (const driver of ['cgroupfs', 'systemd'] as const) {
    assert.equal(sandboxParents({})(pod, driver), cgroupParent(driver, 'Burstable', pod.uid));
    assert.equal(sandboxParents({ cgroupRoot: '/edge' })(pod, driver), cgroupParent(driver, 'Burstable', pod.uid, ['edge']));
  }
  assert.equal(sandboxParents({ cgroupsPerQos: false })(pod, 'cgroupfs'), '');
});
