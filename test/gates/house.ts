/** Gates in virtual time, on a machine whose disks, clock, network and pods are what a test says. */
import type { DesiredPod } from '../../src/api/desired.ts';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import { Gates } from '../../src/gates/manager.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeGateFacts } from '../fakes/fakeGateFacts.ts';
import { desiredPod } from '../pod/desiredPod.ts';

export const waitingPod = (name: string, waitFor: string, timeout?: string): DesiredPod => {
  const pod = desiredPod(name, `uid-${name}`);
  const annotations = { 'podsched.dev/wait-for': waitFor, ...(timeout !== undefined && { 'podsched.dev/wait-timeout': timeout }) };
  return { ...pod, pod: { ...pod.pod, metadata: { ...pod.pod.metadata, annotations } } };
};

export class GateHouse {
  readonly clock = new FakeClock();
  readonly store = new MemoryStore();
  readonly facts = new FakeGateFacts();
  /** By `Pod/namespace/name`; absent: there is none. */
  readonly pods = new Map<string, 'ready' | 'not ready'>();
  readonly manifests = new Map<string, DesiredPod>();
  readonly woken: PodUid[] = [];
  /** Classes of which a device is there. */
  readonly devices = new Set<string>();
  /** `name Type Reason: message` */
  readonly events: string[] = [];
  gates = this.newAgent();

  newAgent(): Gates {
    this.gates = new Gates({
      clock: this.clock,
      log: silentLog,
      store: this.store,
      ...this.facts,
      podNotReady: (key: KeyText) => {
        const state = this.pods.get(key);
        return state === 'ready' ? undefined : state === undefined ? 'does not exist' : 'is not ready';
      },
      desired: (key) => this.manifests.get(key),
      deviceAbsent: (_pod, name) => (this.devices.has(name) ? undefined : `no device of class ${name} is there (/dev/video*)`),
      wake: (uids) => this.woken.push(...uids),
      event: ({ name }, type, reason, message) => this.events.push(`${name} ${type} ${reason}: ${message}`),
    });
    return this.gates;
  }
}
