/** A terminal, or pipes, that the test types into and reads from. */
import type { Console } from '../../src/cli/session.ts';

export interface FakeConsole extends Console {
  /** What was written so far. */
  readonly out: () => string;
  readonly err: () => string;
  /** Types; resolves when the session has taken it. */
  type(text: string): Promise<void>;
  endInput(): void;
  resize(columns: number, rows: number): void;
  /** Raw now. */
  readonly isRaw: () => boolean;
  readonly wasRaw: () => boolean;
  /** Somebody reads now. */
  readonly isRead: () => boolean;
}

export function fakeConsole(o: { readonly terminal?: boolean; readonly input?: string } = {}): FakeConsole {
  const { terminal = false, input } = o;
  const out: Uint8Array[] = [];
  const err: Uint8Array[] = [];
  let reader: { data(bytes: Uint8Array): Promise<void>; end(): void } | undefined;
  let size = { columns: 80, rows: 24 };
  let onResize = (): void => {};
  let raw = false;
  let wasRaw = false;
  const text = (parts: readonly Uint8Array[]) => Buffer.concat(parts).toString();
  const console: FakeConsole = {
    inputIsTerminal: terminal,
    read: (on) => {
      reader = on;
      if (input !== undefined) void console.type(input).then(() => console.endInput());
      return () => {
        reader = undefined;
      };
    },
    raw: () => {
      raw = true;
      wasRaw = true;
      return () => {
        raw = false;
      };
    },
    size: () => (terminal ? size : undefined),
    onResize: (listener) => {
      onResize = listener;
      return () => {
        onResize = () => {};
      };
    },
    output: { isTerminal: terminal, write: async (bytes) => void out.push(bytes) },
    errors: { isTerminal: terminal, write: async (bytes) => void err.push(bytes) },
    out: () => text(out),
    err: () => text(err),
    type: async (typed) => reader?.data(Buffer.from(typed)),
    endInput: () => reader?.end(),
    resize: (columns, rows) => {
      size = { columns, rows };
      onResize();
    },
    isRaw: () => raw,
    wasRaw: () => wasRaw,
    isRead: () => reader !== undefined,
  };
  return console;
}
