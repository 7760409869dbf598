// pure
/** The names of a pod's things on this node: texts that other tools and later releases read. */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { Pod } from '../api/v1.ts';

/** What names a pod instance where nothing more is known of it. */
export interface PodRef {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
}

/** `web_default(uid)`: how the kubelet's messages name a pod. */
export const podText = (p: PodRef): string => `${p.name}_${p.namespace}(${p.uid})`;

/** The folder of a pod's logs under the root of all logs. */
export const podLogFolder = (p: PodRef): string => `${p.namespace}_${p.name}_${p.uid}`;

/** The UID at the end of a log folder's name; undefined when it has not that shape. */
export function uidOfLogFolder(folder: string): PodUid | undefined {
  const parts = folder.split('_');
  return parts.length < 3 ? undefined : (parts.at(-1) as PodUid);
}

/**
 * The key of a container's restart back-off. The pod's UID stands in it (`uidOfBackoffKey`), and the container-hash, so that an edited
 * container starts afresh (facts 6.1).
 */
export const restartBackoffKey = (desired: DesiredPod, container: string): string =>
  `${desired.name}_${desired.namespace}_${desired.uid}_${container}_${desired.containerHashes[container] ?? ''}`;

/** The UID in a restart back-off key: names of Kubernetes have no underscore. */
export const uidOfBackoffKey = (key: string): PodUid | undefined => key.split('_')[2] as PodUid | undefined;

/** What a kernel takes for a host name. */
const longestHostname = 64;

/**
 * The host name inside the pod: a DNS label of at most 63 characters, with setHostnameAsFQDN the full name; '' in the host's network, which
 * has its own (facts 10.4). Throws when the full name is too long. Without a `clusterDomain` the full name ends in `svc`.
 */
export function hostname(pod: Pod, clusterDomain = ''): string {
  const { hostNetwork, subdomain, setHostnameAsFQDN } = pod.spec;
  if (hostNetwork) return '';
  const name = (pod.spec.hostname || pod.metadata.name).slice(0, 63).replace(/[-.]+$/, '');
  if (!setHostnameAsFQDN || !subdomain) return name;
  const full = [name, subdomain, pod.metadata.namespace || 'default', 'svc', clusterDomain].filter((part) => part !== '').join('.');
  if (full.length <= longestHostname) return full;
  throw new Error(
    `failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long (${longestHostname} characters is the max, ${full.length} characters requested)`,
  );
}
