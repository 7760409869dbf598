// pure
/**
 * Validation of probes and hooks (kubelet v1.32 validateProbe, validateHandler, validateLifecycle). podsched's own: a port's name must be one
 * of the container's, since the kubelet finds that out at run time only; a header's value has no line breaks; a number written as text is a
 * port, as it is at run time.
 */
import { itemPath } from './fieldPath.ts';
import { wrongPortName } from './names.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { shown } from './scalars.ts';
import type {
  Container,
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  HTTPHeader,
  Lifecycle,
  LifecycleHandler,
  Probe,
  SleepAction,
} from './v1.ts';

const probeNames = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
const probeHandlers = ['exec', 'httpGet', 'tcpSocket', 'grpc'];
const hookHandlers = ['exec', 'httpGet', 'tcpSocket', 'sleep'];
const hookNames = ['postStart', 'preStop'] as const;
const onlyRunning = 'absent: an init container is probed and has hooks only as a sidecar, with restartPolicy: Always';

/** Every mistake of a container's probes and hooks. `grace`: the pod's, in seconds. `plainInit`: an init container that is no sidecar. */
export function validateHandlers(
  container: Partial<Container>,
  path: string,
  o: { readonly plainInit: boolean; readonly grace: number },
): Problem[] {
  const problems: Problem[] = [];
  for (const name of probeNames) {
    const probe = container[name];
    if (probe === undefined) continue;
    if (o.plainInit) problems.push({ path: `${path}.${name}`, expected: onlyRunning, got: 'set' });
    else problems.push(...validateProbe(probe, name, container, `${path}.${name}`));
  }
  const hooks = Object.keys(container.lifecycle ?? {}).length > 0;
  if (o.plainInit && hooks) problems.push({ path: `${path}.lifecycle`, expected: onlyRunning, got: 'set' });
  else problems.push(...validateLifecycle(container.lifecycle ?? {}, container, `${path}.lifecycle`, o.grace));
  return problems;
}

function validateProbe(probe: Probe, name: (typeof probeNames)[number], container: Partial<Container>, path: string): Problem[] {
  const problems = validateHandler(probe, probeHandlers, container, path);
  for (const field of ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'] as const) {
    const value = probe[field];
    if (value !== undefined && value < 0) problems.push({ path: `${path}.${field}`, expected: '0 or more', got: String(value) });
  }
  const successes = probe.successThreshold ?? 0;
  if (name !== 'readinessProbe' && successes > 1)
    problems.push({ path: `${path}.successThreshold`, expected: `1, for a ${name}`, got: String(successes) });
  const grace = probe.terminationGracePeriodSeconds;
  if (grace === undefined) return problems;
  const at = `${path}.terminationGracePeriodSeconds`;
  if (name === 'readinessProbe') problems.push({ path: at, expected: 'absent: a readiness probe ends nothing', got: String(grace) });
  else if (grace < 1) problems.push({ path: at, expected: '1 or more', got: String(grace) });
  return problems;
}

function validateLifecycle(lifecycle: Lifecycle, container: Partial<Container>, path: string, grace: number): Problem[] {
  return hookNames.flatMap((name) => {
    const hook = lifecycle[name];
    if (hook === undefined) return [];
    const at = `${path}.${name}`;
    return [...validateHandler(hook, hookHandlers, container, at), ...(hook.sleep ? validateSleep(hook.sleep, `${at}.sleep`, grace) : [])];
  });
}

function validateSleep({ seconds }: Partial<SleepAction>, path: string, grace: number): Problem[] {
  if (seconds === undefined || (seconds >= 1 && seconds <= grace)) return [];
  return [{ path: `${path}.seconds`, expected: `from 1 to ${grace}, terminationGracePeriodSeconds`, got: String(seconds) }];
}

function validateHandler(
  handler: Pick<Probe & LifecycleHandler, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'>,
  kinds: readonly string[],
  container: Partial<Container>,
  path: string,
): Problem[] {
  const given = kinds.filter((kind) => (handler as Readonly<Record<string, unknown>>)[kind] !== undefined);
  const problems: Problem[] = [];
  if (given.length !== 1) {
    const expected = `exactly one of ${kinds.slice(0, -1).join(', ')} and ${kinds.at(-1)}`;
    problems.push({ path, expected, got: given.join(' and ') || 'none of them' });
  }
  if (handler.exec !== undefined) problems.push(...validateExec(handler.exec, `${path}.exec`));
  if (handler.httpGet !== undefined) problems.push(...validateHttpGet(handler.httpGet, container, `${path}.httpGet`));
  if (handler.tcpSocket?.port !== undefined) problems.push(...validatePort(handler.tcpSocket.port, container, `${path}.tcpSocket.port`));
  if (handler.grpc !== undefined) problems.push(...validateGrpc(handler.grpc, `${path}.grpc`));
  return problems;
}

const validateExec = ({ command = [] }: ExecAction, path: string): Problem[] =>
  command.length > 0 ? [] : [{ path: `${path}.command`, expected: 'a command', got: 'nothing' }];

const validateGrpc = ({ port }: Partial<GRPCAction>, path: string): Problem[] =>
  port === undefined || isPort(port) ? [] : [{ path: `${path}.port`, expected: portRange, got: String(port) }];

function validateHttpGet({ port, httpHeaders = [] }: Partial<HTTPGetAction>, container: Partial<Container>, path: string): Problem[] {
  const problems = port === undefined ? [] : validatePort(port, container, `${path}.port`);
  httpHeaders.forEach((header, i) => {
    problems.push(...validateHeader(header, itemPath(`${path}.httpHeaders`, i)));
  });
  return problems;
}

function validateHeader({ name, value }: Partial<HTTPHeader>, path: string): Problem[] {
  const problems: Problem[] = [];
  if (name !== undefined && !/^[-A-Za-z0-9]+$/.test(name))
    problems.push({ path: `${path}.name`, expected: 'the name of a header: letters, digits and -', got: shown(name) });
  // it may be a password: it is not shown
  if (value !== undefined && /[^\t\x20-\x7e\x80-\xff]/.test(value))
    problems.push({ path: `${path}.value`, expected: 'printable characters on one line', got: 'a value that is not shown' });
  return problems;
}

const portRange = 'a port from 1 to 65535';
const isPort = (n: number): boolean => Number.isInteger(n) && n >= 1 && n <= 65_535;

function validatePort(port: number | string, container: Partial<Container>, path: string): Problem[] {
  const names = (container.ports ?? []).flatMap((p) => p.name || []);
  if (typeof port === 'string' && names.includes(port)) return [];
  if (typeof port === 'number' || /^\d+$/.test(port)) return isPort(Number(port)) ? [] : [{ path, expected: portRange, got: shown(port) }];
  const wrong = wrongPortName(port);
  const close = nearest(port, names);
  const known = names.length === 0 ? 'whose ports have no names' : `which has ${names.join(', ')}`;
  const expected = wrong === undefined ? `the name of a port of this container, ${known}` : `${portRange} or the name of one: ${wrong}`;
  return [{ path, expected, got: shown(port), ...(close !== undefined && { nearest: close }) }];
}
