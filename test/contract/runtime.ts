/** What podsched relies on in a container runtime: one suite for the fake, the fake behind real gRPC, and containerd itself. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerConfig, ImageService, Runtime, RuntimeEvent, SandboxConfig } from '../../src/container/runtime.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId, SandboxId } from '../../src/container/words.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import type { ProcessBehaviour } from '../fakes/runtimeRecords.ts';

export interface RuntimeRig {
  readonly runtime: Runtime;
  readonly images: ImageService;
  /** An image that is here. */
  readonly image: string;
  readonly logDirectory: string;
  close(): Promise<void>;
}

/** PID 1 of a container has no default handlers: a plain sleep does not hear TERM. */
export const sleeps = ['/bin/sleep', '1000'];
export const exits3 = ['/bin/sh', '-c', 'exit 3'];
export const hearsTerm = ['/bin/sh', '-c', "trap 'exit 7' TERM; while :; do sleep 0.05; done"];
export const notThere = ['/no/such/program'];
const asksForNode = ['/bin/test', '-c', '/dev/podsched-null'];
/** What PID 1 is, and whether it has a handler for TERM (bit 14): what runs before the command has other answers. */
const asksForName = ['/bin/grep', '-q', 'sleep', '/proc/1/comm'];
const asksForHandler = ['/bin/sh', '-c', 'grep -q "^sh$" /proc/1/comm && grep -qE "^SigCgt:.*[4-7c-f][0-9a-f]{3}$" /proc/1/status'];
const asksForCpus = ['/bin/grep', '^Cpus_allowed_list:', '/proc/self/status'];
/** A device node that no machine has. */
export const absentDevice = '/dev/podsched-no-such-device';

/** What these commands do, for a fake. */
export function behaviourOf(command: readonly string[]): ProcessBehaviour {
  switch (command) {
    case exits3:
      return { exitAfterMs: 1, exitCode: 3 };
    case hearsTerm:
      return { termExitCode: 7, stopDelayMs: 20 };
    case notThere:
      return { startError: `exec: "${notThere[0]}": no such file or directory` };
    default:
      return { ignoresTerm: true, exec: answersOf };
  }
}

function answersOf(command: readonly string[], config: ContainerConfig): { exitCode?: number; stdout?: string } {
  switch (command[0]) {
    case asksForNode[0]:
      return { exitCode: config.devices?.some((d) => d.containerPath === command[2]) === true ? 0 : 1 };
    case asksForCpus[0]:
      return { stdout: `Cpus_allowed_list:\t${config.resources.cpusetCpus ?? 'all'}\n` };
    default:
      return {};
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: string, check: () => Promise<boolean> | boolean, ms = 45_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await pause(20);
  }
}

const code = (expected: RuntimeError['code'], text: RegExp) => (e: unknown) => {
  assert.ok(e instanceof RuntimeError, String(e));
  assert.equal(e.code, expected, e.message);
  assert.match(e.message, text);
  assert.doesNotMatch(e.message, /rpc error/);
  return true;
};

const nobody = 'f'.repeat(64);

