/** The wiring's half of start gates: what they ask of the other pods of the node. Owns nothing of its own. */
import type { DesiredPod } from './api/desired.ts';
import type { KeyText } from './api/objects.ts';
import type { DeviceManager } from './cm/devices.ts';
import type { GateFacts } from './gates/facts.ts';
import { Gates, type GatesDeps } from './gates/manager.ts';
import { notReadyText } from './gates/notReady.ts';
import type { StatusSide } from './kubeletStatus.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import type { PodManager } from './pod/manager.ts';

export interface GateParts extends Pick<GatesDeps, 'wake'> {
  readonly pods: PodManager;
  readonly status: StatusSide;
  readonly devices: Pick<DeviceManager, 'gate'>;
}

/** `gates`: what they ask of the machine. */
export function buildGates(
  { clock, log, runStore, gates }: Pick<KubeletWorld, 'clock' | 'log' | 'runStore'> & { readonly gates: GateFacts },
  { pods, status, wake, devices }: GateParts,
): Gates {
  const find = (key: KeyText): DesiredPod | undefined => pods.byKey(key);
  return new Gates({
    ...gates,
    ...{ clock, log, store: runStore, wake, desired: find },
    podNotReady: (key) => {
      const pod = find(key);
      return pod === undefined ? 'does not exist' : notReadyText(status.manager.get(pod.uid));
    },
    deviceAbsent: (pod, deviceClass) => devices.gate(pod, deviceClass),
    event: (pod, type, reason, message) => status.event(pod, undefined, type, reason, message),
  });
}
