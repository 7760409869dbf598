/** Devices in virtual time: a /dev that a test fills, and containers that are made, started and killed by hand. */

import type { DesiredPod } from '../../src/api/desired.ts';
import type { DeviceClasses } from '../../src/api/deviceClasses.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { Container, Pod } from '../../src/api/v1.ts';
import type { DeviceRecord } from '../../src/cm/deviceHolders.ts';
import { DeviceManager } from '../../src/cm/devices.ts';
import type { ContainerDevices } from '../../src/container/devices.ts';
import { HeldBack } from '../../src/container/heldBack.ts';
import { type ContainerId, labels } from '../../src/container/words.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeDeviceFiles } from '../fakes/fakeDeviceFiles.ts';
import { desiredPod } from '../pod/desiredPod.ts';

export const wants = (name: string, devices: Readonly<Record<string, number>>, o: Partial<Container> = {}): Container => ({
  name,
  image: 'localhost/busybox:1',
  resources: { limits: Object.fromEntries(Object.entries(devices).map(([c, n]) => [`devices.podsched.dev/${c}`, n])) },
  ...o,
});

export const podOf = (name: string, containers: readonly Container[], spec: Partial<Pod['spec']> = {}): DesiredPod =>
  desiredPod(name, `uid-${name}`, { spec: { ...spec, containers } });

export class DeviceHouse {
  readonly clock = new FakeClock();
  readonly files = new FakeDeviceFiles();
  readonly store = new MemoryStore();
  classes: DeviceClasses = { serial: ['/dev/ttyUSB*'], byid: ['/dev/serial/by-id/*'], i2c: ['/dev/i2c-*'] };
  /** The newest first. */
  records: DeviceRecord[] = [];
  readonly ended = new Set<string>();
  readonly woken: PodUid[] = [];
  /** `name/container Type Reason: message` */
  readonly events: string[] = [];
  conditionChanges = 0;
  manager = this.newAgent();
  #made = 0;

  newAgent(): DeviceManager {
    this.manager?.stop();
    this.manager = new DeviceManager({
      ...{ clock: this.clock, log: silentLog, files: this.files, store: this.store },
      classes: () => this.classes,
      containers: () => this.records,
      holds: (uid) => !this.ended.has(uid),
      wake: (uids) => this.woken.push(...uids),
      event: ({ name }, container, type, reason, message) => this.events.push(`${name}/${container} ${type} ${reason}: ${message}`),
      conditionsChanged: () => this.conditionChanges++,
    });
    return this.manager;
  }

  container(desired: DesiredPod, name = 'app'): Container {
    const all = [...desired.pod.spec.containers, ...(desired.pod.spec.initContainers ?? [])];
    const found = all.find((c) => c.name === name);
    if (found === undefined) throw new Error(`no container ${name}`);
    return found;
  }

  /** What it is given; the text says why not. */
  ask(desired: DesiredPod, name = 'app', username = ''): ContainerDevices | string | undefined {
    try {
      return this.manager.devicesFor(desired, this.container(desired, name), { id: 'image', username });
    } catch (e) {
      if (!(e instanceof HeldBack)) throw e;
      return `${e.reason}: ${e.message}`;
    }
  }

  /** Asks, and lets it run with what it is given. */
  start(desired: DesiredPod, name = 'app'): string[] {
    const given = this.ask(desired, name);
    if (typeof given === 'string') throw new Error(given);
    const { uid } = desired;
    const record: DeviceRecord = {
      ...{ uid, name, state: 'running', id: `id-${++this.#made}` as ContainerId, annotations: given?.annotations ?? {} },
      labels: { [labels.podName]: desired.name, [labels.podNamespace]: desired.namespace },
    };
    this.records = [record, ...this.records];
    return (given?.devices ?? []).map((d) => d.containerPath);
  }

  exit(desired: DesiredPod, name = 'app'): void {
    this.records = this.records.map((r) => (r.uid === desired.uid && r.name === name ? { ...r, state: 'exited' } : r));
  }

  running(desired: DesiredPod, name = 'app'): DeviceRecord {
    const record = this.records.find((r) => r.uid === desired.uid && r.name === name && r.state === 'running');
    if (record === undefined) throw new Error(`${desired.name}/${name} does not run`);
    return record;
  }

  /** Whether a step of the pod would make the container anew. */
  restarts(desired: DesiredPod, name = 'app'): boolean {
    this.manager.review(desired, { containers: this.records.filter((r) => r.uid === desired.uid) });
    return this.manager.isBack(desired, this.running(desired, name));
  }

  /** Names of pods that were woken since the last time, once it is quiet. */
  async woke(): Promise<string[]> {
    this.woken.length = 0;
    await this.clock.advance(1_000);
    return [...new Set(this.woken)].map((uid) => uid.slice('uid-'.length)).sort();
  }
}
