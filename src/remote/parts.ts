/**
 * An outcome as the messages that tell it, one after the other and only when asked for: what is read from a file is read no faster than it is
 * sent. Each answer has an end: a refusal, or the part whose `chunk.last` is true.
 */
import { describeError } from '../world/log.ts';
import { replyCapBytes } from './arguments.ts';
import { chunkBytes, cutAt, pieceOf } from './chunks.ts';
import type { Done, Outcome, ReplyPart } from './words.ts';

/** Some verbs answer with more than the others may. */
export interface PartLimits {
  /** Of data in one message. */
  readonly chunkBytes?: number;
  /** Of JSON and text. */
  readonly capBytes?: number;
}

export async function* partsOf(outcome: Outcome, limits: PartLimits = {}): AsyncGenerator<ReplyPart, void> {
  if (outcome.status !== 'ok') {
    yield { status: outcome.status, reason: outcome.reason, message: outcome.message };
    return;
  }
  const { chunkBytes: size = chunkBytes, capBytes = replyCapBytes } = limits;
  const { body } = outcome;
  if (body === undefined) yield { ...head(outcome), chunk: { seq: 0, last: true } };
  else if ('json' in body) {
    const bytes = Buffer.from(JSON.stringify(body.json));
    // half of a JSON text is of no use to anybody
    if (bytes.length > capBytes) yield tooLarge(bytes.length, capBytes);
    else yield* pieces(outcome, once(bytes), { size, capBytes });
  } else if ('text' in body) yield* pieces(outcome, once(Buffer.from(body.text)), { size, capBytes });
  else if ('bytes' in body) yield* pieces(outcome, body.bytes, { size, capBytes: body.capBytes });
  else yield* outputs(outcome, body.output, size);
}

const tooLarge = (bytes: number, capBytes: number): ReplyPart => ({
  status: 'tooLarge',
  reason: 'AnswerTooLarge',
  message: `the answer has ${bytes} bytes, and ${capBytes} may be sent: ask for one namespace, or one name`,
});

const head = ({ message, exitCode, truncated }: Done): ReplyPart => ({
  status: 'ok',
  ...(message !== undefined && { message }),
  ...(exitCode !== undefined && { exitCode }),
  ...(truncated !== undefined && { truncated }),
});

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
}

/** The last part has what belongs to the whole: message, exit code, what was left out. */
async function* pieces(
  outcome: Done,
  source: AsyncIterable<Uint8Array>,
  { size, capBytes }: { readonly size: number; readonly capBytes: number },
): AsyncGenerator<ReplyPart, void> {
  let seq = 0;
  let room = capBytes;
  let held = Buffer.alloc(0);
  let over = false;
  const part = (bytes: Uint8Array): ReplyPart => ({ status: 'ok', chunk: { seq: seq++, last: false }, ...pieceOf(bytes, size) });
  try {
    for await (const bytes of source) {
      over = bytes.length > room;
      const kept = over ? bytes.subarray(0, cutAt(bytes, room)) : bytes;
      room -= kept.length;
      held = Buffer.concat([held, kept]);
      while (held.length > size) {
        const end = cutAt(held, size);
        yield part(held.subarray(0, end));
        held = held.subarray(end);
      }
      if (over) break;
    }
  } catch (e) {
    // what came before it is sent already
    yield { status: 'error', reason: 'ReadFailed', message: describeError(e), chunk: { seq, last: true }, ...pieceOf(held, size) };
    return;
  }
  const truncated = over ? `after ${capBytes} bytes` : outcome.truncated;
  const { status, ...whole } = head({ ...outcome, ...(truncated !== undefined && { truncated }) });
  yield { status, ...whole, chunk: { seq, last: true }, ...pieceOf(held, size) };
}

/** stdout, then stderr; an empty one has no part of its own. */
async function* outputs(
  outcome: Done,
  { stdout, stderr }: { readonly stdout: Uint8Array; readonly stderr: Uint8Array },
  size: number,
): AsyncGenerator<ReplyPart, void> {
  const cut: ReplyPart[] = [];
  for (const [stream, whole] of [
    ['stdout', stdout],
    ['stderr', stderr],
  ] as const) {
    for (let rest = whole; rest.length > 0; ) {
      const end = cutAt(rest, size);
      cut.push({ status: 'ok', stream, ...pieceOf(rest.subarray(0, end), size) });
      rest = rest.subarray(end);
    }
  }
  const last = cut.pop() ?? { status: 'ok' };
  for (const [seq, part] of cut.entries()) yield { ...part, chunk: { seq, last: false } };
  yield { ...last, ...head(outcome), chunk: { seq: cut.length, last: true } };
}

/** A log that nobody reads is ended: begun first, since only what has begun closes its file. */
export async function closeLog(log: AsyncIterable<Uint8Array>): Promise<void> {
  const reading = log[Symbol.asyncIterator]();
  await reading.next();
  await reading.return?.();
}
