// pure
/** Why a system call failed, as Node says it. */

/** `ENOENT`, `EACCES` …; the message of an error without a code. */
export const codeOf = (e: unknown): string => (e instanceof Error ? ((e as NodeJS.ErrnoException).code ?? e.message) : String(e));

/** There is nothing of this name. */
export const isMissing = (e: unknown): boolean => codeOf(e) === 'ENOENT';

/** Nor can there be: what stands above it is no folder. */
export const isNowhere = (e: unknown): boolean => isMissing(e) || codeOf(e) === 'ENOTDIR';
