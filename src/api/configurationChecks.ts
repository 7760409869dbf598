// pure
/** What must hold of the configuration beyond the type of each key. Every check names the key it is about. */
import { parseCpuList } from './cpuList.ts';
import { checkDeviceClasses } from './deviceClasses.ts';
import { checkEviction } from './evictionThresholds.ts';
import { wrongIp, wrongLabel, wrongLabelValue, wrongQualifiedName, wrongSubdomain } from './names.ts';
import { checkReserved, checkReservedFits, type NodeAmounts, reservedOf } from './nodeResources.ts';
import type { Problem } from './objects.ts';
import { checkPolicies } from './policyChecks.ts';
import { shown } from './scalars.ts';
import { wrongSysctlPattern } from './sysctls.ts';
import { isTopicPrefix } from './topics.ts';

type Values = Readonly<Record<string, unknown>>;

const text = (v: Values, key: string): string => {
  const value = v[key];
  return typeof value === 'string' ? value : '';
};
const texts = (v: Values, key: string): readonly string[] => {
  const value = v[key];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
};

/** A socket path has room for this many bytes (sun_path without its zero). */
const maxSocketPath = 107;
export const socketName = 'podsched.sock';

/**
 * All mistakes of a whole configuration (all keys by dotted path, defaults filled in). `machine`: what there is of each resource, where the
 * configuration is meant for this machine.
 */
export function checkConfiguration(v: Values, machine?: NodeAmounts): Problem[] {
  return [
    ...checkReserved(v),
    ...(machine === undefined ? [] : checkReservedFits(v, machine)),
    ...checkPaths(v),
    ...checkNode(v),
    ...checkPods(v),
    ...checkEviction(v, machine?.memoryBytes),
    ...checkCpus(v),
    ...checkServers(v),
    ...checkMqtt(v),
    ...checkImages(v),
    ...checkDeviceClasses(v.devices),
    ...checkPolicies(v),
  ];
}

const problem = (path: string, expected: string, got: unknown): Problem => ({ path, expected, got: shown(got) });

function checkPaths(v: Values): Problem[] {
  const problems: Problem[] = [];
  for (const key of ['staticPodPath', 'stateDir', 'runDir', 'podLogsDir', 'resolvConf']) {
    if (!/^\/[^\0]*$/.test(text(v, key))) problems.push(problem(key, 'an absolute path', v[key]));
  }
  const socket = `${text(v, 'runDir').replace(/\/+$/, '')}/${socketName}`;
  if (new TextEncoder().encode(socket).length > maxSocketPath) {
    problems.push(
      problem('runDir', `a shorter path: with /${socketName} it must not be longer than ${maxSocketPath} bytes`, text(v, 'runDir')),
    );
  }
  for (const key of ['mqtt.passwordFile', 'mqtt.embedded.passwordFile', 'mqtt.tls.caFile', 'mqtt.tls.certFile', 'mqtt.tls.keyFile']) {
    const path = text(v, key);
    if (path !== '' && !path.startsWith('/')) problems.push(problem(key, 'an absolute path', path));
  }
  const endpoint = text(v, 'containerRuntimeEndpoint');
  if (!/^unix:(\/\/)?\/[^\0]+$/.test(endpoint)) {
    problems.push(problem('containerRuntimeEndpoint', 'a socket such as unix:///run/containerd/containerd.sock', endpoint));
  }
  return problems;
}

function checkNode(v: Values): Problem[] {
  const problems: Problem[] = [];
  const name = text(v, 'nodeName');
  const wrongName = name === '' ? undefined : wrongLabel(name);
  if (wrongName !== undefined) problems.push(problem('nodeName', wrongName, name));
  const labels = v.nodeLabels;
  for (const [key, value] of Object.entries(typeof labels === 'object' && labels !== null ? labels : {})) {
    const path = `nodeLabels.${key}`;
    const wrongKey = wrongQualifiedName(key);
    if (wrongKey !== undefined) problems.push(problem(path, wrongKey, key));
    const wrongValue = wrongLabelValue(String(value));
    if (wrongValue !== undefined) problems.push(problem(path, wrongValue, value));
  }
  for (const [i, group] of texts(v, 'mqtt.groups').entries()) {
    const wrongGroup = wrongLabel(group);
    if (wrongGroup !== undefined) problems.push(problem(`mqtt.groups[${i}]`, wrongGroup, group));
  }
  return problems;
}

/** Components of a cgroup's path that both drivers can spell: `_` stands for `-` in the names of slices. */
const cgroupPath = /^\/?$|^\/?[A-Za-z0-9][A-Za-z0-9:.-]*(\/[A-Za-z0-9][A-Za-z0-9:.-]*)*\/?$/;

