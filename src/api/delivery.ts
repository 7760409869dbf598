// pure
/**
 * What an object says of its own delivery, in annotations that whoever writes them, whoever judges signatures and whoever takes objects in must
 * read alike. That of rollouts stands in rollout.ts.
 */
import { createHash } from 'node:crypto';
import type { Source } from './objects.ts';

export const generationAnnotation = 'podsched.dev/generation';
/** A node, `group:<g>` or `*`. */
export const audienceAnnotation = 'podsched.dev/audience';
/** `absent`: a tombstone. */
export const stateAnnotation = 'podsched.dev/state';
/** On a Secret: how its values are sealed. */
export const sealedAnnotation = 'podsched.dev/sealed';

/** The generation that an annotation or an option says; undefined: nothing, or no whole number from 0. */
export const generationOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;

/** The audience of the topic that a source is: what is signed must name it. undefined: a file, which may name any of the node's. */
export function topicAudience(source: Source, node: string): string | undefined {
  if (source.startsWith('file:')) return undefined;
  if (source === 'mqtt:node') return node;
  return source === 'mqtt:all' ? '*' : `group:${source.slice('mqtt:group/'.length)}`;
}

/** What an index tells payloads apart by. */
export const payloadHash = (payload: string | Uint8Array): string => createHash('sha256').update(payload).digest('hex').slice(0, 16);
