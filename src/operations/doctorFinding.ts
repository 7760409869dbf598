// pure
/** What a check of the machine comes to. */

/** `advice`: pods run, and something could be better. */
export type FindingLevel = 'ok' | 'advice' | 'wrong';

export interface Finding {
  readonly name: string;
  readonly level: FindingLevel;
  readonly message: string;
  /** What would help; absent where nothing is to be done. */
  readonly remedy?: string;
}

export const ok = (name: string, message: string): Finding => ({ name, level: 'ok', message });
export const advice = (name: string, message: string, remedy: string): Finding => ({ name, level: 'advice', message, remedy });
export const wrong = (name: string, message: string, remedy: string): Finding => ({ name, level: 'wrong', message, remedy });
