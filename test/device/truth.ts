/**
 * Is what was told true? The told pod against what the runtime shows, by a reading of our own: ids, states, exit codes, times, restart
 * counts, addresses and images of every container, and what the phase and the conditions say of them. Shares nothing with src/ but shapes.
 */
import { hostname, networkInterfaces } from 'node:os';
import type { SyncStatus } from '../../src/api/payloads.ts';
import type { ContainerState, ToldPod, V1ContainerStatus } from '../../src/api/status.ts';
import { type Lab, nodeLabel } from './lab.ts';
import { sleep } from './process.ts';
import type { RawContainerStatus, RawSandbox } from './rawCri.ts';

const podUid = 'io.kubernetes.pod.uid';

/** What the runtime shows of a pod. Newest first. */
export interface Shown {
  readonly sandboxes: readonly RawSandbox[];
  readonly containers: readonly RawContainerStatus[];
  readonly ips: readonly string[];
  /** Ids of those whose task runs, as `ctr` lists them. */
  readonly tasks: ReadonlySet<string>;
}

export interface Seen {
  readonly pod: ToldPod;
  readonly sync: SyncStatus;
  readonly shown: Shown;
}

const newestFirst = (a: { attempt: number }, b: { attempt: number }): number => b.attempt - a.attempt;
const seconds = (nanos: bigint): string => `${new Date(Number(nanos / 1_000_000n)).toISOString().slice(0, 19)}Z`;

const isGone = (e: unknown): boolean => (e as { code?: unknown }).code === 5; // NOT_FOUND

/** The listings of the runtime and of `ctr`, of all instances of a pod. */
export async function shownOf(lab: Pick<Lab, 'bed' | 'node'>, name: string): Promise<Shown> {
  const { cri } = lab.bed;
  const isOwn = (s: RawSandbox): boolean => lab.node === undefined || s.labels[nodeLabel] === lab.node;
  for (;;) {
    const sandboxes = (await cri.sandboxes()).filter((s) => s.name === name && isOwn(s)).sort(newestFirst);
    const uids = new Set(sandboxes.map((s) => s.uid));
    const listed = (await cri.containers()).filter((c) => uids.has(c.labels[podUid] ?? ''));
    const [newest] = sandboxes;
    try {
      const containers = await Promise.all(listed.map(async (c) => ({ ...(await cri.containerStatus(c.id)), sandboxId: c.sandboxId })));
      const ips = newest?.ready === true ? await cri.sandboxIps(newest.id) : [];
      const tasks = (await lab.bed.ctr('tasks', 'ls')).split('\n').map((line) => line.trim().split(/\s+/));
      return {
        sandboxes,
        containers: containers.sort(newestFirst),
        ips,
        tasks: new Set(tasks.flatMap(([id, , state]) => (id !== undefined && state === 'RUNNING' ? [id] : []))),
      };
    } catch (e) {
      if (!isGone(e)) throw e; // removed while we looked: look again
    }
  }
}

/** What a told state must be for a record of the runtime. */
function stateOf(record: RawContainerStatus): ContainerState {
  switch (record.state) {
    case 'running':
      return { running: { startedAt: seconds(record.startedAt) } };
    case 'exited':
      return {
        terminated: {
          exitCode: record.exitCode,
          reason: record.reason,
          ...(record.startedAt > 0n && { startedAt: seconds(record.startedAt) }),
          finishedAt: seconds(record.finishedAt),
          containerID: `containerd://${record.id}`,
        },
      };
    default:
      return { waiting: {} };
  }
}

const text = (value: unknown): string => JSON.stringify(value) ?? 'nothing';
/** The same, whatever the order of keys; a message of a terminated container is the log's business. */
const plain = (state: ContainerState): string => {
  const { terminated, running } = state;
  if (terminated === undefined) return text(running === undefined ? { waiting: {} } : { running });
  const { exitCode, reason, startedAt, finishedAt, containerID } = terminated;
  return text({ exitCode, reason, startedAt, finishedAt, containerID });
};

