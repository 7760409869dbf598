/**
 * The node's DNS servers as pods can use them, and when they change. A resolver on the node's loopback (systemd-resolved, dnsmasq) cannot be
 * reached from a pod, so its upstreams stand for it, where the resolver writes them down.
 *
 * Owns: the watches on resolv.conf. Watches folders and never a file: DHCP clients replace the file, and systemd's is a link into /run, so
 * each folder on the way is watched, and anew after each change. Never polls.
 */
import { existsSync, type FSWatcher, readFileSync, readlinkSync, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { isAbort } from '../async/abort.ts';
import type { Clock } from '../world/clock.ts';
import { type HostDns, parseResolvConf } from './resolvConf.ts';

/** Where local resolvers write down the servers they ask: systemd-resolved, NetworkManager, dnsmasq under resolvconf. */
const upstreamFiles = ['/run/systemd/resolve/resolv.conf', '/run/NetworkManager/no-stub-resolv.conf', '/run/dnsmasq/resolv.conf'];

const mostLinks = 10;
/** A DHCP client writes several times in a row. */
const quietMs = 200;

const isLoopback = (ip: string): boolean => /^(127\.|::1$)/.test(ip);

/** '' for a file that is not there or cannot be read: it has no servers to hand on. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/**
 * What pods get of `path`: loopback servers left out; when no other is left, the first upstream file that has one, with the searches and
 * options of the node's own. With no upstream either, the node's own servers as they are: pods on its network can use them.
 */
export function readHostDns(path: string, upstreams: readonly string[] = upstreamFiles): HostDns {
  const own = parseResolvConf(textOf(path));
  const servers = own.servers.filter((ip) => !isLoopback(ip));
  if (servers.length > 0 || own.servers.length === 0) return { ...own, servers };
  for (const file of upstreams) {
    const upstream = parseResolvConf(textOf(file));
    const usable = upstream.servers.filter((ip) => !isLoopback(ip));
    if (usable.length === 0) continue;
    return { servers: usable, searches: own.searches.length > 0 ? own.searches : upstream.searches, options: own.options };
  }
  return own;
}

export interface HostDnsDeps {
  readonly clock: Clock;
  /** Told when the words for pods are others than before; never of none at all. */
  readonly onChange: (dns: HostDns) => void;
  readonly upstreams?: readonly string[];
}

/** Watches until aborted. A folder that cannot be watched (inotify exhausted) is left out: the next change elsewhere tries it again. */
export function watchHostDns(path: string, deps: HostDnsDeps, signal: AbortSignal): void {
  const { upstreams = upstreamFiles } = deps;
  const watchers = new Map<string, FSWatcher>();
  let last = JSON.stringify(readHostDns(path, upstreams));
  let waiting = false;

  const changed = async (): Promise<void> => {
    if (waiting) return;
    waiting = true;
    await deps.clock.sleep(quietMs, signal);
    waiting = false;
    arm();
    const now = readHostDns(path, upstreams);
    const text = JSON.stringify(now);
    // a link that is down takes the file away or empties it: pods keep what they had until there are servers again
    if (text === last || now.servers.length === 0) return;
    last = text;
    deps.onChange(now);
  };
  const tick = (): void => {
    changed().catch((e) => {
      if (!isAbort(e)) throw e;
    });
  };
  const arm = (): void => {
    for (const [folder, watcher] of watchers) {
      watcher.close();
      watchers.delete(folder);
    }
    for (const [folder, names] of foldersOf(filesOf(path, upstreams))) {
      try {
        const watcher = watch(folder, { persistent: false }, (_, name) => {
          if (name === null || names.has(name)) tick();
        });
        watcher.on('error', () => watcher.close()); // the folder itself went; its parent's watch tells
        watchers.set(folder, watcher);
      } catch {
        // see above
      }
    }
  };
  if (signal.aborted) return;
  arm();
  signal.addEventListener('abort', () => {
    for (const watcher of watchers.values()) watcher.close();
  });
}

/** The upstream files count only where the node asks itself. */
function filesOf(path: string, upstreams: readonly string[]): readonly string[] {
  const { servers } = parseResolvConf(textOf(path));
  return servers.length > 0 && servers.every(isLoopback) ? [path, ...upstreams] : [path];
}

/** The folders on the way to each file, link by link, with the names in them that matter. */
function foldersOf(paths: readonly string[]): Map<string, Set<string>> {
  const wanted = new Map<string, Set<string>>();
  for (const path of paths) {
    let at = resolve(path);
    for (let links = 0; links <= mostLinks; links++) {
      const [folder, name] = nearestThere(at);
      // the folder's own name: how the kernel tells that it went
      wanted.set(folder, (wanted.get(folder) ?? new Set([basename(folder)])).add(name));
      try {
        at = resolve(dirname(at), readlinkSync(at));
      } catch {
        break; // no link: the end of the way
      }
    }
  }
  return wanted;
}

/** The folder of a path and the name in it; where that folder is missing, the nearest one above it and what is missing there. */
function nearestThere(path: string): readonly [folder: string, name: string] {
  let at = path;
  while (dirname(at) !== at && !existsSync(dirname(at))) at = dirname(at);
  return [dirname(at), basename(at)];
}
