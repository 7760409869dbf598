/**
 * What listens on the host now, from /proc/net/{tcp,tcp6,udp,udp6}, read when somebody asks: nothing is watched, and nothing says when a
 * socket goes. The folder is the seam. A file that is not there (a kernel without IPv6) holds nothing.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostSocket } from './hostPorts.ts';

/** Of a table: the state of a socket that waits for anybody. A UDP socket that is bound and has no peer is in state 07. */
const listening = { TCP: '0A', UDP: '07' } as const;

/** Listening sockets in the text of one table. Lines that are none are left out. */
export function parseSockets(text: string, protocol: HostSocket['protocol']): HostSocket[] {
  return text.split('\n').flatMap((line): HostSocket[] => {
    const [, local = '', , state] = line.trim().split(/\s+/);
    const match = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(local);
    if (match === null || state !== listening[protocol]) return [];
    const [, address = '', port = ''] = match;
    return [{ protocol, port: Number.parseInt(port, 16), ip: readAddress(address) }];
  });
}

/** Addresses stand as 32-bit words, each written as a number of this machine: podsched's machines are all little-endian. */
function readAddress(hex: string): string {
  const bytes: number[] = [];
  for (let word = 0; word < hex.length; word += 8) {
    for (let at = word + 6; at >= word; at -= 2) bytes.push(Number.parseInt(hex.slice(at, at + 2), 16));
  }
  if (bytes.length === 4) return bytes.join('.');
  const inIpv6 = bytes.slice(0, 10).every((b) => b === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (inIpv6) return bytes.slice(12).join('.');
  if (bytes.every((b) => b === 0)) return '::';
  const words = Array.from({ length: 8 }, (_, i) => (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16));
  return words.join(':').replace(/(^|:)0(:0)+(:|$)/, '::');
}

/** Everything that listens now. `procRoot`: `/proc`. Never throws. */
export function hostSockets(procRoot: string): HostSocket[] {
  const table = (name: string): string => {
    try {
      return readFileSync(join(procRoot, 'net', name), 'latin1');
    } catch {
      return ''; // no such table, no such sockets
    }
  };
  return (['TCP', 'UDP'] as const).flatMap((protocol) => {
    const name = protocol.toLowerCase();
    return [...parseSockets(table(name), protocol), ...parseSockets(table(`${name}6`), protocol)];
  });
}
