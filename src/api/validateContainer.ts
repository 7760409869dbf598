// pure
/** Validation of containers: names, image, ports, environment, resources, security (kubelet v1.32 validateContainers and validateInitContainers). */
import { validateDevices } from './deviceClasses.ts';
import { entryPath, itemPath } from './fieldPath.ts';
import { wrongIp, wrongLabel, wrongPortName } from './names.ts';
import type { Problem } from './objects.ts';
import { duplicates, problemIf } from './problems.ts';
import { canonicalQuantity, compareQuantities, parseQuantity, quantityValue } from './quantity.ts';
import { shown } from './scalars.ts';
import type { Container, ContainerPort, PodSpec, Quantity } from './v1.ts';
import { validateEnv, validateEnvFrom } from './validateEnv.ts';
import { validateHandlers } from './validateProbes.ts';
import { validateContainerSecurity } from './validateSecurity.ts';

/** Under this no process starts; what is written below it was meant in another unit. */
export const memoryFloorBytes = 4 * 2 ** 20;

interface Placed {
  readonly container: Partial<Container>;
  readonly path: string;
  readonly init: boolean;
}

/** Every mistake of a pod's containers and init containers. */
export function validateContainers(spec: Partial<PodSpec>, deviceClasses?: readonly string[]): Problem[] {
  const init: Placed[] = (spec.initContainers ?? []).map((container, i) => ({
    container,
    path: itemPath('spec.initContainers', i),
    init: true,
  }));
  const app: Placed[] = (spec.containers ?? []).map((container, i) => ({ container, path: itemPath('spec.containers', i), init: false }));
  const all = [...init, ...app];
  const problems: Problem[] = [];
  if (spec.containers !== undefined && app.length === 0)
    problems.push({ path: 'spec.containers', expected: 'at least one container', got: 'none' });
  const names = all.flatMap((p) => p.container.name ?? []);
  const grace = spec.terminationGracePeriodSeconds ?? 30;
  for (const placed of all) {
    const { container, path, init } = placed;
    problems.push(...validateContainer(placed, spec.hostNetwork === true, names));
    const { limits = {}, requests = {} } = container.resources ?? {};
    problems.push(...validateDevices(limits, requests, `${path}.resources`, deviceClasses));
    problems.push(...validateHandlers(container, path, { plainInit: init && container.restartPolicy !== 'Always', grace }));
  }
  problems.push(...duplicates(all.map((p) => ({ path: `${p.path}.name`, name: p.container.name }))));
  problems.push(
    ...duplicateHostPorts(
      all.filter((p) => !p.init || p.container.restartPolicy === 'Always'),
      spec.hostNetwork === true,
    ),
  );
  return problems;
}

function validateContainer({ container, path, init }: Placed, hostNetwork: boolean, names: readonly string[]): Problem[] {
  const problems: Problem[] = [];
  const { name, image } = container;
  if (name !== undefined) problems.push(...problemIf(wrongLabel(name), `${path}.name`, name));
  if (image !== undefined && image.trim() === '')
    problems.push({ path: `${path}.image`, expected: 'the name of an image', got: shown(image) });
  else if (image !== undefined && image !== image.trim())
    problems.push({ path: `${path}.image`, expected: 'no blanks around it', got: shown(image) });
  if (!init && container.restartPolicy !== undefined) {
    problems.push({
      path: `${path}.restartPolicy`,
      expected: 'absent: only init containers may have one',
      got: shown(container.restartPolicy),
    });
  }
  const ports = container.ports ?? [];
  ports.forEach((port, i) => {
    problems.push(...validatePort(port, itemPath(`${path}.ports`, i), hostNetwork));
  });
  problems.push(...duplicates(ports.map((port, i) => ({ path: `${itemPath(`${path}.ports`, i)}.name`, name: port.name }))));
  problems.push(...validateEnvFrom(container.envFrom ?? [], `${path}.envFrom`), ...validateEnv(container.env ?? [], `${path}.env`, names));
  problems.push(...validateResources(container, path));
  return [...problems, ...validateContainerSecurity(container.securityContext ?? {}, `${path}.securityContext`)];
}

function validatePort(port: Partial<ContainerPort>, path: string, hostNetwork: boolean): Problem[] {
  const problems: Problem[] = [];
  const { name, containerPort, hostPort, hostIP } = port;
  const number = 'a port from 1 to 65535';
  if (name !== undefined && name !== '') problems.push(...problemIf(wrongPortName(name), `${path}.name`, name));
  if (containerPort !== undefined && !isPort(containerPort)) {
    problems.push({ path: `${path}.containerPort`, expected: number, got: String(containerPort) });
  }
  if (hostPort !== undefined && hostPort !== 0) {
    if (!isPort(hostPort)) problems.push({ path: `${path}.hostPort`, expected: number, got: String(hostPort) });
    else if (hostNetwork && containerPort !== undefined && hostPort !== containerPort) {
      const expected = `${containerPort}, the containerPort, since hostNetwork is true`;
      problems.push({ path: `${path}.hostPort`, expected, got: String(hostPort) });
    }
  }
  if (hostIP !== undefined && hostIP !== '') problems.push(...problemIf(wrongIp(hostIP), `${path}.hostIP`, hostIP));
  return problems;
}

