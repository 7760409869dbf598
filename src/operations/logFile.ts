/** A log file read in blocks: forwards line by line, and backwards to where the last N lines begin. Memory stays that of one block. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { headBytes, parseLine } from '../container/logLine.ts';
import { isNowhere } from '../world/errno.ts';

const blockBytes = 64 << 10;
/** Runtimes cut lines at 16 KiB; what is longer is no log. */
const longestLine = 1 << 20;
const newline = 0x0a;

export class LogFile {
  readonly #handle: FileHandle;
  readonly #id: string;
  readonly #block = Buffer.allocUnsafe(blockBytes);
  #position = 0;
  #rest: Buffer = Buffer.alloc(0);
  /** In a line that is too long: up to the next newline all is dropped. */
  #skipping = false;

  private constructor(handle: FileHandle, id: string) {
    this.#handle = handle;
    this.#id = id;
  }

  /** undefined: there is no such file. Rejects with the file system's other errors, and when it is no regular file. */
  static async open(path: string): Promise<LogFile | undefined> {
    let handle: FileHandle;
    try {
      // a container that has the host's log folder may leave there what it likes: no link is followed, no pipe waits for its writer
      handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (e) {
      if (isNowhere(e)) return undefined;
      throw e;
    }
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw new Error(`${path} is no regular file`);
      return new LogFile(handle, `${stat.dev}:${stat.ino}`);
    } catch (e) {
      await handle.close();
      throw e;
    }
  }

  /** Whether both are one file, whatever its name is now. */
  same(other: LogFile): boolean {
    return this.#id === other.#id;
  }

  get position(): number {
    return this.#position;
  }

  /** What stands after the last newline so far. */
  get rest(): Buffer {
    return this.#rest;
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  /** Goes on at `position`, a line's start. */
  seek(position: number): void {
    this.#position = position;
    this.#rest = Buffer.alloc(0);
    this.#skipping = false;
  }

  /** The whole lines of the next block; they are valid until the next call. undefined at the end of the file. */
  async next(): Promise<Buffer[] | undefined> {
    const { bytesRead } = await this.#handle.read(this.#block, 0, blockBytes, this.#position);
    if (bytesRead === 0) return undefined;
    this.#position += bytesRead;
    let block = this.#block.subarray(0, bytesRead);
    if (this.#skipping) {
      const end = block.indexOf(newline);
      if (end < 0) return [];
      this.#skipping = false;
      block = block.subarray(end + 1);
    }
    const data = this.#rest.length === 0 ? block : Buffer.concat([this.#rest, block]);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = data.indexOf(newline); end >= 0; end = data.indexOf(newline, start)) {
      lines.push(data.subarray(start, end + 1));
      start = end + 1;
    }
    this.#skipping = data.length - start > longestLine;
    this.#rest = this.#skipping ? Buffer.alloc(0) : Buffer.from(data.subarray(start));
    return lines;
  }

  /** Where the last `lines` lines begin. A line in parts is one line, and so is one that is not finished; what is no log line is none. */
  async tailStart(lines: number): Promise<number> {
    const size = await this.size();
    if (lines <= 0) return size;
    let count = 0;
    let found = size;
    let head: Buffer = Buffer.alloc(0);
    for (let end = size; end > 0; ) {
      const start = Math.max(0, end - blockBytes);
      const { bytesRead } = await this.#handle.read(this.#block, 0, end - start, start);
      if (bytesRead < end - start) return 0; // it was cut meanwhile
      const data = Buffer.concat([this.#block.subarray(0, bytesRead), head]);
      // each newline, from the last on, and the start of the file: a line begins behind it
      for (let before = bytesRead; before >= 0; ) {
        before = before === 0 ? -1 : data.lastIndexOf(newline, before - 1);
        if (before < 0 && start > 0) break;
        const at = before + 1;
        if (start + at >= size) continue;
        const line = parseLine(data.subarray(at, at + headBytes));
        if (line === undefined) continue;
        const ends = !line.partial || count === 0;
        if (ends && count === lines) return found;
        if (ends) count++;
        found = start + at;
      }
      head = Buffer.from(data.subarray(0, headBytes));
      end = start;
    }
    return 0;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
