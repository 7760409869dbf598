// pure
/** The query of `/containerLogs/{ns}/{pod}/{container}`, with the names of `v1 PodLogOptions`. */
import { type Answered, pathParts, refused } from './answered.ts';
import { nanosOf } from './criLog.ts';

export interface LogRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly tailLines?: number;
  readonly sinceSeconds?: number;
  /** Nanoseconds since 1970. */
  readonly sinceNanos?: bigint;
  readonly limitBytes?: number;
}

const prefix = '/containerLogs/';
const names = { follow: true, previous: true, timestamps: true, tailLines: true, sinceSeconds: true, sinceTime: true, limitBytes: true };

/** Whether the path is one of logs, however wrong the rest of it is. */
export const asksForLogs = (path: string): boolean => path.startsWith(prefix);

/** The request of a path for which `asksForLogs`. The last of a name that is given twice counts. */
export function parseLogRequest(path: string, query: string): Answered<LogRequest> {
  const named = pathParts(path, prefix, ['namespace', 'pod', 'container']);
  if (!named.ok) return named;

  const given = new Map(new URLSearchParams(query));
  const problems: string[] = [];
  for (const name of given.keys())
    if (!Object.hasOwn(names, name)) problems.push(`there is no ${name.slice(0, 50)}; there are ${Object.keys(names).join(', ')}`);
  const wrong = (name: string, expected: string): undefined => {
    problems.push(`${name}: expected ${expected}, got ${JSON.stringify((given.get(name) ?? '').slice(0, 50))}`);
    return undefined;
  };
  const flag = (name: string): boolean => {
    const text = given.get(name) ?? 'false';
    if (text === 'true' || text === '1' || text === '') return true;
    if (text !== 'false' && text !== '0') wrong(name, 'true or false');
    return false;
  };
  const number = (name: string, min: number): number | undefined => {
    const text = given.get(name);
    if (text === undefined) return undefined;
    const n = /^\d{1,15}$/.test(text) ? Number(text) : -1;
    return n >= min ? n : wrong(name, `a whole number from ${min} on`);
  };
  const time = (name: string): bigint | undefined => {
    const text = given.get(name);
    return text === undefined ? undefined : (nanosOf(text) ?? wrong(name, 'a time such as 2026-01-01T00:00:00Z'));
  };

  const tailLines = number('tailLines', 0);
  const sinceSeconds = number('sinceSeconds', 1);
  const sinceNanos = time('sinceTime');
  const limitBytes = number('limitBytes', 1);
  if (given.has('sinceSeconds') && given.has('sinceTime')) problems.push('at most one of sinceTime and sinceSeconds may be given');
  const value: LogRequest = {
    ...named.value,
    follow: flag('follow'),
    previous: flag('previous'),
    timestamps: flag('timestamps'),
    ...(tailLines !== undefined && { tailLines }),
    ...(sinceSeconds !== undefined && { sinceSeconds }),
    ...(sinceNanos !== undefined && { sinceNanos }),
    ...(limitBytes !== undefined && { limitBytes }),
  };
  return problems.length === 0 ? { ok: true, value } : refused(400, problems.join('; '));
}