/** What pods get or may ask for. */
function checkPods(v: Values): Problem[] {
  const problems: Problem[] = [];
  const root = text(v, 'cgroupRoot');
  if (!cgroupPath.test(root) || /\.slice(\/|$)|(^|\/)cgroup\./.test(root)) {
    problems.push(problem('cgroupRoot', "a path below the cgroup file system such as /pods, without a slice's ending", root));
  }
  const each = (key: string, wrong: (item: string) => string | undefined): void => {
    for (const [i, item] of texts(v, key).entries()) {
      const expected = wrong(item);
      if (expected !== undefined) problems.push(problem(`${key}[${i}]`, expected, item));
    }
  };
  each('allowedUnsafeSysctls', wrongSysctlPattern);
  each('clusterDNS', wrongIp);
  const domain = text(v, 'clusterDomain');
  const wrongDomain = domain === '' ? undefined : wrongSubdomain(domain.replace(/\.$/, ''));
  if (wrongDomain !== undefined) problems.push(problem('clusterDomain', wrongDomain, domain));
  return problems;
}

/** Under `static` something must be left for all that has no CPUs of its own. */
function checkCpus(v: Values): Problem[] {
  const list = text(v, 'reservedSystemCPUs');
  if (parseCpuList(list) === undefined) return [problem('reservedSystemCPUs', 'a list of CPUs such as 0 or 0-1,3', list)];
  if (v.cpuManagerPolicy !== 'static' || list !== '' || reservedOf(v).cpuMilli > 0) return [];
  return [problem('cpuManagerPolicy', 'reservedSystemCPUs beside static, or cpu in systemReserved or kubeReserved', 'static')];
}

const schemes = ['mqtt', 'mqtts', 'ws', 'wss'];
const serverExample = 'embedded, or an address such as mqtts://broker.example:8883 (mqtt, mqtts, ws, wss)';

export const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);

function checkServers(v: Values): Problem[] {
  const problems: Problem[] = [];
  const servers = texts(v, 'mqtt.servers');
  for (const [i, server] of servers.entries()) {
    const path = `mqtt.servers[${i}]`;
    if (server === 'embedded') {
      if (servers.indexOf(server) !== i) problems.push(problem(path, 'embedded once', server));
      continue;
    }
    const url = URL.canParse(server) ? new URL(server) : undefined;
    const scheme = url?.protocol.slice(0, -1) ?? '';
    if (server.includes('@')) {
      // what was written may hold a password: it is not repeated
      problems.push({ path, expected: 'no user or password here: mqtt.username and mqtt.passwordFile', got: 'an address with a user' });
      continue;
    }
    if (url === undefined || !schemes.includes(scheme) || url.hostname === '') {
      problems.push(problem(path, serverExample, server));
      continue;
    }
    const host = url.hostname.replace(/^\[|\]$/g, '');
    if ((scheme === 'mqtt' || scheme === 'ws') && !isLoopback(host) && v['mqtt.insecure'] !== true) {
      problems.push(problem(path, `${scheme}s:// (or mqtt.insecure: true, which lets everybody on the way read and write)`, server));
    }
  }
  return problems;
}

function checkMqtt(v: Values): Problem[] {
  const problems: Problem[] = [];
  const prefix = text(v, 'mqtt.prefix');
  if (!isTopicPrefix(prefix)) {
    problems.push(problem('mqtt.prefix', 'one or two topic levels such as podsched/v1, without + and #', prefix));
  }
  if (texts(v, 'mqtt.servers').includes('embedded')) {
    const listen = text(v, 'mqtt.embedded.listen');
    const parts = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(listen);
    if (parts === null || Number(parts[3]) > 65535) {
      problems.push(problem('mqtt.embedded.listen', 'an address and port such as 127.0.0.1:1883', listen));
    } else if (!isLoopback(parts[1] ?? parts[2] ?? '') && text(v, 'mqtt.embedded.passwordFile') === '') {
      problems.push(problem('mqtt.embedded.listen', 'a loopback address, or a mqtt.embedded.passwordFile beside it', listen));
    }
  }
  const [cert, key] = [text(v, 'mqtt.tls.certFile'), text(v, 'mqtt.tls.keyFile')];
  if ((cert === '') !== (key === '')) {
    const missing = cert === '' ? 'mqtt.tls.certFile' : 'mqtt.tls.keyFile';
    problems.push(problem(missing, 'a file: certificate and key come together', text(v, missing)));
  }
  if (text(v, 'mqtt.passwordFile') !== '' && text(v, 'mqtt.username') === '') {
    problems.push(problem('mqtt.username', 'the user whose password mqtt.passwordFile holds', ''));
  }
  return problems;
}

function checkImages(v: Values): Problem[] {
  const [low, high] = [Number(v.imageGCLowThresholdPercent), Number(v.imageGCHighThresholdPercent)];
  return low < high ? [] : [problem('imageGCLowThresholdPercent', `less than imageGCHighThresholdPercent (${high})`, low)];
}
