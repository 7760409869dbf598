/**
 * Owns what `credentials.d` says: each `*.json` in it is one docker config. A file is read again when it is another than before, looked at
 * only when an image is pulled: no watch, no polling. One that cannot be read is named, and the others go on.
 * Never: keeps a credential of a file that is gone; puts any of its text into a problem; opens what is no regular file.
 */
import { constants } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, isMissing } from '../world/errno.ts';
import type { Log } from '../world/log.ts';
import { type Credential, readDockerConfig } from './credentials.ts';

/** What is wrong in one file, or with the folder. */
export interface CredentialProblem {
  /** `credentials.d/lab.json`. */
  readonly file: string;
  readonly message: string;
  /** Others than its owner may read it; it is used all the same. */
  readonly insecure?: true;
}

export interface CredentialsFolderDeps {
  readonly log: Log;
  /** `<staticPodPath>/credentials.d`. */
  readonly dir: string;
  /** What is wrong changed: the node's conditions may say it. */
  readonly onProblems?: (problems: readonly CredentialProblem[]) => void;
}

interface Read {
  readonly identity: string;
  readonly credentials: readonly Credential[];
  readonly problems: readonly CredentialProblem[];
}

const label = 'credentials.d';
const maxFileBytes = 1 << 20;
const maxFiles = 200;

export class CredentialsFolder {
  #files = new Map<string, Read>();
  #problems: readonly CredentialProblem[] = [];

  constructor(private readonly deps: CredentialsFolderDeps) {}

  /** What was wrong when it was looked at last. */
  problems(): readonly CredentialProblem[] {
    return this.#problems;
  }

  /** All of it in one text; undefined: nothing is wrong. */
  trouble(): string | undefined {
    return this.#problems.length === 0 ? undefined : this.#problems.map((p) => `${p.file} ${p.message}`).join('; ');
  }

  /** All that stands in it now. Never rejects: what cannot be read is a problem. */
  async all(): Promise<readonly Credential[]> {
    const { dir } = this.deps;
    const folderProblems: CredentialProblem[] = [];
    let names: string[] = [];
    try {
      names = (await readdir(dir)).filter((n) => n.endsWith('.json') && !n.startsWith('.')).sort();
    } catch (e) {
      if (!isMissing(e)) folderProblems.push({ file: label, message: `cannot be read (${codeOf(e)})` });
    }
    if (names.length > maxFiles) folderProblems.push({ file: label, message: `has ${names.length} files; the first ${maxFiles} are read` });
    const files = new Map<string, Read>();
    for (const name of names.slice(0, maxFiles)) files.set(name, await this.#file(name));
    this.#files = files;
    this.#tell([...folderProblems, ...[...files.values()].flatMap((f) => f.problems)]);
    return [...files.values()].flatMap((f) => f.credentials);
  }

  async #file(name: string): Promise<Read> {
    const file = `${label}/${name}`;
    const path = join(this.deps.dir, name);
    const wrong = (message: string): Read => ({ identity: '', credentials: [], problems: [{ file, message }] });
    try {
      const s = await stat(path, { bigint: true });
      const identity = [s.dev, s.ino, s.size, s.mtimeNs, s.ctimeNs].join(' ');
      const before = this.#files.get(name);
      if (before?.identity === identity) return before;
      if (!s.isFile()) return wrong('is no regular file');
      if (s.size > maxFileBytes) return wrong(`is larger than ${maxFileBytes} bytes`);
      const { credentials, problems } = readDockerConfig(await readText(path), file);
      return { identity, credentials, problems: [...problems.map((message) => ({ file, message })), ...insecure(file, Number(s.mode))] };
    } catch (e) {
      return wrong(`cannot be read (${codeOf(e)})`);
    }
  }

  #tell(problems: readonly CredentialProblem[]): void {
    const told = new Set(this.#problems.map((p) => `${p.file}: ${p.message}`));
    const same = problems.length === told.size && problems.every((p) => told.has(`${p.file}: ${p.message}`));
    this.#problems = problems;
    if (same) return;
    for (const { file, message } of problems.filter((p) => !told.has(`${p.file}: ${p.message}`)))
      this.deps.log.warn({ file, problem: message }, 'registry credentials: something is wrong');
    this.deps.onProblems?.(problems);
  }
}

/** A FIFO put in its place meanwhile does not block. */
async function readText(path: string): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) throw Object.assign(new Error('not a regular file'), { code: 'not a regular file' });
    const bytes = Buffer.alloc(maxFileBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > maxFileBytes) throw Object.assign(new Error('too large'), { code: 'too large' });
    return bytes.toString('utf8', 0, length);
  } finally {
    await handle.close();
  }
}

function insecure(file: string, mode: number): CredentialProblem[] {
  if ((mode & 0o077) === 0) return [];
  const octal = (mode & 0o777).toString(8).padStart(4, '0');
  const who = (mode & 0o022) !== 0 ? 'read or change' : 'read';
  return [{ file, message: `InsecurePermissions: others may ${who} it (mode ${octal}): chmod 600`, insecure: true }];
}
