// pure
/** What is remembered of archives, and which files are some. */

/** The label by which containerd's CRI says `pinned` of an image; containerd before 1.7 keeps it and does not heed it. */
export const pinnedLabel = 'io.cri-containerd.pinned';

/** One archive, as it was when it was imported, or tried. */
export interface ImportRecord {
  /** Size, time and ownership of the file: another text is another content, as far as it can be told without reading it. */
  readonly signature: string;
  /** The images it gave, by complete name; they are pinned. */
  readonly names: readonly string[];
  /** What was wrong with all or with a part of it, as it was told. */
  readonly problem?: string;
  /** Nothing of this content came: it is tried again at the next start. `names` are of what lay there before. */
  readonly failed?: true;
}

/** By file name in the folder; by absolute path where a person named the file. */
export type ImportRecords = Readonly<Record<string, ImportRecord>>;

export const isArchiveName = (name: string): boolean => !name.startsWith('.') && /\.(tar|tar\.gz|tgz|tar\.zst)$/.test(name);

/** A person named the file; it is nothing of the folder's. */
export const isByHand = (key: string): boolean => key.startsWith('/');

/** What a store gave, as far as it is what was put there. */
export function readRecords(stored: unknown): Map<string, ImportRecord> {
  const records = new Map<string, ImportRecord>();
  if (typeof stored !== 'object' || stored === null) return records;
  for (const [key, value] of Object.entries(stored)) {
    const { signature, names, problem, failed } = (typeof value === 'object' ? value : undefined) ?? {};
    if (typeof signature !== 'string' || !Array.isArray(names) || !names.every((n) => typeof n === 'string')) continue;
    records.set(key, { signature, names, ...(typeof problem === 'string' && { problem }), ...(failed === true && { failed }) });
  }
  return records;
}

/** Sorted, so that the same records are the same text. */
export const storedRecords = (records: ReadonlyMap<string, ImportRecord>): ImportRecords =>
  Object.fromEntries([...records].sort(([a], [b]) => (a < b ? -1 : 1)));

/** Every image that must stay because it came as a file, each once. */
export const namesOfAll = (records: ReadonlyMap<string, ImportRecord>): string[] => [
  ...new Set([...records.values()].flatMap((r) => r.names)),
];
