/** A Guaranteed, a Burstable and a BestEffort pod have exactly the values that a kubelet wrote on such a machine; with both drivers. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { answers, configure, container, drop, type Pod, plain, pods, remove, removeAll, type Spec, untilReady } from './agent.ts';
import type { Story, Suite } from './checks.ts';
import { memTotal, read, run, sh, until, write } from './machine.ts';
import { recording, type Values } from './recordings.ts';

const root = '/sys/fs/cgroup';
const limited = (requests: object | undefined, limits: object | undefined): Spec => ({
  resources: { ...(requests !== undefined && { requests }), ...(limits !== undefined && { limits }) },
});

/** As they were recorded. */
const classes = {
  guar: limited(undefined, { cpu: '100m', memory: '20Mi' }),
  burst: limited({ cpu: '150m', memory: '10Mi' }, { memory: '30Mi' }),
  best: {},
} as const;
type Class = keyof typeof classes;
const names = Object.keys(classes) as readonly Class[];
const qos: Readonly<Record<Class, string>> = { guar: 'Guaranteed', burst: 'Burstable', best: 'BestEffort' };

/** Where the recording has a pod, and where it must be here. */
const recorded: Readonly<Record<Class, string>> = {
  guar: 'kubepods.slice/kubepods-pod<uid>.slice',
  burst: 'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice',
  best: 'kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod<uid>.slice',
};
type Driver = 'systemd' | 'cgroupfs';
const dash = (uid: string): string => uid.replaceAll('-', '_');
const places = {
  systemd: {
    levels: ['kubepods.slice', 'kubepods.slice/kubepods-burstable.slice', 'kubepods.slice/kubepods-besteffort.slice'],
    pod: (of: Class, uid: string) => recorded[of].replace('<uid>', dash(uid)),
    scope: (id: string) => `cri-containerd-${id}.scope`,
  },
  cgroupfs: {
    levels: ['kubepods', 'kubepods/burstable', 'kubepods/besteffort'],
    pod: (of: Class, uid: string) => `kubepods/${{ guar: '', burst: 'burstable/', best: 'besteffort/' }[of]}pod${uid}`,
    scope: (id: string) => id,
  },
} as const;

/** What the machine decides: its memory, and how many tasks it may have. */
function ofThisMachine(file: string, value: string): string {
  if (file === 'memory.max' && value === '2067390464') return String(memTotal());
  const tasks = Math.min(Number(read('/proc/sys/kernel/threads-max')), Number(read('/proc/sys/kernel/pid_max')));
  if (file === 'pids.max' && value === '14949') return String(tasks);
  return value;
}

/** Of a cgroup: the files that the recording has, and their values. systemd's limit of tasks (15 %) is not there with the cgroupfs driver. */
function compare(driver: Driver, path: string, expected: Values | undefined, of: string): void {
  assert.ok(expected !== undefined && Object.keys(expected).length > 1, `${of}: it was not recorded, so nothing would be compared`);
  assert.ok(existsSync(`${root}/${path}`), `${of}: ${path} is not there`);
  const found: Record<string, string> = {};
  const wanted: Record<string, string> = {};
  for (const [file, value] of Object.entries(expected)) {
    if (file === 'cgroup.subtree_control' && driver === 'cgroupfs') continue;
    found[file] = read(`${root}/${path}/${file}`);
    wanted[file] = ofThisMachine(file, value);
    if (driver === 'cgroupfs' && file === 'pids.max' && value === '2242') wanted[file] = 'max';
    // a scope of systemd's has as many tasks as its own default says
    if (driver === 'systemd' && file === 'pids.max' && value === '2242' && /^\d{4}$/.test(found[file])) wanted[file] = found[file];
  }
  assert.deepEqual(found, wanted, `${of}: ${path}`);
}

const idOf = (p: Pod): string => p.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';

