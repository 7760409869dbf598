// pure
/** Paths of the node that a source may mount: compared as whole names, never as beginnings of texts (`/data` has no `/database` in it). */

/** One spelling: no doubled slashes, no `.`, no slash at the end. undefined: it is not absolute, or goes up. */
export function cleanPath(path: string): string | undefined {
  if (!path.startsWith('/') || path.includes('\0')) return undefined;
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  return names.includes('..') ? undefined : `/${names.join('/')}`;
}

/** Whether a path is one of the allowed ones or lies below it. What has no clean spelling lies nowhere. */
export function isBelow(path: string, allowed: readonly string[]): boolean {
  const clean = cleanPath(path);
  if (clean === undefined) return false;
  return allowed.some((root) => root === '/' || clean === root || clean.startsWith(`${root}/`));
}

/**
 * The allowed paths that count: one below another says no more than that, and may be a link by now of somebody who writes there.
 */
export const outermost = (allowed: readonly string[]): readonly string[] =>
  allowed.filter((root) => !allowed.some((other) => other !== root && isBelow(root, [other])));

/** The allowed path that a path lies in, and must stay in whatever becomes of its links; undefined: it may be anywhere, or nowhere. */
export const rootOf = (path: string, allowed: readonly string[]): string | undefined =>
  allowed.includes('/') ? undefined : outermost(allowed).find((root) => isBelow(path, [root]));
