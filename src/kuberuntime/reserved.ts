/** Names the runtime holds for a sandbox or container that an earlier call, whose answer was lost, has made or is still making. */
import { RuntimeError } from '../container/runtime.ts';

/** containerd v1.6 to 2: `name "web_default_…_0" is reserved for "<id>"`, with the code Unknown. */
export const isNameReserved = (e: unknown): boolean =>
  e instanceof RuntimeError && (e.code === 'alreadyExists' || /\bname "[^"]*" is reserved for\b/.test(e.message));

/** The next free attempt after one that was refused, given what the runtime lists now. */
export const nextAttempt = (tried: number, listed: readonly { readonly attempt: number }[]): number =>
  Math.max(tried, ...listed.map((r) => r.attempt)) + 1;

/** How often a name is looked for before the sync gives up and comes again. */
export const nameTries = 4;
