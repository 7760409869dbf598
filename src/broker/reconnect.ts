// pure
/** When to connect again, and what the end of a connection means. Numbers in ms; MQTT 5 reason codes and 3.1.1 CONNACK codes. */
import { createHash } from 'node:crypto';
import { isLoopback } from '../api/configurationChecks.ts';

const firstCapMs = 1_000;
const lastCapMs = 120_000;

/** A session this long was a good one: the delays begin anew. */
export const stableMs = 30_000;
/** How long a server that refused us, or a fight over the client id, is left alone. */
export const quietMs = 5 * 60_000;
/** Two take-overs within this time are a fight, one is a half-open socket of our own. */
export const takeOverWindowMs = 5 * 60_000;

/** Full jitter: anything up to a cap of 1 s that doubles with each attempt and stays at 120 s. `random` is in [0, 1). */
export const fullJitterMs = (attempt: number, random: number): number => random * Math.min(lastCapMs, firstCapMs * 2 ** attempt);

/** The same for a node for ever: where in the crowd it stands when a broker sends all away at once. */
export function splayMs(nodeName: string, rangeMs: number): number {
  return (createHash('sha256').update(nodeName).digest().readUInt32BE(0) / 2 ** 32) * rangeMs;
}

/** Would passwords and payloads cross a network in plain text? Loopback is no network; an address that is none is the client's to refuse. */
export function isPlainBeyondLoopback(server: string): boolean {
  const parts = /^(?:mqtt|ws):\/\/(?:[^@/]*@)?(\[[^\]]*\]|[^:/?#]*)/i.exec(server);
  if (parts === null) return false;
  return !isLoopback((parts[1] ?? '').toLowerCase().replace(/^\[|\]$/g, ''));
}

/** What a reason code asks of us. Codes under 0x80 are CONNACK codes of 3.1.1. */
export type CodeMeaning = 'version' | 'refused' | 'taken' | 'tooLarge' | 'quota' | 'otherwise' | 'unknown';

export function codeMeaning(code: number | undefined): CodeMeaning {
  switch (code) {
    case undefined:
      return 'unknown';
    case 1:
    case 0x84:
      return 'version';
    case 4:
    case 5:
    case 0x86:
    case 0x87:
      return 'refused';
    case 0x8e:
      return 'taken';
    case 0x95:
      return 'tooLarge';
    case 0x97:
      return 'quota';
    default:
      return 'otherwise';
  }
}

/** May a SUBSCRIBE that was not answered have caused this end? AWS IoT, among others, hangs up where the standard has a SUBACK code. */
export function blamesFilter(code: number | undefined): boolean {
  switch (code) {
    case undefined:
    case 0x80:
    case 0x81:
    case 0x82:
    case 0x83:
    case 0x8f:
    case 0xa1:
    case 0xa2:
      return true;
    default:
      return false;
  }
}

/**
 * May a message in flight have caused this end? A broker that only hangs up (3.1.1, or one that died) gives no code; the codes here are
 * those about a packet. A broker that says "shutting down" or "keep alive time-out" blames no message.
 */
export function blamesMessage(code: number | undefined): boolean {
  switch (code) {
    case undefined:
    case 0x80:
    case 0x81:
    case 0x82:
    case 0x83:
    case 0x90:
    case 0x95:
    case 0x99:
    case 0x9a:
    case 0x9b:
      return true;
    default:
      return false;
  }
}
