// pure
/** Rollouts as a node sees them: a message checked by hand, and whether an object must wait for its wave. */

import type { Rollout } from '../api/messages.ts';
import type { Problem, Source } from '../api/objects.ts';
import { isPlain } from '../api/plain.ts';
import { type RolloutNode, takes, waveOf } from '../api/rollout.ts';
import { shown } from '../api/scalars.ts';

export type ReadRollout = { readonly ok: true; readonly rollout: Rollout } | { readonly ok: false; readonly problems: readonly Problem[] };

const mostWaves = 100;
/** Rollouts stay in memory, many of them. */
const mostLabels = 200;

const isCount = (v: unknown): v is number => typeof v === 'number' && Number.isSafeInteger(v) && v >= 0;

/** What a node needs of it: the waves and the gate. `id` is the topic's. */
export function readRollout(value: unknown, id: string): ReadRollout {
  const refuse = (path: string, expected: string, got: unknown): ReadRollout => ({
    ok: false,
    problems: [{ path, expected, got: shown(got) }],
  });
  if (!isPlain(value)) return refuse('', 'a Rollout', value);
  if (value.apiVersion !== 'podsched.dev/v1') return refuse('apiVersion', 'podsched.dev/v1', value.apiVersion);
  if (value.kind !== 'Rollout') return refuse('kind', 'Rollout', value.kind);
  if (value.id !== id) return refuse('id', `${id}, as its topic says`, value.id);
  if (!isCount(value.gate)) return refuse('gate', 'a whole number from 0', value.gate);
  if (!Array.isArray(value.waves) || value.waves.length > mostWaves) return refuse('waves', `a list of at most ${mostWaves}`, value.waves);
  let labels = 0;
  const waves: { selector?: Readonly<Record<string, string>>; percent: number }[] = [];
  for (const [i, wave] of (value.waves as readonly unknown[]).entries()) {
    if (!isPlain(wave) || !isCount(wave.percent) || wave.percent > 100)
      return refuse(`waves[${i}].percent`, 'a whole number from 0 to 100', wave);
    const { selector, percent } = wave;
    labels += isPlain(selector) ? Object.keys(selector).length : 0;
    if (labels > mostLabels) return refuse(`waves[${i}].selector`, `at most ${mostLabels} labels in all waves`, 'more');
    if (selector === undefined) waves.push({ percent });
    else if (isPlain(selector) && Object.values(selector).every((v) => typeof v === 'string')) {
      waves.push({ percent, selector: selector as Readonly<Record<string, string>> });
    } else return refuse(`waves[${i}].selector`, 'labels', selector);
  }
  return { ok: true, rollout: { apiVersion: 'podsched.dev/v1', kind: 'Rollout', id, waves, gate: value.gate } };
}

/** Why the object must wait, in words; undefined: it may be taken now. What is meant for one node waits for nobody. */
export function rolloutWait(
  id: string | undefined,
  source: Source,
  rollouts: ReadonlyMap<string, Rollout>,
  node: RolloutNode,
): string | undefined {
  if (id === undefined || source === 'mqtt:node') return undefined;
  const rollout = rollouts.get(id);
  if (rollout === undefined) return `rollout ${shortId(id)} is not known here: nothing stands at its topic`;
  if (takes(rollout, node)) return undefined;
  const wave = waveOf(rollout, node);
  if (wave === undefined) return `this node is in no wave of rollout ${shortId(id)}`;
  return `wave ${wave} of rollout ${shortId(id)}, whose gate is at ${rollout.gate}`;
}

const shortId = (id: string): string => id.slice(0, 80);
