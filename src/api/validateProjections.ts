// pure
/**
 * Validation of volumes that are made of files: configMap, secret, downwardAPI and projected (kubelet v1.32 validateConfigMapVolumeSource and
 * its sisters). podsched's own: a key that no object can have, a container that the pod does not have, and a path that would be a file and a
 * folder are told, too.
 */
import { itemPath } from './fieldPath.ts';
import { cleanFilePath, fileAndFolder, wrongFilePath } from './filePaths.ts';
import { wrongDataKey, wrongSubdomain } from './names.ts';
import type { Problem } from './objects.ts';
import { problemIf } from './problems.ts';
import { shown } from './scalars.ts';
import type { DownwardAPIVolumeFile, KeyToPath, Volume, VolumeProjection } from './v1.ts';
import { validateFieldRef, validateResourceRef } from './validateEnv.ts';

/** A file that the manifest names, with the place where it does. */
interface Named {
  readonly path: string;
  readonly at: string;
}

interface Found {
  readonly problems: Problem[];
  readonly files: readonly Named[];
}

const sources = ['configMap', 'secret', 'downwardAPI'];

/** Every mistake of a volume's configMap, secret, downwardAPI or projected. `containers`: the names of the pod's app and init containers. */
export function validateProjections(volume: Partial<Volume>, path: string, containers: readonly string[]): Problem[] {
  const { configMap, secret, downwardAPI, projected } = volume;
  const problems: Problem[] = [];
  const add = ({ problems: found, files }: Found): void => {
    problems.push(...found, ...collisions(files));
  };
  if (configMap !== undefined) add(validateData(configMap.items, configMap.name, `${path}.configMap`, 'name'));
  if (secret !== undefined) add(validateData(secret.items, secret.secretName, `${path}.secret`, 'secretName'));
  if (downwardAPI !== undefined) add(validateDownward(downwardAPI.items, `${path}.downwardAPI`, containers));
  const all = (projected?.sources ?? []).map((source, i) => validateSource(source, itemPath(`${path}.projected.sources`, i), containers));
  add({ problems: all.flatMap((f) => f.problems), files: all.flatMap((f) => f.files) });
  return problems;
}

function validateSource(source: VolumeProjection, path: string, containers: readonly string[]): Found {
  const given = Object.keys(source);
  const problems: Problem[] = [];
  if (given.length !== 1) problems.push({ path, expected: `one of ${sources.join(', ')}`, got: given.join(' and ') || 'nothing' });
  const { configMap, secret, downwardAPI } = source;
  const found = [
    ...(configMap === undefined ? [] : [validateData(configMap.items, configMap.name, `${path}.configMap`, 'name')]),
    ...(secret === undefined ? [] : [validateData(secret.items, secret.name, `${path}.secret`, 'name')]),
    ...(downwardAPI === undefined ? [] : [validateDownward(downwardAPI.items, `${path}.downwardAPI`, containers)]),
  ];
  return { problems: [...problems, ...found.flatMap((f) => f.problems)], files: found.flatMap((f) => f.files) };
}

function validateData(items: readonly Partial<KeyToPath>[] = [], name: string | undefined, path: string, field: string): Found {
  const problems =
    name === undefined || name === ''
      ? [{ path: `${path}.${field}`, expected: 'a value (it is required)', got: 'nothing' }]
      : problemIf(wrongSubdomain(name), `${path}.${field}`, name);
  for (const [i, { key }] of items.entries()) {
    // without a key it was told already, as a field that is required
    if (key !== undefined) problems.push(...problemIf(wrongDataKey(key), `${itemPath(`${path}.items`, i)}.key`, key));
  }
  const { problems: wrongPaths, files } = validatePaths(items, path);
  return { problems: [...problems, ...wrongPaths], files };
}

function validateDownward(items: readonly Partial<DownwardAPIVolumeFile>[] = [], path: string, containers: readonly string[]): Found {
  const { problems, files } = validatePaths(items, path);
  for (const [i, { fieldRef, resourceFieldRef }] of items.entries()) {
    const at = itemPath(`${path}.items`, i);
    if ((fieldRef === undefined) === (resourceFieldRef === undefined)) {
      const got = fieldRef === undefined ? 'nothing' : 'fieldRef and resourceFieldRef';
      problems.push({ path: at, expected: 'one of fieldRef, resourceFieldRef', got });
    }
    if (fieldRef !== undefined) problems.push(...validateFieldRef(fieldRef, `${at}.fieldRef`, 'file'));
    if (resourceFieldRef === undefined) continue;
    // a volume belongs to no container, so there is none that could be meant
    if ((resourceFieldRef.containerName ?? '') === '') {
      const expected = `the name of a container of this pod: ${containers.slice(0, 20).join(', ')}`;
      problems.push({ path: `${at}.resourceFieldRef.containerName`, expected, got: 'nothing' });
    }
    problems.push(...validateResourceRef(resourceFieldRef, `${at}.resourceFieldRef`, containers));
  }
  return { problems, files };
}

function validatePaths(items: readonly { readonly path?: string }[], of: string): { problems: Problem[]; files: Named[] } {
  const problems: Problem[] = [];
  const files: Named[] = [];
  for (const [i, { path }] of items.entries()) {
    if (path === undefined) continue;
    const at = `${itemPath(`${of}.items`, i)}.path`;
    const wrong = wrongFilePath(path);
    if (wrong === undefined) files.push({ path: cleanFilePath(path), at });
    else problems.push({ path: at, expected: wrong, got: shown(path) });
  }
  return { problems, files };
}

/** Two items for one file, and a file where another needs a folder. */
function collisions(files: readonly Named[]): Problem[] {
  const first = new Map<string, string>();
  const problems: Problem[] = [];
  for (const { path, at } of files) {
    const before = first.get(path);
    if (before === undefined) first.set(path, at);
    else problems.push({ path: at, expected: `another path than ${before} has`, got: shown(path) });
  }
  const both = fileAndFolder(first.keys());
  if (both !== undefined) {
    const expected = 'the path of a file: another item has a path below it';
    problems.push({ path: first.get(both) ?? '', expected, got: shown(both) });
  }
  return problems;
}
