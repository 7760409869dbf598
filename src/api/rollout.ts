// pure
/**
 * Which wave of a rollout a node is in: a function of the rollout, the node's name and its labels alone, so that the node and whoever moves
 * the gate come to the same answer without a word between them. The gate only ever rises: a wave that has taken a revision keeps it.
 */
import { createHash } from 'node:crypto';
import type { Rollout } from './messages.ts';

/** On an object of a group or of all: it is taken wave by wave, as the rollout of this id says. */
export const rolloutAnnotation = 'podsched.dev/rollout';

/** A node as waves choose it. */
export interface RolloutNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** 0…99: where this node stands among all in this rollout; the same for ever, and another one in another rollout. */
export const rolloutPlace = (id: string, nodeName: string): number =>
  createHash('sha256').update(`${id}${nodeName}`).digest().readUInt32BE(0) % 100;

/** The first wave whose labels the node has and whose percentage covers it, counted from 1; undefined: in none, it never takes part. */
export function waveOf(rollout: Rollout, node: RolloutNode): number | undefined {
  const place = rolloutPlace(rollout.id, node.name);
  const index = rollout.waves.findIndex((wave) => place < wave.percent && fits(wave.selector ?? {}, node.labels));
  return index < 0 ? undefined : index + 1;
}

/** Whether the node takes the new revision by now. */
export function takes(rollout: Rollout, node: RolloutNode): boolean {
  const wave = waveOf(rollout, node);
  return wave !== undefined && wave <= rollout.gate;
}

const fits = (selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(selector).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
