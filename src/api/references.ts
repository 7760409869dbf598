// pure
/** Which ConfigMaps and Secrets a pod names, so that it hears of their coming and changing. */
import { everyContainer } from './containers.ts';
import type { DesiredPod } from './desired.ts';
import { type KeyText, keyText, type PodUid } from './objects.ts';
import type { Container } from './v1.ts';

/** An object of the pod's own namespace. */
export interface ObjectReference {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
}

/** Those in the environment of one container, in the order of writing, each once. */
export function environmentReferences({ env = [], envFrom = [] }: Pick<Container, 'env' | 'envFrom'>): ObjectReference[] {
  const found = new Map<string, ObjectReference>();
  const add = (kind: ObjectReference['kind'], ref: { readonly name?: string } | undefined): void => {
    if (ref?.name) found.set(`${kind}/${ref.name}`, { kind, name: ref.name });
  };
  for (const from of envFrom) {
    add('ConfigMap', from.configMapRef);
    add('Secret', from.secretRef);
  }
  for (const { valueFrom } of env) {
    add('ConfigMap', valueFrom?.configMapKeyRef);
    add('Secret', valueFrom?.secretKeyRef);
  }
  return [...found.values()];
}

/** The pods that name one of these objects: what they wait for may be there now. */
export function usersOf(keys: Iterable<KeyText>, pods: Iterable<DesiredPod>): PodUid[] {
  const changed = new Set([...keys].filter((key) => !key.startsWith('Pod/')));
  if (changed.size === 0) return [];
  const names = ({ pod, namespace }: DesiredPod): boolean =>
    everyContainer(pod.spec).some((c) =>
      environmentReferences(c).some(({ kind, name }) => changed.has(keyText({ kind, namespace, name }))),
    );
  return [...pods].filter(names).map((pod) => pod.uid);
}
