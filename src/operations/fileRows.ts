// pure
/** What each manifest file became: one row for each object a file names, and one for a file in which none could be read. */
import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import { problemText } from '../api/problems.ts';

export interface FileRow {
  readonly file: string;
  /** `Pod/default/web`; empty when no object could be read. */
  readonly object: string;
  readonly state: string;
  readonly reason: string;
  readonly message: string;
}

export function fileRows(sync: readonly SyncStatus[], files: readonly FileStatus[]): FileRow[] {
  const rows: FileRow[] = [];
  for (const s of sync) {
    const { kind, namespace, name } = s.object;
    for (const source of s.sources) {
      if (!source.source.startsWith('file:')) continue;
      const wins = source.source === s.desired?.source && source.phase === 'Accepted';
      const [first] = source.phase === 'Refused' ? source.problems : [];
      rows.push({
        file: source.source.slice('file:'.length),
        object: `${kind}/${namespace}/${name}`,
        state: wins ? s.phase : source.phase,
        reason: wins ? s.reason : source.reason,
        message: first !== undefined ? problemText(first) : wins ? s.message : source.message,
      });
    }
  }
  for (const f of files) {
    const unnamed = f.problems.filter((p) => !rows.some((r) => r.file === f.file && r.message === problemText(p)));
    const [first, ...more] = unnamed;
    if (first === undefined) continue;
    const invalid = 'Invalid';
    const message = `${problemText(first)}${more.length === 0 ? '' : ` (and ${more.length} more)`}`;
    if (!rows.some((r) => r.file === f.file)) rows.push({ file: f.file, object: '', state: 'Refused', reason: invalid, message });
  }
  return rows.sort((a, b) => (a.file === b.file ? compare(a.object, b.object) : compare(a.file, b.file)));
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
