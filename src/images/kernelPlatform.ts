/**
 * What the kernel of this node runs, which is what a container can be made of. The agent may itself be a 32-bit program on a 64-bit kernel
 * (a 32-bit Raspberry Pi OS is): the kernel counts. Looked up when an image of another kind shows up, not before.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { machine } from 'node:os';
import { join } from 'node:path';
import type { NodePlatform } from './platform.ts';

/** uname's word → Go's words. */
const machines: Readonly<Record<string, { readonly architecture: string; readonly variant?: string }>> = {
  x86_64: { architecture: 'amd64' },
  i686: { architecture: '386' },
  i586: { architecture: '386' },
  aarch64: { architecture: 'arm64' },
  // a 64-bit kernel that was told to call itself otherwise
  armv8l: { architecture: 'arm64' },
  armv7l: { architecture: 'arm', variant: 'v7' },
  armv6l: { architecture: 'arm', variant: 'v6' },
  riscv64: { architecture: 'riscv64' },
  ppc64le: { architecture: 'ppc64le' },
  s390x: { architecture: 's390x' },
};

/** Go's word → qemu's, in the names that its handlers are registered under. */
const emulators: Readonly<Record<string, string>> = { amd64: 'x86_64', '386': 'i386', arm64: 'aarch64', arm: 'arm' };

export interface KernelFacts {
  /** `uname -m`; default: this machine's. */
  readonly machine?: string;
  /** Node's word for what the agent is built for; default: this one's. */
  readonly agent?: string;
  readonly proc?: string;
  /** Whether a program can be started as a 32-bit one; default: it is tried. */
  readonly starts32bit?: () => boolean;
}

/** undefined: a machine whose name nobody knows; then nothing is judged. */
export function kernelPlatform(facts: KernelFacts = {}): NodePlatform | undefined {
  const { agent = process.arch, proc = '/proc', starts32bit = tryLinux32 } = facts;
  const known = machines[facts.machine ?? machine()];
  if (known === undefined) return undefined;
  let can32: boolean | undefined;
  return {
    os: 'linux',
    ...known,
    runs32bit: () => {
      can32 ??=
        agent === 'arm' ||
        agent === 'ia32' ||
        (known.architecture === 'amd64' ? existsSync(join(proc, 'sys/abi/vsyscall32')) : starts32bit());
      return can32;
    },
    emulates: (architecture) => hasEmulator(join(proc, 'sys/fs/binfmt_misc'), emulators[architecture] ?? architecture),
  };
}

/** An ARM kernel without 32-bit programs refuses the personality. */
const tryLinux32 = (): boolean => spawnSync('setarch', ['linux32', 'true'], { stdio: 'ignore', timeout: 5000 }).status === 0;

/** Registered, switched on, and opened beforehand (flag F): else its program would have to be in the image. */
function hasEmulator(dir: string, name: string): boolean {
  const text = (file: string): string => {
    try {
      return readFileSync(join(dir, file), 'utf8');
    } catch {
      return ''; // not registered, or not mounted
    }
  };
  if (!/^[a-z0-9_]+$/.test(name) || !text('status').startsWith('enabled')) return false;
  const handler = text(`qemu-${name}`);
  return handler.startsWith('enabled') && /^flags: .*F/m.test(handler);
}
