// pure
/** How commands end, and the error that ends one with its code and one clear line. */
export const exitCodes = { done: 0, failed: 1, usage: 2, notFound: 3, unreachable: 4 } as const;

export class CommandError extends Error {
  constructor(
    readonly code: number,
    message: string,
    options?: { cause: unknown },
  ) {
    super(message, options);
  }
}
