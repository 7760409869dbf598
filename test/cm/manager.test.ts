/** Pods' cgroups over their life: made before the sandbox, changed with edits, removed at the end; and machines where none can be made. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { bed, podWith, v2 } from './cgroupBed.ts';

const there = (root: string, ...path: string[]): boolean => existsSync(join(root, ...path));
const pod = 'kubepods/burstable/pod0000-web';
const web = (limits: Record<string, string>): DesiredPod => podWith('web', { requests: { cpu: '50m' }, limits });
const fresh = { runs: false };
const running = { runs: true };

test('a pod’s cgroup is made with its limits, and a second look writes nothing', async () => {
  const b = bed();
  await b.manager.load();
  b.active = [web({ cpu: '200m', memory: '64Mi' })];
  assert.equal(await b.manager.ensurePod(web({ cpu: '200m', memory: '64Mi' }), fresh), false);
  assert.equal(b.text(pod, 'cpu.max'), '20000 100000');
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20));
  assert.equal(b.text('kubepods/burstable', 'cpu.weight'), '2');
  const before = b.fs.calls.length;
  await b.manager.ensurePod(web({ cpu: '200m', memory: '64Mi' }), running);
  await b.manager.updatePod(web({ cpu: '200m', memory: '64Mi' }));
  await b.manager.retain(new Set([web({}).uid]));
  assert.deepEqual(b.fs.calls.slice(before), []);
});

test('limits of an edit rise before the container is replaced, and fall after', async () => {
  const b = bed();
  await b.manager.load();
  await b.manager.ensurePod(web({ cpu: '200m', memory: '64Mi' }), fresh);
  const edited = web({ cpu: '400m', memory: '32Mi' });
  await b.manager.ensurePod(edited, running);
  assert.equal(b.text(pod, 'cpu.max'), '40000 100000');
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20));
  await b.manager.updatePod(edited);
  assert.equal(b.text(pod, 'cpu.max'), '40000 100000');
  assert.equal(b.text(pod, 'memory.max'), String(32 * 2 ** 20));
});

test('an edit that takes a limit away takes it away before, and one that brings it back waits', async () => {
  const b = bed();
  await b.manager.load();
  await b.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  await b.manager.ensurePod(web({}), running);
  assert.equal(b.text(pod, 'memory.max'), 'max');
  await b.manager.ensurePod(web({ memory: '64Mi' }), running);
  assert.equal(b.text(pod, 'memory.max'), 'max');
  await b.manager.updatePod(web({ memory: '64Mi' }));
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20));
});

test('an agent that comes later knows what stands, also in the middle of an edit', async () => {
  const first = bed();
  await first.manager.load();
  await first.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  const next = bed({ on: first });
  await next.manager.load();
  await next.manager.ensurePod(web({ memory: '32Mi' }), running);
  assert.equal(next.text(pod, 'memory.max'), String(64 * 2 ** 20));
  await next.manager.updatePod(web({ memory: '32Mi' }));
  assert.equal(next.text(pod, 'memory.max'), String(32 * 2 ** 20));
});

test('a pod’s cgroup that the runtime made is taken over with the limits it should have', async () => {
  const b = bed();
  await b.manager.load();
  for (const path of ['kubepods', 'kubepods/burstable', pod]) b.fs.makeGroup(join(b.root, path));
  await b.manager.ensurePod(web({ memory: '64Mi' }), running);
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20));
  assert.deepEqual(b.events, []);
});

test('a QoS class weighs what its pods ask for, and the next pod or the end of one changes it', async () => {
  const b = bed();
  await b.manager.load();
  const a = podWith('a', { requests: { cpu: '500m' } });
  const c = podWith('c', { requests: { cpu: '1' } });
  b.active = [a];
  await b.manager.ensurePod(a, fresh);
  assert.equal(b.text('kubepods/burstable', 'cpu.weight'), '20');
  b.active = [a, c];
  await b.manager.ensurePod(c, fresh);
  assert.equal(b.text('kubepods/burstable', 'cpu.weight'), '59');
  b.active = [a];
  await b.manager.removePod(c.uid);
  assert.equal(b.text('kubepods/burstable', 'cpu.weight'), '20');
});

test('what others wrote above the pods is put right at the next look, and only that', async () => {
  const b = bed();
  await b.manager.load();
  await b.manager.runtimeUp();
  assert.deepEqual(b.nodeEvents, ['Normal NodeAllocatableEnforced Updated Node Allocatable limit across pods']);
  await b.fs.write(join(b.root, 'kubepods/memory.max'), 'max');
  const before = b.fs.calls.length;
  await b.manager.runtimeUp();
  assert.deepEqual(b.fs.calls.slice(before), ['write kubepods/memory.max 2067386368']);
});

test('with systemd nobody is asked when nothing differs', async () => {
  const b = bed({ driver: 'systemd' });
  await b.manager.load();
  await b.manager.runtimeUp();
  await b.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  const before = b.asked.length;
  await b.manager.runtimeUp();
  await b.manager.ensurePod(web({ memory: '64Mi' }), running);
  assert.deepEqual(b.asked.slice(before), []);
});

test('the limit of all pods that cannot be written is told once, and pods start', async () => {
  const b = bed();
  await b.manager.load();
  b.fs.fail.set('write kubepods/pids.max', ['EINVAL', 'EINVAL', 'EINVAL']);
  await b.manager.runtimeUp();
  await b.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  assert.equal(b.nodeEvents.length, 1);
  assert.match(
    b.nodeEvents[0] ?? '',
    /^Warning FailedNodeAllocatableEnforcement Failed to update Node Allocatable Limits "\/kubepods": .*pids\.max/,
  );
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20));
  b.fs.fail.clear();
  await b.manager.runtimeUp();
  assert.match(b.nodeEvents.at(-1) ?? '', /^Normal NodeAllocatableEnforced/);
});

test('at its end what still runs in the pod’s cgroup is killed and the cgroup removed with its children', async () => {
  const b = bed();
  await b.manager.load();
  await b.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  b.fs.makeGroup(join(b.root, pod, 'leftover'));
  b.fs.setProcs(join(b.root, pod, 'leftover'), [4242]);
  await b.manager.removePod(web({}).uid);
  assert.ok(b.fs.calls.includes(`write ${pod}/cgroup.kill 1`));
  assert.equal(there(b.root, pod), false);
  assert.equal(there(b.root, 'kubepods/burstable'), true);
});

test('a cgroup that cannot go is an error, and goes at the next try', async () => {
  const b = bed();
  await b.manager.load();
  await b.manager.ensurePod(web({}), fresh);
  b.fs.fail.set(`rmdir ${pod}`, ['EPERM']);
  await assert.rejects(b.manager.removePod(web({}).uid), /kubepods\/burstable\/pod0000-web/);
  await b.manager.removePod(web({}).uid);
  assert.equal(there(b.root, pod), false);
});

test('the cgroup of a pod of an earlier agent is removed although nobody wrote it down', async () => {
  const b = bed();
  await b.manager.load();
  for (const path of ['kubepods', 'kubepods/burstable', pod]) b.fs.makeGroup(join(b.root, path));
  await b.manager.removePod(web({}).uid);
  assert.equal(there(b.root, pod), false);
});

test('a pod that runs in another cgroup goes on, is told, and gets its own with the next sandbox', async () => {
  const b = bed();
  await b.manager.load();
  const desired = web({ memory: '64Mi' });
  await b.manager.ensurePod(desired, fresh);
  b.kind = 'systemd';
  assert.equal(await b.manager.ensurePod(desired, running), true);
  assert.equal(b.manager.podProblem(desired), 'cgroup differs');
  await b.manager.ensurePod(desired, running);
  assert.deepEqual(b.events, ['web: Warning LimitsNotEnforced cgroup differs']);
  await b.manager.updatePod(web({ memory: '32Mi' }));
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20), 'nothing is written where it is');
  assert.equal(await b.manager.ensurePod(desired, fresh), true);
  assert.equal(b.manager.podProblem(desired), undefined);
  assert.equal(b.text('kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0000_web.slice', 'memory.max'), String(64 * 2 ** 20));
  assert.equal(there(b.root, pod), false, 'the old one is gone');
});

test('on cgroup v1 nothing is written, and a pod with limits is told once that its own are not made', async () => {
  for (const version of ['v1', 'hybrid'] as const) {
    const b = bed({ facts: { version, controllers: new Set(['cpu', 'cpuacct', 'memory', 'pids']) } });
    await b.manager.load();
    await b.manager.runtimeUp();
    const desired = web({ cpu: '200m', memory: '64Mi' });
    await b.manager.ensurePod(desired, fresh);
    await b.manager.ensurePod(desired, running);
    await b.manager.ensurePod(podWith('best'), fresh);
    await b.manager.updatePod(web({ memory: '32Mi' }));
    await b.manager.retain(new Set());
    await b.manager.removePod(desired.uid);
    assert.deepEqual(b.fs.calls, []);
    assert.deepEqual(b.events, ['web: Warning LimitsNotEnforced pod level']);
    assert.equal(b.manager.podProblem(podWith('best')), undefined);
  }
});

test('without the memory controller the rest is enforced, and a pod with a memory limit is told', async () => {
  const controllers = ['cpuset', 'cpu', 'io', 'pids'];
  const b = bed({ controllers, facts: { version: 'v2', controllers: new Set(controllers) } });
  await b.manager.load();
  const desired = web({ cpu: '200m', memory: '64Mi' });
  b.active = [desired];
  await b.manager.ensurePod(desired, fresh);
  assert.equal(b.text(pod, 'cpu.max'), '20000 100000');
  assert.equal(there(b.root, pod, 'memory.max'), false);
  assert.deepEqual(b.events, ['web: Warning LimitsNotEnforced memory']);
  assert.match(
    b.manager.nodeProblems()[0]?.message ?? '',
    /add cgroup_enable=memory cgroup_memory=1 to the line in \/boot\/firmware\/cmdline\.txt/,
  );
});

test('a controller that the kernel has and does not hand on is told as missing, and the rest is enforced', async () => {
  const b = bed({ controllers: ['cpu', 'memory', 'pids'], facts: { version: 'v2', controllers: new Set(['cpu', 'memory', 'pids']) } });
  await b.manager.load();
  // all at once, and then cpu alone: as with processes of real-time priority
  b.fs.fail.set('write cgroup.subtree_control', ['EINVAL', 'EINVAL']);
  const desired = web({ cpu: '200m', memory: '64Mi' });
  assert.equal(await b.manager.ensurePod(desired, fresh), true);
  assert.deepEqual(b.events, ['web: Warning LimitsNotEnforced cpu']);
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20));
  assert.equal(b.conditionsChanged, 1);
  assert.deepEqual(
    b.manager.nodeProblems().map((p) => p.reason),
    ['CgroupControllerMissing'],
  );
});

test('a cgroup file system that cannot be written stops no pod', async () => {
  const b = bed();
  await b.manager.load();
  b.fs.fail.set('mkdir kubepods', ['EROFS']);
  const desired = web({ memory: '64Mi' });
  assert.equal(await b.manager.ensurePod(desired, fresh), true);
  assert.deepEqual(b.events, ['web: Warning LimitsNotEnforced pod level']);
  assert.equal(b.conditionsChanged, 1);
  assert.deepEqual(
    b.manager.nodeProblems().map((p) => p.reason),
    ['CgroupsNotWritable'],
  );
  const before = b.fs.calls.length;
  await b.manager.ensurePod(desired, running);
  assert.equal(b.fs.calls.length, before);
});

test('any other failure keeps the pod from starting, with the file and the value', async () => {
  const b = bed();
  await b.manager.load();
  b.fs.fail.set(`write ${pod}/memory.max`, ['EBUSY']);
  await assert.rejects(b.manager.ensurePod(web({ memory: '64Mi' }), fresh), /memory\.max: writing "67108864"/);
  assert.match(b.events[0] ?? '', /^web: Warning FailedCreatePodContainer unable to ensure pod container exists: .*memory\.max/);
  await b.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  assert.equal(b.text(pod, 'memory.max'), String(64 * 2 ** 20));
});

test('nothing is made before the runtime has said how it makes cgroups', async () => {
  const b = bed();
  b.kind = undefined;
  await b.manager.load();
  await b.manager.runtimeUp();
  await assert.rejects(b.manager.ensurePod(web({}), fresh), /does not say yet/);
  assert.deepEqual(b.fs.calls, []);
});

test('a limit of processes stands in each pod’s cgroup', async () => {
  const b = bed({ settings: { podPidsLimit: 100 } });
  await b.manager.load();
  await b.manager.ensurePod(web({}), fresh);
  assert.equal(b.text(pod, 'pids.max'), '100');
});

test('huge pages: a pod has what it asks for, another none, the classes no limit', async () => {
  const b = bed({ settings: { may: { cpuMilli: 2000, memoryBytes: 2 ** 30, hugepages: { 'hugepages-2Mi': 64 * 2 ** 20 } } } });
  await b.manager.load();
  await b.manager.ensurePod(web({ memory: '64Mi', 'hugepages-2Mi': '8Mi' }), fresh);
  await b.manager.ensurePod(podWith('best'), fresh);
  assert.equal(b.text(pod, 'hugetlb.2MB.max'), String(8 * 2 ** 20));
  assert.equal(b.text('kubepods/besteffort/pod0000-best', 'hugetlb.2MB.max'), '0');
  assert.equal(b.text('kubepods/besteffort', 'hugetlb.2MB.max'), 'max');
  assert.equal(b.text('kubepods', 'hugetlb.2MB.max'), String(64 * 2 ** 20));
});

test('below a cgroup root of its own everything is there', async () => {
  const b = bed({ driver: 'systemd', settings: { root: ['edge-pods'] } });
  await b.manager.load();
  await b.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  const path = 'edge_pods.slice/edge_pods-kubepods.slice/edge_pods-kubepods-burstable.slice/edge_pods-kubepods-burstable-pod0000_web.slice';
  assert.equal(b.text(path, 'memory.max'), String(64 * 2 ** 20));
});

test('without cgroups per QoS class none is made, and a limit of a whole pod is told', async () => {
  const b = bed({ settings: { perQos: false }, facts: v2 });
  await b.manager.load();
  await b.manager.runtimeUp();
  await b.manager.ensurePod(web({ memory: '64Mi' }), fresh);
  assert.deepEqual(b.fs.calls, []);
  assert.deepEqual(b.events, ['web: Warning LimitsNotEnforced pod level']);
});

test('a pod that is about to be ended gets no more memory than it has', async () => {
  const b = bed();
  await b.manager.load();
  const desired = web({ memory: '64Mi' });
  await b.manager.ensurePod(desired, fresh);
  writeFileSync(join(b.root, pod, 'memory.current'), '10000000\n');
  await b.manager.brake(desired.uid);
  assert.equal(b.text(pod, 'memory.high'), '9998336');
  await b.manager.brake('nobody' as DesiredPod['uid']);
  await b.manager.removePod(desired.uid);
  await b.manager.brake(desired.uid);
});

test('a pod whose cgroup can never be removed, since the file system became read-only, is over all the same', async () => {
  const b = bed();
  await b.manager.load();
  const gone = web({ memory: '64Mi' });
  await b.manager.ensurePod(gone, fresh);
  b.fs.fail.set(`rmdir ${pod}`, ['EROFS']);
  await b.manager.removePod(gone.uid);
  assert.equal(b.manager.makes(), false);
  assert.equal(b.manager.nodeProblems()[0]?.reason, 'CgroupsNotWritable');
});
