/**
 * A session with a process in a container (exec, attach), on a connection that the runtime has upgraded: bytes in, bytes out, the size of
 * the terminal, the exit code. Owns the connection and nothing else.
 * Speaks SPDY/3.1 with v4.channel.k8s.io as the API server does towards every kubelet and runtime: of the two protocols that runtimes serve
 * it is the one in which standard input can end while the output goes on (WebSocket's v4.channel.k8s.io has no word for it, v5 is served by
 * no runtime yet), so that `echo x | podsched exec -i web -- cat` ends.
 */
import type { Duplex } from 'node:stream';
import { RuntimeError, type StreamOptions, type StreamTarget } from '../container/runtime.ts';
import { dataFrame, FrameReader, largestData, openStream, pingFrame } from './spdy.ts';

/** What a request for a session says; the answer is 101. */
export const upgradeHeaders = {
  connection: 'Upgrade',
  upgrade: 'SPDY/3.1',
  'x-stream-protocol-version': 'v4.channel.k8s.io',
} as const;

export interface ExecSession {
  /** What the process writes, to be read by one reader. Held up when nobody reads, and then so is the process. Ends with the session. */
  readonly output: AsyncIterable<{ readonly stream: 'stdout' | 'stderr'; readonly data: Uint8Array }>;
  /** To the process' standard input, one at a time. Resolves when more may come; at once, and without effect, when the session is over. */
  write(data: Uint8Array): Promise<void>;
  /** Standard input has ended. */
  closeStdin(): void;
  /** The size of the terminal, in characters. Without a terminal it has no effect. */
  resize(size: { readonly columns: number; readonly rows: number }): void;
  /** The exit code. Rejects with RuntimeError when there was no process, or the connection broke. Never an unhandled rejection. */
  readonly done: Promise<number>;
  /** Ends the connection; a process that does not mind goes on. */
  close(): void;
}

/** Held of the output before the connection is told to wait. */
const mostHeldBytes = 256 * 1024;

