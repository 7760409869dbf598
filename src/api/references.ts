// pure
/** Which ConfigMaps and Secrets a pod names, so that it hears of their coming and changing. */
import { everyContainer } from './containers.ts';
import type { DesiredPod } from './desired.ts';
import { type ApiObject, type KeyText, keyText, type PodUid, type Source } from './objects.ts';
import type { Container, PodSpec, Volume } from './v1.ts';

/** An object of the pod's own namespace. */
export interface ObjectReference {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
}

/** Finds an accepted object as a pod of `source` may see it: one of the same kind of source (behaviour 13). */
export type ObjectLookup = (kind: ObjectReference['kind'], namespace: string, name: string, source: Source) => ApiObject | undefined;

type Named = readonly [kind: ObjectReference['kind'], name: string | undefined];

/** Each once, in the order of writing; what has no name is none. */
function once(named: readonly Named[]): ObjectReference[] {
  const found = new Map<string, ObjectReference>();
  for (const [kind, name] of named) if (name) found.set(`${kind}/${name}`, { kind, name });
  return [...found.values()];
}

/** Those in the environment of one container, in the order of writing, each once. */
export function environmentReferences({ env = [], envFrom = [] }: Pick<Container, 'env' | 'envFrom'>): ObjectReference[] {
  return once([
    ...envFrom.flatMap((from): Named[] => [
      ['ConfigMap', from.configMapRef?.name],
      ['Secret', from.secretRef?.name],
    ]),
    ...env.flatMap(({ valueFrom }): Named[] => [
      ['ConfigMap', valueFrom?.configMapKeyRef?.name],
      ['Secret', valueFrom?.secretKeyRef?.name],
    ]),
  ]);
}

/** Those whose content is in one volume, in the order of writing, each once; optional ones too. */
export function volumeReferences({ configMap, secret, projected }: Volume): ObjectReference[] {
  return once([
    ['ConfigMap', configMap?.name],
    ['Secret', secret?.secretName],
    ...(projected?.sources ?? []).flatMap((source): Named[] => [
      ['ConfigMap', source.configMap?.name],
      ['Secret', source.secret?.name],
    ]),
  ]);
}

/** All that a pod names: in environments, volumes and imagePullSecrets. Each once. */
export function podReferences(spec: PodSpec): ObjectReference[] {
  const { volumes = [], imagePullSecrets = [] } = spec;
  const found = [
    ...everyContainer(spec).flatMap(environmentReferences),
    ...volumes.flatMap(volumeReferences),
    ...imagePullSecrets.map(({ name = '' }): ObjectReference => ({ kind: 'Secret', name })),
  ];
  return once(found.map(({ kind, name }) => [kind, name]));
}

/** The pods that name one of these objects: what they wait for may be there now. */
export function usersOf(keys: Iterable<KeyText>, pods: Iterable<DesiredPod>): PodUid[] {
  const changed = new Set([...keys].filter((key) => !key.startsWith('Pod/')));
  if (changed.size === 0) return [];
  const names = ({ pod, namespace }: DesiredPod): boolean =>
    podReferences(pod.spec).some(({ kind, name }) => changed.has(keyText({ kind, namespace, name })));
  return [...pods].filter(names).map((pod) => pod.uid);
}
