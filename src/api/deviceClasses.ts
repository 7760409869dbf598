// pure
/**
 * Devices without `privileged` (behaviour.md 25): classes of the configuration (`serial: [/dev/serial/by-id/*]`), and what a container asks
 * for: `resources.limits["devices.podsched.dev/serial"]: 1`. Like an extended resource of Kubernetes: whole numbers, the request is the
 * limit, and a device is one pod's at a time. Names of the Container Device Interface come by the annotations `cdi.k8s.io/…`.
 */
import { entryPath } from './fieldPath.ts';
import { wrongLabel } from './names.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { problemIf } from './problems.ts';
import { compareQuantities, parseQuantity, quantityValue } from './quantity.ts';
import { effectiveRequests, podRequest } from './resources.ts';
import { shown } from './scalars.ts';
import type { Container, ObjectMeta, Pod, Quantity } from './v1.ts';

/** Globs by class. */
export type DeviceClasses = Readonly<Record<string, readonly string[]>>;

export const defaultDeviceClasses: DeviceClasses = {
  gpio: ['/dev/gpiochip*'],
  i2c: ['/dev/i2c-*'],
  serial: ['/dev/serial/by-id/*'],
};

const resourcePrefix = 'devices.podsched.dev/';

/** The name of the resource that a class is. */
export const deviceResource = (deviceClass: string): string => `${resourcePrefix}${deviceClass}`;

