// pure
/** Why a system call failed, as Node says it. */

/** `ENOENT`, `EACCES` …; the message of an error without a code. */
export const codeOf = (e: unknown): string => (e instanceof Error ? ((e as NodeJS.ErrnoException).code ?? e.message) : String(e));
