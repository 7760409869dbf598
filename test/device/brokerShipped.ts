/** What this project ships for a fleet's mosquitto, as it is shipped: certificates of its script, its broker and bridge configuration, its access list. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MosquittoOptions } from './mosquitto.ts';
import { mustRun } from './process.ts';

const shipped = (file: string): string => new URL(`../../docs/mosquitto/${file}`, import.meta.url).pathname;

/** PEM texts. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  readonly dir: string;
  readonly ca: string;
  /** `make-certs.sh` with these arguments after its folder. */
  make(...args: string[]): Promise<void>;
  /** The certificate of a name as it is now. */
  of(name: string): Certificate;
  stop(): Promise<void>;
}

export async function makeAuthority(...args: string[]): Promise<Authority> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-ca-'));
  const read = (file: string): string => readFileSync(join(dir, file), 'utf8');
  const make = async (...more: string[]): Promise<void> => {
    await mustRun('sh', [shipped('make-certs.sh'), dir, ...more]);
  };
  await make(...args);
  return {
    dir,
    ca: read('ca.crt'),
    make,
    of: (name) => ({ cert: read(`${name}.crt`), key: read(`${name}.key`) }),
    stop: async () => rmSync(dir, { recursive: true, force: true }),
  };
}

const inPlace = (text: string, authority: Authority): string =>
  text.replaceAll('/etc/mosquitto/certs', authority.dir).replaceAll('/etc/mosquitto/acl', shipped('acl'));

/** The shipped mosquitto.conf with this authority's files; only the port is another one. */
export function fleetBroker(authority: Authority): Pick<MosquittoOptions, 'config' | 'listener'> {
  const [config = '', listener = ''] = inPlace(readFileSync(shipped('mosquitto.conf'), 'utf8'), authority).split(/^listener .*$/m);
  return { config, listener };
}

/** The shipped bridge.conf of a site whose central broker is on this port; it tries again after a second, always. */
export const siteBridge = (authority: Authority, port: number): string =>
  inPlace(readFileSync(shipped('bridge.conf'), 'utf8'), authority)
    .replace(/^address .*$/m, `address 127.0.0.1:${port}`)
    .replace(/^restart_timeout .*$/m, 'restart_timeout 1');
