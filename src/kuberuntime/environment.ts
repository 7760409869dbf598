// pure
/**
 * The environment of a container: values, and what is taken from the pod, from resources, and from ConfigMaps and Secrets (facts 10.8).
 * Mirrors kubelet v1.32 kubelet_pods.go makeEnvironmentVariables. What comes from elsewhere is put in as it is; only written values are
 * expanded. There are no Services here, so no variables of theirs either.
 */
import { type DownwardFacts, fieldValue, resourceValue } from '../api/downward.ts';
import { readFieldPath } from '../api/fieldRefs.ts';
import type { Container, EnvVar, EnvVarSource, Pod } from '../api/v1.ts';
import { expand } from '../container/expand.ts';
import { type EnvironmentSources, keyValue, noSources, valuesFrom } from './envObjects.ts';

/** What a pod cannot say of itself. */
export interface NodeFacts extends DownwardFacts {
  /** What the container's environment names. */
  readonly sources?: EnvironmentSources;
}

/**
 * By the order of its names; each value sees the ones before it, and a name given twice has its last value. `given`: what envFrom brought,
 * before all others. A variable whose optional source is missing stays what it was. Throws when a source is missing that must be there, and
 * when a valueFrom names what this version does not know: validation refuses it, but a stored object may come from another version.
 */
export function environment(
  env: readonly EnvVar[],
  sourced: (from: EnvVarSource) => string | undefined,
  given: readonly (readonly [string, string])[] = [],
): Map<string, string> {
  const values = new Map<string, string>(given);
  for (const { name, value = '', valueFrom } of env) {
    const own = value === '' && valueFrom !== undefined ? sourced(valueFrom) : expand(value, (n) => values.get(n));
    if (own !== undefined) values.set(name, own);
  }
  return values;
}

/** The whole environment of a container. Throws as `environment` does. */
export function containerEnvironment(pod: Pod, container: Container, node: NodeFacts): Map<string, string> {
  const { sources = noSources } = node;
  const given = (container.envFrom ?? []).flatMap((from) => valuesFrom(from, sources, namespaceOf(pod)));
  return environment(container.env ?? [], valueFrom(pod, container, node), given);
}

const namespaceOf = ({ metadata }: Pod): string => metadata.namespace || 'default';

/** What a container's variables take from elsewhere; undefined: from an optional source that is missing. */
export const valueFrom =
  (pod: Pod, container: Container, node: NodeFacts) =>
  (from: EnvVarSource): string | undefined => {
    const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = from;
    if (configMapKeyRef !== undefined || secretKeyRef !== undefined) return keyValue(from, node.sources ?? noSources, namespaceOf(pod));
    if (resourceFieldRef !== undefined) return resourceValue(pod, container, resourceFieldRef, node);
    const path = fieldRef === undefined ? undefined : readFieldPath(fieldRef.fieldPath);
    if (path === undefined) throw new Error(`unsupported fieldPath: ${fieldRef?.fieldPath ?? 'none'}`);
    return fieldValue(pod, path, node);
  };

/** Names that only a running sandbox knows stand in the environment. */
export const wantsPodIps = (container: Pick<Container, 'env'>): boolean =>
  (container.env ?? []).some(({ valueFrom: from }) => from?.fieldRef?.fieldPath.startsWith('status.podIP'));
