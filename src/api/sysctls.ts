// pure
/**
 * Kernel settings a pod may have of its own: their names, which are safe, and which belong to a namespace (facts 12.5). Mirrors kubelet
 * v1.32 sysctl/safe_sysctls.go and allowlist.go; where the kubelet rejects the pod at admission, here its path is refused.
 */
import { nearest } from './nearest.ts';

/** Settings that reach no further than the pod. */
export const safeSysctls: readonly string[] = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
];

const form = /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$/;

const isSysctlName = (name: string): boolean => name.length <= 253 && form.test(name);

/** The name with dots. Whoever writes slashes first means dots by the others: `net/ipv4/conf/eth0.1/x` is `net.ipv4.conf.eth0/1.x`. */
export function dottedSysctl(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  return first === '/' ? name.replace(/[./]/g, (c) => (c === '/' ? '.' : '/')) : name;
}

/** The namespace that keeps a setting (or all of a prefix) to the pod; undefined: it is the machine's. */
function sysctlNamespace(dotted: string): 'network' | 'ipc' | undefined {
  if (dotted.startsWith('net.')) return 'network';
  const ipc = dotted === 'kernel.sem' || ['kernel.shm', 'kernel.msg', 'fs.mqueue.'].some((start) => dotted.startsWith(start));
  return ipc ? 'ipc' : undefined;
}

/** An entry of allowedUnsafeSysctls: a name, or the beginning of names followed by `*`. What is wrong with it. */
export function wrongSysctlPattern(pattern: string): string | undefined {
  const start = dottedSysctl(pattern.endsWith('*') ? pattern.slice(0, -1) : pattern);
  if (pattern.includes('*', 0) && pattern.indexOf('*') !== pattern.length - 1) return 'a sysctl, or the beginning of one followed by *';
  if (!isSysctlName(start.replace(/[._-]$/, ''))) return 'a sysctl such as net.core.somaxconn, or the beginning of one followed by *';
  return sysctlNamespace(start) === undefined
    ? 'a sysctl that a pod can have of its own (kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.*, net.*)'
    : undefined;
}

/** What is wrong with a pod's setting of this name. `allowed`: allowedUnsafeSysctls. */
export function sysctlProblem(
  name: string,
  pod: { readonly hostNetwork: boolean; readonly hostIPC: boolean },
  allowed: readonly string[],
): { readonly expected: string; readonly nearest?: string } | undefined {
  if (!isSysctlName(name)) return { expected: 'the name of a sysctl: at most 253 of a-z, 0-9, - and _, in parts between dots or slashes' };
  const dotted = dottedSysctl(name);
  const namespace = sysctlNamespace(dotted);
  const taken = (pattern: string): boolean => {
    const text = dottedSysctl(pattern);
    return text.endsWith('*') ? dotted.startsWith(text.slice(0, -1)) : dotted === text;
  };
  if (!safeSysctls.includes(dotted) && !(namespace !== undefined && allowed.some(taken))) {
    const close = nearest(dotted, safeSysctls);
    const expected =
      namespace === undefined ? 'a sysctl that a pod can have of its own' : 'a safe sysctl, or one that allowedUnsafeSysctls names';
    return { expected, ...(close !== undefined && { nearest: close }) };
  }
  if (namespace === 'network' && pod.hostNetwork) return { expected: 'no sysctl of the network, since hostNetwork is true' };
  if (namespace === 'ipc' && pod.hostIPC) return { expected: 'no sysctl of IPC, since hostIPC is true' };
  return undefined;
}
