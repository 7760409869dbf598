// pure
/** What a policy says no with: the path of the field, and the key that would allow it. */
import type { Problem } from '../api/objects.ts';
import type { Policy } from './policy.ts';

/** Keys that are true or false. */
export type Switch = 'privileged' | 'hostNetwork' | 'hostPID' | 'hostIPC' | 'hostPorts' | 'unconfined';

/** What must not be there, and why. */
export const absent = (path: string, reason: string): readonly Problem[] => [{ path, expected: `absent: ${reason}`, got: 'set' }];

/** What a key would allow. */
export const lacks = (path: string, { source }: Policy, key: Switch): readonly Problem[] =>
  absent(path, `policy.${source} does not allow it (${key})`);

/** What no key is about. */
export const beyond = (path: string, { source, everything }: Policy): readonly Problem[] =>
  everything ? [] : absent(path, `policy.${source} does not allow it, and no key but allow: all does`);
