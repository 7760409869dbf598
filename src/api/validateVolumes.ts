// pure
/**
 * Validation of volumes, of their mounts in containers, and of hostAliases (kubelet v1.32 ValidateVolumes, ValidateVolumeMounts,
 * ValidateHostAliases). podsched's own: a hostPath is absolute, and two mounts of a container that mean one place are told also where they
 * are spelled differently.
 */
import { itemPath } from './fieldPath.ts';
import { wrongIp, wrongLabel, wrongSubdomain } from './names.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { duplicates, problemIf } from './problems.ts';
import { parseQuantity } from './quantity.ts';
import { shown } from './scalars.ts';
import type { Container, EmptyDirVolumeSource, HostPathVolumeSource, PodSpec, Volume, VolumeMount } from './v1.ts';
import { validateProjections } from './validateProjections.ts';

const media = ['Memory', 'HugePages'];

/** Every mistake of spec.volumes, spec.hostAliases and the volumeMounts of app and init containers. */
export function validateVolumes(spec: Partial<PodSpec>): Problem[] {
  const volumes: readonly Partial<Volume>[] = spec.volumes ?? [];
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap((c: Partial<Container>) => c.name ?? []);
  const problems = volumes.flatMap((volume, i) => {
    const path = itemPath('spec.volumes', i);
    return [...validateVolume(volume, path), ...validateProjections(volume, path, containers)];
  });
  problems.push(...duplicates(volumes.map((v, i) => ({ path: `${itemPath('spec.volumes', i)}.name`, name: v.name }))));
  const names = volumes.flatMap((v) => v.name ?? []);
  const images = new Set(volumes.flatMap((v) => (v.image === undefined ? [] : (v.name ?? []))));
  for (const list of ['initContainers', 'containers'] as const) {
    (spec[list] ?? []).forEach((container, i) => {
      const path = itemPath(`spec.${list}`, i);
      problems.push(...validateVolumeMounts(container, path, names), ...wholeImages(container, path, images));
    });
  }
  return [...problems, ...validateHostAliases(spec)];
}

/** Of an image nothing less than all of it can be mounted (kubelet v1.32). */
function wholeImages({ volumeMounts = [] }: Partial<Container>, containerPath: string, images: ReadonlySet<string>): Problem[] {
  return volumeMounts.flatMap(({ name, subPath = '', subPathExpr = '' }, i) => {
    if ((subPath === '' && subPathExpr === '') || !images.has(name)) return [];
    const field = subPath === '' ? 'subPathExpr' : 'subPath';
    const path = `${itemPath(`${containerPath}.volumeMounts`, i)}.${field}`;
    return [{ path, expected: 'absent, since the volume is an image', got: shown(subPath || subPathExpr) }];
  });
}

function validateVolume(volume: Partial<Volume>, path: string): Problem[] {
  const problems = volume.name === undefined ? [] : problemIf(wrongLabel(volume.name), `${path}.name`, volume.name);
  const sources = Object.keys(volume).filter((key) => key !== 'name');
  if (sources.length > 1) problems.push({ path, expected: 'one source only', got: sources.join(', ') });
  if (volume.emptyDir !== undefined) problems.push(...validateEmptyDir(volume.emptyDir, `${path}.emptyDir`));
  if (volume.image !== undefined && !volume.image.reference)
    problems.push({ path: `${path}.image.reference`, expected: 'the name of an image', got: 'nothing' });
  if (volume.hostPath !== undefined) problems.push(...validateHostPath(volume.hostPath, `${path}.hostPath`));
  return problems;
}

function validateEmptyDir({ medium = '', sizeLimit }: EmptyDirVolumeSource, path: string): Problem[] {
  const problems: Problem[] = [];
  if (medium !== '' && !media.includes(medium) && !/^HugePages-\d+[KMG]i$/.test(medium)) {
    const close = nearest(medium, media);
    const expected = 'Memory, HugePages, HugePages-<size> such as HugePages-2Mi, or nothing for a folder on disk';
    problems.push({ path: `${path}.medium`, expected, got: shown(medium), ...(close !== undefined && { nearest: close }) });
  }
  if (sizeLimit !== undefined && (parseQuantity(sizeLimit)?.nano ?? 0n) < 0n)
    problems.push({ path: `${path}.sizeLimit`, expected: '0 or more', got: String(sizeLimit) });
  return problems;
}

function validateHostPath({ path: hostPath }: Partial<HostPathVolumeSource>, path: string): Problem[] {
  if (hostPath === undefined) return [];
  if (!hostPath.startsWith('/')) return [{ path: `${path}.path`, expected: 'an absolute path of this node', got: shown(hostPath) }];
  if (hostPath.includes('\0')) return [{ path: `${path}.path`, expected: 'a path', got: 'one with a NUL byte in it' }];
  return hostPath.split('/').includes('..') ? [{ path: `${path}.path`, expected: 'a path without ..', got: shown(hostPath) }] : [];
}

