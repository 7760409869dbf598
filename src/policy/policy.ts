// pure
/**
 * What a source may ask for (configuration.md, *Policy*): the words, and the answers for whole objects, verbs and other sources' objects.
 * Owns nothing: a policy is a value of the configuration. Secure by default: what no key allows is denied, and so is a field of a Pod that
 * nobody has classified (`privileges.ts`). It says nothing about what is right for Kubernetes; validation does, and either may refuse.
 *
 * `allow: all` stands for every key about objects that is not written: beside it a written key still narrows. It gives no verb and no
 * sight of other sources' objects: `verbs` and `mayRead` have their own words for all (`*`).
 */

import type { ApiObject, Problem } from '../api/objects.ts';
import { shown } from '../api/scalars.ts';
import { defaultVerbs, isVerb, type Verb, verbs } from '../api/verbs.ts';
import { cleanPath } from './hostPaths.ts';
import { judgePod } from './privileges.ts';
import { cleanRegistry } from './registries.ts';

/** The kinds of sources that have a policy each. */
export type PolicySource = 'file' | 'mqtt';

export interface Policy {
  /** Whose it is: problems name the key, as `policy.mqtt.hostPath`. */
  readonly source: PolicySource;
  /** `allow: all`: also what no key is about (critical priority, fields of later versions). */
  readonly everything: boolean;
  readonly privileged: boolean;
  readonly hostNetwork: boolean;
  readonly hostPID: boolean;
  readonly hostIPC: boolean;
  readonly hostPorts: boolean;
  /** Absolute and cleaned; each with all below it. */
  readonly hostPath: readonly string[];
  /** Classes of the configuration, kinds (`vendor.com/class`) or names (`vendor.com/class=name`) of CDI devices; `*`: any. */
  readonly devices: readonly string[];
  /** Upper case, without `CAP_`; `ALL`: any. */
  readonly capabilities: readonly string[];
  /** Names, or beginnings followed by `*`. Safe ones need none. */
  readonly sysctls: readonly string[];
  /** Seccomp and AppArmor off, profiles of the node's own AppArmor, labels of SELinux. */
  readonly unconfined: boolean;
  /** `host[/path]`; absent: any. */
  readonly registries?: readonly string[];
  readonly digestOnly: boolean;
  /** Absent: no bound of this source's own. */
  readonly maxPods?: number;
  /** Absent: any. */
  readonly namespaces?: readonly string[];
  readonly verbs: readonly Verb[];
  /** Namespaces whose objects of other sources its pods may use; `*`: all. */
  readonly mayRead: readonly string[];
  readonly requireSignature: boolean;
  /** This source wins over a stronger one. */
  readonly locked: boolean;
}

/** `policy.file` or `policy.mqtt` of a checked configuration. A key of a wrong type counts as absent, which never allows more. */
export function readPolicy(value: unknown, source: PolicySource): Policy {
  const raw: Readonly<Record<string, unknown>> = typeof value === 'object' && value !== null ? { ...value } : {};
  const everything = raw.allow === 'all';
  const bool = (key: string, absent: boolean): boolean => (raw[key] === undefined ? absent : raw[key] === true);
  const list = (key: string): readonly string[] | undefined => {
    const items = raw[key];
    if (items === undefined) return undefined;
    return Array.isArray(items) ? items.filter((item): item is string => typeof item === 'string') : [];
  };
  const granted = (key: string, all: string): readonly string[] => list(key) ?? (everything ? [all] : []);
  const [registries, namespaces] = [list('registries'), list('namespaces')];
  const maxPods = typeof raw.maxPods === 'number' ? raw.maxPods : undefined;
  return {
    source,
    everything,
    privileged: bool('privileged', everything),
    hostNetwork: bool('hostNetwork', everything),
    hostPID: bool('hostPID', everything),
    hostIPC: bool('hostIPC', everything),
    hostPorts: bool('hostPorts', everything),
    hostPath: granted('hostPath', '/').flatMap((path) => cleanPath(path) ?? []),
    devices: granted('devices', '*'),
    capabilities: granted('capabilities', 'ALL').map((name) => name.toUpperCase().replace(/^CAP_/, '')),
    sysctls: granted('sysctls', '*'),
    unconfined: bool('unconfined', everything),
    ...(registries !== undefined && { registries: registries.map(cleanRegistry) }),
    digestOnly: bool('digestOnly', false),
    ...(maxPods !== undefined && { maxPods }),
    ...(namespaces !== undefined && !namespaces.includes('*') && { namespaces }),
    verbs: readVerbs(list('verbs')),
    mayRead: list('mayRead') ?? [],
    requireSignature: bool('requireSignature', false),
    locked: bool('locked', false),
  };
}

const readVerbs = (names: readonly string[] | undefined): readonly Verb[] => {
  if (names === undefined) return defaultVerbs;
  return names.includes('*') ? verbs : names.filter(isVerb);
};

/** Each is looked for in the text that it came in, and one more says nothing new. */
const mostDenials = 100;

/** Everything that an object asks for and its source may not, a hundred at most: each by the path of its field, with the key that would allow it. */
export function judgeObject(object: ApiObject, policy: Policy): readonly Problem[] {
  const namespace = object.metadata.namespace ?? 'default';
  const outside: Problem[] = allowsNamespace(policy, namespace)
    ? []
    : [{ path: 'metadata.namespace', expected: namespacesText(policy), got: shown(namespace) }];
  return object.kind === 'Pod' ? [...outside, ...judgePod(object, policy).slice(0, mostDenials)] : outside;
}

const namespacesText = ({ source, namespaces = [] }: Policy): string =>
  namespaces.length === 0
    ? `a namespace of policy.${source}.namespaces, which is empty`
    : `a namespace of policy.${source}.namespaces: ${namespaces.slice(0, 20).join(', ')}`;

/** Whether a source may have objects in a namespace, and give commands for pods in it. */
export const allowsNamespace = ({ namespaces }: Policy, namespace: string): boolean =>
  namespaces === undefined || namespaces.includes(namespace);

/** Whether pods of this source may use objects of the other source kinds that lie in a namespace. */
export const mayRead = ({ mayRead: names }: Policy, namespace: string): boolean => names.includes('*') || names.includes(namespace);

export const allowsVerb = ({ verbs: allowed }: Policy, verb: Verb): boolean => allowed.includes(verb);
