/** The emulated machine as a check sees it: programs, files, processes, units. Node alone, since nothing else is installed there. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

export const describe = (e: unknown): string =>
  e instanceof Error ? (e.stack ?? e.message).split('\n    at ').slice(0, 4).join('\n    at ') : String(e);

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to its end; never rejects. */
export function ran(
  file: string,
  args: readonly string[],
  o: { readonly seconds?: number; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(
      file,
      [...args],
      { timeout: (o.seconds ?? 120) * order.patience * 1000, maxBuffer: 64 << 20, env: { ...process.env, ...o.env } },
      (e, out, err) => {
        const code = e === null ? 0 : typeof e.code === 'number' ? e.code : 127;
        resolve({ code, out, err: err === '' && e !== null ? e.message : err });
      },
    );
  });
}

/** As `ran`; a program that fails is an error with its own words. */
export async function run(file: string, ...args: readonly string[]): Promise<string> {
  const r = await ran(file, args);
  if (r.code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${r.code}: ${r.err.trim()} ${r.out.trim().slice(-500)}`);
  return r.out;
}

/** A line of shell, for what is one line in shell. */
export const sh = (line: string): Promise<string> => run('sh', '-c', line);

export const read = (path: string): string => readFileSync(path, 'utf8').trim();
export const readIf = (path: string): string | undefined => (existsSync(path) ? read(path) : undefined);

/** Whole or not at all. */
export function write(path: string, text: string, mode = 0o644): void {
  const beside = `${path}.tmp`;
  writeFileSync(beside, text, { mode });
  renameSync(beside, path);
}

export interface BootOrder {
  readonly suites: readonly string[];
  /** The machine is ended by a power cut, not by the guest. */
  readonly cut: boolean;
  /** The installed program is replaced by the one in the shared folder. */
  readonly renew: boolean;
  /** By how much everything may take longer: the emulator shares its processors with others. */
  readonly patience: number;
}
export const order = JSON.parse(readFileSync('/mnt/host/boot.json', 'utf8')) as BootOrder;

/** Asks until the answer is one; rejects with what was waited for. What `ask` throws counts as "not yet", and is told at the end. */
export async function until<T>(
  what: string | (() => string),
  seconds: number,
  ask: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const end = performance.now() + seconds * order.patience * 1000;
  let last = '';
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = '';
    } catch (e) {
      last = ` (${describe(e)})`;
    }
    if (performance.now() > end) throw new Error(`waited ${seconds} s for: ${typeof what === 'string' ? what : what()}${last}`);
    await sleep(1000);
  }
}

/** `Key: value` lines of /proc, values as numbers. */
const number = (text: string, key: string): number => Number(new RegExp(`^${key}:?\\s+(\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN);

export const memTotal = (): number => number(read('/proc/meminfo'), 'MemTotal') * 1024;
export const memAvailable = (): number => number(read('/proc/meminfo'), 'MemAvailable') * 1024;
export const rssKb = (pid: number): number => number(read(`/proc/${pid}/status`), 'VmRSS');

/** Seconds of CPU that a process has used (100 ticks a second). */
export function cpuSeconds(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** One property of a unit, as `systemctl show` tells it. */
export const unit = async (name: string, property: string): Promise<string> =>
  (await run('systemctl', 'show', '--value', '--property', property, name)).trim();

/** A key of cpu.stat, memory.events and their like. */
export const stat = (file: string, key: string): number => number(read(file), key);

/** Processes that the kernel killed for memory since the machine started. */
export const oomKills = (): number => number(read('/proc/vmstat'), 'oom_kill');
