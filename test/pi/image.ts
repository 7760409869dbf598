/**
 * The emulated machine's disk, kernel and initramfs: made once and kept outside of the tree, under a key of what it is made of. A run never
 * writes into it (emulator.ts starts from copies on write).
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const script = new URL('make-image.sh', import.meta.url).pathname;

/** What a Pi has, what the package asks for, and what the stories use. No podsched: that is installed by apt when it has booted. */
export const packages: readonly string[] = [
  'linux-image-arm64',
  'systemd',
  'systemd-sysv',
  'udev',
  'dbus',
  'containerd',
  'runc',
  'containernetworking-plugins',
  'nodejs',
  'iproute2',
  'iptables',
  'kmod',
  'procps',
  'zstd',
  'mosquitto',
  'mosquitto-clients',
  'busybox-static',
];

export interface Image {
  readonly dir: string;
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
  /** A static busybox for the emulated processor, and the names it answers to. */
  readonly busybox: string;
  readonly applets: readonly string[];
}

export const cacheFolder = (env: NodeJS.ProcessEnv): string => env.PODSCHED_PI_CACHE ?? join(homedir(), '.cache/podsched-pi');

/** Another list of packages or another script is another image. */
export const imageKey = (list: readonly string[], scriptText: string): string =>
  createHash('sha256')
    .update(JSON.stringify([[...list].sort(), scriptText]))
    .digest('hex')
    .slice(0, 16);

const madeMs = 35 * 60_000;

/** The image, made now when it is not there. Older ones in the cache are removed: they cost gigabytes. */
export async function piImage(say: (line: string) => void): Promise<Image> {
  const cache = cacheFolder(process.env);
  const key = imageKey(packages, readFileSync(script, 'utf8'));
  const dir = join(cache, key);
  if (!existsSync(dir)) {
    mkdirSync(cache, { recursive: true });
    const making = join(cache, `${key}.making`);
    rmSync(making, { recursive: true, force: true });
    say(`making the emulated Pi's image in ${dir} (6 to 12 minutes, once)`);
    await make(making);
    renameSync(making, dir);
    for (const old of readdirSync(cache).filter((name) => /^[0-9a-f]{16}$/.test(name) && name !== key))
      rmSync(join(cache, old), { recursive: true, force: true });
  }
  return {
    dir,
    disk: join(dir, 'pi.img'),
    kernel: join(dir, 'vmlinuz'),
    initrd: join(dir, 'initrd'),
    busybox: join(dir, 'busybox'),
    applets: readFileSync(join(dir, 'busybox.applets'), 'utf8').split('\n').filter(Boolean),
  };
}

function make(dir: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', [script, dir, packages.join(',')], { stdio: ['ignore', 'inherit', 'inherit'] });
    const end = () => void child.kill('SIGTERM'); // it gives back what it took of the machine
    const timer = setTimeout(end, madeMs);
    process.once('exit', end);
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      process.removeListener('exit', end);
      if (code === 0) resolve();
      else reject(new Error(`the image could not be made: make-image.sh ended with ${signal ?? code}`));
    });
  });
}
