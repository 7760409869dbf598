/** `get configmaps|secrets [NAME]`: what is accepted, with the number of its keys and who uses it. Values are nowhere in it. */
import { nearest } from '../api/nearest.ts';
import { ageText } from '../operations/age.ts';
import type { ListedObject } from '../operations/objects.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Found, GetOptions } from './get.ts';

/** Rejects with `notFound` for a name that is not among them; one that a source names and that was refused is told as such. */
export async function findObjects(
  kind: ListedObject['kind'],
  names: readonly string[],
  o: GetOptions,
  client: AgentClient,
  nowMs: number,
): Promise<Found> {
  const all = (await client.objects()).filter((s) => s.kind === kind);
  const here = all.filter(({ metadata }) => o.allNamespaces || metadata.namespace === o.namespace);
  const objects = here.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name));
  const missing = names.find((n) => !objects.some(({ metadata }) => metadata.name === n));
  if (missing !== undefined) throw await notFound(kind, missing, here, o, client);
  const wide = o.output === 'wide';
  const secret = kind === 'Secret';
  return {
    head: [
      ...(o.allNamespaces ? ['NAMESPACE'] : []),
      ...['NAME', ...(secret ? ['TYPE'] : []), 'DATA', 'AGE', 'USED BY'],
      ...(wide ? ['KEYS', 'IMMUTABLE', 'SOURCE', 'REVISION'] : []),
    ],
    items: objects.map((object) => {
      const { metadata, type = '', keys, usedBy, immutable, source, revision } = object;
      return {
        name: `${kind.toLowerCase()}/${metadata.name}`,
        object,
        row: [
          ...(o.allNamespaces ? [metadata.namespace] : []),
          ...[metadata.name, ...(secret ? [type] : []), String(keys.length), ageText(metadata.creationTimestamp, nowMs)],
          listed(usedBy),
          ...(wide ? [listed(keys), String(immutable), source, revision] : []),
        ],
      };
    }),
  };
}

const listed = (names: readonly string[]): string => (names.length === 0 ? '<none>' : names.join(','));

async function notFound(
  kind: ListedObject['kind'],
  name: string,
  known: readonly ListedObject[],
  o: GetOptions,
  client: AgentClient,
): Promise<CommandError> {
  const word = kind.toLowerCase();
  const refused = (await client.sync()).find(
    ({ object: { kind: k, name: n, namespace } }) => k === kind && n === name && (o.allNamespaces || namespace === o.namespace),
  );
  if (refused !== undefined) {
    const text = `${word} "${name}" has not been accepted: ${refused.phase} (${refused.reason}); podsched why ${word}/${name} says more`;
    return new CommandError(exitCodes.notFound, text);
  }
  const close = nearest(
    name,
    known.map((s) => s.metadata.name),
  );
  const where = o.allNamespaces ? '' : ` in namespace ${o.namespace}`;
  const meant = close === undefined ? '' : `; did you mean ${close}?`;
  return new CommandError(exitCodes.notFound, `there is no ${word} "${name}"${where}${meant}`);
}