export function runtimeContract(name: string, open: () => Promise<RuntimeRig>): void {
  describe(`runtime contract: ${name}`, () => {
    let rig: RuntimeRig;
    let runtime: RuntimeRig['runtime'];
    let imageId = '';
    let pods = 0;

    before(async () => {
      rig = await open();
      runtime = rig.runtime;
      imageId = (await rig.images.imageStatus(rig.image))?.id ?? '';
    });
    after(async () => {
      for (const s of (await runtime?.listSandboxes()) ?? []) await runtime.removeSandbox(s.id);
      await rig?.close();
    });

    const podConfig = (o: Partial<SandboxConfig> = {}): SandboxConfig => {
      const pod = `pod${++pods}`;
      return sandboxConfig(pod, { logDirectory: `${rig.logDirectory}/${pod}`, ...o });
    };
    const config = (pod: SandboxConfig, container: string, o: Partial<ContainerConfig> = {}) =>
      containerConfig(pod, container, { image: imageId, userSpecifiedImage: rig.image, command: sleeps, ...o });
    const startPod = async (command: string[] = sleeps): Promise<{ pod: SandboxConfig; sandbox: SandboxId; container: ContainerId }> => {
      const pod = podConfig();
      const sandbox = await runtime.runSandbox(pod, '');
      const container = await runtime.createContainer(sandbox, config(pod, 'main', { command }), pod);
      await runtime.startContainer(container);
      return { pod, sandbox, container };
    };
    const answers = (id: ContainerId, question: readonly string[]): Promise<void> =>
      until(question.join(' '), async () => (await runtime.execSync(id, question, 10)).exitCode === 0);
    const stateOf = async (id: ContainerId) => (await runtime.containerStatus(id)).state;

    test('it says who it is, that it is ready, and how it makes cgroups', async () => {
      assert.equal((await runtime.version()).runtimeName, 'containerd');
      const conditions = await runtime.status();
      assert.deepEqual(
        conditions.filter((c) => c.type === 'RuntimeReady' || c.type === 'NetworkReady').map((c) => c.status),
        [true, true],
      );
      assert.ok(['cgroupfs', 'systemd', undefined].includes(await runtime.cgroupDriver()));
    });

    test('it says of what its sandboxes are made, or nothing', async () => {
      const image = await runtime.sandboxImage();
      assert.ok(image === undefined || /^[\w.:/@-]+[:@]/.test(image), image);
    });

    test('a sandbox is listed as it was asked for, ready and with an address', async () => {
      const pod = podConfig({ attempt: 4, annotations: { 'podsched.dev/pod-hash': '1:abc' }, labels: { 'podsched.dev/managed': 'node' } });
      const other = podConfig();
      const before = Date.now() - 1000;
      const id = await runtime.runSandbox(pod, '');
      await runtime.runSandbox(other, '');
      const listed = await runtime.listSandboxes(pod.uid);
      assert.deepEqual(
        listed.map(({ createdAt, ...rest }) => rest),
        [
          {
            id,
            name: pod.name,
            namespace: 'default',
            uid: pod.uid,
            attempt: 4,
            state: 'ready',
            labels: pod.labels,
            annotations: pod.annotations,
          },
        ],
      );
      const status = await runtime.sandboxStatus(id);
      assert.ok(status.createdAt >= before && status.createdAt <= Date.now() + 1000);
      assert.equal(status.networkMode, 'POD');
      assert.match(status.network?.ip ?? '', /^10\./);
      assert.deepEqual((await runtime.listSandboxes()).map((s) => s.uid).filter((u) => u === pod.uid || u === other.uid).length, 2);
      assert.deepEqual(await runtime.listSandboxes('no-such-pod' as PodUid), []);
    });

    test('the host network has no address of its own', async () => {
      const pod = podConfig({ hostname: '', namespaces: { network: 'NODE', pid: 'CONTAINER', ipc: 'POD' } });
      const status = await runtime.sandboxStatus(await runtime.runSandbox(pod, ''));
      assert.equal(status.networkMode, 'NODE');
      assert.equal(status.network?.ip ?? '', '');
    });

    test('the name of a sandbox with its attempt is reserved until it is removed', async () => {
      const pod = podConfig();
      const id = await runtime.runSandbox(pod, '');
      await assert.rejects(runtime.runSandbox(pod, ''), code('unknown', /is reserved for/));
      await runtime.stopSandbox(id);
      await assert.rejects(runtime.runSandbox(pod, ''), code('unknown', /is reserved for/));
      const second = await runtime.runSandbox({ ...pod, attempt: 1 }, '');
      assert.notEqual(second, id);
      await runtime.removeSandbox(id);
      await runtime.stopSandbox(second);
      await runtime.runSandbox(pod, '');
    });

    test('a stopped sandbox is not ready and has no address; stopping and removing again, or what is not there, is success', async () => {
      const id = await runtime.runSandbox(podConfig(), '');
      await runtime.stopSandbox(id);
      await runtime.stopSandbox(id);
      const status = await runtime.sandboxStatus(id);
      assert.equal(status.state, 'notready');
      assert.equal(status.network?.ip ?? '', '');
      await runtime.removeSandbox(id);
      await runtime.removeSandbox(id);
      await assert.rejects(runtime.sandboxStatus(id), code('notFound', /not found/));
      await runtime.stopSandbox(nobody as SandboxId);
      await runtime.stopContainer(nobody as ContainerId, 1);
      await runtime.removeContainer(nobody as ContainerId);
      await assert.rejects(runtime.containerStatus(nobody as ContainerId), code('notFound', /not found/));
      await assert.rejects(runtime.startContainer(nobody as ContainerId), code('notFound', /not found/));
    });

    test('a container is created, runs, and ends with its own exit code', async () => {
      const pod = podConfig();
      const sandbox = await runtime.runSandbox(pod, '');
      const wanted = config(pod, 'main', { attempt: 2, command: exits3, annotations: { 'podsched.dev/container-hash': '1:x' } });
      const id = await runtime.createContainer(sandbox, wanted, pod);
      const created = await runtime.containerStatus(id);
      assert.deepEqual([created.state, created.startedAt, created.finishedAt, created.exitCode], ['created', undefined, undefined, 0]);
      await runtime.startContainer(id);
      await until('it has ended', async () => (await stateOf(id)) === 'exited');
      const ended = await runtime.containerStatus(id);
      assert.equal(ended.exitCode, 3);
      assert.equal(ended.reason, 'Error');
      assert.deepEqual([ended.sandboxId, ended.name, ended.attempt], [sandbox, 'main', 2]);
      assert.deepEqual([ended.labels, ended.annotations], [wanted.labels, wanted.annotations]);
      assert.equal(ended.logPath, `${pod.logDirectory}/main/2.log`);
      assert.ok(ended.startedAt !== undefined && ended.finishedAt !== undefined && ended.startedAt >= ended.createdAt);
      assert.ok(Math.abs(ended.finishedAt - Date.now()) < 60_000);
      const [listed] = await runtime.listContainers(pod.uid);
      assert.deepEqual([listed?.id, listed?.state, listed?.attempt, listed?.labels], [id, 'exited', 2, wanted.labels]);
    });

    test('a running container is among those whose use is told, by its pod too; its processor time never falls; one that has ended uses nothing', async () => {
      const { pod, container } = await startPod(hearsTerm);
      const read = async (uid?: PodUid) => (await runtime.listContainerStats(uid)).find((c) => c.id === container);
      const first = await read(pod.uid);
      assert.deepEqual([first?.name, first?.attempt, first?.labels], ['main', 0, config(pod, 'main').labels]);
      assert.equal(await read('nobody' as PodUid), undefined);
      const second = await read();
      assert.equal(second?.name, 'main');
      if (first?.cpu !== undefined && second?.cpu !== undefined) {
        assert.ok(second.cpu.usageNs >= first.cpu.usageNs && second.cpu.atMs >= first.cpu.atMs);
        assert.ok((second.memory?.workingSetBytes ?? 0) > 0);
      }
      await runtime.stopContainer(container, 5);
      assert.equal((await read())?.cpu, undefined);
    });

    test('TERM is heard long before the grace is over', async () => {
      const { container } = await startPod(hearsTerm);
      await answers(container, asksForHandler);
      const began = performance.now();
      await runtime.stopContainer(container, 30);
      assert.ok(performance.now() - began < 25_000);
      const { state, exitCode } = await runtime.containerStatus(container);
      assert.deepEqual([state, exitCode], ['exited', 7]);
      await runtime.stopContainer(container, 30);
    });

    test('who does not hear TERM is killed when the grace is over, and not before', async () => {
      const { container } = await startPod();
      await answers(container, asksForName);
      const began = performance.now();
      await runtime.stopContainer(container, 1);
      assert.ok(performance.now() - began >= 950);
      const { state, exitCode } = await runtime.containerStatus(container);
      assert.deepEqual([state, exitCode], ['exited', 137]);
    });

    test('no grace kills at once, and a shorter grace overtakes a longer one', async () => {
      const one = await startPod();
      await runtime.stopContainer(one.container, 0);
      assert.equal(await stateOf(one.container), 'exited');
      const two = await startPod();
      const long = runtime.stopContainer(two.container, 60);
      await pause(50);
      await runtime.stopContainer(two.container, 1);
      await long;
      assert.equal(await stateOf(two.container), 'exited');
    });

    test('the name of a container with its attempt is reserved until it is removed', async () => {
      const { pod, sandbox, container } = await startPod(exits3);
      await until('it has ended', async () => (await stateOf(container)) === 'exited');
      await assert.rejects(runtime.createContainer(sandbox, config(pod, 'main'), pod), code('unknown', /is reserved for/));
      await runtime.createContainer(sandbox, config(pod, 'main', { attempt: 1 }), pod);
      await runtime.removeContainer(container);
      await runtime.createContainer(sandbox, config(pod, 'main'), pod);
    });

    test('a container starts once', async () => {
      const { container } = await startPod();
      await assert.rejects(runtime.startContainer(container), code('unknown', /CONTAINER_RUNNING/));
      await runtime.removeContainer(container);
    });

    test('removing a running container ends it; what was never started can be stopped and removed', async () => {
      const { pod, sandbox, container } = await startPod();
      await runtime.removeContainer(container);
      await runtime.removeContainer(container);
      const created = await runtime.createContainer(sandbox, config(pod, 'other'), pod);
      await runtime.stopContainer(created, 1);
      assert.equal(await stateOf(created), 'created');
      await runtime.removeContainer(created);
      assert.deepEqual(await runtime.listContainers(pod.uid), []);
    });

    test('a container has the devices it was made with, and no others', async () => {
      const pod = podConfig();
      const sandbox = await runtime.runSandbox(pod, '');
      const devices = [{ containerPath: '/dev/podsched-null', hostPath: '/dev/null', permissions: 'rw' }];
      for (const [name, o, exitCode] of [
        ['with', { devices }, 0],
        ['without', {}, 1],
      ] as const) {
        const id = await runtime.createContainer(sandbox, config(pod, name, o), pod);
        await runtime.startContainer(id);
        assert.equal((await runtime.execSync(id, asksForNode, 10)).exitCode, exitCode, name);
      }
      const absent = config(pod, 'absent', { devices: [{ containerPath: '/dev/x', hostPath: absentDevice, permissions: 'rw' }] });
      await assert.rejects(runtime.createContainer(sandbox, absent, pod), code('unknown', /podsched-no-such-device/));
      await runtime.removeSandbox(sandbox);
    });

    test('a container moves to other CPUs while it runs, before it starts, and keeps what is not said', async () => {
      const pod = podConfig();
      const sandbox = await runtime.runSandbox(pod, '');
      const cpusOf = async (id: ContainerId) => {
        const said = Buffer.from((await runtime.execSync(id, asksForCpus, 10)).stdout).toString();
        return /^Cpus_allowed_list:\s*(\S+)$/m.exec(said)?.[1];
      };
      const made = await runtime.createContainer(sandbox, config(pod, 'main', { resources: { cpuShares: 512 } }), pod);
      await runtime.updateContainerResources(made, { cpusetCpus: '0' });
      await runtime.startContainer(made);
      assert.equal(await cpusOf(made), '0');
      await runtime.updateContainerResources(made, { cpusetCpus: '0-1' });
      assert.equal(await cpusOf(made), '0-1');
      assert.equal((await runtime.containerStatus(made)).cpusetCpus, '0-1');
      const bound = await runtime.createContainer(sandbox, config(pod, 'bound', { resources: { cpusetCpus: '1' } }), pod);
      await runtime.startContainer(bound);
      assert.deepEqual([await cpusOf(bound), (await runtime.containerStatus(bound)).cpusetCpus], ['1', '1']);
      await assert.rejects(runtime.updateContainerResources(nobody as ContainerId, { cpusetCpus: '0' }), code('notFound', /not found/));
      await runtime.removeSandbox(sandbox);
    });

    test('a program that is not there fails the start, and the record says so', async () => {
      const pod = podConfig();
      const sandbox = await runtime.runSandbox(pod, '');
      const id = await runtime.createContainer(sandbox, config(pod, 'main', { command: notThere }), pod);
      await assert.rejects(runtime.startContainer(id), code('unknown', /no such file/));
      const { state, exitCode, reason, message } = await runtime.containerStatus(id);
      assert.deepEqual([state, exitCode, reason], ['exited', 128, 'StartError']);
      assert.match(message, /no such file/);
    });

    test('a sandbox that stops takes its containers along, and takes no new ones', async () => {
      const { pod, sandbox, container } = await startPod();
      await runtime.stopSandbox(sandbox);
      assert.equal(await stateOf(container), 'exited');
      await assert.rejects(runtime.createContainer(sandbox, config(pod, 'late'), pod), code('notFound', /sandbox/));
    });

    test('a sandbox removed while it runs takes everything along', async () => {
      const { pod, sandbox } = await startPod();
      await runtime.removeSandbox(sandbox);
      assert.deepEqual(await runtime.listContainers(pod.uid), []);
      assert.deepEqual(await runtime.listSandboxes(pod.uid), []);
      await assert.rejects(runtime.createContainer(sandbox, config(pod, 'late'), pod), code('notFound', /not found/));
    });

    test('a privileged container needs a privileged sandbox', async () => {
      const pod = podConfig();
      const sandbox = await runtime.runSandbox(pod, '');
      await assert.rejects(
        runtime.createContainer(sandbox, config(pod, 'main', { privileged: true }), pod),
        code('unknown', /no privileged container allowed in sandbox/),
      );
    });

    test('an image that is here has an id to create with; one that is not is undefined and cannot be pulled or used', async () => {
      assert.match(imageId, /^sha256:[0-9a-f]{64}$/);
      assert.equal((await rig.images.imageStatus(imageId))?.id, imageId);
      assert.equal(await rig.images.imageStatus('localhost/nothing:1'), undefined);
      await assert.rejects(
        rig.images.pullImage('localhost/nothing:1'),
        (e) => e instanceof RuntimeError && /localhost\/nothing:1/.test(e.message),
      );
      const pod = podConfig();
      const sandbox = await runtime.runSandbox(pod, '');
      const wanted = config(pod, 'main', { image: `sha256:${'0'.repeat(64)}` });
      await assert.rejects(runtime.createContainer(sandbox, wanted, pod), code('notFound', /not found/));
    });

    test('images are listed with their names, and removing one that is not here is done', async () => {
      const listed = (await rig.images.listImages()).find((i) => i.id === imageId);
      assert.ok(listed?.tags.includes(rig.image), JSON.stringify(listed?.tags));
      await rig.images.removeImage('localhost/nothing:1');
      assert.ok((await rig.images.imageFilesystems()).every((f) => f.usedBytes >= 0 && f.mountpoint !== ''));
    });

    test('events tell of a start and an end when the lists show them, to every reader', async () => {
      const stop = new AbortController();
      const heard: { topic: RuntimeEvent['topic']; id: string; shown: Promise<string | undefined> }[] = [];
      let ready = 0;
      const shownNow = async (id: string) => {
        const container = (await runtime.listContainers()).find((c) => c.id === id);
        return container?.state ?? (await runtime.listSandboxes()).find((s) => s.id === id)?.state;
      };
      const read = () =>
        runtime.events(
          (e) => heard.push({ topic: e.topic, id: e.containerId, shown: shownNow(e.containerId) }),
          () => ready++,
          stop.signal,
        );
      const readers = [read(), read()];
      await until('the streams are ready', () => ready === 2);
      const { sandbox, container } = await startPod();
      await runtime.stopContainer(container, 0);
      await runtime.stopSandbox(sandbox);
      const of = (id: string, topic: string) => heard.filter((h) => h.id === id && h.topic === topic);
      await until('all was told twice', () =>
        [of(container, 'start'), of(container, 'exit'), of(sandbox, 'exit')].every((told) => told.length === 2),
      );
      for (const h of of(container, 'exit')) assert.equal(await h.shown, 'exited');
      for (const h of of(sandbox, 'exit')) assert.equal(await h.shown, 'notready');
      stop.abort();
      await Promise.all(readers);
      const told = heard.length;
      await runtime.removeSandbox(sandbox);
      await pause(100);
      assert.equal(heard.length, told);
    });
  });
}
