/**
 * One archive on its way into containerd: `ctr images import -` reads it through a pipe from the file itself, or from `gzip` and `zstd` (ctr of
 * containerd 1.6 takes plain archives only). Not a byte of it comes through the agent's memory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Clock } from '../world/clock.ts';
import { lastWords, type Packing } from './importOutput.ts';

export interface CtrDeps {
  readonly clock: Clock;
  /** Path of containerd's socket. */
  readonly socket: string;
  /** The program; default `ctr` of the PATH. */
  readonly ctr?: string;
  /** Whose layers the runtime looks for; undefined: containerd's default one. */
  readonly snapshotter?: () => Promise<string | undefined>;
  /** How long nothing may be read of the archive before the import is ended; default 2 min. */
  readonly stalledMs?: number;
  /** How long containerd may unpack layers once all of it was read; default 30 min. */
  readonly unpackMs?: number;
}

export type CtrResult = { readonly ok: true; readonly output: string } | { readonly ok: false; readonly words: string };

const lookMs = 2000;
const lastWordsMs = 500;
/** Between children there is a socket: it is reset rather than broken. */
const nobodyReads = /Broken pipe|Connection reset/i;
const longestText = 64 << 10;
/** What tar fills its last record with, 10 KiB or a few times that: ctr stops at the end of the archive before it and goes on to unpack. */
const paddingBytes = 64 << 10;
const unpackers: Readonly<Record<Exclude<Packing, 'plain'>, readonly [string, readonly string[]]>> = {
  gzip: ['gzip', ['-dc']],
  zstd: ['zstd', ['-dcq']],
};

/** Imports what `fd` (at its beginning, open for reading) holds. Rejects only when `signal` is aborted; its processes are gone then. */
export async function importThrough(
  deps: CtrDeps,
  fd: number,
  o: { readonly packing: Packing; readonly sizeBytes: number; readonly allPlatforms: boolean },
  signal: AbortSignal,
): Promise<CtrResult> {
  const snapshotter = await deps.snapshotter?.();
  const args = ['--address', deps.socket, '--namespace', 'k8s.io', 'images', 'import'];
  if (o.allPlatforms) args.push('--all-platforms');
  if (snapshotter !== undefined) args.push('--snapshotter', snapshotter);
  args.push('-');
  signal.throwIfAborted();
  const unpacker = o.packing === 'plain' ? undefined : new Program(deps.clock, ...unpackers[o.packing], fd);
  if (unpacker?.started === false) return { ok: false, words: (await unpacker.ended).words };
  const ctr = new Program(deps.clock, deps.ctr ?? 'ctr', args, unpacker?.stdout ?? fd).keepOutput();
  // its end of the pipe is ctr's alone now: when ctr ends, the unpacker notices
  unpacker?.stdout?.destroy();
  const over = new AbortController();
  const kill = (): void => {
    ctr.kill();
    unpacker?.kill();
  };
  signal.addEventListener('abort', kill, { once: true });
  let stalled = '';
  const watching = watchProgress(deps, fd, o.sizeBytes, ctr, over.signal).then((why) => {
    stalled = why;
    if (why !== '') kill();
  });
  try {
    const [ended, unpacked] = await Promise.all([ctr.ended, unpacker?.ended]);
    signal.throwIfAborted();
    if (stalled !== '') return { ok: false, words: stalled };
    // a damaged file is the unpacker's news; that nobody reads on what it writes is ctr's
    if (unpacked !== undefined && unpacked.signal === null && unpacked.code !== 0 && !nobodyReads.test(unpacked.words))
      return { ok: false, words: unpacked.words };
    return ended.code === 0 ? { ok: true, output: ctr.output } : { ok: false, words: ended.words };
  } finally {
    over.abort();
    signal.removeEventListener('abort', kill);
    kill();
    await watching;
  }
}

/** '' when it was told to end; else why the import cannot be waited for any longer. */
async function watchProgress(deps: CtrDeps, fd: number, sizeBytes: number, ctr: Program, over: AbortSignal): Promise<string> {
  const { clock, stalledMs = 120_000, unpackMs = 1_800_000 } = deps;
  let seen = '';
  let since = clock.monotonic();
  for (;;) {
    try {
      await clock.sleep(Math.min(lookMs, stalledMs), over);
    } catch {
      return ''; // it ended by itself
    }
    // the children read through the same open file, so that its place in it is theirs
    const position = Number(/^pos:\s*(\d+)/m.exec(await readFile(`/proc/self/fdinfo/${fd}`, 'utf8').catch(() => ''))?.[1] ?? 0);
    const now = `${position} ${ctr.output.length}`;
    if (now !== seen) {
      seen = now;
      since = clock.monotonic();
    }
    const allRead = position > 0 && position >= sizeBytes - paddingBytes;
    const limitMs = allRead ? unpackMs : stalledMs;
    if (clock.monotonic() - since < limitMs) continue;
    return `nothing moved for ${Math.round(limitMs / 1000)} s, at byte ${position} of ${sizeBytes}`;
  }
}

/** A child without a shell; what it says is kept up to a limit. */
class Program {
  output = '';
  readonly started: boolean;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly words: string }>;
  #child: ChildProcess;

  constructor(clock: Clock, program: string, args: readonly string[], stdin: number | Readable) {
    this.#child = spawn(program, args, { stdio: [stdin, 'pipe', 'pipe'], env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' } });
    this.started = this.#child.pid !== undefined;
    let stderr = '';
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-4096);
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (e: NodeJS.ErrnoException) => {
        const words = e.code === 'ENOENT' ? `the program ${program} is not installed` : `${program} cannot be started: ${e.message}`;
        resolve({ code: -1, signal: null, words });
      });
      const tell = (code: number | null, signal: string | null): void => {
        const words = lastWords(stderr) || (signal === null ? `${program} ended with code ${code}` : `${program} was ended by ${signal}`);
        resolve({ code, signal, words });
      };
      this.#child.once('close', tell);
      // a child of its own may hold its output open
      this.#child.once('exit', (code, signal) => void clock.sleep(lastWordsMs).then(() => tell(code, signal)));
    });
  }

  get stdout(): Readable | null {
    return this.#child.stdout;
  }

  keepOutput(): this {
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.output = (this.output + text).slice(-longestText);
    });
    return this;
  }

  kill(): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGKILL');
  }
}
