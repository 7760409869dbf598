// pure
/** Validation of environments (kubelet v1.32 validateEnv, validateEnvVarValueFrom, ValidateEnvFrom): what each may take its values from. */

import { itemPath } from './fieldPath.ts';
import { wrongDivisor, wrongFieldPath, wrongFieldResource } from './fieldRefs.ts';
import { wrongDataKey, wrongEnvName, wrongSubdomain } from './names.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { problemIf } from './problems.ts';
import { shown } from './scalars.ts';
import type { EnvFromSource, EnvVar, EnvVarSource, ObjectFieldSelector, ResourceFieldSelector } from './v1.ts';

const sources = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef'];

/** Every mistake of a container's env. `names`: the containers of the pod, which a resourceFieldRef may name. */
export function validateEnv(env: readonly Partial<EnvVar>[], path: string, names: readonly string[]): Problem[] {
  return env.flatMap((variable, i) => {
    const at = itemPath(path, i);
    const problems = variable.name === undefined ? [] : problemIf(wrongEnvName(variable.name), `${at}.name`, variable.name);
    if (variable.valueFrom === undefined) return problems;
    return [...problems, ...validateSource(variable, variable.valueFrom, `${at}.valueFrom`, names)];
  });
}

function validateSource(variable: Partial<EnvVar>, from: EnvVarSource, path: string, names: readonly string[]): Problem[] {
  const problems: Problem[] = [];
  const given = Object.keys(from);
  if ((variable.value ?? '') !== '') problems.push({ path, expected: 'absent: the variable has a value', got: 'set' });
  if (given.length !== 1) problems.push({ path, expected: `one of ${sources.join(', ')}`, got: given.join(' and ') || 'nothing' });
  if (from.fieldRef !== undefined) problems.push(...validateFieldRef(from.fieldRef, `${path}.fieldRef`));
  if (from.resourceFieldRef !== undefined) problems.push(...validateResourceRef(from.resourceFieldRef, `${path}.resourceFieldRef`, names));
  if (from.configMapKeyRef !== undefined) problems.push(...validateKeyRef(from.configMapKeyRef, `${path}.configMapKeyRef`));
  if (from.secretKeyRef !== undefined) problems.push(...validateKeyRef(from.secretKeyRef, `${path}.secretKeyRef`));
  return problems;
}

/** Every mistake of a container's envFrom. */
export function validateEnvFrom(envFrom: readonly EnvFromSource[], path: string): Problem[] {
  return envFrom.flatMap(({ prefix = '', configMapRef, secretRef }, i) => {
    const at = itemPath(path, i);
    const problems = prefix === '' ? [] : problemIf(wrongEnvName(prefix), `${at}.prefix`, prefix);
    const both = configMapRef !== undefined && secretRef !== undefined;
    if (both || (configMapRef === undefined && secretRef === undefined))
      problems.push({ path: at, expected: 'one of configMapRef, secretRef', got: both ? 'configMapRef and secretRef' : 'neither' });
    if (configMapRef !== undefined) problems.push(...validateRefName(configMapRef, `${at}.configMapRef`));
    if (secretRef !== undefined) problems.push(...validateRefName(secretRef, `${at}.secretRef`));
    return problems;
  });
}

function validateRefName({ name = '' }: { readonly name?: string }, path: string): Problem[] {
  if (name === '') return [{ path: `${path}.name`, expected: 'a value (it is required)', got: 'nothing' }];
  return problemIf(wrongSubdomain(name), `${path}.name`, name);
}

function validateKeyRef(ref: { readonly name?: string; readonly key?: string }, path: string): Problem[] {
  // without a key it was told already, as a field that is required
  const problems = ref.key === undefined ? [] : problemIf(wrongDataKey(ref.key), `${path}.key`, ref.key);
  return [...validateRefName(ref, path), ...problems];
}

/** Every mistake of a fieldRef of a variable, or of a file. */
export function validateFieldRef(
  { apiVersion, fieldPath }: Partial<ObjectFieldSelector>,
  path: string,
  of: 'variable' | 'file' = 'variable',
): Problem[] {
  const problems: Problem[] = [];
  if (apiVersion !== undefined && apiVersion !== '' && apiVersion !== 'v1')
    problems.push({ path: `${path}.apiVersion`, expected: 'v1', got: shown(apiVersion), nearest: 'v1' });
  const wrong = fieldPath === undefined ? undefined : wrongFieldPath(fieldPath, of);
  if (wrong !== undefined) problems.push({ path: `${path}.fieldPath`, ...wrong, got: shown(fieldPath) });
  return problems;
}

/** Every mistake of a resourceFieldRef. `names`: the containers it may name. */
export function validateResourceRef(of: Partial<ResourceFieldSelector>, path: string, names: readonly string[]): Problem[] {
  const { containerName = '', resource, divisor } = of;
  const problems: Problem[] = [];
  if (containerName !== '' && !names.includes(containerName)) {
    const close = nearest(containerName, names);
    const expected = 'the name of a container of this pod';
    problems.push({ path: `${path}.containerName`, expected, got: shown(containerName), ...(close !== undefined && { nearest: close }) });
  }
  if (resource === undefined) return problems;
  const wrong = wrongFieldResource(resource);
  if (wrong !== undefined) return [...problems, { path: `${path}.resource`, ...wrong, got: shown(resource) }];
  const wrongBy = divisor === undefined ? undefined : wrongDivisor(resource, divisor);
  return wrongBy === undefined ? problems : [...problems, { path: `${path}.divisor`, ...wrongBy, got: shown(divisor) }];
}
