// pure
/**
 * The resolv.conf of a pod: by its policy from the node's own file or from the cluster servers of the configuration, then what its dnsConfig
 * adds, cut to what resolvers read. Mirrors kubelet v1.32 network/dns/dns.go GetPodDNS (facts 10.5). Without cluster servers every policy
 * but None comes to the node's file, and that is no warning: on a single node it is the rule.
 */
import type { Pod, PodDNSConfigOption } from '../api/v1.ts';
import { dnsLimits } from '../api/validateDns.ts';

export interface Dns {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

export interface DnsSettings {
  /** The host's resolv.conf. */
  readonly hostDns: Dns;
  readonly clusterDns?: readonly string[];
  readonly clusterDomain?: string;
}

/** The text after which search domains of a namespace are made; a dot at the end says nothing more. */
export const bareDomain = (domain: string | undefined): string => (domain ?? '').replace(/\.$/, '');

/** What the pod gets, and in the kubelet's words what of it had to be left out. */
export function podDns(pod: Pod, o: DnsSettings): { readonly dns: Dns; readonly cut: readonly string[] } {
  const { nameservers = [], searches = [], options = [] } = pod.spec.dnsConfig ?? {};
  const base = baseDns(pod, o);
  return fitted({
    servers: [...new Set([...base.servers, ...nameservers])],
    searches: [...new Set([...base.searches, ...searches])],
    options: mergedOptions(base.options, options),
  });
}

function baseDns(pod: Pod, { hostDns, clusterDns = [], clusterDomain }: DnsSettings): Dns {
  const { dnsPolicy, hostNetwork } = pod.spec;
  if (dnsPolicy === 'None') return { servers: [], searches: [], options: [] };
  const ownNames = dnsPolicy === 'Default' || (hostNetwork && dnsPolicy !== 'ClusterFirstWithHostNet');
  if (ownNames || clusterDns.length === 0) return hostDns;
  const domain = bareDomain(clusterDomain);
  const namespace = pod.metadata.namespace || 'default';
  const searches = domain === '' ? [] : [`${namespace}.svc.${domain}`, `svc.${domain}`, domain];
  return { servers: clusterDns, searches: [...searches, ...hostDns.searches], options: ['ndots:5'] };
}

/** By name, the later wins; a value may be absent. */
function mergedOptions(base: readonly string[], own: readonly PodDNSConfigOption[]): string[] {
  const all = new Map(base.map((text) => [text.split(':')[0] ?? '', text]));
  for (const { name = '', value } of own) all.set(name, value ? `${name}:${value}` : name);
  return [...all.values()];
}

function fitted(dns: Dns): { readonly dns: Dns; readonly cut: readonly string[] } {
  const cut: string[] = [];
  const servers = dns.servers.slice(0, dnsLimits.servers);
  if (servers.length < dns.servers.length)
    cut.push(`Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${servers.join(' ')}`);
  const searches: string[] = [];
  for (const search of dns.searches) {
    if (search.length > dnsLimits.searchLength) continue;
    if (searches.length === dnsLimits.searches || [...searches, search].join(' ').length > dnsLimits.searchLineLength) break;
    searches.push(search);
  }
  if (searches.length < dns.searches.length)
    cut.push(`Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(' ')}`);
  return { dns: { servers, searches, options: dns.options }, cut };
}
