// pure
/**
 * What to do with the log files of one container: which go, which is cut, what a rotated one is called, when to look again. Order is by
 * attempt and by the stamp in the name, never by a file's times: a Pi's clock may jump.
 */

/** A file of the container's log folder. */
export interface LogFileSeen {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
}

/** `current`: `<n>.log`; `plain` and `packed`: rotated ones; `temporary`: a packing that was not finished. */
export type LogFileKind = 'current' | 'plain' | 'packed' | 'temporary';

export interface LogFileName {
  readonly attempt: number;
  readonly kind: LogFileKind;
  /** The file that was rotated, without `.gz` and `.tmp`. */
  readonly base: string;
  /** `YYYYMMDD-HHMMSS`, with `-NNN` when several came within a second; '' when the name has another form. */
  readonly stamp: string;
}

const shape = /^(0|[1-9]\d{0,9})\.log(?:\.(.+))?$/;
const stampShape = /^\d{8}-\d{6}(?:-\d{3})?$/;

/** undefined: no log of a container attempt. */
export function parseLogName(name: string): LogFileName | undefined {
  const match = shape.exec(name);
  if (match === null) return undefined;
  const attempt = Number(match[1]);
  const rest = match[2];
  if (rest === undefined) return { attempt, kind: 'current', base: name, stamp: '' };
  const kind = rest.endsWith('.tmp') ? 'temporary' : rest.endsWith('.gz') ? 'packed' : 'plain';
  const base = name.replace(/\.(?:gz\.tmp|tmp|gz)$/, '');
  const stamp = base.slice(base.indexOf('.log') + 5);
  return { attempt, kind, base, stamp: stampShape.test(stamp) ? stamp : '' };
}

interface Part extends LogFileName, LogFileSeen {}

const parts = (files: readonly LogFileSeen[]): Part[] =>
  files.flatMap((f) => {
    const name = parseLogName(f.name);
    return name === undefined ? [] : [{ ...f, ...name }];
  });

/** Oldest first: by attempt, rotated ones by stamp (names of another form first), the current one last. */
const byAge = (a: Part, b: Part): number =>
  a.attempt - b.attempt ||
  Number(a.kind === 'current') - Number(b.kind === 'current') ||
  (a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : 0) ||
  (a.name < b.name ? -1 : 1);

export interface Limits {
  readonly maxSizeBytes: number;
  readonly maxFiles: number;
}

export interface TidyInputs extends Limits {
  readonly files: readonly LogFileSeen[];
  /** Names of the files that are being written. */
  readonly live: ReadonlySet<string>;
  /** The rotated file that is being packed now: its temporary file is not left over. */
  readonly packing?: string | undefined;
}

export interface TidyPlan {
  /** In the order in which they go. */
  readonly remove: readonly string[];
  /** Only its last `keepBytes` stay. */
  readonly cut?: { readonly name: string; readonly keepBytes: number };
  /** Bytes of all files when that is done. */
  readonly leftBytes: number;
}

/** The rule of the cap: see logRotation.ts. Files that are no logs of an attempt are not ours to count or remove. */
export function planTidy({ files, live, packing, maxSizeBytes, maxFiles }: TidyInputs): TidyPlan {
  const all = parts(files).sort(byAge);
  const packed = new Set(all.filter((p) => p.kind === 'packed').map((p) => p.base));
  const remove: string[] = [];
  const gone = new Set<Part>();
  const take = (p: Part): void => {
    gone.add(p);
    remove.push(p.name);
    // what becomes of a file goes with it
    for (const t of all) if (p.kind === 'plain' && t.kind === 'temporary' && t.base === p.base && !gone.has(t)) take(t);
  };
  const left = (): Part[] => all.filter((p) => !gone.has(p));
  for (const p of left()) {
    if (gone.has(p)) continue;
    const unfinished = p.kind === 'temporary' && p.base !== packing;
    if (unfinished || (p.kind === 'plain' && packed.has(p.base))) take(p);
  }
  for (const attempt of new Set(all.map((p) => p.attempt))) {
    const rotated = left().filter((p) => p.attempt === attempt && (p.kind === 'plain' || p.kind === 'packed'));
    for (const p of rotated.slice(0, Math.max(0, rotated.length - (maxFiles - 1)))) take(p);
  }
  const cap = maxSizeBytes * maxFiles;
  const sum = (): number => left().reduce((n, p) => n + p.size, 0);
  let bytes = sum();
  const candidates = left().filter((p) => !live.has(p.name) && p.kind !== 'temporary');
  const newest = candidates.at(-1);
  let cut: TidyPlan['cut'];
  for (const p of candidates) {
    if (bytes <= cap) break;
    if (p === newest && isWorthCutting(p, maxSizeBytes, all) && bytes - p.size + maxSizeBytes <= cap) {
      cut = { name: p.name, keepBytes: maxSizeBytes };
      bytes -= p.size - maxSizeBytes;
    } else if (!isLast(p, all)) {
      take(p);
      bytes = sum();
    }
  }
  return { remove, ...(cut && { cut }), leftBytes: bytes };
}

