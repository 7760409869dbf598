/**
 * What listens on the host now, from /proc/net/{tcp,tcp6,udp,udp6}, read when somebody asks: nothing is watched, and nothing says when a
 * socket goes. The folder is the seam. A file that is not there (a kernel without IPv6) holds nothing. Whose a socket is stands in no table:
 * the open files of all processes are searched for it, and only when somebody is to be told.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { harmless } from '../world/terminal.ts';
import type { HostSocket } from './hostPorts.ts';

/** Of a table: the state of a socket that waits for anybody. A UDP socket that is bound and has no peer is in state 07. */
const listening = { TCP: '0A', UDP: '07' } as const;

/** Listening sockets in the text of one table. Lines that are none are left out. */
export function parseSockets(text: string, protocol: HostSocket['protocol']): HostSocket[] {
  return text.split('\n').flatMap((line): HostSocket[] => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    const match = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(local);
    if (match === null || state !== listening[protocol]) return [];
    const [, address = '', port = ''] = match;
    return [{ protocol, port: Number.parseInt(port, 16), ip: readAddress(address), inode }];
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
  const table = (name: string): string => orElse('', () => readFileSync(join(procRoot, 'net', name), 'latin1')); // no such table, no such sockets
  return (['TCP', 'UDP'] as const).flatMap((protocol) => {
    const name = protocol.toLowerCase();
    return [...parseSockets(table(name), protocol), ...parseSockets(table(`${name}6`), protocol)];
  });
}

/** So many open files are looked at for one socket: a server with a flood of connections must not hold up the agent. */
const mostFiles = 20_000;

/** Who has this socket, such as `sshd (pid 812)`; undefined: nobody was found. What is gone meanwhile, or not ours to see, is passed over. */
export function socketHolder(procRoot: string, { inode }: HostSocket, files = mostFiles): string | undefined {
  if (inode === undefined) return undefined;
  let left = files;
  for (const pid of processIds(procRoot)) {
    const folder = join(procRoot, `${pid}`, 'fd');
    for (const file of orElse<readonly string[]>([], () => readdirSync(folder))) {
      if (left-- === 0) return undefined;
      if (orElse('', () => readlinkSync(join(folder, file))) === `socket:[${inode}]`) return processName(procRoot, pid);
    }
  }
  return undefined;
}

/** The oldest first, which mostly began to listen; systemd last, for it keeps the sockets that it has given to others. */
function processIds(procRoot: string): readonly number[] {
  const ids = orElse<readonly string[]>([], () => readdirSync(procRoot)).filter((name) => /^[1-9]\d*$/.test(name));
  const rank = (pid: number): number => (pid === 1 ? Number.POSITIVE_INFINITY : pid);
  return ids.map(Number).sort((a, b) => rank(a) - rank(b));
}

/** A process names itself as it likes. */
function processName(procRoot: string, pid: number): string {
  const name = orElse('', () => harmless(readFileSync(join(procRoot, `${pid}`, 'comm'), 'utf8').trim()));
  return `${name || 'a process'} (pid ${pid})`;
}

function orElse<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
