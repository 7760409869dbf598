/** Runs a program with arguments, never a shell. Handed in as an option, so that tests and other ways to reach systemd can replace it. */
import { execFile } from 'node:child_process';

export interface RunResult {
  /** Exit status; -1 when it could not be started or was killed. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Never rejects. */
export type Run = (argv: readonly string[]) => Promise<RunResult>;

/** The real thing: at most 30 s, at most 1 MB of output. */
export const runCommand: Run = ([file = '', ...args]) =>
  new Promise((resolve) => {
    execFile(
      file,
      args,
      { encoding: 'utf8', timeout: 30_000, maxBuffer: 2 ** 20, env: { ...process.env, LC_ALL: 'C' } },
      (error, stdout, stderr) => {
        if (error === null) return resolve({ code: 0, stdout, stderr });
        const code = typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr: stderr === '' ? error.message : stderr });
      },
    );
  });
