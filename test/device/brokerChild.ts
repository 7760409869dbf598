/**
 * Processes of a test that run a file of ours: built once for this process, started with a channel to their parent, ended by their pid, and gone
 * by themselves when the parent is.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtPath, builtTests } from '../built.ts';
import { patienceMs } from '../until.ts';

const root = new URL('../../', import.meta.url).pathname;

export interface Built {
  /** The JavaScript of a file of test/device. */
  path(file: string): string;
  remove(): void;
}

/** Compiles files of test/device, with what they import, into a temporary folder. */
export async function build(...files: readonly string[]): Promise<Built> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-built-'));
  // packages stay where they are
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  await builtTests(
    root,
    files.map((f) => `test/device/${f}`),
    join(dir, 'built'),
  );
  return {
    path: (file) => builtPath(`test/device/${file}`, join(dir, 'built')),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

export interface Child {
  readonly pid: number;
  /** What it says next: one message for each call. Rejects when it ends first. */
  next(): Promise<Record<string, unknown>>;
  /** Asks and waits for what it says. */
  ask(message: object): Promise<Record<string, unknown>>;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a built file. `flags` are Node's own. */
export function startChild(
  path: string,
  o: { readonly flags?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): Child {
  const process_: ChildProcess = spawn(process.execPath, [...(o.flags ?? []), path], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, NODE_OPTIONS: '', ...o.env },
  });
  const said: Record<string, unknown>[] = [];
  const waiting: { resolve: (m: Record<string, unknown>) => void; reject: (e: Error) => void }[] = [];
  let stderr = '';
  let over: Error | undefined;
  process_.stderr?.on('data', (part) => {
    stderr = `${stderr}${part}`.slice(-4000);
  });
  process_.on('message', (m: Record<string, unknown>) => {
    const next = waiting.shift();
    if (next === undefined) said.push(m);
    else next.resolve(m);
  });
  const exited = new Promise<void>((resolve) => {
    process_.once('close', (code, signal) => {
      over = new Error(`${path} ended with ${code ?? signal}: ${stderr}`);
      for (const w of waiting.splice(0)) w.reject(over);
      resolve();
    });
  });
  const next = (): Promise<Record<string, unknown>> => {
    const m = said.shift();
    if (m !== undefined) return Promise.resolve(m);
    if (over !== undefined) return Promise.reject(over);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${path} says nothing: ${stderr}`)), 2 * patienceMs);
      const done = () => clearTimeout(timer);
      waiting.push({
        resolve: (message) => {
          done();
          resolve(message);
        },
        reject: (e) => {
          done();
          reject(e);
        },
      });
    });
  };
  return {
    pid: process_.pid ?? 0,
    next,
    ask: (message) => {
      process_.send(message, () => {}); // it ended: `next` says so
      return next();
    },
    kill: async (signal = 'SIGKILL') => {
      process_.kill(signal);
      await exited;
    },
  };
}
