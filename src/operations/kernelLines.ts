/**
 * What the kernel said that explains a sick node: killed for memory, USB, power, disks, the card. Read from /dev/kmsg, which gives each line as a
 * record and never waits here; no process is started and nothing is taken out of it.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { codeOf } from '../world/errno.ts';

/** More than any kernel keeps by default. */
const mostRecords = 50_000;
const recordBytes = 8 << 10;
const mostKernelLines = 400;
const mostLineBytes = 400;

const telling =
  /out of memory|oom|killed process|\busb\b|under-?voltage|throttl|thermal|over-?current|mmc\d|i\/o error|ext4-fs (error|warning)|read-only|blk_update|buffer i\/o|hung task|blocked for more than|watchdog|kernel panic|segfault|brownout|voltage|\bxhci\b|\bdwc2?\b/i;

/** A record as people know it, `[  123.456789] text`; undefined when it tells nothing of these things. */
export function kernelLine(record: string): string | undefined {
  const [, micros, text] = /^\d+,\d+,(\d+),[^;]*;(.*)$/.exec(record) ?? [];
  if (micros === undefined || text === undefined || !telling.test(text)) return undefined;
  const seconds = (Number(micros) / 1e6).toFixed(6).padStart(12);
  return `[${seconds}] ${text.slice(0, mostLineBytes)}`;
}

/** The oldest first. Rejects when this process may not read it. */
export async function kernelLines(path: string, signal: AbortSignal): Promise<readonly string[]> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const lines: string[] = [];
  try {
    const buffer = Buffer.alloc(recordBytes);
    for (let i = 0; i < mostRecords && !signal.aborted; i++) {
      const bytes = await readRecord(file, buffer);
      if (bytes === 'end') break;
      if (bytes === 'lost') continue;
      // what else a record says stands below its line
      lines.push(
        ...buffer
          .toString('utf8', 0, bytes)
          .split('\n')
          .flatMap((line) => kernelLine(line) ?? []),
      );
      if (lines.length > mostKernelLines) lines.splice(0, lines.length - mostKernelLines);
    }
  } finally {
    await file.close();
  }
  return lines;
}

async function readRecord(file: Awaited<ReturnType<typeof open>>, buffer: Buffer): Promise<number | 'end' | 'lost'> {
  try {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    return bytesRead === 0 ? 'end' : bytesRead;
  } catch (e) {
    // nothing more is there; what was next was overwritten meanwhile
    if (codeOf(e) === 'EAGAIN') return 'end';
    if (codeOf(e) === 'EPIPE') return 'lost';
    throw e;
  }
}