/** How many of each class a container asks for; a class it wants none of is left out. */
export function deviceRequests(container: Pick<Container, 'resources'>): ReadonlyMap<string, number> {
  const asked = Object.entries(effectiveRequests(container)).flatMap(([name, amount]) => {
    const count = name.startsWith(resourcePrefix) ? quantityValue(amount) : 0;
    return count > 0 ? [[name.slice(resourcePrefix.length), count] as const] : [];
  });
  return new Map(asked.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How many of each class a pod needs at one time: app containers and sidecars together, or one init container, if more. */
export function podDevices(pod: Pick<Pod, 'spec'>): ReadonlyMap<string, number> {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const classes = new Set(all.flatMap((c) => [...deviceRequests(c).keys()]));
  return new Map([...classes].sort().map((name) => [name, podRequest(pod, deviceResource(name))]));
}

/** Where too little is left of a class that would do for the pod if nobody else had any of it. */
export interface DeviceShortage {
  /** `devices.podsched.dev/<class>` */
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

/**
 * `others`: the pods that were let in and have not ended. `present`: how many of a class are there. What is not there at all is no shortage:
 * the pod is let in, and waits for it (`WaitingForDevice`).
 */
export function deviceShortages(
  pod: Pick<Pod, 'spec'>,
  others: readonly Pick<Pod, 'spec'>[],
  present: (deviceClass: string) => number,
): readonly DeviceShortage[] {
  return [...podDevices(pod)].flatMap(([deviceClass, requested]) => {
    const resource = deviceResource(deviceClass);
    const capacity = present(deviceClass);
    const used = others.reduce((sum, other) => sum + podRequest(other, resource), 0);
    return requested <= capacity && requested > capacity - used ? [{ resource, requested, used, capacity }] : [];
  });
}

type Amounts = Readonly<Record<string, Quantity>>;

/** What is wrong with the devices a container asks for. `classes`: those of the configuration; absent: nobody knows them. */
export function validateDevices(limits: Amounts, requests: Amounts, path: string, classes: readonly string[] | undefined): Problem[] {
  const names = [...Object.keys(limits), ...Object.keys(requests)].filter((name) => name.startsWith(resourcePrefix));
  return [...new Set(names)].flatMap((name) => validateDevice(name, limits, requests, path, classes));
}

function validateDevice(name: string, limits: Amounts, requests: Amounts, path: string, classes: readonly string[] | undefined): Problem[] {
  const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
  const request = Object.hasOwn(requests, name) ? requests[name] : undefined;
  const at = entryPath(`${path}.${limit === undefined ? 'requests' : 'limits'}`, name);
  const named = unknownClass(name.slice(resourcePrefix.length), classes);
  if (named !== undefined) return [{ path: at, ...named, ...(named.nearest !== undefined && { nearest: deviceResource(named.nearest) }) }];
  if (limit === undefined) return [{ path: entryPath(`${path}.limits`, name), expected: `the request, ${request}`, got: 'nothing' }];
  const nano = parseQuantity(limit)?.nano ?? 0n;
  // that it is below 0 is told of every amount
  if (nano >= 0n && nano % 1_000_000_000n !== 0n) return [{ path: at, expected: 'a whole number of devices', got: String(limit) }];
  if (request !== undefined && compareQuantities(request, limit) < 0)
    return [{ path: entryPath(`${path}.requests`, name), expected: `the limit, ${limit}`, got: String(request) }];
  return [];
}

/** A class that the configuration does not have; undefined: it has, or nobody knows. */
export function unknownClass(
  name: string,
  classes: readonly string[] | undefined,
): Pick<Problem, 'expected' | 'got' | 'nearest'> | undefined {
  const wrong = wrongLabel(name);
  if (wrong !== undefined) return { expected: `a class of devices: ${wrong}`, got: shown(name) };
  if (classes === undefined || classes.includes(name)) return undefined;
  const close = nearest(name, classes);
  const expected =
    classes.length === 0
      ? 'a class of devices of the configuration (devices), which has none'
      : `a class of devices of the configuration (devices): ${classes.slice(0, 20).join(', ')}`;
  return { expected, got: shown(name), ...(close !== undefined && { nearest: close }) };
}

const mostClasses = 64;
const mostGlobs = 32;
const longestGlob = 256;

/** What is wrong with one glob of a class. `*`, `?` and `[a-z]` stand for signs of one name, never for a `/`. */
export function wrongDeviceGlob(glob: string): string | undefined {
  const parts = glob.split('/').slice(1);
  const fits = glob.startsWith('/dev/') && glob.length <= longestGlob && !glob.includes('\0');
  if (!fits || parts.some((part) => part === '' || part === '.' || part === '..'))
    return 'a path or glob under /dev without .., such as /dev/ttyUSB* or /dev/serial/by-id/*';
  return undefined;
}

/** Every mistake of the key `devices`. */
export function checkDeviceClasses(devices: unknown): Problem[] {
  if (typeof devices !== 'object' || devices === null) return [];
  const classes = Object.entries(devices);
  const problems: Problem[] = [];
  if (classes.length > mostClasses)
    problems.push({ path: 'devices', expected: `at most ${mostClasses} classes`, got: `${classes.length}` });
  for (const [name, globs] of classes) {
    problems.push(...problemIf(wrongLabel(name), `devices.${name}`, name));
    if (!Array.isArray(globs)) continue;
    if (globs.length === 0 || globs.length > mostGlobs)
      problems.push({ path: `devices.${name}`, expected: `from 1 to ${mostGlobs} paths or globs`, got: `${globs.length}` });
    globs.forEach((glob: unknown, i) => {
      if (typeof glob === 'string') problems.push(...problemIf(wrongDeviceGlob(glob), `devices.${name}[${i}]`, glob));
    });
  }
  return problems;
}

const cdiPrefix = 'cdi.k8s.io/';
/** `vendor.com/class=name`, as the Container Device Interface has it. */
const cdiName = /^[A-Za-z]([\w.-]*[A-Za-z0-9])?\/[A-Za-z]([\w-]*[A-Za-z0-9])?=[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?$/;

/** The annotations of a pod that name devices of the Container Device Interface; the runtime reads them on containers. */
export const cdiAnnotations = ({ annotations = {} }: Pick<ObjectMeta, 'annotations'>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => key.startsWith(cdiPrefix)));

const namesOf = (value: string): string[] => value.split(',').map((name) => name.trim());

/** The names in them, each once. */
export const cdiDevices = (metadata: Pick<ObjectMeta, 'annotations'>): string[] => [
  ...new Set(
    Object.values(cdiAnnotations(metadata))
      .flatMap(namesOf)
      .filter((name) => cdiName.test(name)),
  ),
];

/** Every mistake of these annotations. */
export function validateCdi(metadata: Partial<ObjectMeta>): Problem[] {
  return Object.entries(cdiAnnotations(metadata)).flatMap(([key, value]) => {
    const wrong = namesOf(value).find((name) => !cdiName.test(name));
    if (wrong === undefined) return [];
    const expected = 'names of devices with commas, each as vendor.com/class=name';
    return [{ path: entryPath('metadata.annotations', key), expected, got: shown(wrong) }];
  });
}
