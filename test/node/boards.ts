/** Boards as folders: the files of /proc, /sys, /etc and /run that the node's status reads, as these boards have them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { BoardRoots } from '../../src/node/board.ts';

export type Files = Readonly<Record<string, string | Uint8Array>>;

export interface FakeBoard {
  readonly roots: BoardRoots;
  /** Writes one file below the root: `sys/class/…`. */
  set(path: string, content: string | Uint8Array): void;
  remove(path: string): void;
  path(of: string): string;
}

const folders: string[] = [];

export function board(files: Files): FakeBoard {
  const root = mkdtempSync(join(tmpdir(), 'podsched-board-'));
  folders.push(root);
  const set = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  for (const [path, content] of Object.entries(files)) set(path, content);
  const of = (name: string): string => join(root, name);
  return {
    roots: { proc: of('proc'), sys: of('sys'), etc: of('etc'), run: of('run') },
    set,
    remove: (path) => rmSync(of(path), { recursive: true, force: true }),
    path: of,
  };
}

/** For `after`. */
export function removeBoards(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** The disk `/` on a card, tmpfs on /run, a FAT partition, and a pod's overlay. */
export const mountinfo = (root = 'rw'): string =>
  [
    '21 28 0:20 / /proc rw,relatime shared:5 - proc proc rw',
    `28 1 179:2 / / rw,noatime shared:1 - ext4 /dev/root ${root}`,
    '30 28 0:24 / /run rw,nosuid,nodev shared:2 - tmpfs tmpfs rw,size=93888k,nr_inodes=819200,mode=755',
    '60 28 179:1 / /boot/firmware rw,relatime shared:30 - vfat /dev/mmcblk0p1 rw,fmask=0022,errors=remount-ro',
    '90 28 0:50 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/a/rootfs rw,relatime shared:60 - overlay overlay rw,lowerdir=/a',
    '',
  ].join('\n');

const osRelease = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n';
const timesyncd = { 'run/systemd/timesync/synchronized': '' };

const common = (totalKb: number): Files => ({
  'proc/self/mountinfo': mountinfo(),
  'proc/uptime': '86461.35 340000.12\n',
  'proc/loadavg': '0.42 0.30 0.25 1/203 4711\n',
  'proc/meminfo': `MemTotal:        ${totalKb} kB\nMemFree:          100000 kB\nMemAvailable:     ${Math.floor(totalKb / 2)} kB\nSwapTotal:        524284 kB\nSwapFree:         524000 kB\n`,
  'proc/swaps':
    'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0                              partition\t524284\t\t284\t\t100\n',
  'etc/os-release': osRelease,
  'etc/machine-id': '0123456789abcdef0123456789abcdef\n',
  ...timesyncd,
});

const card = (name: string): Files => ({
  'sys/block/mmcblk0/device/name': `${name}\n`,
  'sys/block/mmcblk0/device/type': 'SD\n',
  'sys/block/mmcblk0/device/manfid': '0x000003\n',
  'sys/block/mmcblk0/device/date': '03/2021\n',
});

/** Raspberry Pi OS on a Pi 4: its own kernel, so `get_throttled`, and the voltage sensor beside the thermal one. */
export const pi4: Files = {
  ...common(3885396),
  ...card('SC32G'),
  'proc/device-tree/model': 'Raspberry Pi 4 Model B Rev 1.4\0',
  'proc/device-tree/serial-number': '10000000abcd1234\0',
  'sys/class/thermal/thermal_zone0/type': 'cpu-thermal\n',
  'sys/class/thermal/thermal_zone0/temp': '52582\n',
  'sys/class/hwmon/hwmon0/name': 'cpu_thermal\n',
  'sys/class/hwmon/hwmon1/name': 'rpi_volt\n',
  'sys/class/hwmon/hwmon1/in0_lcrit_alarm': '0\n',
  'sys/bus/platform/devices/soc:firmware/get_throttled': '0\n',
  'sys/bus/platform/devices/soc:power/uevent': '',
};

/** A Pi 5 that starts from NVMe: other names in /sys, and a power chip that says why it reset. */
export const pi5: Files = {
  ...common(8256768),
  'proc/device-tree/model': 'Raspberry Pi 5 Model B Rev 1.0\0',
  'proc/device-tree/serial-number': '6b206ca09127ae99\0',
  'proc/device-tree/chosen/power/power_reset': Uint8Array.of(0, 0, 0, 2),
  'sys/class/thermal/thermal_zone0/type': 'cpu-thermal\n',
  'sys/class/thermal/thermal_zone0/temp': '61050\n',
  'sys/class/hwmon/hwmon0/name': 'cpu_thermal\n',
  'sys/class/hwmon/hwmon1/name': 'rp1_adc\n',
  'sys/class/hwmon/hwmon2/name': 'pwmfan\n',
  'sys/class/hwmon/hwmon3/name': 'rpi_volt\n',
  'sys/class/hwmon/hwmon3/in0_lcrit_alarm': '0\n',
  'sys/bus/platform/devices/soc@107c000000:firmware/get_throttled': 'e0000\n',
  'sys/block/nvme0n1/size': '500118192\n',
};

/** Debian's own kernel on a Pi Zero 2 W: no `get_throttled`. */
export const zero2: Files = {
  ...common(439820),
  ...card('USD00'),
  'proc/device-tree/model': 'Raspberry Pi Zero 2 W Rev 1.0\0',
  'proc/device-tree/serial-number': '00000000a1b2c3d4\0',
  'sys/class/thermal/thermal_zone0/type': 'cpu-thermal\n',
  'sys/class/thermal/thermal_zone0/temp': '41856\n',
  'sys/class/hwmon/hwmon0/name': 'rpi_volt\n',
  'sys/class/hwmon/hwmon0/in0_lcrit_alarm': '0\n',
};

/** A PC with chrony: ACPI and package zones, a product UUID, an eMMC that tells its wear. */
export const pc: Files = {
  ...Object.fromEntries(Object.entries(common(16251904)).filter(([path]) => !path.startsWith('run/'))),
  'sys/class/thermal/thermal_zone0/type': 'acpitz\n',
  'sys/class/thermal/thermal_zone0/temp': '27800\n',
  'sys/class/thermal/thermal_zone1/type': 'iwlwifi_1\n',
  'sys/class/thermal/thermal_zone1/temp': '33000\n',
  'sys/class/thermal/thermal_zone2/type': 'x86_pkg_temp\n',
  'sys/class/thermal/thermal_zone2/temp': '48000\n',
  'sys/class/hwmon/hwmon0/name': 'coretemp\n',
  'sys/class/dmi/id/product_uuid': '4c4c4544-0042-4a10-8050-b7c04f4d3333\n',
  'sys/block/mmcblk0/device/name': 'DF4064\n',
  'sys/block/mmcblk0/device/type': 'MMC\n',
  'sys/block/mmcblk0/device/manfid': '0x000045\n',
  'sys/block/mmcblk0/device/date': '07/2019\n',
  'sys/block/mmcblk0/device/life_time': '0x02 0x03\n',
  'sys/block/mmcblk0/device/pre_eol_info': '0x01\n',
  'sys/block/mmcblk0boot0/device/name': 'DF4064\n',
};
