// pure
/** Something cannot be made now for a reason of its own, which is told in place of the general one of the step. */

export class HeldBack extends Error {
  constructor(
    /** One of api/reasons.ts. */
    readonly reason: string,
    message: string,
    /** It is tried again in so many milliseconds; absent: as any failed step. */
    readonly waitMs?: number,
  ) {
    super(message);
  }
}