/** Sandboxes and containers by the cgroup they are in. */
async function cgroupsOfTasks(): Promise<ReadonlyMap<string, string>> {
  const rows = (await sh('ctr -n k8s.io tasks ls')).split('\n').slice(1);
  return new Map(
    rows.flatMap((row): [string, string][] => {
      const [id = '', pid = ''] = row.trim().split(/\s+/);
      return existsSync(`/proc/${pid}/cgroup`) ? [[id, read(`/proc/${pid}/cgroup`).replace(/^0::\//, '')]] : [];
    }),
  );
}

async function judge({ check }: Story, driver: Driver): Promise<void> {
  const kubelet = recording();
  const place = places[driver];
  for (const name of names) drop(name, { ...plain, containers: [container(undefined, classes[name])] });
  const told = {} as Record<Class, Pod>;
  await check('three pods of three classes run', async () => {
    for (const name of names) {
      told[name] = await untilReady(name);
      assert.equal(told[name].status.qosClass, qos[name]);
    }
  });
  for (const [i, level] of [
    'kubepods.slice',
    'kubepods.slice/kubepods-burstable.slice',
    'kubepods.slice/kubepods-besteffort.slice',
  ].entries())
    await check(`${place.levels[i]} has the recorded values`, () =>
      compare(driver, place.levels[i] ?? '', kubelet.slices.get(level), level),
    );
  const tasks = await cgroupsOfTasks();
  for (const name of names) {
    await check(`${qos[name]}: the pod’s cgroup, the sandbox’s and the container’s have the recorded values`, () => {
      const path = place.pod(name, told[name].metadata.uid);
      compare(driver, path, kubelet.slices.get(recorded[name]), 'pod');
      const id = idOf(told[name]);
      assert.equal(tasks.get(id), `${path}/${place.scope(id)}`, 'the container is in the pod');
      const sandbox = [...tasks].find(([other, where]) => other !== id && where.startsWith(`${path}/`));
      assert.ok(sandbox !== undefined, 'the sandbox is in the pod');
      const pair = kubelet.scopes.get(recorded[name]);
      compare(driver, `${path}/${place.scope(id)}`, pair?.container, 'container');
      compare(driver, sandbox[1], pair?.sandbox, 'sandbox');
    });
  }
  await check('cgroups of pods go with their pods', async () => {
    await remove(...names);
    for (const name of names)
      await until(`${name}’s cgroup to go`, 60, () => !existsSync(`${root}/${place.pod(name, told[name].metadata.uid)}`) || undefined);
  });
}

export const cgroups: Suite = { name: 'cgroups', run: (story) => judge(story, 'cgroupfs') };

/** containerd is told to ask systemd for its cgroups: in the table of the runtime, which Debian's file does not have. */
const asksSystemd = `
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = true
`;

/** A processor for a Guaranteed pod alone, and the reserved one for all others: as the kernel keeps to it. */
async function ownCpus({ check }: Story): Promise<void> {
  await check('the agent changes to CPUs of one’s own', async () => {
    await configure({ evictionPressureTransitionPeriod: '5s', cpuManagerPolicy: 'static', reservedSystemCPUs: '0' });
  });
  const own = 'own-cpu';
  const shared = 'shared-cpu';
  drop(own, { ...plain, containers: [container(undefined, limited(undefined, { cpu: '1', memory: '32Mi' }))] });
  drop(shared, { ...plain, containers: [container()] });
  await check(
    'a Guaranteed pod has CPU 1 for itself, and a BestEffort one runs on what is left',
    async () => {
      const expected: readonly (readonly [name: string, of: Class, cpus: string])[] = [
        [own, 'guar', '1'],
        [shared, 'best', '0'],
      ];
      for (const [name, of, cpus] of expected) {
        const p = await untilReady(name);
        assert.equal(p.status.qosClass, qos[of]);
        const place = places.systemd;
        const file = `${root}/${place.pod(of, p.metadata.uid)}/${place.scope(idOf(p))}/cpuset.cpus.effective`;
        // one that began before the other was given its CPU is moved
        await until(
          () => `${name} to be kept to CPU ${cpus}; ${file} has ${existsSync(file) ? read(file) : 'gone'}`,
          60,
          () => read(file) === cpus || undefined,
        );
      }
    },
    300,
  );
  await check('pods that are kept to CPUs end as any other', () => remove(own, shared));
}

export const systemdDriver: Suite = {
  name: 'systemd-driver',
  async run(story) {
    await removeAll();
    const file = '/etc/containerd/config.toml';
    await story.check('containerd and agent change to systemd’s cgroups', async () => {
      await run('systemctl', 'stop', 'podsched');
      const text = read(file);
      if (!text.includes('SystemdCgroup')) write(file, `${text}\n${asksSystemd}`);
      await run('systemctl', 'restart', 'containerd');
      // a full disk of before is not reported for five minutes more
      await configure({ evictionPressureTransitionPeriod: '5s' });
      await answers();
    });
    await judge(story, 'systemd');
    await story.check('the slices are systemd’s own', async () => {
      assert.match(await run('systemctl', 'list-units', '--no-legend', '--plain', 'kubepods*.slice'), /^kubepods\.slice/m);
      assert.deepEqual(await pods(), [], 'the agent goes on');
    });
    await ownCpus(story);
  },
};
