// pure
/**
 * What an object says of its own delivery: generation, audience, rollout, and that it is to be gone. Annotations of the operator, taken off
 * before the object is judged and hashed: when only they change nothing of the pod does.
 */
import { audienceAnnotation, generationAnnotation, stateAnnotation } from '../api/delivery.ts';
import { entryPath } from '../api/fieldPath.ts';
import type { Problem } from '../api/objects.ts';
import { isPlain } from '../api/plain.ts';
import { rolloutAnnotation } from '../api/rollout.ts';
import { shown } from '../api/scalars.ts';

const all: readonly string[] = [generationAnnotation, audienceAnnotation, stateAnnotation, rolloutAnnotation];

export interface Delivery {
  readonly generation?: number;
  /** A node, `group:<g>` or `*`. */
  readonly audience?: string;
  readonly rollout?: string;
  /** A tombstone. */
  readonly absent?: true;
}

export interface Taken {
  /** The object without them. */
  readonly value: unknown;
  readonly delivery: Delivery;
  readonly problems: readonly Problem[];
}

/** Where an annotation of delivery stands. */
export const deliveryPath = (name: string): string => entryPath('metadata.annotations', name);

/** Takes the annotations of delivery off a raw object. What is no object comes back as it is. */
export function takeDelivery(raw: unknown): Taken {
  const metadata = isPlain(raw) ? raw.metadata : undefined;
  const annotations = isPlain(metadata) ? metadata.annotations : undefined;
  if (!isPlain(raw) || !isPlain(metadata) || !isPlain(annotations) || !all.some((name) => Object.hasOwn(annotations, name))) {
    return { value: raw, delivery: {}, problems: [] };
  }
  const problems: Problem[] = [];
  const text = (name: string): string | undefined => {
    const said = Object.hasOwn(annotations, name) ? annotations[name] : undefined;
    if (said === undefined || said === null) return undefined;
    if (typeof said === 'string') return said;
    problems.push({ path: deliveryPath(name), expected: 'text in quotes', got: shown(said) });
    return undefined;
  };
  const counted = text(generationAnnotation);
  const generation = counted === undefined ? undefined : readGeneration(counted);
  if (counted !== undefined && generation === undefined) {
    problems.push({ path: deliveryPath(generationAnnotation), expected: 'a whole number from 0', got: shown(counted) });
  }
  const [audience, rollout, state] = [text(audienceAnnotation), text(rolloutAnnotation), text(stateAnnotation)];
  if (state !== undefined && state !== 'absent')
    problems.push({ path: deliveryPath(stateAnnotation), expected: 'absent', got: shown(state) });
  // fromEntries takes `__proto__` for a key like any other
  const rest = Object.fromEntries(Object.entries(annotations).filter(([name]) => !all.includes(name)));
  const kept = Object.entries(metadata).flatMap(([name, value]): [string, unknown][] => {
    if (name !== 'annotations') return [[name, value]];
    return Object.keys(rest).length === 0 ? [] : [[name, rest]];
  });
  return {
    value: Object.fromEntries(Object.entries(raw).map(([name, value]) => [name, name === 'metadata' ? Object.fromEntries(kept) : value])),
    delivery: {
      ...(generation !== undefined && { generation }),
      ...(audience !== undefined && { audience }),
      ...(rollout !== undefined && { rollout }),
      ...(state === 'absent' && { absent: true }),
    },
    problems,
  };
}

/** undefined: it is none, or more than a number can hold exactly. */
function readGeneration(text: string): number | undefined {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

/** Whether something is meant for this node. */
export function isMeantFor(audience: string, nodeName: string, groups: readonly string[]): boolean {
  if (audience === '*' || audience === nodeName) return true;
  return audience.startsWith('group:') && groups.includes(audience.slice('group:'.length));
}
