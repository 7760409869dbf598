/**
 * One boot of the emulated Pi: qemu on a fresh layer over the disk, a folder shared with the guest, and its console. The layers of a series of
 * boots lie on one another, so that a boot that the emulator spoilt is repeated from where it began.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mustRun, sleep, startDaemon } from '../device/process.ts';
import type { Image } from './image.ts';

export interface BootOptions {
  readonly name: string;
  readonly image: Image;
  /** The folder of the run: layers and consoles. */
  readonly dir: string;
  /** The folder that the guest sees. */
  readonly share: string;
  /** The layer that this boot begins on; undefined: the image itself. */
  readonly under?: string;
  readonly memoryMb: number;
  /** More words for the kernel. */
  readonly kernel?: string;
  /** A guest that has not begun by then never will. */
  readonly beginMs: number;
  readonly timeoutMs: number;
  /** Called twice a second while it runs; true ends the emulator at once, as a power cut does. */
  readonly look: () => boolean;
}

export interface Booted {
  /** `cut`: ended by `look`. `silent`: the guest never began; `crashed`: it had begun, and the emulator died. Both are the emulator's failures. */
  readonly how: 'off' | 'cut' | 'timeout' | 'silent' | 'crashed';
  /** The emulator's exit code or signal, as it ended by itself or was ended. */
  readonly exit: number | NodeJS.Signals;
  /** This boot's layer. */
  readonly layer: string;
  readonly console: string;
  readonly ms: number;
}

/** Written by run.sh as its first act. */
export const begun = (share: string): boolean => existsSync(join(share, 'begun'));

/** How a boot ended that nobody ended: a machine that goes off by itself is an exit code of 0, whatever its programs did. */
export const ending = (exit: Booted['exit'], hasBegun: boolean): Booted['how'] => (!hasBegun ? 'silent' : exit === 0 ? 'off' : 'crashed');

/** Nothing that follows on such a boot could be judged. */
export const emulatorFailed = (how: Booted['how']): boolean => how === 'silent' || how === 'crashed';

/** Whether a boot is to be repeated. `errors`: of its checks; undefined: one that held. A check that failed stands, whatever came after it. */
export const spoilt = (how: Booted['how'], errors: readonly (string | undefined)[]): boolean =>
  emulatorFailed(how) && errors.every((e) => e === undefined);

/** Boots and waits until the machine is off. Rejects only when qemu cannot be started at all. */
export async function boot(o: BootOptions): Promise<Booted> {
  const layer = join(o.dir, `${o.name}.qcow2`);
  const console = join(o.dir, `console-${o.name}.log`);
  rmSync(layer, { force: true });
  rmSync(join(o.share, 'begun'), { force: true });
  const under = o.under ?? o.image.disk;
  await mustRun('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', under, '-F', o.under === undefined ? 'raw' : 'qcow2', layer]);
  writeFileSync(console, '');
  // With a page table of the kernel's own each system call changes the address space id twice, and each time the emulator forgets all it knows
  // of addresses. Nothing is to be kept from the guest's programs.
  const quick = 'kpti=off mitigations=off init_on_alloc=0';
  const append = `root=/dev/vda rw console=ttyAMA0 loglevel=4 systemd.show_status=0 ${quick} ${o.kernel ?? ''}`.trim();
  const from = performance.now();
  const qemu = startDaemon(
    'qemu-system-aarch64',
    [
      ...['-M', 'virt', '-cpu', 'cortex-a72', '-smp', '2', '-m', String(o.memoryMb), '-accel', 'tcg,thread=multi'],
      ...['-nographic', '-no-reboot', '-kernel', o.image.kernel, '-initrd', o.image.initrd, '-append', append],
      ...['-drive', `file=${layer},format=qcow2,if=virtio,cache=unsafe,discard=unmap`],
      ...['-virtfs', `local,path=${o.share},mount_tag=host,security_model=none`],
      ...['-netdev', 'user,id=n0,restrict=on', '-device', 'virtio-net-pci,netdev=n0,romfile=', '-device', 'virtio-rng-pci'],
    ],
    { logFile: console },
  );
  let how: Booted['how'] | undefined;
  try {
    while (qemu.running()) {
      await Promise.race([sleep(500), qemu.exited]);
      const passed = performance.now() - from;
      if (o.look()) how = 'cut';
      else if (passed > o.timeoutMs) how = 'timeout';
      else if (passed > o.beginMs && !begun(o.share)) how = 'silent';
      else continue;
      qemu.signal('SIGKILL');
      break;
    }
    const exit = await qemu.exited;
    o.look();
    return { how: how ?? ending(exit, begun(o.share)), exit, layer, console, ms: performance.now() - from };
  } finally {
    qemu.signal('SIGKILL');
  }
}

/** The last lines of a console, for a report. */
export const tail = (file: string, lines = 30): string =>
  existsSync(file) ? readFileSync(file, 'utf8').replaceAll('\r', '').trimEnd().split('\n').slice(-lines).join('\n') : '';
