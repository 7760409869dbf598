// pure
/** What is worth an event: each thing that is wrong with the folder, a file or an object, once as long as it stays the same. */
import type { KeyText, ObjectKey, Problem } from '../api/objects.ts';
import { problemText, withoutValue } from '../api/problems.ts';
import { fileOf } from './merge.ts';
import { type ConfigView, shadowedExpectation, splitKey, type Told } from './view.ts';

export interface ConfigEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly object: ObjectKey | { readonly file: string };
}

/** The folder itself, where an event names a file. */
const folderItself = '.';
const shownProblems = 3;

// an event does not say of which kind the object is
const describeProblem = (problem: Problem): string => problemText(withoutValue(problem, true));

const describeAll = (problems: readonly Problem[]): string => {
  const more = problems.length - shownProblems;
  return problems.slice(0, shownProblems).map(describeProblem).join('; ') + (more > 0 ? `; and ${more} more` : '');
};

/** Everything that is wrong now, by what it is about. Whoever tells it compares with what was told before. */
export function computeReports(view: ConfigView): Map<string, ConfigEvent> {
  const reports = new Map<string, ConfigEvent>();
  const add = (id: string, object: ConfigEvent['object'], reason: string, message: string): void => {
    reports.set(id, { type: 'Warning', reason, message, object });
  };
  const addBlocked = (key: KeyText, { reason, message }: Told): void => {
    const [id, about] = [`blocked ${key}`, splitKey(key)];
    // a pull has events of its own, and what is on its way is no trouble
    if (reason === 'PullingImage') return;
    if (reason === 'Held') reports.set(id, { type: 'Normal', reason, message: `the edit waits: ${message}`, object: about });
    else if (reason === 'RolledBack') add(id, about, reason, message);
    else add(id, about, 'UpdateBlocked', `${reason}: ${message}`);
  };
  const { fault, insecure, degraded } = view.folder;
  if (fault !== undefined) add('fault', { file: folderItself }, 'SourceUnreadable', fault);
  if (insecure !== undefined) add('insecure', { file: folderItself }, 'InsecurePermissions', insecure);
  if (degraded !== undefined) add('degraded', { file: folderItself }, 'WatchDegraded', degraded);
  const refusals = new Map<string, string>();
  for (const object of view.objects) {
    for (const source of object.sources) {
      const file = fileOf(source.source);
      if (source.phase === 'Refused' && file !== undefined) refusals.set(file, source.reason);
      if (source.phase === 'Refused' && file === undefined) {
        add(
          `refused ${object.key} ${source.source}`,
          splitKey(object.key),
          source.reason,
          `${source.source}: ${describeAll(source.problems)}`,
        );
      }
      if (source.phase === 'Shadowed' && file !== undefined) {
        add(`shadowed ${object.key} ${file}`, { file }, 'Shadowed', `${object.key} of ${file} takes no part: ${source.message}`);
      }
    }
    // RuntimeDown is the node's own trouble, told as its condition; and for a moment it is so at every start
    if (object.pending !== undefined && object.pending.reason !== 'RuntimeDown')
      add(`pending ${object.key}`, splitKey(object.key), object.pending.reason, object.pending.message);
    if (object.blockedEdit !== undefined) addBlocked(object.key, object.blockedEdit);
  }
  for (const { file, reason = 'Invalid', problems, warnings } of view.files) {
    const mistakes = problems.filter((p) => p.expected !== shadowedExpectation);
    if (mistakes.length > 0) add(`file ${file}`, { file }, refusals.get(file) ?? reason, describeAll(mistakes));
    const permissions = warnings.filter((p) => p.path === '');
    const fields = warnings.filter((p) => p.path !== '');
    if (permissions.length > 0) add(`permissions ${file}`, { file }, 'InsecurePermissions', describeAll(permissions));
    if (fields.length > 0) add(`fields ${file}`, { file }, 'FieldsWithoutEffect', describeAll(fields));
  }
  return reports;
}
