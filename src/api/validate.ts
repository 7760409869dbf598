// pure
/**
 * The kubelet's create-validation of what this version supports: names, labels, ports, durations, resources, environment, keys of
 * ConfigMaps and Secrets. It judges a typed object and yields every mistake with its path; it changes nothing. Types, unknown and
 * unsupported fields are decode.ts' business, and what that found wrong is absent here: every check bears with an absent field.
 * Mirrors kubelet v1.32 pkg/apis/core/validation as the file source calls it; podsched's own are the memory floor and the two system
 * priority classes (behaviour.md 12, "Completed, refused, ended").
 */
import { parseCrashBackoff } from './crashBackoff.ts';
import { validateCdi } from './deviceClasses.ts';
import { entryPath, fieldPath } from './fieldPath.ts';
import { wrongLabel, wrongLabelValue, wrongQualifiedName, wrongSubdomain } from './names.ts';
import type { ApiObject, Problem } from './objects.ts';
import { problemIf } from './problems.ts';
import { holdAnnotation, parseRollback, rollbackAnnotation } from './rollback.ts';
import { shown } from './scalars.ts';
import type { ObjectMeta, Pod, PodSpec } from './v1.ts';
import { validateAffinity } from './validateAffinity.ts';
import { validateContainers } from './validateContainer.ts';
import { validateConfigMap, validateSecret } from './validateData.ts';
import { validateDns } from './validateDns.ts';
import { validateAppArmorAnnotations, validatePodSecurity } from './validateSecurity.ts';
import { validateVolumes } from './validateVolumes.ts';
import { validateWaitFor } from './waitFor.ts';

/** The two classes podsched resolves itself; nothing could resolve another. */
export const systemPriorities: Readonly<Record<string, number>> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
};

/** What the node allows beyond the rules. */
export interface ValidateOptions {
  readonly allowedUnsafeSysctls?: readonly string[];
  /** Classes of devices in the configuration; absent: nobody knows them. */
  readonly deviceClasses?: readonly string[];
}

/** Every mistake of a typed object, in the order of its fields. */
export function validateObject(o: ApiObject, node: ValidateOptions = {}): Problem[] {
  const problems = validateMetadata(o.metadata ?? {});
  switch (o.kind) {
    case 'Pod':
      return [...problems, ...validateLogFolderName(o.metadata ?? {}), ...validatePod(o, node)];
    case 'ConfigMap':
      return [...problems, ...validateConfigMap(o)];
    case 'Secret':
      return [...problems, ...validateSecret(o)];
  }
}

function validateMetadata(m: Partial<ObjectMeta>): Problem[] {
  const problems: Problem[] = [];
  if (m.name !== undefined) problems.push(...problemIf(wrongSubdomain(m.name), 'metadata.name', m.name));
  if (m.namespace !== undefined && m.namespace !== '')
    problems.push(...problemIf(wrongLabel(m.namespace), 'metadata.namespace', m.namespace));
  for (const [key, value] of Object.entries(m.labels ?? {})) {
    const path = entryPath('metadata.labels', key);
    problems.push(...problemIf(wrongQualifiedName(key), path, key), ...problemIf(wrongLabelValue(value), path, value));
  }
  let bytes = 0;
  for (const [key, value] of Object.entries(m.annotations ?? {})) {
    const path = entryPath('metadata.annotations', key);
    problems.push(...problemIf(wrongQualifiedName(key.toLowerCase()), path, key));
    bytes += key.length + value.length;
    if (key === 'podsched.dev/crash-backoff' && parseCrashBackoff(value) === undefined) {
      problems.push({ path, expected: 'first,max: two durations from 100ms to 24h, such as 1s,1m', got: shown(value) });
    }
    if (key === rollbackAnnotation && parseRollback(value) === undefined) {
      problems.push({ path, expected: 'a duration from 1s to 24h, such as 5m', got: shown(value) });
    }
    if (key === holdAnnotation && value !== 'true' && value !== 'false') {
      problems.push({ path, expected: 'true or false', got: shown(value) });
    }
  }
  if (bytes > 256 * 1024) problems.push({ path: 'metadata.annotations', expected: 'at most 256 KiB', got: `${bytes} bytes` });
  return problems;
}

/** `<namespace>_<name>_<uid>` is a folder, whose name has at most 255 bytes. The kubelet accepts such a pod and never gets it started. */
const longestNames = 255 - '__'.length - 36;

function validateLogFolderName({ name = '', namespace }: Partial<ObjectMeta>): Problem[] {
  const length = name.length + (namespace || 'default').length;
  if (length <= longestNames || wrongSubdomain(name) !== undefined) return [];
  const expected = `with its namespace at most ${longestNames} characters, since both name the folder of the pod's logs`;
  return [{ path: 'metadata.name', expected, got: `${length} characters` }];
}

function validatePod(pod: Pod, { allowedUnsafeSysctls = [], deviceClasses }: ValidateOptions): Problem[] {
  const spec: Partial<PodSpec> = pod.spec ?? {};
  const at = (name: string): string => fieldPath('spec', name);
  const problems = [
    ...validateWaitFor(pod.metadata ?? {}, deviceClasses),
    ...validateCdi(pod.metadata ?? {}),
    ...validateContainers(spec, deviceClasses),
  ];
  const grace = spec.terminationGracePeriodSeconds;
  if (grace !== undefined && grace < 0)
    problems.push({ path: at('terminationGracePeriodSeconds'), expected: '0 or more', got: String(grace) });
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > 2 ** 31 - 1)) {
    problems.push({ path: at('activeDeadlineSeconds'), expected: `from 1 to ${2 ** 31 - 1}`, got: String(deadline) });
  }
  problems.push(
    ...validateAffinity(spec),
    ...validateVolumes(spec),
    ...validateDns(spec),
    ...validatePodSecurity(spec, allowedUnsafeSysctls),
  );
  problems.push(...validateAppArmorAnnotations(pod.metadata?.annotations ?? {}, spec));
  const handler = spec.runtimeClassName;
  if (handler !== undefined) problems.push(...problemIf(wrongSubdomain(handler), at('runtimeClassName'), handler));
  if (spec.hostPID === true && spec.shareProcessNamespace === true) {
    problems.push({ path: at('shareProcessNamespace'), expected: 'false, since hostPID is true', got: 'true' });
  }
  return [...problems, ...validatePriority(spec)];
}

function validatePriority(spec: Partial<PodSpec>): Problem[] {
  const name = spec.priorityClassName;
  if (name === undefined || name === '') return [];
  const priority = Object.hasOwn(systemPriorities, name) ? systemPriorities[name] : undefined;
  if (priority === undefined) {
    const expected = `${Object.keys(systemPriorities).join(' or ')}: nothing here could resolve another class, use spec.priority`;
    return [{ path: 'spec.priorityClassName', expected, got: shown(name) }];
  }
  if (spec.priority === undefined || spec.priority === priority) return [];
  return [{ path: 'spec.priority', expected: `${priority}, the priority of ${name}, or nothing`, got: String(spec.priority) }];
}
