declare const PODSCHED_VERSION: string | undefined;

/** Put in by the bundle; a run from the sources has none. */
export const version: string = typeof PODSCHED_VERSION === 'string' ? PODSCHED_VERSION : '0.0.0-source';
