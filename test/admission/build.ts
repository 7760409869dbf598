/** A node of four CPUs and 8 GiB, and pods by what admission looks at. */
import type { NodeFacts } from '../../src/admission/admit.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { ContainerPort, PodSpec } from '../../src/api/v1.ts';
import { desiredPod } from '../pod/desiredPod.ts';

export const node = (o: Partial<NodeFacts> = {}): NodeFacts => ({
  name: 'pi-07',
  labels: { 'kubernetes.io/hostname': 'pi-07', 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64', site: 'attic', cores: '4' },
  os: 'linux',
  allocatable: { cpuMilli: 4000, memoryBytes: 8 * 2 ** 30, ephemeralBytes: 32 * 2 ** 30, pods: 110 },
  hostPortsInUse: [],
  ...o,
});

let uids = 0;

/** `name` or `namespace/name`; each call is another instance. */
export function pod(name: string, spec: Partial<PodSpec> = {}, labels?: Readonly<Record<string, string>>): DesiredPod {
  const [short = '', namespace = 'default'] = name.split('/').reverse();
  const made = desiredPod(short, `${short}-${++uids}`, { spec });
  const metadata = { ...made.pod.metadata, namespace, ...(labels && { labels }) };
  return { ...made, namespace, key: `Pod/${namespace}/${short}` as DesiredPod['key'], pod: { ...made.pod, metadata } };
}

export const asking = (requests: Readonly<Record<string, string>>): Partial<PodSpec> => ({
  containers: [{ name: 'app', image: 'x', resources: { requests } }],
});

export const claiming = (...ports: readonly (Partial<ContainerPort> & { hostPort: number })[]): Partial<PodSpec> => ({
  containers: [{ name: 'app', image: 'x', ports: ports.map((p) => ({ containerPort: p.hostPort, ...p })) }],
});

/** The same instance with another text. */
export const edited = (before: DesiredPod, spec: Partial<PodSpec>): DesiredPod => ({
  ...before,
  revision: `${before.revision}'`,
  pod: { ...before.pod, spec: { ...before.pod.spec, ...spec } },
});

/** The same text as another instance. */
export const renewed = (before: DesiredPod): DesiredPod => {
  const uid = `${before.name}-${++uids}` as DesiredPod['uid'];
  return { ...before, uid, pod: { ...before.pod, metadata: { ...before.pod.metadata, uid } } };
};
