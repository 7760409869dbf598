/** What the doctor makes of a board, its kernel and its disks: one table for each check. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CgroupFacts } from '../../src/cm/enforced.ts';
import type { StorageCard } from '../../src/node/cardWear.ts';
import type { Finding } from '../../src/operations/doctorFinding.ts';
import {
  architectureFinding,
  type ClockSeen,
  cardFinding,
  cgroupsFinding,
  clockFinding,
  type DiskSeen,
  diskFinding,
  identityFinding,
  type PowerSeen,
  pageSizeFinding,
  powerFinding,
  writableFinding,
} from '../../src/operations/doctorMachine.ts';

const line = ({ level, message, remedy }: Finding): string => `${level}: ${message}${remedy === undefined ? '' : ` | ${remedy}`}`;

function told(table: readonly (readonly [Finding, RegExp])[]): void {
  for (const [finding, expected] of table) {
    assert.match(line(finding), expected);
    assert.equal(finding.remedy === undefined, finding.level === 'ok', `${finding.name}: a remedy, and only where something is to be done`);
  }
}

test('cgroups: the missing controller, the exact words and the file; and v1 is lived with', () => {
  const all = new Set(['cpu', 'cpuset', 'io', 'memory', 'pids', 'hugetlb']);
  const without = (...names: string[]) => new Set([...all].filter((c) => !names.includes(c)));
  const of = (facts: CgroupFacts, place = 'the line in /boot/firmware/cmdline.txt', booted = '') =>
    cgroupsFinding({ facts, line: { place, booted } });
  told([
    [of({ version: 'v2', controllers: all }), /^ok: cgroup v2 with cpu, cpuset, io, memory, pids$/],
    [
      of({ version: 'v2', controllers: without('memory') }),
      /^wrong: memory limits are not enforced: .* \| Add cgroup_enable=memory cgroup_memory=1 to the line in \/boot\/firmware\/cmdline\.txt and reboot/,
    ],
    [
      of({ version: 'v2', controllers: without('memory') }, 'the line in /boot/cmdline.txt'),
      /\| Add .* to the line in \/boot\/cmdline\.txt/,
    ],
    [of({ version: 'v2', controllers: without('pids') }), /^advice: limits of pids are not enforced.* \| .*cgroup_disable/],
    [
      of({ version: 'v1', controllers: all }, 'the boot loader'),
      /^advice: .*cgroup v1 \| Add systemd\.unified_cgroup_hierarchy=1 to the boot loader/,
    ],
    [of({ version: 'hybrid', controllers: all }), /^advice: .*cgroup v1 \|/],
    [
      of({ version: 'v1', controllers: without('memory') }),
      /^wrong: memory limits.*; limits of whole pods.* \| Add cgroup_enable.* Add systemd\./,
    ],
    [of({ version: 'v2', controllers: all, refused: 'it is read-only' }), /^advice: .*it is read-only \| Start podsched by its unit/],
    [of({ version: 'none', controllers: new Set() }), /^wrong: memory limits are not enforced/],
  ]);
});

test('page size: 4 KiB is what images are built for', () => {
  told([
    [pageSizeFinding(4096), /^ok: memory pages of 4 KiB$/],
    [pageSizeFinding(16_384), /^advice: memory pages of 16 KiB: .* \| .*kernel=kernel8\.img in \/boot\/firmware\/config\.txt/],
    [pageSizeFinding(65_536), /^advice: memory pages of 64 KiB/],
    [pageSizeFinding(undefined), /^ok: .*does not say/],
    [pageSizeFinding(1), /^advice: memory pages of 1 bytes/],
  ]);
});

test('disk: space, inodes, and what is in memory', () => {
  const gib = 2 ** 30;
  const disk = (o: Partial<DiskSeen> = {}): DiskSeen => ({
    ...{ use: 'state', path: '/var/lib/podsched', kind: 'disk' },
    ...{ capacityBytes: 30 * gib, availableBytes: 12 * gib, inodes: 1000, inodesFree: 900 },
    ...o,
  });
  told([
    [diskFinding([disk()]), /^ok: \/var\/lib\/podsched \(state\) has 12\.9GB of 32\.2GB free$/],
    [diskFinding([disk({ availableBytes: 4 * gib })]), /^advice: .*images that nothing uses are removed \| podsched images prune/],
    [diskFinding([disk({ availableBytes: 2 * gib })]), /^wrong: .*pods are refused or evicted \| podsched images prune/],
    [diskFinding([disk({ availableBytes: 0 })]), /^wrong: .* has 0B of 32\.2GB free/],
    [diskFinding([disk({ inodesFree: 40 })]), /^wrong: .*room for 40 more files of 1000/],
    [diskFinding([disk({ inodes: 0, inodesFree: 0 })]), /^ok/], // btrfs counts none
    [diskFinding([disk({ kind: 'overlay' })]), /^advice: .*in memory \(overlay\).* \| .*raspi-config/],
    [diskFinding([disk({ kind: 'tmpfs', availableBytes: gib })]), /^wrong/],
    [
      diskFinding([disk(), disk({ path: '/mnt/ssd', use: 'images', availableBytes: 0 })]),
      /^wrong: \/var\/lib.* free; \/mnt\/ssd \(images\) has 0B/,
    ],
    [diskFinding([disk({ capacityBytes: 0, availableBytes: 0, inodes: 0, inodesFree: 0 })]), /^ok/],
    [diskFinding([]), /^advice: no disk could be asked/],
  ]);
});

test('read-only file systems are named', () => {
  told([
    [writableFinding([]), /^ok/],
    [writableFinding(['/']), /^wrong: the kernel lets nobody write to \/ \| dmesg.*mount -o remount,rw \/$/],
    [writableFinding(['/', '/mnt/ssd']), /^wrong: .* to \/ and \/mnt\/ssd \|/],
  ]);
});

test('clock: a year before any podsched, and nobody who sets it', () => {
  const of = (o: Partial<ClockSeen>) => clockFinding({ nowMs: Date.parse('2026-05-01T00:00:00Z'), synced: true, hasRtc: false, ...o });
  told([
    [of({}), /^ok: it was set from the network, and stands still without power$/],
    [of({ hasRtc: true }), /^ok: .*goes on without power$/],
    [of({ synced: false }), /^advice: it was not set from the network since the boot.* \| timedatectl set-ntp true/],
    [of({ synced: undefined }), /^ok: nobody says .*2026-05-01$/],
    [of({ nowMs: 0 }), /^wrong: the clock is at 1970-01-01: no certificate.* \| timedatectl set-ntp true/],
    [of({ nowMs: Date.parse('2023-12-31T23:59:59Z') }), /^wrong: the clock is at 2023-12-31/],
    [of({ nowMs: Number.NaN }), /^wrong: the clock is no date/],
  ]);
});

test('power: under-voltage now is wrong, what was seen before is advice', () => {
  const of = (o: Partial<PowerSeen>) => powerFinding({ firmware: undefined, underVoltage: undefined, cards: [], resetReasons: [], ...o });
  told([
    [of({}), /^ok: this board tells nothing/],
    [of({ underVoltage: false }), /^ok: the supply is as it should be/],
    [of({ firmware: { now: 0, before: 0 } }), /^ok: the supply/],
    [of({ underVoltage: true }), /^wrong: the supply voltage is too low just now.* \| Use the power supply/],
    [of({ firmware: { now: 1, before: 1 } }), /^wrong/],
    [of({ firmware: { now: 0, before: 1 } }), /^advice: under-voltage since the boot \| Use the power supply/],
    [of({ firmware: { now: 4, before: 12 } }), /^advice: throttled now, soft temperature limit since the boot \| A heat sink/],
    [of({ resetReasons: ['under-voltage'] }), /^advice: the board was reset by under-voltage \| Use the power/],
    [of({ resetReasons: ['enable signal'] }), /^ok/],
  ]);
});

test('card: wear where it is told', () => {
  const card = (o: Partial<StorageCard>): StorageCard => ({
    ...{ device: 'mmcblk0', name: 'SC32G', kind: 'SD', manufacturer: '0x000003', made: '03/2021' },
    ...{ usedPercent: undefined, spare: undefined },
    ...o,
  });
  told([
    [cardFinding({ cards: [] }), /^ok: no SD card/],
    [cardFinding({ cards: [card({})] }), /^ok: SD card mmcblk0 SC32G .*wear not told$/],
    [cardFinding({ cards: [card({ spare: 'urgent' })] }), /^advice: mmcblk0 .*spare blocks.* \| Copy it/],
    [cardFinding({ cards: [card({ usedPercent: { from: 100, to: 100 } })] }), /^advice: .*all of its life/],
  ]);
});

test('architecture: what has no images, and an old 32-bit system whose containers see 1970', () => {
  const of = (machine: string, agent: string, libseccomp?: string) => architectureFinding({ machine, agent, libseccomp });
  told([
    [of('aarch64', 'arm64'), /^ok: aarch64$/],
    [of('x86_64', 'x64'), /^ok: x86_64$/],
    [of('armv7l', 'arm', '2.5.4'), /^ok: armv7l$/],
    [of('armv7l', 'arm', '2.3.3'), /^wrong: libseccomp 2\.3\.3 refuses .*1970.* \| A newer system/],
    [of('aarch64', 'arm', '2.4.1'), /^wrong/],
    [of('aarch64', 'arm', '2.4.2'), /^advice: a 32-bit system on a 64-bit kernel/],
    [of('aarch64', 'arm64', '2.3.3'), /^ok/], // left from a 32-bit package beside it
    [of('armv6l', 'arm', '2.5.4'), /^advice: armv6l/],
    [of('', 'arm64'), /^ok: $/],
  ]);
});

test('identity: a card that was written on another board', () => {
  const stored = { nodeName: 'pi-1', machine: 'aaaa' };
  told([
    [identityFinding({ stored: undefined, hashes: ['aaaa'] }), /^ok: this node has no name yet/],
    [identityFinding({ stored, hashes: ['bbbb', 'aaaa'] }), /^ok: pi-1, on its own board$/],
    [identityFinding({ stored, hashes: [] }), /^ok/],
    [identityFinding({ stored, hashes: ['bbbb'] }), /^advice: .*as node pi-1.*both have one name \| Set nodeName/],
  ]);
});
