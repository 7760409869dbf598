/** The runtime contract on a real, private containerd; and what only a real one can show: restarts, execs, its own socket. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeError, type RuntimeEvent } from '../../src/container/runtime.ts';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { silentLog } from '../../src/world/log.ts';
import { runtimeContract } from '../contract/runtime.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { startBed } from './bed.ts';
import { until } from './process.ts';

const image = 'localhost/busybox:1';
const away = (e: unknown) => e instanceof RuntimeError && e.code === 'unavailable';

runtimeContract('containerd', async () => {
  const bed = await startBed();
  const runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const close = async () => {
    runtime.close();
    await bed.stop();
  };
  return { runtime, images: runtime.images, image, logDirectory: `${bed.dir}/logs`, close };
});

// J2 on the real thing
test('containerd is absent, then killed ten times: the next call works, events flow anew, and the pod is untouched', async () => {
  const bed = await startBed({ started: false });
  const runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const stop = new AbortController();
  try {
    await assert.rejects(runtime.listSandboxes(), away);
    await bed.startContainerd();
    await runtime.version();
    const pod = sandboxConfig('web', { logDirectory: `${bed.dir}/logs` });
    await until('the image is here', 45_000, async () => (await runtime.images.imageStatus(image).catch(() => undefined)) !== undefined);
    const sandbox = await runtime.runSandbox(pod, '');
    const id = await runtime.createContainer(sandbox, containerConfig(pod, 'main', { image }), pod);
    await runtime.startContainer(id);
    const before = await runtime.containerStatus(id);
    const told: RuntimeEvent[] = [];
    for (let i = 0; i < 10; i++) {
      let ready = false;
      const broken = assert.rejects(
        runtime.events(
          (e) => told.push(e),
          () => {
            ready = true;
          },
          stop.signal,
        ),
        away,
      );
      await until('events flow', 45_000, () => ready);
      await bed.stopContainerd('SIGKILL');
      await broken;
      await assert.rejects(runtime.listContainers(), away);
      await bed.startContainerd();
      await until('the next calls work', 45_000, async () => (await runtime.listContainers().catch(() => [])).length === 1);
    }
    assert.deepEqual(await runtime.containerStatus(id), before);
    assert.deepEqual(told, []);
    await runtime.removeSandbox(sandbox);
  } finally {
    stop.abort();
    runtime.close();
    await bed.stop();
  }
});

test('an exec that ends is no event; the end of its container is told once', async () => {
  const bed = await startBed();
  const runtime = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const stop = new AbortController();
  try {
    const pod = sandboxConfig('web', { logDirectory: `${bed.dir}/logs` });
    const sandbox = await runtime.runSandbox(pod, '');
    const id = await runtime.createContainer(sandbox, containerConfig(pod, 'main', { image }), pod);
    await runtime.startContainer(id);
    const told: RuntimeEvent[] = [];
    let ready = false;
    const stream = runtime.events(
      (e) => told.push(e),
      () => {
        ready = true;
      },
      stop.signal,
    );
    await until('events flow', 45_000, () => ready);
    for (let i = 0; i < 3; i++) await bed.ctr('task', 'exec', '--exec-id', `probe${i}`, id, '/bin/true');
    await runtime.stopContainer(id, 0);
    await until('the end was told', 45_000, () => told.some((e) => e.topic === 'exit'));
    assert.deepEqual(told, [{ containerId: id, topic: 'exit' }]);
    stop.abort();
    await stream;
  } finally {
    stop.abort();
    runtime.close();
    await bed.stop();
  }
});
