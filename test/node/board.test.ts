import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { findBoard } from '../../src/node/board.ts';
import { readUsage, readVitals } from '../../src/node/vitals.ts';
import { board, mountinfo, pc, pi4, pi5, removeBoards, zero2 } from './boards.ts';

after(removeBoards);

test('a Pi 4 has all its sensors found', async () => {
  const fake = board(pi4);
  const found = await findBoard(fake.roots);
  assert.equal(found.model, 'Raspberry Pi 4 Model B Rev 1.4');
  assert.equal(found.serial, '10000000abcd1234');
  assert.equal(found.osImage, 'Debian GNU/Linux 13 (trixie)');
  assert.equal(found.systemUUID, '0123456789abcdef0123456789abcdef');
  assert.equal(found.temperature, fake.path('sys/class/thermal/thermal_zone0/temp'));
  assert.equal(found.throttled, fake.path('sys/bus/platform/devices/soc:firmware/get_throttled'));
  assert.equal(found.underVoltage, fake.path('sys/class/hwmon/hwmon1/in0_lcrit_alarm'));
  assert.deepEqual(found.resetReasons, []);
});

test('a Pi 5 has other names for them, no card, and says why it was reset', async () => {
  const fake = board(pi5);
  const found = await findBoard(fake.roots);
  assert.equal(found.throttled, fake.path('sys/bus/platform/devices/soc@107c000000:firmware/get_throttled'));
  assert.equal(found.underVoltage, fake.path('sys/class/hwmon/hwmon3/in0_lcrit_alarm'));
  assert.deepEqual(found.cards, []);
  assert.deepEqual(found.resetReasons, ['under-voltage']);
});

test("a Pi Zero 2 with Debian's kernel has the voltage sensor alone", async () => {
  const fake = board(zero2);
  const found = await findBoard(fake.roots);
  assert.equal(found.throttled, undefined);
  assert.equal(found.underVoltage, fake.path('sys/class/hwmon/hwmon0/in0_lcrit_alarm'));
  assert.equal(found.serial, '00000000a1b2c3d4');
});

test("a PC is told by the processor's own zone and its product UUID", async () => {
  const fake = board(pc);
  const found = await findBoard(fake.roots);
  assert.equal(found.temperature, fake.path('sys/class/thermal/thermal_zone2/temp'));
  assert.equal(found.systemUUID, '4c4c4544-0042-4a10-8050-b7c04f4d3333');
  assert.deepEqual([found.model, found.serial, found.throttled, found.underVoltage], [undefined, undefined, undefined, undefined]);
});

test('the zone of a radio is not taken for the processor', async () => {
  const { roots } = board({ 'sys/class/thermal/thermal_zone0/type': 'iwlwifi_1\n', 'sys/class/thermal/thermal_zone0/temp': '33000\n' });
  assert.equal((await findBoard(roots)).temperature, undefined);
});

test('a machine with nothing at all, and one whose files are folders, are told as boards that say nothing', async () => {
  for (const files of [
    {},
    {
      'proc/device-tree/model/x': '',
      'sys/class/thermal/thermal_zone0/type/x': '',
      'sys/class/hwmon': 'a file',
      'sys/block': 'a file',
      'sys/bus/platform/devices': 'a file',
      'etc/os-release/x': '',
      'etc/machine-id': '"}; rm -rf',
      'proc/device-tree/chosen/power/power_reset': 'much too long',
    },
  ]) {
    const { roots } = board(files);
    assert.deepEqual(await findBoard(roots), {
      model: undefined,
      serial: undefined,
      osImage: '',
      systemUUID: '',
      temperature: undefined,
      throttled: undefined,
      underVoltage: undefined,
      cards: [],
      resetReasons: [],
    });
  }
});

const vitalsOf = async (files: Parameters<typeof board>[0]) => {
  const { roots } = board(files);
  return readVitals(roots, await findBoard(roots), ['/', '/var/lib/podsched']);
};

test('temperature, clock and disks are read', async () => {
  assert.deepEqual(await vitalsOf(pi4), { degrees: 52.582, readOnly: [], clockSynced: true });
  assert.deepEqual(await vitalsOf({ ...pi4, 'proc/self/mountinfo': mountinfo('ro') }), {
    degrees: 52.582,
    readOnly: ['/'],
    clockSynced: true,
  });
});

for (const [text, degrees] of [
  ['-5000', -5],
  ['999999', undefined],
  ['-273150', undefined],
  ['', undefined],
  ['warm', undefined],
  ['52582 52000', undefined],
  ['1e9', undefined],
] as const)
  test(`a temperature file with ${JSON.stringify(text)} says ${degrees === undefined ? 'nothing' : degrees}`, async () => {
    assert.equal((await vitalsOf({ ...pi4, 'sys/class/thermal/thermal_zone0/temp': text })).degrees, degrees);
  });

test('nobody says of a clock without timesyncd whether it is right', async () => {
  assert.equal((await vitalsOf(pc)).clockSynced, undefined);
});

test('timesyncd without an answer is told after two minutes, not at each boot', async () => {
  const { 'run/systemd/timesync/synchronized': _, ...files } = pi4;
  const waiting = { ...files, 'run/systemd/timesync/clock': '' };
  assert.equal((await vitalsOf(waiting)).clockSynced, false);
  assert.equal((await vitalsOf({ ...waiting, 'proc/uptime': '90.10 100.00\n' })).clockSynced, undefined);
});

test('what is used is read when somebody asks', async () => {
  const fake = board(pi4);
  const usage = await readUsage(fake.roots, fake.path('.'));
  assert.equal(usage.uptimeSeconds, 86_461);
  assert.equal(usage.load, '0.42 0.30 0.25');
  assert.deepEqual(usage.memory, { totalBytes: 3885396 * 1024, availableBytes: 1942698 * 1024 });
  assert.deepEqual(usage.swap, { totalBytes: 524284 * 1024, usedBytes: 284 * 1024, zram: true });
  assert.ok((usage.disk?.totalBytes ?? 0) > 0);
});

test('without swap there is none, and garbage says nothing', async () => {
  const none = board({ ...pi4, 'proc/meminfo': 'MemTotal: 1024 kB\nMemAvailable: 512 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n' });
  assert.equal((await readUsage(none.roots, none.path('.'))).swap, undefined);
  const garbage = board({ 'proc/meminfo': 'MemTotal: many kB\n', 'proc/uptime': 'long', 'proc/loadavg': '0.1' });
  assert.deepEqual(await readUsage(garbage.roots, garbage.path('not there')), {
    uptimeSeconds: undefined,
    load: undefined,
    memory: undefined,
    swap: undefined,
    disk: undefined,
  });
});
