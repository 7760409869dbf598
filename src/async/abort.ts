/** Abort is not an error: it is how a wait is told to end. */
export const isAbort = (e: unknown): boolean => e instanceof Error && (e.name === 'AbortError' || e.name === 'TimeoutError');
