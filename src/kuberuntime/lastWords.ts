/**
 * What a container said at its end: its termination message, or with FallbackToLogsOnError the end of its log (facts 10.9). Found by what is
 * written on the container itself, so it works after a restart of the agent. Never rejects: what cannot be read is said in the message.
 * The file is the container's own writing: only a regular file is read, only its last bytes, and never through a link. Mirrors kubelet v1.32
 * getTerminationMessage, but takes only the file that was made for this purpose: what a manifest mounts there from elsewhere is no message.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseLine } from '../container/logLine.ts';
import { annotations, type ContainerStatus, labels } from '../container/words.ts';
import { isMissing } from '../world/errno.ts';
import { describeError } from '../world/log.ts';
import { listLogs } from './logFiles.ts';
import { newestPart } from './logPlan.ts';
import { memoryHint } from './memoryHint.ts';
import { mayBePageSize, pageSizeHint } from './pageSize.ts';

const messageBytes = 4096;
const fromLogBytes = 2048;
const fromLogLines = 80;
/** Enough for 80 lines of a log or for 2048 bytes of their contents, whichever is less. */
const logBlockBytes = 64 << 10;
const newline = 0x0a;

/** The message of an exited container; '' when it left none. `pageBytes`: of the kernel's memory pages, where they are known. */
export async function lastWords(status: ContainerStatus, pageBytes?: number): Promise<string> {
  const words = await ownWords(status);
  const hint = (await memoryHint(status)) ?? (await ofPageSize(status, pageBytes));
  return hint === undefined ? words : [words.trimEnd(), hint].filter((text) => text !== '').join('\n');
}

async function ofPageSize({ logPath, exitCode }: ContainerStatus, pageBytes: number | undefined): Promise<string | undefined> {
  if (!mayBePageSize(pageBytes, exitCode) || logPath === '') return undefined;
  return pageSizeHint(await logEnd(logPath).catch(() => ''), pageBytes); // no log, no hint
}

async function ownWords(status: ContainerStatus): Promise<string> {
  const path = messagePath(status);
  if (path !== undefined) {
    try {
      const { bytes, whole } = await readEnd(path, messageBytes);
      if (bytes.length > 0) return asText(bytes, whole);
    } catch (e) {
      if (!isMissing(e)) return `Error on reading termination log ${path}: ${describeError(e)}`;
    }
  }
  if (!mayUseLog(status)) return '';
  try {
    return await logEnd(status.logPath);
  } catch (e) {
    return isMissing(e) ? '' : `Error on reading termination message from logs: ${describeError(e)}`;
  }
}

/** The end of a container's log. A log that was rotated just before the end goes on from its newest part: there the reason stands. */
export async function logEnd(path: string): Promise<string> {
  const { bytes, whole } = await readEnd(path, logBlockBytes);
  const dir = dirname(path);
  const part = whole ? newestPart(basename(path), await listLogs(dir)) : undefined;
  if (part === undefined) return lastLines(bytes, whole);
  const before = await readEnd(join(dir, part), logBlockBytes);
  return lastLines(Buffer.concat([before.bytes, bytes]), before.whole);
}

const mayUseLog = ({ annotations: marks, exitCode, reason, logPath }: ContainerStatus): boolean =>
  marks[annotations.terminationMessagePolicy] === 'FallbackToLogsOnError' &&
  exitCode !== 0 &&
  reason !== 'ContainerCannotRun' &&
  logPath !== '';

/** `<pod folder>/containers/<container>/<8 hex>`, as mounted into it; undefined: nothing of that kind is mounted. */
function messagePath({ annotations: marks, labels: of, name, mounts }: ContainerStatus): string | undefined {
  const inside = marks[annotations.terminationMessagePath] ?? '';
  const folder = `/${of[labels.podUid]}/containers/${name}/`;
  return mounts.find(({ containerPath, hostPath }) => {
    const file = hostPath.slice(-8);
    return containerPath === inside && hostPath.slice(0, -8).endsWith(folder) && /^[0-9a-f]{8}$/.test(file);
  })?.hostPath;
}

/** At most the last `bytes` of a regular file; `whole`: there are no more. */
async function readEnd(path: string, bytes: number): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  // without O_NONBLOCK the opening of a pipe would wait for its writer
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error('it is no regular file');
    const start = Math.max(0, stat.size - bytes);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(bytes, stat.size)), 0, undefined, start);
    return { bytes: buffer.subarray(0, bytesRead), whole: start === 0 };
  } finally {
    await file.close();
  }
}

/** What is no UTF-8 is replaced. A character that was cut at the front is left out. */
function asText(bytes: Buffer, whole: boolean): string {
  let start = 0;
  while (!whole && start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.toString('utf8', start);
}

/** The contents of the last 80 lines of a log's end, at most their last 2048 bytes. `whole`: the log begins with its first byte. */
export function lastLines(end: Buffer, whole: boolean): string {
  const contents: Buffer[] = [];
  let bytes = 0;
  let lines = 0;
  // the first piece of what was cut off a longer file is no line
  const first = whole ? 0 : end.indexOf(newline) + 1;
  for (let after = end.length; after > first && lines <= fromLogLines && bytes < fromLogBytes; ) {
    const before = after < 2 ? -1 : end.lastIndexOf(newline, after - 2);
    const start = Math.max(first, before + 1);
    const line = parseLine(end.subarray(start, Math.max(after, start)));
    after = start;
    if (line === undefined) continue;
    if (!line.partial || lines === 0) lines++;
    if (lines > fromLogLines) break;
    contents.unshift(line.content);
    bytes += line.content.length;
  }
  const all = Buffer.concat(contents);
  return asText(all.subarray(-fromLogBytes), all.length <= fromLogBytes);
}
