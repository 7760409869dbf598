// pure
/** What a message says: the command in its bytes or in its envelope, or why there is none, and whom to tell that. */
import { problemText } from '../api/problems.ts';
import { type DecodedCommand, decodeCommand, maxCommandBytes } from './decode.ts';
import type { Refusal } from './words.ts';

export type OpenedCommand =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly signed?: string }
  | { readonly ok: false; readonly reason: string; readonly message: string };

/** What a message says, before anybody asks whether it may. */
export interface Read {
  readonly id: string;
  readonly replyTo?: string;
  /** By which keys. */
  readonly signed: string | undefined;
  readonly is: { readonly command: DecodedCommand } | { readonly refusal: Refusal };
}

/** Words of a refusal. */
export const refusal = (status: Refusal['status'], reason: string, message: string): Refusal => ({ status, reason, message });

/** `open` takes an envelope off; it is asked only where there is one. */
export function readCommand(payload: Uint8Array, open: (bytes: Uint8Array) => OpenedCommand): Read {
  const decoded = decodeCommand(payload);
  if (decoded.as !== 'envelope') return readOf(decoded, undefined);
  const opened = open(payload);
  const unreadable = (r: Refusal): Read => ({ id: '', signed: undefined, is: { refusal: r } });
  if (!opened.ok) return unreadable(refusal('denied', opened.reason, opened.message));
  const inner = decodeCommand(opened.bytes);
  if (inner.as !== 'envelope') return readOf(inner, opened.signed);
  return unreadable(refusal('error', 'BadCommand', 'an envelope in an envelope is no command'));
}

function readOf(decoded: Exclude<ReturnType<typeof decodeCommand>, { as: 'envelope' }>, signed: string | undefined): Read {
  switch (decoded.as) {
    case 'command': {
      const { command } = decoded;
      return { id: command.id ?? '', ...(command.replyTo !== undefined && { replyTo: command.replyTo }), signed, is: { command } };
    }
    case 'tooLarge':
      return { id: '', signed, is: { refusal: refusal('tooLarge', 'CommandTooLarge', `a command has at most ${maxCommandBytes} bytes`) } };
    case 'refused': {
      const { id = '', replyTo, problem } = decoded;
      const bad = refusal('error', 'BadCommand', problemText(problem));
      return { id, ...(replyTo !== undefined && { replyTo }), signed, is: { refusal: bad } };
    }
  }
}
