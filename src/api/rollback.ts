// pure
/** The annotations that say how an update goes: `podsched.dev/rollback` and `podsched.dev/hold`. */
import { parseDuration } from './quantity.ts';

export const rollbackAnnotation = 'podsched.dev/rollback';
export const holdAnnotation = 'podsched.dev/hold';

type Annotations = Readonly<Record<string, string>> | undefined;

/** Milliseconds in which a revision must be Ready; undefined when the text is no duration from 1 s to 24 h. */
export function parseRollback(text: string): number | undefined {
  const ms = parseDuration(text.trim());
  return ms !== undefined && ms >= 1000 && ms <= 86_400_000 ? ms : undefined;
}

/** As `parseRollback`, of a pod's annotations; undefined also when it is not asked for. */
export function rollbackMs(annotations: Annotations): number | undefined {
  const text = annotations?.[rollbackAnnotation];
  return text === undefined ? undefined : parseRollback(text);
}

/** Edits of it are to wait. */
export const isHeldByAnnotation = (annotations: Annotations): boolean => annotations?.[holdAnnotation] === 'true';
