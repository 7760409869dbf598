// pure
/** A container that waits for a ConfigMap or Secret: what is known of that object, and the one thing that helps. */
import { nearest } from '../api/nearest.ts';
import type { SyncStatus } from '../api/payloads.ts';

export interface Missing {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  /** The object may be there, and this key is not in it. */
  readonly key?: string;
}

/** What the kubelet's texts name; undefined: the message is about something else. */
export function missingObject(message: string): Missing | undefined {
  const object = /\b(configmap|secret) "([^"]+)" not found/.exec(message);
  if (object?.[2] !== undefined) return { kind: object[1] === 'secret' ? 'Secret' : 'ConfigMap', name: object[2] };
  const key = /couldn't find key (\S+) in (ConfigMap|Secret) [^/\s]+\/([^\s;]+)/.exec(message);
  if (key?.[1] === undefined || key[3] === undefined) return undefined;
  return { kind: key[2] === 'Secret' ? 'Secret' : 'ConfigMap', name: key[3], key: key[1] };
}

/** What helps, in one sentence or two. `source`: where the pod comes from; it sees only objects that come the same way. */
export function missingRemedy(missing: Missing, namespace: string, source: string, sync: readonly SyncStatus[]): string {
  const { kind, name, key } = missing;
  const what = `${kind} ${name}`;
  const later = 'The pod starts by itself when it is there.';
  if (key !== undefined) return `Add the key ${key} to ${what}, or mark the reference \`optional: true\`. ${later}`;
  const isFile = source.startsWith('file:');
  const where = isFile
    ? `a file of kind: ${kind} with the name ${name} and the namespace ${namespace} into the manifest folder`
    : `${what} of the namespace ${namespace} under this node's topics`;
  const put = `Put ${where}, or mark the reference \`optional: true\`. ${later}`;
  const same = sync.filter(({ object }) => object.kind === kind);
  const there = same.find(({ object }) => object.name === name && object.namespace === namespace);
  if (there?.phase === 'Refused') return `${what} is there and refused (${there.message}). Correct it. ${later}`;
  if (there !== undefined && there.desired !== undefined && there.desired.source.startsWith('file:') !== isFile) {
    return `${what} comes from ${there.desired.source}, and a pod sees only objects that come as it does itself (files see files, topics see topics). ${put}`;
  }
  const elsewhere = same.find(({ object }) => object.name === name);
  if (there === undefined && elsewhere !== undefined)
    return `There is one in the namespace ${elsewhere.object.namespace}; a pod sees only those of its own. ${put}`;
  const close = nearest(
    name,
    same.filter(({ object }) => object.namespace === namespace).map(({ object }) => object.name),
  );
  return close === undefined || close === name ? put : `Did you mean ${close}? If not: ${put[0]?.toLowerCase() ?? ''}${put.slice(1)}`;
}