/** The place in the container, so that two spellings of it are one. */
const placeOf = (mountPath: string): string =>
  `/${mountPath
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/')}`;

/** Every mistake of one container's volumeMounts. `volumes`: the names of the pod's. */
function validateVolumeMounts(container: Partial<Container>, containerPath: string, volumes: readonly string[]): Problem[] {
  const list = `${containerPath}.volumeMounts`;
  const mounts: readonly Partial<VolumeMount>[] = container.volumeMounts ?? [];
  const privileged = container.securityContext?.privileged === true;
  const first = new Map<string, string>();
  return mounts.flatMap((mount, i) => {
    const path = itemPath(list, i);
    const problems = [...unknownVolume(mount, path, volumes), ...validateMountPath(mount, path), ...validateSubPath(mount, path)];
    if (mount.mountPath !== undefined && mount.mountPath !== '') {
      const place = placeOf(mount.mountPath);
      const before = first.get(place);
      if (before === undefined) first.set(place, `${path}.mountPath`);
      else problems.push({ path: `${path}.mountPath`, expected: `another path than ${before} has`, got: shown(mount.mountPath) });
    }
    if (mount.mountPropagation === 'Bidirectional' && !privileged) {
      const expected = 'None or HostToContainer: Bidirectional is for privileged containers only';
      problems.push({ path: `${path}.mountPropagation`, expected, got: 'Bidirectional' });
    }
    return [...problems, ...validateRecursiveReadOnly(mount, path)];
  });
}

/** What is told goes to the broker as well: not each of thousands is named. */
const mostNamed = 20;

function unknownVolume({ name }: Partial<VolumeMount>, path: string, volumes: readonly string[]): Problem[] {
  if (name === undefined || volumes.includes(name)) return [];
  const close = nearest(name, volumes);
  const few = volumes.slice(0, mostNamed).join(', ') + (volumes.length > mostNamed ? ` and ${volumes.length - mostNamed} more` : '');
  const expected = volumes.length === 0 ? 'the name of a volume, and spec.volumes has none' : `one of spec.volumes: ${few}`;
  return [{ path: `${path}.name`, expected, got: shown(name), ...(close !== undefined && { nearest: close }) }];
}

function validateMountPath({ mountPath }: Partial<VolumeMount>, path: string): Problem[] {
  if (mountPath === undefined) return [];
  const at = `${path}.mountPath`;
  if (mountPath === '') return [{ path: at, expected: 'a path', got: 'nothing' }];
  if (/[:\0]/.test(mountPath)) return [{ path: at, expected: "a path without ':'", got: shown(mountPath) }];
  return placeOf(mountPath) === '/' ? [{ path: at, expected: 'a path below /', got: shown(mountPath) }] : [];
}

function validateSubPath({ subPath = '', subPathExpr = '' }: Partial<VolumeMount>, path: string): Problem[] {
  const problems: Problem[] = [];
  for (const [field, value] of [
    ['subPath', subPath],
    ['subPathExpr', subPathExpr],
  ] as const) {
    const wrong = value.startsWith('/') || value.includes('\0') || value.split('/').includes('..');
    if (wrong) problems.push({ path: `${path}.${field}`, expected: 'a path inside the volume: relative, without ..', got: shown(value) });
  }
  if (subPath !== '' && subPathExpr !== '')
    problems.push({ path: `${path}.subPathExpr`, expected: 'absent, since subPath is there', got: shown(subPathExpr) });
  return problems;
}

function validateRecursiveReadOnly({ recursiveReadOnly: mode, readOnly, mountPropagation }: Partial<VolumeMount>, path: string): Problem[] {
  if (mode === undefined || mode === 'Disabled') return [];
  const at = `${path}.recursiveReadOnly`;
  if (readOnly !== true) return [{ path: at, expected: 'Disabled, since readOnly is not true', got: mode }];
  if (mountPropagation === undefined || mountPropagation === 'None') return [];
  return [{ path: at, expected: `Disabled, since mountPropagation is ${mountPropagation}`, got: mode }];
}

function validateHostAliases({ hostAliases = [] }: Partial<PodSpec>): Problem[] {
  return hostAliases.flatMap(({ ip, hostnames = [] }, i) => {
    const path = itemPath('spec.hostAliases', i);
    return [
      ...(ip === undefined ? [] : problemIf(wrongIp(ip), `${path}.ip`, ip)),
      ...hostnames.flatMap((name, j) => problemIf(wrongSubdomain(name), itemPath(`${path}.hostnames`, j), name)),
    ];
  });
}
