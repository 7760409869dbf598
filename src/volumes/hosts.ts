// pure
/**
 * The text of a pod's /etc/hosts. Mirrors kubelet v1.32 kubelet_pods.go ensureHostsFile (facts 10.10), and names the node's other pods
 * besides (behaviour 27), since there is no DNS server that would. A pod's name is a name for others only where it can stand for nothing
 * else: one with a dot could be a name of the internet, and `localhost` is taken.
 */
import type { HostAlias, Pod } from '../api/v1.ts';

/** Another pod of this node, as others find it. */
export interface Neighbour {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly ips: readonly string[];
}

export interface HostsInputs {
  readonly pod: Pod;
  readonly uid: string;
  /** The pod's own addresses; none where it has the host's network. */
  readonly ips: readonly string[];
  /** The text of the node's own file, for pods on the host's network. */
  readonly nodeHosts: string;
  readonly clusterDomain: string;
  readonly neighbours: readonly Neighbour[];
}

const ownLines = [
  '# Kubernetes-managed hosts file.',
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'fe00::0\tip6-mcastprefix',
  'fe00::1\tip6-allnodes',
  'fe00::2\tip6-allrouters',
];

const reserved = ['localhost', 'ip6-localhost', 'ip6-loopback', 'ip6-localnet', 'ip6-mcastprefix', 'ip6-allnodes', 'ip6-allrouters'];

export function hostsText(o: HostsInputs): string {
  const { hostNetwork, hostAliases = [] } = o.pod.spec;
  const lines = hostNetwork
    ? ['# Kubernetes-managed hosts file (host network).', ...o.nodeHosts.replace(/\n+$/, '').split('\n')]
    : [...ownLines, ...o.ips.map((ip) => [ip, ...namesOf(o.pod, o.clusterDomain)].join('\t'))];
  if (hostAliases.length > 0) lines.push('', '# Entries added by HostAliases.', ...hostAliases.map(aliasLine));
  const others = neighbourLines(o);
  if (others.length > 0) lines.push('', '# The other pods of this node.', ...others);
  return `${lines.join('\n')}\n`;
}

const aliasLine = ({ ip, hostnames = [] }: HostAlias): string => [ip, ...hostnames].join('\t');

/** The full name where there is one, then the host name. */
function namesOf({ metadata, spec }: Pod, clusterDomain: string): string[] {
  const name = (spec.hostname || metadata.name).slice(0, 63).replace(/[-.]+$/, '');
  if (!spec.subdomain) return [name];
  return [[name, spec.subdomain, metadata.namespace || 'default', 'svc', clusterDomain].filter((part) => part !== '').join('.'), name];
}

/**
 * `web` and `web.default`. Of several pods of one name, `web` is the one of the own namespace; with none there and several elsewhere, none
 * is. What the pod's own lines say goes before.
 */
function neighbourLines({ pod, uid, ips, clusterDomain, neighbours }: HostsInputs): string[] {
  const namespace = pod.metadata.namespace || 'default';
  const taken = new Set([
    ...reserved,
    ...(ips.length > 0 ? namesOf(pod, clusterDomain) : []),
    ...(pod.spec.hostAliases ?? []).flatMap((alias) => alias.hostnames ?? []),
  ]);
  const others = neighbours
    .filter((n) => n.uid !== uid && n.ips.length > 0)
    .sort((a, b) => compare(a.name, b.name) || compare(a.namespace, b.namespace) || compare(a.uid, b.uid));
  const bareNameIs = (one: Neighbour): boolean => {
    const same = others.filter((n) => n.name === one.name);
    const own = same.find((n) => n.namespace === namespace);
    return own === undefined ? same.length === 1 : own === one;
  };
  return others.flatMap((one) => {
    const full = `${one.name}.${one.namespace}`;
    const names = [...(one.name.includes('.') || !bareNameIs(one) ? [] : [one.name]), full].filter((name) => !taken.has(name));
    return names.length === 0 ? [] : one.ips.map((ip) => [ip, ...names].join('\t'));
  });
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
