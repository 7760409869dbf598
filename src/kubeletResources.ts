/**
 * The wiring's half of what a node has for its pods: cgroups, CPUs, devices, and who has to go when something runs short. Owns nothing of its
 * own; it is where these four meet, so that kubelet.ts knows one.
 */
import type { DesiredPod } from './api/desired.ts';
import { deviceResource } from './api/deviceClasses.ts';
import type { PodUid } from './api/objects.ts';
import type { PodStatus } from './api/status.ts';
import type { CpuManager } from './cm/cpuManager.ts';
import type { DeviceManager } from './cm/devices.ts';
import type { Usage } from './cm/usage.ts';
import type { Instances } from './instances.ts';
import { buildCm, type CmSide } from './kubeletCm.ts';
import { buildCpus } from './kubeletCpu.ts';
import { buildDevices } from './kubeletDevices.ts';
import { buildEviction, type EvictionParts, type EvictionSide } from './kubeletEviction.ts';
import type { UpdateParts } from './kubeletUpdates.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import type { DeviceCount } from './node/info.ts';
import type { EventRecorder } from './status/events.ts';

export interface ResourceParts extends UpdateParts, Pick<EvictionParts, 'containers' | 'imageGc'> {
  readonly instances: Instances;
  readonly events: EventRecorder;
  readonly wake: (uids: readonly PodUid[]) => void;
  readonly setStatus: (desired: DesiredPod, status: PodStatus) => void;
}

export class ResourceSide {
  /** undefined: a world without cgroups. */
  readonly cm: CmSide | undefined;
  readonly cpus: CpuManager;
  readonly devices: DeviceManager;
  /** undefined: nobody is ever evicted. */
  readonly eviction: EvictionSide | undefined;

  constructor(
    world: KubeletWorld,
    settings: KubeletSettings,
    private readonly parts: ResourceParts,
  ) {
    const { nodeName } = settings;
    this.cm = buildCm(world, settings, {
      ...parts,
      event: (pod, type, reason, message) => parts.telling().event(pod, undefined, type, reason, message),
      nodeEvent: (type, reason, message) =>
        parts.telling().events.event({ kind: 'Node', namespace: 'default', name: nodeName }, type, reason, message),
    });
    this.cpus = buildCpus(world, settings, parts);
    this.devices = buildDevices(world, settings, {
      ...parts,
      // there may be more of them, and whom admission refused for a device has no worker to be woken
      wake: (uids) => {
        parts.wake(uids);
        parts.admission().again();
      },
    });
    this.eviction = buildEviction(world, settings, { ...parts, cm: () => this.cm });
  }

  /** What an earlier agent left. Never rejects. */
  async load(): Promise<void> {
    await Promise.all([this.cm?.load(), this.cpus.load(), this.devices.load(), this.eviction?.load()]);
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.eviction?.run(signal);
  }

  stop(): void {
    this.cpus.stop();
    this.devices.stop();
  }

  /** What is to be stored is, when it resolves. */
  flush(): Promise<void> {
    return this.devices.flush();
  }

  /** How it makes cgroups can be asked again. */
  runtimeUp(): void {
    void this.cm?.manager.runtimeUp(); // it never rejects
  }

  /** What the node and its pods use. Throws in a world without cgroups. */
  usage(): Usage {
    if (this.cm === undefined) throw new Error('nobody reads cgroups in this world');
    return this.cm.usage;
  }

  /** Devices that are here, by the name pods ask for them with. */
  deviceCounts(): Readonly<Record<string, DeviceCount>> {
    const counts = Object.entries(this.devices.counts()).filter(([, n]) => n > 0);
    return Object.fromEntries(counts.map(([name, n]) => [deviceResource(name), { capacity: n, allocatable: n }]));
  }

  /** What the instance had of the node is free. */
  ended(uid: PodUid): void {
    this.cpus.release(uid);
    this.devices.freed();
    this.parts.admission().again();
  }

  retain(known: ReadonlySet<PodUid>): void {
    this.cm?.retain(known);
    this.cpus.retain(known);
    this.devices.retain(known);
    this.eviction?.retain();
  }
}