/** Cutting writes what is kept anew: only a flood's file is worth it, and the one that never goes whole. */
const isWorthCutting = (p: Part, maxSizeBytes: number, all: readonly Part[]): boolean =>
  p.kind !== 'packed' && p.size > (isLast(p, all) ? maxSizeBytes : 2 * maxSizeBytes);

/** What the newest attempt wrote last is what people look for: it never goes whole. */
const isLast = (p: Part, all: readonly Part[]): boolean => p.kind === 'current' && p === all.at(-1);

/** The oldest file that may go to make room; undefined: there is none but those being written and the newest attempt's current one. */
export function oldestToRemove(files: readonly LogFileSeen[], live: ReadonlySet<string>): string | undefined {
  const all = parts(files).sort(byAge);
  return all.find((p) => !live.has(p.name) && !isLast(p, all))?.name;
}

/** Rotated files worth packing: all but the newest of each attempt, oldest last (it goes first, so its turn comes last). */
export function packable(files: readonly LogFileSeen[]): string[] {
  const all = parts(files).sort(byAge);
  const rotated = all.filter((p) => p.kind === 'plain' && p.stamp !== '');
  const newest = new Set([...new Set(rotated.map((p) => p.attempt))].map((n) => rotated.filter((p) => p.attempt === n).at(-1)));
  return rotated
    .filter((p) => !newest.has(p))
    .map((p) => p.name)
    .reverse();
}

/** The part that was rotated last of a current log, when it is not packed. */
export function newestPart(current: string, files: readonly LogFileSeen[]): string | undefined {
  const attempt = parseLogName(current)?.attempt;
  const newest = parts(files)
    .filter((p) => p.attempt === attempt && p.stamp !== '' && p.kind !== 'temporary')
    .sort(byAge)
    .at(-1);
  return newest?.kind === 'plain' ? newest.name : undefined;
}

/**
 * `<log>.YYYYMMDD-HHMMSS`, and `-NNN` behind it when that is taken. Never before the newest name there is, whatever the clock says, so
 * that the order of names is the order of writing. `stamp` is the present second in local time.
 */
export function rotatedName(current: string, stamp: string, files: readonly LogFileSeen[]): string {
  const mine = parseLogName(current)?.attempt;
  const newest = parts(files)
    .filter((p) => p.attempt === mine && p.stamp !== '')
    .sort(byAge)
    .at(-1)?.stamp;
  return `${current}.${newest === undefined || stamp > newest ? stamp : nextStamp(newest)}`;
}

function nextStamp(stamp: string): string {
  const [day = '', second = '', count = '000'] = stamp.split('-');
  const next = Number(count) + 1;
  // a thousand in one second: no clock, only an order
  return next <= 999 ? `${day}-${second}-${String(next).padStart(3, '0')}` : `${day}-${String(Number(second) + 1).padStart(6, '0')}`;
}

export interface LookInputs {
  /** Bytes that may still be written until something must be done. */
  readonly roomBytes: number;
  /** Bytes written since the last look, and how long ago that was; undefined: this was the first. */
  readonly grown: { readonly bytes: number; readonly ms: number } | undefined;
  /** How many logs are written now. */
  readonly logs: number;
}

const shortestMs = 100;
/** How fast a log is that was seen for the first time must be known soon. */
const firstMs = 200;
/** Twenty looks a second are what all logs that are written slowly may cost together. */
const perLogMs = 50;
const slowMs = 1_000;
const slowestMs = 5_000;

/**
 * Milliseconds until a log that is being written is looked at again: half of the time it needs to fill its room, between 100 ms and a second
 * (more when there are over twenty of them). undefined: it is quiet, and its next write tells.
 */
export function nextLookMs({ roomBytes, grown, logs }: LookInputs): number | undefined {
  if (grown !== undefined && grown.bytes <= 0) return undefined;
  if (grown === undefined) return firstMs;
  const rest = Math.min(slowestMs, Math.max(slowMs, logs * perLogMs));
  const fullMs = (Math.max(0, roomBytes) / grown.bytes) * Math.max(1, grown.ms);
  return Math.min(rest, Math.max(shortestMs, fullMs / 2));
}