/** What is told of one container and is not so. */
function untrueOfContainer(told: V1ContainerStatus, shown: Shown): string[] {
  const records = shown.containers.filter((c) => c.name === told.name);
  const [newest, previous] = records;
  const wrong: string[] = [];
  const same = (what: string, toldValue: unknown, shownValue: unknown) => {
    if (toldValue !== shownValue) wrong.push(`${told.name}: ${what} is told as ${text(toldValue)}, shown as ${text(shownValue)}`);
  };
  if (newest === undefined) {
    same('a container id', told.containerID, undefined);
    same('running', told.state.running !== undefined, false);
    return wrong;
  }
  same('the container id', told.containerID, `containerd://${newest.id}`);
  same('the restart count', told.restartCount, newest.attempt);
  same('the image', told.image, newest.image);
  same('running', newest.state === 'running', shown.tasks.has(newest.id)); // the runtime's two words against each other
  if (told.state.waiting?.reason !== undefined && newest.state === 'exited') {
    // it waits to be started again: its end is the last state
    same('the last state', plain(told.lastState), plain(stateOf(newest)));
  } else {
    same('the state', plain(told.state), plain(stateOf(newest)));
    if (previous !== undefined) same('the last state', plain(told.lastState), plain(stateOf(previous)));
  }
  for (const r of records.slice(1)) same(`running attempt ${r.attempt} beside ${newest.attempt}`, r.state === 'running', false);
  return wrong;
}

const isSidecar = (pod: ToldPod, name: string): boolean =>
  (pod.spec.initContainers ?? []).some((c) => c.name === name && c.restartPolicy === 'Always');

/**
 * Everything the told pod says that the runtime does not show, in words; empty: it is true. `mayBeUnready`: it has probes, so that it may
 * run and be told not ready.
 */
export function untrue(pod: ToldPod, shown: Shown, mayBeUnready = false): string[] {
  const { status, metadata, spec } = pod;
  const init = status.initContainerStatuses ?? [];
  const apps = status.containerStatuses ?? [];
  const wrong = [...init, ...apps].flatMap((c) => untrueOfContainer(c, shown));
  const expect = (holds: boolean, words: string) => {
    if (!holds) wrong.push(words);
  };
  expect(
    text(apps.map((c) => c.name).sort()) === text(spec.containers.map((c) => c.name).sort()) &&
      init.length === (spec.initContainers ?? []).length,
    'the told containers are not those of the manifest',
  );
  const told = new Set([...init, ...apps].map((c) => c.name));
  for (const c of shown.containers) expect(told.has(c.name), `${c.name} is shown and not told`);
  const [sandbox] = shown.sandboxes;
  expect(
    shown.sandboxes.every((s) => s.uid === metadata.uid),
    `told is instance ${metadata.uid}, shown ${shown.sandboxes.map((s) => s.uid)}`,
  );
  expect(shown.sandboxes.filter((s) => s.ready).length <= 1, 'two sandboxes are ready');

  const nodeIps = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((a) => a.address));
  if (sandbox?.ready === true) {
    if (spec.hostNetwork === true) expect(nodeIps.includes(status.podIP ?? ''), `pod IP ${status.podIP} is none of ${hostname()}`);
    else
      expect(text((status.podIPs ?? []).map((p) => p.ip)) === text(shown.ips), `pod IPs told ${text(status.podIPs)}, shown ${shown.ips}`);
  }

  const newest = (name: string) => shown.containers.find((c) => c.name === name);
  const runs = (name: string) => newest(name)?.state === 'running';
  const exits = spec.containers.map((c) => newest(c.name));
  const initialized = (spec.initContainers ?? []).every((c) =>
    isSidecar(pod, c.name) ? newest(c.name) !== undefined : newest(c.name)?.state === 'exited' && newest(c.name)?.exitCode === 0,
  );
  const ready = [...spec.containers, ...(spec.initContainers ?? []).filter((c) => isSidecar(pod, c.name))].every((c) => runs(c.name));
  const condition = (type: string) => status.conditions?.find((c) => c.type === type)?.status;
  const says = (type: string, is: boolean) =>
    expect(condition(type) === (is ? 'True' : 'False'), `${type} is told ${condition(type)}, it is ${is}`);
  // what a probe found is not shown by the runtime
  const isReady = ready && !(mayBeUnready && condition('Ready') === 'False');
  says('PodScheduled', true);
  says('PodReadyToStartContainers', sandbox?.ready === true);
  says('Ready', isReady);
  says('ContainersReady', isReady);
  if (exits.some((c) => c !== undefined)) says('Initialized', true);
  switch (status.phase) {
    case 'Running':
      expect(initialized && exits.every((c) => c !== undefined), 'told Running, and not every container was started');
      break;
    case 'Succeeded':
      expect(
        exits.every((c) => c?.state === 'exited' && c.exitCode === 0),
        'told Succeeded, and not every container ended with 0',
      );
      break;
    case 'Failed':
      expect(shown.tasks.size === 0 || shown.containers.every((c) => c.state !== 'running'), 'told Failed, and a container runs');
      break;
    case 'Pending':
      expect(!ready, 'told Pending, and everything runs');
      break;
  }
  return wrong;
}

