// pure
/** One reason in words for a person: what it means, and what to do. */
export interface ReasonText {
  readonly meaning: string;
  readonly remedy: string;
}

/** By reason, by the part that gives them, in the order of the documentation. */
export type ReasonGroups = Readonly<Record<string, Readonly<Record<string, ReasonText>>>>;

export const nothing = 'Nothing to do.';
export const wait = 'Wait; it passes by itself.';
