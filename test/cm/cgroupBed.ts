/** A fake cgroup file system in a temporary folder, either driver on it, and the manager over both. Systemd is played by making the folders. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { CgroupfsDriver, type Driver, expandSlice, SystemdDriver } from 'cgroup-ts';
import { FakeCgroupfs } from 'cgroup-ts/testing';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { CgroupDriver } from '../../src/api/resources.ts';
import type { Container } from '../../src/api/v1.ts';
import type { CgroupFacts } from '../../src/cm/enforced.ts';
import { ContainerManager, type ContainerManagerSettings } from '../../src/cm/manager.ts';
import { hugepageLimits } from '../../src/kuberuntime/hugepages.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { desiredPod } from '../pod/desiredPod.ts';

const made: string[] = [];
after(() => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true });
});

export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-cm-'));
  made.push(dir);
  return dir;
}

export const v2: CgroupFacts = {
  version: 'v2',
  controllers: new Set(['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids', 'rdma', 'misc']),
};

export interface BedOptions {
  readonly driver?: CgroupDriver;
  readonly facts?: CgroupFacts;
  readonly settings?: Partial<ContainerManagerSettings>;
  readonly controllers?: readonly string[];
  readonly store?: MemoryStore;
  /** An earlier bed's machine. */
  readonly on?: Bed;
}

export interface Bed {
  readonly clock: FakeClock;
  readonly root: string;
  readonly fs: FakeCgroupfs;
  readonly manager: ContainerManager;
  readonly store: MemoryStore;
  /** `Warning LimitsNotEnforced memory` */
  readonly events: string[];
  readonly nodeEvents: string[];
  /** What systemd was asked: `StartTransientUnit kubepods.slice` */
  readonly asked: string[];
  active: readonly DesiredPod[];
  /** undefined: the runtime has not answered. */
  kind: CgroupDriver | undefined;
  conditionsChanged: number;
  /** Of a file of a group; '' where there is none. */
  readonly text: (...path: string[]) => string;
}

export function bed(o: BedOptions = {}): Bed {
  const root = o.on?.root ?? join(temporaryFolder(), 'cgroup');
  const fs = o.on?.fs ?? new FakeCgroupfs(root, o.controllers === undefined ? {} : { controllers: o.controllers });
  const store = o.store ?? o.on?.store ?? new MemoryStore();
  const clock = new FakeClock();
  const events: string[] = [];
  const nodeEvents: string[] = [];
  const asked: string[] = [];
  const sleep = async (): Promise<void> => {};
  const run = async (argv: readonly string[]) => {
    const unit = argv.find((word) => word.endsWith('.slice')) ?? '';
    const method = argv.find((word) => /^(StartTransientUnit|SetUnitProperties|StopUnit|ResetFailedUnit)$/.test(word)) ?? argv.join(' ');
    asked.push(`${method} ${unit}`);
    const dir = join(root, expandSlice(unit));
    if (method === 'StartTransientUnit') {
      if (existsSync(dir)) return { code: 1, stdout: '', stderr: `Call failed: Unit ${unit} was already loaded or has a fragment file.` };
      fs.makeGroup(dir);
    }
    return { code: 0, stdout: '', stderr: '' };
  };
  const makeDriver = (kind: CgroupDriver): Driver =>
    kind === 'systemd' ? new SystemdDriver({ root, fs, sleep, run }) : new CgroupfsDriver({ root, fs, sleep });
  const manager = new ContainerManager({
    clock,
    log: silentLog,
    store,
    settings: {
      root: [],
      perQos: true,
      podPidsLimit: -1,
      pageBytes: 4096,
      hugepages: (amounts) => hugepageLimits(amounts, ['2MB']),
      may: { cpuMilli: 2000, memoryBytes: 2_067_386_368, pids: 14_949, hugepages: {} },
      ...o.settings,
    },
    facts: o.facts ?? v2,
    kernelLine: () => ({ place: 'the line in /boot/firmware/cmdline.txt', booted: '' }),
    driver: async () => bedOf.kind,
    makeDriver,
    active: () => bedOf.active,
    event: (pod, type, reason, message) => events.push(`${pod.name}: ${type} ${reason} ${message}`),
    nodeEvent: (type, reason, message) => nodeEvents.push(`${type} ${reason} ${message}`),
    conditionsChanged: () => {
      bedOf.conditionsChanged += 1;
    },
  });
  const bedOf: Bed = {
    ...{ clock, root, fs, manager, store, events, nodeEvents, asked },
    active: [],
    kind: o.driver ?? 'cgroupfs',
    conditionsChanged: 0,
    text: (...path) => {
      try {
        return readFileSync(join(root, ...path), 'utf8').trim();
      } catch {
        return ''; // there is none
      }
    },
  };
  return bedOf;
}

type Amounts = Readonly<Record<string, string>>;

/** A pod of one container with these limits and requests. */
export function podWith(
  name: string,
  resources: { readonly limits?: Amounts; readonly requests?: Amounts } = {},
  uid = `0000-${name}`,
): DesiredPod {
  const container: Container = { name: 'app', image: 'localhost/busybox:1', resources };
  return desiredPod(name, uid, { spec: { containers: [container] } });
}
