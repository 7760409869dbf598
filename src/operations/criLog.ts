// pure
/** Lines of a CRI log file as a reader wants to see them: parts joined, times aligned, what is older or too much left out. */
import { parseLine, timeShape } from '../container/logLine.ts';

const newline = 0x0a;

/** The time with nine places after the point, so that columns stand under one another. */
export function fixedTime(time: string): string {
  const [, seconds = '', fraction = '', zone = ''] = timeShape.exec(time) ?? [];
  return `${seconds}.${fraction.padEnd(9, '0')}${zone}`;
}

/** Nanoseconds since 1970. undefined when it is no RFC 3339 time. */
export function nanosOf(time: string): bigint | undefined {
  const [, seconds, fraction = '', zone] = timeShape.exec(time) ?? [];
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
