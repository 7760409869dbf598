// pure
/**
 * The files that a configMap, secret, downwardAPI or projected volume should have: from its objects and its pod to path, bytes and mode.
 * Mirrors kubelet v1.32 volume/configmap, secret, downwardapi, projected (facts 15.5) and the texts of their errors; no error has a byte of
 * an object's content.
 */
import { createHash } from 'node:crypto';
import { everyContainer } from '../api/containers.ts';
import type { DesiredPod } from '../api/desired.ts';
import { fieldValue, mapText, type NodeResources, resourceValue } from '../api/downward.ts';
import { fileFieldPaths, readFieldPath } from '../api/fieldRefs.ts';
import { cleanFilePath, fileAndFolder, wrongFilePath } from '../api/filePaths.ts';
import type { ObjectLookup } from '../api/references.ts';
import type { ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, Volume } from '../api/v1.ts';

export interface ProjectedFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
}

/** By path inside the volume, without what says nothing in it. */
export type ProjectedFiles = ReadonlyMap<string, ProjectedFile>;

/** Looks up an object of the pod's namespace; undefined: there is none that the pod may see. */
export type OwnLookup = (kind: 'ConfigMap' | 'Secret', name: string) => ConfigMap | Secret | undefined;

export const ownLookup =
  (objects: ObjectLookup, { namespace, source }: Pick<DesiredPod, 'namespace' | 'source'>): OwnLookup =>
  (kind, name) => {
    const object = objects(kind, namespace, name, source);
    return object?.kind === 'Pod' ? undefined : object;
  };

const usualMode = 0o644;

/** Of all files of one volume: a key may be asked for under thousands of paths, and two moments must fit into the memory of a volume. */
export const largestVolumeBytes = 32 * 2 ** 20;

/** What one source of files needs; `get` stands for the objects. */
interface DataSource {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  readonly items: readonly KeyToPath[];
  readonly optional: boolean;
}

/**
 * What the volume should have. Throws with every object and key that is missing, and with what cannot be told of the pod: validation refuses
 * that, but a stored object may come from another version.
 */
export function projectedFiles(volume: Volume, pod: Pod, get: OwnLookup, node: NodeResources): ProjectedFiles {
  const files = new Map<string, ProjectedFile>();
  const errors: string[] = [];
  let total = 0;
  const contents = new Map<ConfigMap | Secret, Content>();
  const contentOf = (object: ConfigMap | Secret): Content => {
    const content = contents.get(object) ?? readContent(object);
    contents.set(object, content);
    return content;
  };
  const { configMap, secret, downwardAPI, projected } = volume;
  const mode = (configMap ?? secret ?? downwardAPI ?? projected)?.defaultMode ?? usualMode;
  const add = (source: () => Iterable<readonly [string, ProjectedFile]>): void => {
    if (total > largestVolumeBytes) return; // told already
    try {
      for (const [path, file] of source()) {
        total += file.bytes.length;
        if (total > largestVolumeBytes) throw new Error(`its files have more than ${largestVolumeBytes} bytes in all`);
        // a later source wins
        files.set(path, file);
      }
    } catch (e) {
      errors.push(e instanceof Error ? e.message : String(e));
    }
  };
  const addData = (kind: DataSource['kind'], name = '', of: { items?: readonly KeyToPath[]; optional?: boolean } = {}): void =>
    add(() => dataFiles({ kind, name, items: of.items ?? [], optional: of.optional === true }, mode, get, contentOf));
  const addDownward = (items: readonly DownwardAPIVolumeFile[] = []): void => {
    for (const item of items) add(() => [downwardFile(item, mode, pod, node)]);
  };
  if (configMap !== undefined) addData('ConfigMap', configMap.name, configMap);
  if (secret !== undefined) addData('Secret', secret.secretName, secret);
  if (downwardAPI !== undefined) addDownward(downwardAPI.items);
  for (const source of projected?.sources ?? []) {
    if (source.configMap !== undefined) addData('ConfigMap', source.configMap.name, source.configMap);
    if (source.secret !== undefined) addData('Secret', source.secret.name, source.secret);
    if (source.downwardAPI !== undefined) addDownward(source.downwardAPI.items);
  }
  const both = fileAndFolder(files.keys());
  if (both !== undefined) errors.push(`"${both}" would be a file and a folder`);
  const [first, ...others] = [...new Set(errors)];
  if (first !== undefined) throw new Error(others.length === 0 ? first : `[${[first, ...others].join(', ')}]`);
  return files;
}

