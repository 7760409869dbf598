/**
 * The log: a constant sentence with its nouns beside it; a child carries the pod.
 * Door of pino. Written synchronously to stderr: a log line is never lost to a crash, and a quiet agent writes none.
 */
import { pino } from 'pino';
import { harmless } from './terminal.ts';

export interface Log {
  debug(nouns: object, sentence: string): void;
  info(nouns: object, sentence: string): void;
  warn(nouns: object, sentence: string): void;
  error(nouns: object, sentence: string): void;
  child(nouns: object): Log;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: 'text' | 'json' | 'journal';
}

/** A log that says nothing. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

const journalPriority: Readonly<Record<string, number>> = { '20': 7, '30': 6, '40': 4, '50': 3 };
const levelNames: Readonly<Record<string, string>> = { '20': 'DEBUG', '30': 'INFO ', '40': 'WARN ', '50': 'ERROR' };

/** One line of text for a person: time, level, sentence, then the nouns as key=value. `journal` leaves time and level to journald. */
export function formatLine(json: string, format: 'text' | 'journal'): string {
  const { level, time, msg, ...nouns } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries(nouns).map(
    ([k, v]) => ` ${k}=${typeof v === 'string' && v !== '' && !/[\s"=]/.test(v) ? v : JSON.stringify(v)}`,
  );
  const head =
    format === 'journal' ? `<${journalPriority[String(level)] ?? 6}>` : `${String(time).slice(11, 23)} ${levelNames[String(level)] ?? ''} `;
  // nothing that others wrote may begin a line of its own or speak to the terminal
  return `${head}${harmless(`${msg}${rest.join('')}`)}\n`;
}

/** The agent's log on stderr and a way to change its level while running (SIGHUP). */
export function createLog(options: LogOptions, write: (line: string) => void): { log: Log; setLevel(level: LogLevel): void } {
  const { format } = options;
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { error: (e: unknown) => (e instanceof Error ? describeError(e) : e) },
    },
    { write: (line: string) => write(format === 'json' ? line : formatLine(line, format)) },
  );
  return {
    log: logger,
    setLevel: (level) => {
      logger.level = level;
    },
  };
}

/** An error and its causes in one line; a cause that only says the same in its own wrapping adds nothing. */
export function describeError(e: unknown): string {
  if (!(e instanceof Error)) return String(e);
  if (e.cause === undefined) return e.message;
  const cause = describeError(e.cause);
  if (e.message === '') return cause;
  return cause.includes(e.message) ? e.message : `${e.message}: ${cause}`;
}
