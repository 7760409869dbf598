/** Objects as they were written, before they are judged: out of texts and messages, Lists taken apart; their annotations, read and set. */
import { isPlain, type Plain } from '../api/plain.ts';
import { parseObject } from '../broker/online.ts';
import { parseDocuments } from '../config/yaml.ts';
import { isEnvelope } from '../policy/dsse.ts';

/** The items of a List; anything else is itself. */
export const itemsOf = (value: unknown): readonly unknown[] =>
  isPlain(value) && value.kind === 'List' && Array.isArray(value.items) ? value.items : [value];

/** Every object of a text, Lists taken apart; what is none is passed over. */
export const rawObjects = (bytes: Uint8Array): readonly Plain[] =>
  parseDocuments(new TextDecoder().decode(bytes)).documents.flatMap(({ value }) => itemsOf(value).filter(isPlain));

/** The object of a message that anybody may have sent; undefined: there is none. */
export function rawObject(bytes: Uint8Array): Plain | undefined {
  try {
    return rawObjects(bytes)[0];
  } catch {
    return undefined; // somebody else's bytes
  }
}

/** The payload of a signed envelope, whoever signed it; undefined: it is none. */
export function signedPayload(bytes: Uint8Array): Uint8Array | undefined {
  const value = parseObject(bytes);
  return isEnvelope(value) ? Buffer.from(value.payload, 'base64') : undefined;
}

/** Annotations that are text; those of a raw object may be anything. */
export function annotationsOf(raw: Plain | undefined): Readonly<Record<string, string>> {
  const annotations = isPlain(raw?.metadata) && isPlain(raw.metadata.annotations) ? raw.metadata.annotations : {};
  return Object.fromEntries(Object.entries(annotations).filter((e): e is [string, string] => typeof e[1] === 'string'));
}

/** The object with these annotations beside its own; one that is undefined is taken away. */
export function withAnnotations(raw: Plain, more: Readonly<Record<string, string | undefined>>): Plain {
  const metadata = isPlain(raw.metadata) ? raw.metadata : {};
  const own = isPlain(metadata.annotations) ? metadata.annotations : {};
  const all = Object.entries({ ...own, ...more }).filter(([, value]) => value !== undefined);
  const { annotations: _, ...rest } = metadata;
  return { ...raw, metadata: { ...rest, ...(all.length > 0 && { annotations: Object.fromEntries(all) }) } };
}