/** Takes over an upgraded connection; `o` as it was asked for. `head`: what came with the upgrade's answer. */
export function openSession(socket: Duplex, head: Uint8Array, o: StreamOptions): ExecSession {
  const names = ['error', ...(o.stdin ? ['stdin'] : []), ...(o.stdout ? ['stdout'] : []), ...(o.stderr ? ['stderr'] : [])];
  if (o.tty) names.push('resize');
  const numberOf = (name: string): number => names.indexOf(name) * 2 + 1;
  const frames = new FrameReader();
  const held: { readonly stream: 'stdout' | 'stderr'; readonly data: Uint8Array }[] = [];
  let heldBytes = 0;
  let wake = (): void => {};
  let drained = (): void => {};
  let over = false;
  let stdinOpen = o.stdin;
  /** The end of what is being written: a pipe ends while its last piece still waits for room. */
  let written = Promise.resolve();
  let inputEnds = false;
  let status = '';

  let settle: { readonly resolve: (code: number) => void; readonly reject: (e: unknown) => void };
  const done = new Promise<number>((resolve, reject) => {
    settle = { resolve, reject };
  });
  done.catch(() => {}); // whoever asks for it is told

  const finish = (result: { readonly code: number } | { readonly error: RuntimeError }): void => {
    if (over) return;
    over = true;
    socket.destroy();
    if ('code' in result) settle.resolve(result.code);
    else settle.reject(result.error);
    wake();
    drained();
  };
  const broken = (why: string, cause?: unknown): void =>
    finish({ error: new RuntimeError('unavailable', `the session ended before the command did: ${why}`, { cause }) });

  const onData = (stream: number, bytes: Uint8Array, last: boolean): void => {
    const name = names[(stream - 1) / 2];
    if (name === 'error') {
      status += Buffer.from(bytes).toString();
      if (last || isWhole(status)) finish(resultOf(status));
    } else if ((name === 'stdout' || name === 'stderr') && bytes.length > 0) {
      held.push({ stream: name, data: bytes });
      heldBytes += bytes.length;
      if (heldBytes > mostHeldBytes) socket.pause();
      wake();
    }
  };
  const receive = (chunk: Uint8Array): void => {
    try {
      for (const frame of frames.read(chunk)) {
        if (over) return;
        if (frame.kind === 'data') onData(frame.stream, frame.bytes, frame.last);
        else if (frame.kind === 'ping') socket.write(pingFrame(frame.id));
        else if (frame.kind === 'reset' && frame.stream === numberOf('error')) finish(resultOf(status));
        else if (frame.kind === 'reset' && o.stdin && frame.stream === numberOf('stdin')) stdinOpen = false;
      }
    } catch (e) {
      broken(e instanceof Error ? e.message : String(e), e);
    }
  };

  const writeStdin = async (data: Uint8Array): Promise<void> => {
    for (let at = 0; at < data.length && stdinOpen && !over; at += largestData) {
      if (socket.write(dataFrame(numberOf('stdin'), data.subarray(at, at + largestData), false))) continue;
      await new Promise<void>((resolve) => {
        drained = resolve;
      });
    }
  };

  socket.on('drain', () => drained());
  socket.on('error', (e) => broken(e.message, e));
  socket.on('end', () => broken('the other side closed it'));
  socket.on('close', () => broken('it was closed'));
  names.forEach((streamtype, i) => {
    socket.write(openStream(i * 2 + 1, { streamtype }, i === 0));
  });
  if (head.length > 0) receive(head);
  socket.on('data', receive);

  return {
    output: (async function* () {
      for (;;) {
        const next = held.shift();
        if (next !== undefined) {
          heldBytes -= next.data.length;
          if (heldBytes <= mostHeldBytes && socket.isPaused()) socket.resume();
          yield next;
        } else if (over) return;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    })(),
    write: (data) => {
      if (!inputEnds) written = writeStdin(data);
      return written;
    },
    closeStdin: () => {
      inputEnds = true;
      void written.then(() => {
        if (!stdinOpen || over) return;
        stdinOpen = false;
        socket.write(dataFrame(numberOf('stdin'), new Uint8Array(), true));
      }); // it never rejects
    },
    resize: ({ columns, rows }) => {
      if (!o.tty || over) return;
      socket.write(dataFrame(numberOf('resize'), Buffer.from(`${JSON.stringify({ Width: columns, Height: rows })}\n`), false));
    },
    done,
    close: () => broken('it was closed here'),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
const isWhole = (text: string): boolean => text !== '' && parsed(text) !== undefined;

/** The `v1 Status` at the end of a session (v4.channel.k8s.io): success, an exit code, or why nothing ran. */
function resultOf(text: string): { readonly code: number } | { readonly error: RuntimeError } {
  if (text.trim() === '') return { code: 0 };
  const status = (parsed(text) ?? { message: text }) as {
    readonly status?: unknown;
    readonly reason?: unknown;
    readonly message?: unknown;
    readonly details?: { readonly causes?: readonly { readonly reason?: unknown; readonly message?: unknown }[] };
  };
  if (status.status === 'Success') return { code: 0 };
  const code = Number(status.details?.causes?.find((c) => c.reason === 'ExitCode')?.message);
  if (status.reason === 'NonZeroExitCode' && Number.isInteger(code)) return { code };
  return { error: new RuntimeError('unknown', String(status.message ?? text)) };
}

const loopback = /^(127(\.\d{1,3}){3}|localhost|\[::1\])$/;

/**
 * Where the runtime says it serves a session. Whoever answers in the runtime's name could send the agent anywhere: only plain http on this
 * machine's loopback is followed.
 */
export function streamTarget(text: string): StreamTarget {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' || !loopback.test(url.hostname) || url.port === '' || url.username !== '' || url.password !== '')
    throw new RuntimeError('unknown', `the runtime serves sessions at ${JSON.stringify(text.slice(0, 100))}, which is not on the loopback`);
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port), path: `${url.pathname}${url.search}` };
}
