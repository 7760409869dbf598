// pure
/**
 * A payload that is too large for the broker, made smaller: long texts are cut, then long lists; what was done is written into it.
 * Names, ids and everything short stay.
 */
import { parseObject } from './online.ts';

const textSteps = [1024, 512, 256, 128] as const;
const listSteps = [32, 8, 2] as const;

export const payloadBytes = (text: string): number => new TextEncoder().encode(text).length;

/** The payload in at most `maxBytes`, or undefined when it is no JSON object or cannot be made small enough. */
export function trimPayload(payload: string, maxBytes: number): string | undefined {
  if (payloadBytes(payload) <= maxBytes) return payload;
  const object = parseObject(payload);
  if (object === undefined) return undefined;
  for (const chars of textSteps) {
    const cut = JSON.stringify(marked(shorten(object, chars, Number.POSITIVE_INFINITY), `texts cut to ${chars} characters`));
    if (payloadBytes(cut) <= maxBytes) return cut;
  }
  for (const items of listSteps) {
    const what = `texts cut to ${textSteps[3]} characters, lists to ${items} entries`;
    const cut = JSON.stringify(marked(shorten(object, textSteps[3], items), what));
    if (payloadBytes(cut) <= maxBytes) return cut;
  }
  return undefined;
}

/** The names of the containers of a pod, and whatever else is short, are what a reader finds its way by. */
function shorten(value: unknown, chars: number, items: number): unknown {
  if (typeof value === 'string') return value.length > chars ? `${value.slice(0, chars - 1)}…` : value;
  if (Array.isArray(value)) return value.slice(0, items).map((v) => shorten(v, chars, items));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, shorten(v, chars, items)]));
  return value;
}

function marked(value: unknown, what: string): unknown {
  const object = value as Record<string, unknown>;
  if (String(object.apiVersion).startsWith('podsched.dev/')) return { ...object, truncated: what };
  const metadata = (object.metadata ?? {}) as { annotations?: Record<string, unknown> };
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, 'podsched.dev/truncated': what } } };
}
