/** What gates ask of this machine, as the agent has it. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../world/clock.ts';
import { hasDefaultRoute } from './defaultRoute.ts';
import type { GatesDeps } from './manager.ts';
import { MountTable } from './mountTable.ts';

/** The part of the deps that is the machine's. */
export type GateFacts = Pick<GatesDeps, 'mounts' | 'timeSynced' | 'networkUp'>;

const askMs = 2_000;

/** A kernel without IPv6 has no such file. */
const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

/** systemd-timesyncd leaves this file when the clock was set from the network. Costs no process. */
export const wasSetByTimesyncd = (): boolean => existsSync('/run/systemd/timesync/synchronized');

/** The kernel's own flag, which chrony and ntpd set as well; a machine without systemd does not say. */
const isSynchronized = (): Promise<boolean> =>
  new Promise((resolve) => {
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
    execFile('timedatectl', ['show', '--property=NTPSynchronized', '--value'], { timeout: askMs, env }, (e, stdout) =>
      resolve(e === null && stdout.trim() === 'yes'),
    );
  });

/** Who asks while an answer is on its way shares it: twenty pods that wait for the clock start one process, not twenty. */
export function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | undefined;
  return () => {
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };
}

/** `mountPoints`: as the kernel lists them. */
export function systemGateFacts(clock: Clock, mountPoints: () => Promise<readonly string[]>): GateFacts {
  const synchronized = shared(isSynchronized);
  return {
    mounts: new MountTable({ clock, mountPoints }),
    timeSynced: () => wasSetByTimesyncd() || synchronized(),
    networkUp: async () => hasDefaultRoute(await textOf('/proc/net/route'), await textOf('/proc/net/ipv6_route')),
  };
}
