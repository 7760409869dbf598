/**
 * Processes of a test: started in a session of their own (a Ctrl-C on the terminal does not reach them), known by pid and start time,
 * ended one by one. Nothing here ever looks a process up by its name to end it.
 */
import { execFile, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; never rejects, the exit code tells. */
export function run(
  file: string,
  args: readonly string[],
  o: { readonly env?: NodeJS.ProcessEnv; readonly timeoutMs?: number; readonly cwd?: string } = {},
): Promise<RunResult> {
  return new Promise((resolve) => {
    execFile(
      file,
      [...args],
      {
        env: o.env ?? process.env,
        timeout: o.timeoutMs ?? 60_000,
        maxBuffer: 64 * 1024 * 1024,
        ...(o.cwd === undefined ? {} : { cwd: o.cwd }),
      },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 127;
        resolve({ code, stdout, stderr: stderr === '' && error !== null ? error.message : stderr });
      },
    );
  });
}

/** As `run`, but a program that fails is an error with its own words. */
export async function mustRun(file: string, args: readonly string[], o: Parameters<typeof run>[2] = {}): Promise<string> {
  const result = await run(file, args, o);
  if (result.code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${result.code}: ${result.stderr.trim()}`);
  return result.stdout;
}

export interface Daemon {
  readonly pid: number;
  /** The exit code, or the signal's name; pending while it runs. */
  readonly exited: Promise<number | NodeJS.Signals>;
  running(): boolean;
  signal(signal: NodeJS.Signals): void;
  /** TERM, then KILL after `graceMs`; resolves when it is gone. */
  end(graceMs?: number): Promise<number | NodeJS.Signals>;
}

/** util-linux's way to have a program end with whoever started it: a test that is killed leaves no daemon. It becomes the program (same pid). */
const withParent = existsSync('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig', 'KILL'] : [];

/** Starts a long-running program; stdout and stderr go to the end of `logFile`. */
export function startDaemon(
  file: string,
  args: readonly string[],
  o: { readonly logFile: string; readonly env?: NodeJS.ProcessEnv; readonly cwd?: string },
): Daemon {
  const log = openSync(o.logFile, 'a');
  const [program = file, ...rest] = [...withParent, file, ...args];
  const child = spawn(program, rest, {
    detached: true,
    stdio: ['ignore', log, log],
    env: o.env ?? process.env,
    ...(o.cwd === undefined ? {} : { cwd: o.cwd }),
  });
  closeSync(log);
  let over: number | NodeJS.Signals | undefined;
  const exited = new Promise<number | NodeJS.Signals>((resolve) => {
    const end = (how: number | NodeJS.Signals) => {
      over ??= how;
      resolve(over);
    };
    child.once('error', () => end(127));
    child.once('exit', (code, signal) => end(code ?? signal ?? 0));
  });
  const pid = child.pid ?? 0;
  if (pid === 0) throw new Error(`${file} cannot be started (is it installed?)`);
  const daemon: Daemon = {
    pid,
    exited,
    running: () => over === undefined,
    signal: (signal) => {
      if (over === undefined) child.kill(signal);
    },
    end: async (graceMs = 10_000) => {
      daemon.signal('SIGTERM');
      const timer = setTimeout(() => daemon.signal('SIGKILL'), graceMs);
      const how = await exited;
      clearTimeout(timer);
      return how;
    },
  };
  return daemon;
}

/** When a process started, in clock ticks since boot: pid and start together name a process for good. undefined: it is gone. */
export function startTicks(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : Number(fields[19]);
  } catch {
    return undefined; // no such process
  }
}

export interface ProcessInfo {
  readonly pid: number;
  readonly argv: readonly string[];
}

/** All processes of the machine with their arguments (kernel threads have none and are left out). */
export function processes(): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const argv = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
      if (argv.length > 0) found.push({ pid: Number(name), argv });
    } catch {
      // ended while we looked
    }
  }
  return found;
}

/** Ends one process by its pid; that it is gone already is what we wanted. */
export function killPid(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // gone already
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

const given = new Set<number>();
const lowestPort = 10_240;

/**
 * A TCP port of the loopback that nobody listens on now. It is below those that the kernel gives by itself, to whoever connects or listens
 * without a number: nobody gets it between this choice and its use, or while who has it is away for a moment.
 */
export async function freePort(): Promise<number> {
  const ownRange = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/)[0]);
  const end = ownRange > lowestPort + 1000 ? ownRange : 32_768;
  for (let i = 0; i < 1000; i++) {
    const port = lowestPort + Math.floor(Math.random() * (end - lowestPort));
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error('no port');
}

/** Waits until `check` is true; rejects after `timeoutMs` with what was waited for. */
export async function until(what: string, timeoutMs: number, check: () => boolean | Promise<boolean>, everyMs = 20): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`waited ${timeoutMs} ms for: ${what}`);
    await sleep(everyMs);
  }
}