const isPort = (n: number): boolean => n >= 1 && n <= 65_535;

/** Two containers that run at one time cannot have one port of the host. */
function duplicateHostPorts(all: readonly Placed[], hostNetwork: boolean): Problem[] {
  const first = new Map<string, string>();
  const problems: Problem[] = [];
  for (const { container, path } of all) {
    (container.ports ?? []).forEach((port, i) => {
      const hostPort = port.hostPort || (hostNetwork ? port.containerPort : 0);
      if (!hostPort) return;
      const at = `${itemPath(`${path}.ports`, i)}.${port.hostPort ? 'hostPort' : 'containerPort'}`;
      const key = `${port.protocol || 'TCP'}/${port.hostIP ?? ''}/${hostPort}`;
      const before = first.get(key);
      if (before === undefined) first.set(key, at);
      else problems.push({ path: at, expected: `another port than ${before}`, got: String(hostPort) });
    });
  }
  return problems;
}

function validateResources(container: Partial<Container>, path: string): Problem[] {
  const problems: Problem[] = [];
  const { limits = {}, requests = {} } = container.resources ?? {};
  for (const [list, amounts] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    for (const [name, amount] of Object.entries(amounts)) {
      const at = entryPath(`${path}.resources.${list}`, name);
      if ((parseQuantity(amount)?.nano ?? 0n) < 0n) problems.push({ path: at, expected: '0 or more', got: String(amount) });
      else if (list === 'limits' && name === 'memory') problems.push(...memoryFloor(amount, at));
    }
  }
  for (const [name, request] of Object.entries(requests)) {
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    if (limit === undefined || compareQuantities(request, limit) <= 0) continue;
    problems.push({ path: entryPath(`${path}.resources.requests`, name), expected: `at most the limit, ${limit}`, got: String(request) });
  }
  return [...problems, ...validateHugepages(limits, requests, `${path}.resources`)];
}

/** Huge pages are given whole and to nobody else: a limit that is the request, in whole pages, beside cpu or memory. */
function validateHugepages(limits: Amounts, requests: Amounts, path: string): Problem[] {
  const problems: Problem[] = [];
  for (const name of new Set([...Object.keys(limits), ...Object.keys(requests)].filter((n) => n.startsWith('hugepages-')))) {
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    const request = Object.hasOwn(requests, name) ? requests[name] : undefined;
    const at = entryPath(`${path}.limits`, name);
    const pageBytes = pageSizeBytes(name);
    if (pageBytes === undefined) problems.push({ path: at, expected: 'a page size such as hugepages-2Mi', got: name });
    else if (limit === undefined) problems.push({ path: at, expected: `the request, ${request}`, got: 'nothing' });
    else if (quantityValue(limit) % pageBytes !== 0) problems.push({ path: at, expected: 'a whole number of pages', got: String(limit) });
    else if (request !== undefined && compareQuantities(request, limit) < 0)
      problems.push({ path: entryPath(`${path}.requests`, name), expected: `the limit, ${limit}`, got: String(request) });
    const beside = ['cpu', 'memory'].some((other) => Object.hasOwn(limits, other) || Object.hasOwn(requests, other));
    if (!beside) problems.push({ path: at, expected: 'beside it an amount of cpu or memory', got: 'neither' });
  }
  return problems;
}

type Amounts = Readonly<Record<string, Quantity>>;

/** The bytes of one page; undefined when the name has none, or no power of two. */
function pageSizeBytes(name: string): number | undefined {
  const text = name.slice('hugepages-'.length);
  const bytes = parseQuantity(text) === undefined ? 0 : quantityValue(text);
  return bytes >= 1 && Number.isInteger(Math.log2(bytes)) ? bytes : undefined;
}

/** `300m` of memory is a third of a byte. */
function memoryFloor(limit: Quantity, path: string): Problem[] {
  if (compareQuantities(limit, memoryFloorBytes) >= 0) return [];
  const text = canonicalQuantity(limit);
  if (text === '0') return [{ path, expected: 'at least 4Mi, or no limit at all', got: text }];
  const number = text.includes('e') ? String(quantityValue(limit)) : /^[0-9]+/.exec(text)?.[0];
  const meant = number !== undefined && compareQuantities(`${number}Mi`, memoryFloorBytes) >= 0 ? `${number}Mi` : undefined;
  return [
    {
      path,
      expected: `at least 4Mi${meant === undefined ? '' : `; did you mean ${meant}?`}`,
      got: text,
      ...(meant !== undefined && { nearest: meant }),
    },
  ];
}
