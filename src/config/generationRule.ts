// pure
/** The rule of generations: counted per topic, never falling, and never the same for two payloads. */
import type { Told } from './view.ts';

export interface Counted {
  readonly generation?: number;
  /** First 16 hex digits of SHA-256 of the payload's bytes. */
  readonly hash?: string;
}

/** Why a payload may not take the place of what the topic had; undefined: it may. One without a generation always may. */
export function generationProblem(known: Counted, said: Counted): Told | undefined {
  if (known.generation === undefined || said.generation === undefined || said.generation > known.generation) return undefined;
  const next = `say at least ${known.generation + 1}`;
  if (said.generation < known.generation) {
    return { reason: 'GenerationFell', message: `generation ${said.generation} after ${known.generation}: ${next}` };
  }
  if (known.hash === undefined || known.hash === said.hash) return undefined;
  return { reason: 'GenerationConflict', message: `generation ${said.generation} was another payload before: ${next}` };
}