function dataFiles(
  { kind, name, items, optional }: DataSource,
  mode: number,
  get: OwnLookup,
  contentOf: (object: ConfigMap | Secret) => Content,
): [string, ProjectedFile][] {
  const object = get(kind, name);
  if (object === undefined) {
    if (optional) return [];
    throw new Error(`${kind.toLowerCase()} "${name}" not found`);
  }
  const content = contentOf(object);
  if (items.length === 0) return [...content].map(([key, bytes]) => [checked(key), { bytes: bytes(), mode }]);
  return items.flatMap((item): [string, ProjectedFile][] => {
    const bytes = content.get(item.key);
    if (bytes !== undefined) return [[checked(item.path), { bytes: bytes(), mode: item.mode ?? mode }]];
    if (optional) return [];
    const what = kind === 'ConfigMap' ? 'configmap references non-existent config key' : 'references non-existent secret key';
    throw new Error(`${what}: ${item.key}`);
  });
}

type Content = ReadonlyMap<string, () => Uint8Array>;

/** The bytes of each key, made only of those that are asked for, and once. stringData wins over data. */
function readContent(object: ConfigMap | Secret): Content {
  const texts = Object.entries((object.kind === 'ConfigMap' ? object.data : object.stringData) ?? {});
  const base64 = Object.entries((object.kind === 'ConfigMap' ? object.binaryData : object.data) ?? {});
  return new Map([
    ...base64.map(([key, text]) => [key, once(() => Buffer.from(text, 'base64'))] as const),
    ...texts.map(([key, text]) => [key, once(() => Buffer.from(text))] as const),
  ]);
}

function once(make: () => Uint8Array): () => Uint8Array {
  let made: Uint8Array | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

function downwardFile(item: DownwardAPIVolumeFile, mode: number, pod: Pod, node: NodeResources): [string, ProjectedFile] {
  return [checked(item.path), { bytes: Buffer.from(downwardText(item, pod, node)), mode: item.mode ?? mode }];
}

function downwardText({ fieldRef, resourceFieldRef }: DownwardAPIVolumeFile, pod: Pod, node: NodeResources): string {
  if (resourceFieldRef !== undefined) return resourceValue(pod, undefined, resourceFieldRef, node);
  const path = fieldRef?.fieldPath ?? 'none';
  if (path === 'metadata.labels') return mapText(pod.metadata.labels);
  if (path === 'metadata.annotations') return mapText(pod.metadata.annotations);
  const known = readFieldPath(path);
  if (known === undefined || (typeof known === 'string' && !fileFieldPaths.some((p) => p === known)))
    throw new Error(`unsupported fieldPath: ${path}`);
  return fieldValue(pod, known, { ...node, nodeName: '' });
}

function checked(path: string): string {
  const wrong = wrongFilePath(path);
  if (wrong !== undefined) throw new Error(`invalid path ${JSON.stringify(path)}: expected ${wrong}`);
  return cleanFilePath(path);
}

/** Tells two sets of files apart without keeping their bytes. */
export function fingerprint(files: ProjectedFiles): string {
  const hash = createHash('sha256');
  for (const path of [...files.keys()].sort()) {
    const { bytes, mode } = files.get(path) ?? { bytes: new Uint8Array(), mode: 0 };
    // lengths before contents: where one ends and the next begins is part of what is told
    hash.update(`${path.length} ${bytes.length} ${mode} ${path}`).update(bytes);
  }
  return hash.digest('base64');
}

/**
 * Folders that must be in the volume before it is mounted, since nobody can make them in it then: where a container mounts another volume
 * below this one. Mirrors kubelet v1.32 volume/util/nested_volumes.go.
 */
export function nestedMounts(volume: string, { spec }: Pod): readonly string[] {
  const found = new Set<string>();
  for (const { volumeMounts = [] } of everyContainer(spec)) {
    const places = volumeMounts.map((m) => ({ ...m, place: cleanFilePath(m.mountPath) }));
    for (const outer of places.filter((m) => m.name === volume && !m.subPath && !m.subPathExpr)) {
      const inner = places.map((m) => m.place).filter((place) => place.startsWith(`${outer.place}/`));
      // what lies below another one of these is that volume's
      const own = inner.filter((place) => !inner.some((other) => place.startsWith(`${other}/`)));
      for (const place of own) found.add(place.slice(outer.place.length + 1));
    }
  }
  return [...found].sort();
}
