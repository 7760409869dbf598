// pure
/**
 * The ports of the host that a pod claims, and who holds them: another pod, or a process of the host. Two claims meet when protocol and
 * number are the same and one address covers the other. A claim without an address, or with 0.0.0.0 or ::, covers them all.
 * Mirrors kubelet v1.32 NodePorts; podsched's own are the look at the host's sockets, ports of sidecars, and that the holder is named.
 */
import type { DesiredPod } from '../api/desired.ts';
import { isSidecar } from '../api/resources.ts';
import type { PodSpec } from '../api/v1.ts';

export interface PortClaim {
  readonly protocol: string;
  readonly port: number;
  /** '': every address. */
  readonly ip: string;
}

/** Something on the host listens there. */
export interface HostSocket extends PortClaim {
  readonly protocol: 'TCP' | 'UDP';
  /** The kernel's number of the socket, by which its process is found. */
  readonly inode?: string | undefined;
}

/** Who has this socket, such as `sshd (pid 812)`; undefined: nobody was found. It is dear: only asked on a conflict. */
export type SocketHolder = (socket: HostSocket) => string | undefined;

/** A pod as far as its ports go: also one that only the runtime knows. */
export type PortOwner = Pick<DesiredPod, 'key' | 'namespace' | 'name'> & {
  readonly pod: { readonly spec: Pick<PodSpec, 'containers' | 'initContainers'> };
};

/** A pod whose ports are in use, or promised to it. */
export interface PortHolder {
  readonly pod: PortOwner;
  /** Nobody wants it any more; its ports are free when it has ended. */
  readonly ending: boolean;
}

export interface PortConflict {
  readonly claim: PortClaim;
  /** In words. */
  readonly holder: string;
  /** Not a pod's: nobody tells when it is free. */
  readonly byHost: boolean;
}

/** Ports of the host that the containers which live with the pod claim. On the host's network every port is one (defaults fill it in). */
export function portClaims(pod: PortOwner['pod']): PortClaim[] {
  const containers = [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter(isSidecar)];
  return containers.flatMap((c) =>
    (c.ports ?? []).flatMap(({ hostPort, protocol, hostIP }) =>
      hostPort === undefined || hostPort <= 0 ? [] : [{ protocol: protocol || 'TCP', port: hostPort, ip: hostIP ?? '' }],
    ),
  );
}

/** The first holder of each claimed port that is not free; pods before processes, for a pod's own process listens too. */
export function portConflicts(
  pod: PortOwner['pod'],
  holders: readonly PortHolder[],
  host: readonly HostSocket[],
  socketHolder: SocketHolder = () => undefined,
): PortConflict[] {
  const held = holders.map((holder) => ({ holder, claims: portClaims(holder.pod.pod) }));
  return portClaims(pod).flatMap((claim): PortConflict[] => {
    const other = held.find(({ claims }) => claims.some((c) => meet(c, claim)))?.holder;
    if (other !== undefined) {
      const { namespace, name } = other.pod;
      return [{ claim, holder: `pod ${namespace}/${name}${other.ending ? ', which is ending' : ''}`, byHost: false }];
    }
    const socket = host.find((s) => meet(s, claim));
    if (socket === undefined) return [];
    const name = socketHolder(socket) ?? 'a process of the host';
    return [{ claim, holder: `${name}, which listens on ${addressText(socket)}`, byHost: true }];
  });
}

export const claimText = ({ port, protocol }: PortClaim): string => `port ${port}/${protocol}`;

const addressText = ({ ip, port }: PortClaim): string => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`;

function meet(a: PortClaim, b: PortClaim): boolean {
  if (a.protocol !== b.protocol || a.port !== b.port) return false;
  const [left, right] = [addressKey(a.ip), addressKey(b.ip)];
  return left === everywhere || right === everywhere || left === right;
}

const everywhere = 'all';

/** One text for every spelling of an address. IPv4 inside IPv6 is the IPv4 address, since one socket serves both. */
export function addressKey(ip: string): string {
  if (ip === '' || ip === '0.0.0.0') return everywhere;
  if (!ip.includes(':')) return ip;
  const words = ipv6Words(ip.toLowerCase());
  if (words.every((w) => w === 0)) return everywhere;
  const mapped = words.slice(0, 5).every((w) => w === 0) && words[5] === 0xffff;
  if (!mapped) return words.map((w) => w.toString(16)).join(':');
  const v4 = words.slice(6).flatMap((w) => [w >> 8, w & 255]);
  return v4.every((byte) => byte === 0) ? everywhere : v4.join('.');
}

/** The eight words of an IPv6 address that is known to be one. */
function ipv6Words(ip: string): number[] {
  const wordsOf = (half: string): number[] =>
    half === ''
      ? []
      : half.split(':').flatMap((part) => {
          if (!part.includes('.')) return [Number.parseInt(part, 16)];
          const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
          return [a * 256 + b, c * 256 + d];
        });
  const [before = '', after] = ip.split('::');
  const [head, tail] = [wordsOf(before), after === undefined ? [] : wordsOf(after)];
  return [...head, ...Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => 0), ...tail];
}
