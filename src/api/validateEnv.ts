// pure
/** Validation of environment variables (kubelet v1.32 validateEnv, validateEnvVarValueFrom): what each may take its value from. */

import { itemPath } from './fieldPath.ts';
import { wrongDivisor, wrongFieldPath, wrongFieldResource } from './fieldRefs.ts';
import { wrongEnvName } from './names.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { problemIf } from './problems.ts';
import { shown } from './scalars.ts';
import type { EnvVar, EnvVarSource, ObjectFieldSelector, ResourceFieldSelector } from './v1.ts';

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
  if (given.length !== 1) problems.push({ path, expected: 'one of fieldRef and resourceFieldRef', got: given.join(' and ') || 'nothing' });
  if (from.fieldRef !== undefined) problems.push(...validateFieldRef(from.fieldRef, `${path}.fieldRef`));
  if (from.resourceFieldRef !== undefined) problems.push(...validateResourceRef(from.resourceFieldRef, `${path}.resourceFieldRef`, names));
  return problems;
}

function validateFieldRef({ apiVersion, fieldPath }: Partial<ObjectFieldSelector>, path: string): Problem[] {
  const problems: Problem[] = [];
  if (apiVersion !== undefined && apiVersion !== '' && apiVersion !== 'v1')
    problems.push({ path: `${path}.apiVersion`, expected: 'v1', got: shown(apiVersion), nearest: 'v1' });
  const wrong = fieldPath === undefined ? undefined : wrongFieldPath(fieldPath);
  if (wrong !== undefined) problems.push({ path: `${path}.fieldPath`, ...wrong, got: shown(fieldPath) });
  return problems;
}

function validateResourceRef(of: Partial<ResourceFieldSelector>, path: string, names: readonly string[]): Problem[] {
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
