import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { silentLog } from '../../src/world/log.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { type Bed, startBed, sweepBeds } from './bed.ts';
import { shims } from './cleanup.ts';
import { freePort, run, until } from './process.ts';
import { kubepodsTrees, records } from './registry.ts';

let bed: Bed;
before(async () => {
  bed = await startBed({ name: 'bed-test' });
});
after(() => bed.stop());

const pod = (name: string, hostPort = 0) => {
  const uid = randomUUID() as PodUid;
  return sandboxConfig(name, {
    uid,
    logDirectory: join(bed.dir, 'logs', name),
    cgroupParent: `/kubepods/besteffort/pod${uid}`,
    portMappings: hostPort === 0 ? [] : [{ protocol: 'TCP', containerPort: 80, hostPort, hostIp: '' }],
  });
};

/** Waits for who changes them now. */
const natRules = (): string => execFileSync('iptables', ['-w', '30', '-t', 'nat', '-S'], { encoding: 'utf8' });

const startPod = async (on: Bed, config: ReturnType<typeof pod>) => {
  const runtime = new CriRuntime({ endpoint: on.endpoint, log: silentLog });
  const sandbox = await runtime.runSandbox(config, '');
  const container = await runtime.createContainer(sandbox, containerConfig(config, 'main'), config);
  await runtime.startContainer(container);
  runtime.close();
  return { sandbox, container };
};

test('a pod runs in a bed, and the second opinion sees it', async () => {
  const { sandbox, container } = await startPod(bed, pod('seen'));
  const [listed] = (await bed.cri.sandboxes()).filter((s) => s.id === sandbox);
  assert.equal(listed?.name, 'seen');
  assert.equal(listed?.ready, true);
  const status = await bed.cri.containerStatus(container);
  assert.equal(status.state, 'running');
  assert.ok(status.startedAt > status.createdAt);
  assert.equal((await bed.cri.containers()).find((c) => c.id === container)?.sandboxId, sandbox);
  assert.match(await bed.ctr('tasks', 'ls'), new RegExp(`${container}\\s+\\d+\\s+RUNNING`));
});

test('a pod lives through a restart and a kill of containerd', async () => {
  const { container } = await startPod(bed, pod('survivor'));
  const before = await bed.cri.containerStatus(container);
  await bed.restartContainerd();
  await bed.restartContainerd('SIGKILL');
  const now = await bed.cri.containerStatus(container);
  assert.equal(now.state, 'running');
  assert.equal(now.startedAt, before.startedAt);
});

test('stopping a bed takes down pods, mounts, bridge, firewall rules and cgroups, and only its own', async () => {
  const other = await startBed({ name: 'other' });
  const config = pod('gone', await freePort());
  const { sandbox } = await startPod(other, config);
  assert.match(natRules(), new RegExp(sandbox));
  const ownCgroups = () => kubepodsTrees().flatMap((t) => readdirSync(t).filter((n) => n === `pod${config.uid}`));
  assert.ok(ownCgroups().length > 0, 'the pod has a cgroup while it runs');
  const [kept] = (await bed.cri.containers()).filter((c) => c.state === 'running');
  await other.stop();
  assert.deepEqual(ownCgroups(), []);
  assert.equal(existsSync(other.dir), false);
  assert.equal(existsSync(`/sys/class/net/${other.bridge}`), false);
  assert.doesNotMatch(natRules(), new RegExp(sandbox));
  assert.deepEqual(shims(other.socket), []);
  assert.ok(kept !== undefined && (await bed.cri.containerStatus(kept.id)).state === 'running');
});

test('a bed whose owner was killed is cleared away by the next one', async () => {
  const script = `
    import { startBed } from '${new URL('bed.ts', import.meta.url).href}';
    const bed = await startBed({ name: 'orphan' });
    process.stdout.write(bed.dir);
    process.kill(process.pid, 'SIGKILL');`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', script];
  const { stdout: dir, code, stderr } = await run(process.execPath, args, { timeoutMs: 120_000 });
  assert.ok(dir !== '' && code !== 0, `the owner was killed and could not clean up: ${stderr}`);
  await sweepBeds();
  // the next one may also have been the bed of another test file that began at this moment
  await until('the orphan to be gone', 60_000, () => !existsSync(dir) && records().every((r) => r.dir !== dir));
});
