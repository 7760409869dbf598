/** The wiring's half of devices: who has ended and what the runtime has. Owns nothing of its own. */
import type { DeviceClasses } from './api/deviceClasses.ts';
import type { PodUid } from './api/objects.ts';
import type { DeviceFiles } from './cm/deviceFiles.ts';
import { DeviceManager, type DeviceManagerDeps } from './cm/devices.ts';
import type { Instances } from './instances.ts';
import type { StatusSide } from './kubeletStatus.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import type { Pleg } from './pleg/pleg.ts';
import type { Completions } from './pod/completions.ts';
import type { PodWorkers } from './pod/workers.ts';

/** Functions, since most of them are built later. */
export interface DeviceParts extends Pick<DeviceManagerDeps, 'wake'> {
  readonly instances: Instances;
  readonly workers: () => PodWorkers;
  readonly completions: () => Completions;
  readonly pleg: () => Pleg;
  readonly telling: () => StatusSide;
}

export function buildDevices(
  {
    clock,
    log,
    runStore,
    deviceFiles,
    conditionsChanged,
  }: Pick<KubeletWorld, 'clock' | 'log' | 'runStore' | 'conditionsChanged'> & { readonly deviceFiles: DeviceFiles },
  { deviceClasses }: { readonly deviceClasses: () => DeviceClasses },
  { instances, workers, completions, pleg, telling, wake }: DeviceParts,
): DeviceManager {
  const holds = (uid: PodUid): boolean => {
    const pod = instances.get(uid);
    const state = workers().state(uid);
    return pod !== undefined && state !== 'terminated' && state !== 'finished' && !completions().has(pod);
  };
  return new DeviceManager({
    ...{ clock, log, store: runStore, files: deviceFiles, classes: deviceClasses, wake, conditionsChanged, holds },
    // the list has the annotations, and is whole before the first step of any pod
    containers: () =>
      pleg()
        .pods()
        .flatMap(({ uid, containers }) => containers.map((c) => ({ ...c, uid }))),
    event: (pod, container, type, reason, message) => telling().event(pod, container, type, reason, message),
  });
}
