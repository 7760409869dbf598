// pure
/**
 * Lines of a CRI log file (facts 13.6): `<RFC 3339 time> <stdout|stderr> <tag>[:<tag>…] <content>`. Tag P is a part of a longer line: its
 * newline is the file's, not the container's. Contents are bytes, and stay as they are.
 */

export interface LogLine {
  /** As in the file. */
  readonly time: string;
  readonly stream: 'stdout' | 'stderr';
  readonly partial: boolean;
  /** With its newline, unless it is a part or was cut off. */
  readonly content: Buffer;
}

const space = 0x20;
const newline = 0x0a;
/** `2026-01-01T00:00:00.123456789+01:00` has 35. */
const longestTime = 35;
const longestTags = 64;
/** Enough of a line to read everything before its content. */
export const headBytes = longestTime + longestTags + 16;
const shape = /^(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3])(?::[0-5]\d){2})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** One line, with or without its newline; undefined when it is none of a CRI log. */
export function parseLine(line: Buffer): LogLine | undefined {
  const timeEnd = line.indexOf(space);
  if (timeEnd < 0 || timeEnd > longestTime) return undefined;
  const time = line.toString('latin1', 0, timeEnd);
  if (!shape.test(time)) return undefined;
  const streamEnd = line.indexOf(space, timeEnd + 1);
  if (streamEnd !== timeEnd + 7) return undefined;
  const stream = line.toString('latin1', timeEnd + 1, streamEnd);
  if (stream !== 'stdout' && stream !== 'stderr') return undefined;
  const tagsEnd = line.subarray(0, streamEnd + 1 + longestTags).indexOf(space, streamEnd + 1);
  if (tagsEnd < 0) return undefined;
  const [tag] = line.toString('latin1', streamEnd + 1, tagsEnd).split(':');
  const partial = tag === 'P';
  const content = line.subarray(tagsEnd + 1);
  return { time, stream, partial, content: partial && content.at(-1) === newline ? content.subarray(0, -1) : content };
}

/** The time with nine places after the point, so that columns stand under one another. */
export function fixedTime(time: string): string {
  const [, seconds = '', fraction = '', zone = ''] = shape.exec(time) ?? [];
  return `${seconds}.${fraction.padEnd(9, '0')}${zone}`;
}

/** Nanoseconds since 1970. undefined when it is no RFC 3339 time. */
export function nanosOf(time: string): bigint | undefined {
  const [, seconds, fraction = '', zone] = shape.exec(time) ?? [];
  const ms = Date.parse(`${seconds}${zone}`);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

export interface RenderOptions {
  /** Each line begins with its time. */
  readonly timestamps: boolean;
  /** Lines before it are left out; nanoseconds since 1970. */
  readonly sinceNanos?: bigint;
  /** No more than so many bytes are given out. */
  readonly limitBytes?: number;
}

/** Lines of the file in, what a reader wants to see out. Parts are joined as they come, and what is no line is left out. */
export class LogRenderer {
  readonly #o: RenderOptions;
  #parts: Buffer[] = [];
  #room: number;
  #atLineStart = true;

  constructor(o: RenderOptions) {
    this.#o = o;
    this.#room = o.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  /** Nothing more is given out. */
  get full(): boolean {
    return this.#room <= 0;
  }

  add(bytes: Buffer): void {
    const line = this.full ? undefined : parseLine(bytes);
    if (line === undefined) return;
    const { sinceNanos, timestamps } = this.#o;
    if (sinceNanos !== undefined && (nanosOf(line.time) ?? 0n) < sinceNanos) return;
    if (timestamps && this.#atLineStart) this.#put(Buffer.from(`${fixedTime(line.time)} `, 'latin1'));
    this.#put(line.content);
    this.#atLineStart = line.content.length === 0 || line.content.at(-1) === newline;
  }

  /** What was added since it was taken last, in memory of its own. */
  take(): Buffer {
    const taken = Buffer.concat(this.#parts);
    this.#parts = [];
    return taken;
  }

  #put(bytes: Buffer): void {
    const kept = bytes.length > this.#room ? bytes.subarray(0, this.#room) : bytes;
    this.#room -= kept.length;
    if (kept.length > 0) this.#parts.push(kept);
  }
}