const topics = (lab: Lab, name: string) => ({
  pod: lab.agent.topic(`pods/default/${name}`),
  sync: lab.agent.topic(`sync/default/${name}`),
});
export const toldPod = (lab: Lab, name: string) => lab.watcher.values.get(topics(lab, name).pod) as ToldPod | undefined;
export const toldSync = (lab: Lab, name: string) => lab.watcher.values.get(topics(lab, name).sync) as SyncStatus | undefined;

/**
 * Waits until the pod is told as `check` wants it, and then until the runtime shows the same. The messages of both failures say what was
 * seen last. What it returns was told before the runtime was listed and still is told after it.
 */
export async function agreed(
  lab: Lab,
  name: string,
  check: (pod: ToldPod, sync: SyncStatus) => boolean = () => true,
  timeoutMs = 60_000,
  mayBeUnready = false,
): Promise<Seen> {
  const end = performance.now() + timeoutMs;
  const holds = () => {
    const [pod, sync] = [toldPod(lab, name), toldSync(lab, name)];
    return pod !== undefined && sync !== undefined && check(pod, sync);
  };
  let wrong: string[] = [];
  for (;;) {
    const left = Math.max(1, end - performance.now());
    await lab.watcher.untilAll(name, holds, left).catch(() => {
      throw new Error(
        `${name} was not told as expected in ${timeoutMs} ms; told last: ${text(toldPod(lab, name)?.status)} ${text(toldSync(lab, name))}${wrong.length > 0 ? `; untrue before: ${wrong.join('; ')}` : ''}\n${lab.agent.log().slice(-2000)}`,
      );
    });
    const [pod, sync] = [toldPod(lab, name), toldSync(lab, name)];
    if (pod === undefined || sync === undefined) continue;
    const shown = await shownOf(lab, name);
    if (toldPod(lab, name) === pod && toldSync(lab, name) === sync) {
      wrong = untrue(pod, shown, mayBeUnready);
      if (wrong.length === 0) return { pod, sync, shown };
    }
    if (performance.now() > end)
      throw new Error(
        `what is told of ${name} is not what is shown: ${wrong.join('; ')}\n${text(pod.status)}\n${text(shown.containers)}\n${text(shown.sandboxes)}\n${lab.agent.log().slice(-3000)}`,
      );
    await sleep(100);
  }
}

/** Waits until nothing is told of the pod, and the runtime has nothing of it. */
export async function gone(lab: Lab, name: string, timeoutMs = 60_000): Promise<void> {
  await lab.watcher.untilAll(`${name} gone`, () => toldPod(lab, name) === undefined && toldSync(lab, name) === undefined, timeoutMs);
  const end = performance.now() + 30_000;
  for (;;) {
    const { sandboxes, containers } = await shownOf(lab, name);
    if (sandboxes.length === 0 && containers.length === 0) return;
    if (performance.now() > end) throw new Error(`told gone, and the runtime still has ${text(sandboxes.map((s) => s.id))} of ${name}`);
    await sleep(100);
  }
}

/** What must not change of a container that nobody touched: its id, when it started, and in which sandbox it is. */
export const footprint = (shown: Shown, ...names: readonly string[]): string[] =>
  shown.containers
    .filter((c) => names.length === 0 || names.includes(c.name))
    .map((c) => `${c.name} ${c.id} ${c.startedAt} in ${c.sandboxId}`)
    .sort();
