/**
 * A person, or a pipe, in a session with a process in a container: keys and sizes go in, output comes out, and the terminal is as it was
 * before, however the session ends.
 */
import type { StreamOptions } from '../container/runtime.ts';
import { RuntimeError } from '../container/runtime.ts';
import { openSession } from '../cri/streaming.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { ByteOutput } from './logs.ts';
import type { Session } from './socket.ts';

/** The near end of a session. */
export interface Console {
  readonly inputIsTerminal: boolean;
  /** What is typed or piped in, one piece at a time; the way back stops reading. */
  read(on: { data(bytes: Uint8Array): Promise<void>; end(): void }): () => void;
  /** Keys go through one by one, unseen; the way back puts the terminal as it was. It goes back by itself when the process ends. */
  raw(): () => void;
  /** Of the terminal, in characters; undefined: there is none. */
  size(): { readonly columns: number; readonly rows: number } | undefined;
  onResize(listener: () => void): () => void;
  readonly output: ByteOutput;
  readonly errors: ByteOutput;
}

export interface Wanted {
  readonly stdin: boolean;
  readonly tty: boolean;
}

const noTerminal = 'Unable to use a TTY - input is not a terminal or the right kind of file\n';

/** What a session is asked for, as kubectl makes it of `-i` and `-t`: a terminal needs an input that is one. */
export function streamOptions(o: Wanted, console: Console, say: (text: string) => void): StreamOptions {
  const tty = o.stdin && o.tty && console.inputIsTerminal;
  if (o.stdin && o.tty && !tty) say(noTerminal);
  return { stdin: o.stdin, stdout: true, stderr: !tty, tty };
}

export const streamQuery = (o: StreamOptions, command: readonly string[] = []): string => {
  const query = new URLSearchParams(command.map((word): [string, string] => ['command', word]));
  for (const name of ['stdin', 'stdout', 'stderr', 'tty'] as const) query.set(name, String(o[name]));
  return `?${query}`;
};

/** Runs the session to its end; the exit code of the process. Rejects when there was none, or the connection broke. */
export async function runSession({ socket, head }: Session, o: StreamOptions, console: Console): Promise<number> {
  const session = openSession(socket, head, o);
  const undo: (() => void)[] = [() => session.close()];
  try {
    if (o.tty) {
      undo.push(console.raw());
      const tellSize = (): void => {
        const size = console.size();
        if (size !== undefined) session.resize(size);
      };
      undo.push(console.onResize(tellSize));
      tellSize();
    }
    if (o.stdin) undo.push(console.read({ data: (bytes) => session.write(bytes), end: () => session.closeStdin() }));
    for await (const { stream, data } of session.output) await (stream === 'stdout' ? console.output : console.errors).write(data);
    return await session.done;
  } catch (e) {
    if (e instanceof RuntimeError) throw new CommandError(exitCodes.failed, e.message, { cause: e });
    throw e;
  } finally {
    for (const step of undo.reverse()) step();
  }
}
