// pure
/** The verbs of commands. */

/** Every verb of the contract. */
export const verbs = [
  'get',
  'describe',
  'why',
  'events',
  'top',
  'doctor',
  'identify',
  'logs',
  'exec',
  'restart',
  'stop',
  'start',
  'hold',
  'release',
  'rollback',
  'resync',
  'images',
  'bundle',
  'decommission',
] as const;
export type Verb = (typeof verbs)[number];

/** What may be asked of a node by default: to look, and to tell again. */
export const defaultVerbs: readonly Verb[] = ['get', 'describe', 'why', 'events', 'top', 'doctor', 'identify', 'logs', 'resync'];

/** Whether a topic's last level is one of them. */
export const isVerb = (text: string): text is Verb => (verbs as readonly string[]).includes(text);
