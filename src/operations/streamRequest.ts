// pure
/**
 * The path and query of `/exec/{ns}/{pod}/{container}` and `/attach/…`. The query has the names of `v1 PodExecOptions`; those of the
 * kubelet's own server (input, output, error) mean the same.
 */
import { type Answered, pathParts, refused } from './answered.ts';

export interface StreamRequest {
  readonly kind: 'exec' | 'attach';
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** Of an exec only. */
  readonly command: readonly string[];
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

const prefixes = { '/exec/': 'exec', '/attach/': 'attach' } as const;
const flags = { stdin: 'input', stdout: 'output', stderr: 'error', tty: 'tty' } as const;
const flagOf: Readonly<Record<string, keyof typeof flags>> = {
  ...{ stdin: 'stdin', stdout: 'stdout', stderr: 'stderr', tty: 'tty' },
  ...{ input: 'stdin', output: 'stdout', error: 'stderr' },
};
const names = [...Object.keys(flags), 'command'];

const kindOf = (path: string): [prefix: string, kind: StreamRequest['kind']] | undefined =>
  Object.entries(prefixes).find(([prefix]) => path.startsWith(prefix));

/** Whether the path is one of sessions, however wrong the rest of it is. */
export const asksForStream = (path: string): boolean => kindOf(path) !== undefined;

/** The request of a path for which `asksForStream`. Without a word on them both outputs are wanted; a terminal has one. */
export function parseStreamRequest(path: string, query: string): Answered<StreamRequest> {
  const [prefix, kind] = kindOf(path) ?? ['/exec/', 'exec'];
  const named = pathParts(path, prefix, ['namespace', 'pod', 'container']);
  if (!named.ok) return named;

  const command: string[] = [];
  const given: Partial<Record<keyof typeof flags, boolean>> = {};
  const problems: string[] = [];
  for (const [name, text] of new URLSearchParams(query)) {
    const flag = Object.hasOwn(flagOf, name) ? flagOf[name] : undefined;
    if (name === 'command' && kind === 'exec') command.push(text);
    else if (flag === undefined) problems.push(`there is no ${name.slice(0, 50)}; there are ${names.join(', ')}`);
    else if (text === 'true' || text === '1' || text === '') given[flag] = true;
    else if (text === 'false' || text === '0') given[flag] = false;
    else problems.push(`${name}: expected true or false, got ${JSON.stringify(text.slice(0, 50))}`);
  }
  const { stdin = false, tty = false, stdout = true, stderr = !tty } = given;
  if (kind === 'exec' && command.length === 0) problems.push('command: expected at least one, got nothing');
  if (command[0] === '') problems.push('command: expected the name of a program, got ""');
  // an argument of a program ends with a NUL: there is none inside
  if (command.some((c) => c.includes('\0'))) problems.push('command: expected no NUL in it');
  if (tty && stderr) problems.push('stderr: expected false, since tty is true');
  if (!stdin && !stdout && !stderr) problems.push('you must specify at least 1 of stdin, stdout, stderr');
  if (problems.length > 0) return refused(400, problems.join('; '));
  return { ok: true, value: { kind, ...named.value, command, stdin, stdout, stderr, tty } };
}
