// pure
/**
 * One line of a CRI log file (facts 13.6): `<RFC 3339 time> <stdout|stderr> <tag>[:<tag>…] <content>`. Tag P is a part of a longer line: its
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
/** Seconds, fraction and zone of a line's time. */
export const timeShape =
  /^(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3])(?::[0-5]\d){2})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** One line, with or without its newline; undefined when it is none of a CRI log. */
export function parseLine(line: Buffer): LogLine | undefined {
  const timeEnd = line.indexOf(space);
  if (timeEnd < 0 || timeEnd > longestTime) return undefined;
  const time = line.toString('latin1', 0, timeEnd);
  if (!timeShape.test(time)) return undefined;
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
