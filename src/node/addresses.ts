/** The node's addresses: those of the interface that leads out (the default route), IPv4 first. Read when somebody asks: nothing is watched. */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type { Clock, Monotonic } from '../world/clock.ts';

/** The interface of the default route in the text of /proc/net/route; undefined: there is none. */
export function defaultInterface(route: string): string | undefined {
  for (const line of route.split('\n').slice(1)) {
    const [name, destination] = line.split('\t');
    if (name !== undefined && destination === '00000000') return name;
  }
  return undefined;
}

/** At most one IPv4 and one IPv6 address; loopback and link-local ones never. Without a default route: the first interface that has one. */
export function hostIps(routeFile = '/proc/net/route'): string[] {
  let preferred: string | undefined;
  try {
    preferred = defaultInterface(readFileSync(routeFile, 'utf8'));
  } catch {
    preferred = undefined; // no such file, no preference
  }
  const all = Object.entries(networkInterfaces())
    .flatMap(([name, list]) => (list ?? []).map((a) => ({ ...a, name })))
    .filter((a) => !a.internal && !a.address.startsWith('fe80:'))
    .sort((a, b) => Number(b.name === preferred) - Number(a.name === preferred));
  const v4 = all.find((a) => a.family === 'IPv4')?.address;
  const v6 = all.find((a) => a.family === 'IPv6')?.address;
  return [v4, v6].filter((ip) => ip !== undefined);
}

/** All that it has, loopback included. */
export const ownAddresses = (): string[] => Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((a) => a.address));

/** As `read`, at most once in `forMs`: reading takes longer the more pods (so interfaces) there are, and probes ask by the hundred each second. */
export function recentHostIps(
  clock: Pick<Clock, 'monotonic'>,
  read: () => readonly string[] = hostIps,
  forMs = 1_000,
): () => readonly string[] {
  let last: { readonly at: Monotonic; readonly ips: readonly string[] } | undefined;
  return () => {
    const now = clock.monotonic();
    if (last === undefined || now - last.at >= forMs) last = { at: now, ips: read() };
    return last.ips;
  };
}
