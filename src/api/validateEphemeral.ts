// pure
/**
 * Validation of a container that is added to a pod that exists (kubelet v1.32 pkg/apis/core/validation validateEphemeralContainers): what
 * any container is judged by, fewer fields, a name that no container of the pod has, a target that is one of its app containers.
 */
import { decodeObject } from './decode.ts';
import { defaultPod } from './defaults.ts';
import { fieldPath, itemPath } from './fieldPath.ts';
import type { Problem } from './objects.ts';
import { shown } from './scalars.ts';
import type { EphemeralContainer, Pod } from './v1.ts';

const forbidden = ['ports', 'livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle', 'resources', 'resizePolicy', 'restartPolicy'];
const never = 'absent: an ephemeral container cannot have it';

export type ValidEphemeral =
  | { readonly ok: true; readonly container: EphemeralContainer }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Types and judges `raw` as one more ephemeral container of `pod`; defaults filled in. Unknown fields are mistakes: a person waits for the answer. */
export function validateEphemeral(raw: unknown, pod: Pod): ValidEphemeral {
  const { spec, metadata } = pod;
  const ephemeral = spec.ephemeralContainers ?? [];
  const path = itemPath('spec.ephemeralContainers', ephemeral.length);
  const fail = (...problems: Problem[]): ValidEphemeral => ({ ok: false, problems });
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return fail({ path, expected: 'a mapping', got: shown(raw) });
  const { targetContainerName: target, ...given } = raw as Readonly<Record<string, unknown>>;

  // as the one container of a pod with the same volumes it meets every rule of containers, and every limit of this version
  const as = 'spec.containers[0]';
  const alone = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: metadata.name, namespace: metadata.namespace },
    spec: { containers: [given], ...(spec.volumes && { volumes: spec.volumes }) },
  };
  const decoded = decodeObject(alone, { strict: true });
  const problems = decoded.problems.map((p) => (p.path.startsWith(as) ? { ...p, path: `${path}${p.path.slice(as.length)}` } : p));
  for (const name of forbidden) if (isSet(given[name])) problems.push({ path: fieldPath(path, name), expected: never, got: 'set' });
  const mounts = Array.isArray(given.volumeMounts) ? (given.volumeMounts as readonly unknown[]) : [];
  mounts.forEach((mount, i) => {
    for (const name of ['subPath', 'subPathExpr'])
      if (typeof mount === 'object' && mount !== null && isSet((mount as Record<string, unknown>)[name]))
        problems.push({ path: fieldPath(itemPath(`${path}.volumeMounts`, i), name), expected: never, got: 'set' });
  });

  const apps = spec.containers.map((c) => c.name);
  const taken = [...apps, ...(spec.initContainers ?? []).map((c) => c.name), ...ephemeral.map((c) => c.name)];
  if (typeof given.name === 'string' && taken.includes(given.name))
    problems.push({ path: `${path}.name`, expected: 'a name that no container of the pod has', got: shown(given.name) });
  if (target !== undefined && target !== null && target !== '' && !apps.some((name) => name === target))
    problems.push({ path: `${path}.targetContainerName`, expected: `one of ${apps.join(', ')}`, got: shown(target) });

  const { object } = decoded;
  if (problems.length > 0 || object?.kind !== 'Pod') return fail(...unique(problems));
  const [whole] = defaultPod(object, spec.nodeName ?? '').spec.containers;
  if (whole === undefined) return fail({ path, expected: 'a container', got: 'nothing' });
  const { resources: _, ...container } = whole;
  return { ok: true, container: { ...container, ...(typeof target === 'string' && target !== '' && { targetContainerName: target }) } };
}

/** An empty list or mapping says no more than its absence. */
const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== '' && !(typeof value === 'object' && Object.keys(value).length === 0);

/** A refused field that no ephemeral container may have is told once. */
const unique = (problems: readonly Problem[]): Problem[] =>
  problems.filter((p, i) => problems.findLastIndex((q) => q.path === p.path && (q.expected === never || q === p)) === i);
