import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { NodeCapacity } from '../../src/api/nodeResources.ts';
import type { JudgedCondition, Readiness } from '../../src/node/conditions.ts';
import type { NodeObject } from '../../src/node/info.ts';
import { NodeStatus } from '../../src/node/status.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { diskIsStill, until as untilSo } from '../until.ts';
import { board, type FakeBoard, type Files, mountinfo, pc, pi4, pi5, removeBoards, zero2 } from './boards.ts';

after(removeBoards);

const Gi = 2 ** 30;
const capacity: NodeCapacity = { cpuMilli: 4000, memoryBytes: 4 * Gi, ephemeralBytes: 29 * Gi, pods: 110, hugepages: {} };

class CountingStore extends MemoryStore {
  puts = 0;
  override async put(key: string, value: unknown): Promise<void> {
    this.puts++;
    await super.put(key, value);
  }
}

function make(files: Files | FakeBoard, o: { clock?: FakeClock; store?: CountingStore; bootId?: string } = {}) {
  const fake = 'roots' in files && 'set' in files ? (files as FakeBoard) : board(files as Files);
  const clock = o.clock ?? new FakeClock();
  const store = o.store ?? new CountingStore();
  const state = {
    ready: { problems: [], network: 'ready' } as Readiness,
    others: [] as JudgedCondition[],
    pressures: [] as JudgedCondition[],
    images: async () => [{ id: 'i', tags: ['docker.io/library/busybox:1'], digests: [], pinned: false, username: '', sizeBytes: 5 }],
    changes: 0,
  };
  const events: string[] = [];
  const status = new NodeStatus({
    clock,
    log: silentLog,
    store,
    roots: fake.roots,
    bootId: o.bootId ?? 'boot-1',
    node: {
      name: 'pi-07',
      machine: 'aaaabbbbcccc',
      agentVersion: '0.1.0',
      architecture: 'arm64',
      kernelVersion: '6.12.20',
      pageBytes: 4096,
    },
    labels: () => ({ site: 'attic' }),
    addresses: () => ['192.0.2.7'],
    runtimeVersion: () => 'containerd://1.7.24',
    capacity: () => capacity,
    allocatable: () => ({ ...capacity, memoryBytes: 3 * Gi }),
    devices: () => ({ 'devices.podsched.dev/gpio': { capacity: 2, allocatable: 1 } }),
    ready: () => state.ready,
    pressures: () => state.pressures,
    others: () => state.others,
    images: () => state.images(),
    heartbeatMs: () => 60_000,
    writable: ['/', '/var/lib/podsched'],
    disk: fake.path('.'),
    event: (type, reason, message) => events.push(`${type} ${reason}: ${message}`),
    changed: () => {
      state.changes++;
    },
  });
  return { fake, clock, store, status, state, events };
}

const own = (node: NodeObject): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(node.metadata.annotations ?? {}).map(([name, text]) => [name.replace('podsched.dev/', ''), text]));
const trouble = (node: NodeObject): string[] =>
  node.status.conditions.filter((c) => c.status === 'True' && c.type !== 'Ready').map((c) => c.type);

/** Files are read by the real machine: the fake clock does not wait for them. */
const until = (what: () => boolean): Promise<void> => untilSo('it comes to be', what);

test('a Pi 4 is told with amounts, board and conditions, and without what moves all the time', async () => {
  const { status } = make(pi4);
  await status.load();
  const node = status.told();
  assert.deepEqual(own(node), {
    'page-size': '4096',
    model: 'Raspberry Pi 4 Model B Rev 1.4',
    serial: '10000000abcd1234',
    'cpu-temperature': '53',
    power: 'ok',
    storage: 'SD card mmcblk0 SC32G (03/2021), wear not told',
  });
  assert.deepEqual(node.status.capacity, {
    cpu: '4',
    'ephemeral-storage': '29Gi',
    memory: '4Gi',
    pods: '110',
    'devices.podsched.dev/gpio': '2',
  });
  assert.deepEqual([node.status.allocatable?.memory, node.status.allocatable?.['devices.podsched.dev/gpio']], ['3Gi', '1']);
  assert.deepEqual(trouble(node), []);
  assert.deepEqual(
    [node.status.nodeInfo.osImage, node.status.nodeInfo.systemUUID],
    ['Debian GNU/Linux 13 (trixie)', '0123456789abcdef0123456789abcdef'],
  );
  assert.equal(node.status.images, undefined);
  assert.ok(node.status.conditions.every((c) => c.lastTransitionTime === '2026-01-01T00:00:00Z' && c.lastHeartbeatTime === undefined));
});

for (const [what, files, expected] of [
  ['Pi 5', pi5, { 'cpu-temperature': '61', power: 'frequency capped now, throttled now, soft temperature limit now' }],
  ['Pi Zero 2', zero2, { 'cpu-temperature': '42', power: 'ok' }],
  ['PC', pc, { 'cpu-temperature': '48', power: undefined }],
] as const)
  test(`a ${what} tells what it has`, async () => {
    const { status } = make(files);
    await status.load();
    const told = own(status.told());
    for (const [name, text] of Object.entries(expected)) assert.equal(told[name], text, name);
  });

test('a machine that says nothing of itself is a node all the same', async () => {
  const { status } = make({});
  await status.load();
  assert.deepEqual(own(status.told()), { 'page-size': '4096' });
  assert.deepEqual(trouble(status.told()), []);
  assert.equal((await status.whole()).metadata.name, 'pi-07');
});

test('whoever asks the node gets images, use and times of heartbeats beside', async () => {
  const { status, clock, fake } = make(pi4);
  await status.load();
  fake.set('sys/class/thermal/thermal_zone0/temp', '54321\n');
  await clock.advance(5_000);
  const node = await status.whole();
  assert.deepEqual(node.status.images, [{ names: ['docker.io/library/busybox:1'], sizeBytes: 5 }]);
  assert.ok(
    node.status.conditions.every((c) => c.lastHeartbeatTime === '2026-01-01T00:00:05Z' && c.lastTransitionTime === '2026-01-01T00:00:05Z'),
  );
  const { 'cpu-temperature': degrees, 'uptime-seconds': uptime, load, swap } = own(node);
  assert.deepEqual([degrees, uptime, load, swap], ['54.3', '86461', '0.42 0.30 0.25', '284Ki of 524284Ki used (zram)']);
});

test('a runtime that does not answer leaves the images as they were', async () => {
  const { status, state } = make(pi4);
  await status.load();
  await status.whole();
  state.images = () => Promise.reject(new Error('unavailable'));
  assert.equal((await status.whole()).status.images?.length, 1);
});

test('a heartbeat at which nothing has changed tells the same text and writes nothing', async () => {
  const { status, clock, fake, store, state } = make(pi4);
  await status.load();
  const stop = new AbortController();
  const running = status.run(stop.signal);
  const text = JSON.stringify(status.told());
  const { puts } = store;
  for (const milli of ['53900', '51100', '50600', '54900']) {
    fake.set('sys/class/thermal/thermal_zone0/temp', `${milli}\n`);
    const before = state.changes;
    await clock.advance(60_000);
    await until(() => state.changes > before);
    assert.equal(JSON.stringify(status.told()), text, milli);
  }
  assert.equal(store.puts, puts);
  fake.set('sys/class/thermal/thermal_zone0/temp', '57000\n');
  await clock.advance(60_000);
  await until(() => own(status.told())['cpu-temperature'] === '57');
  stop.abort();
  await running;
});

test('under-voltage is told at once, held for five minutes after it was last seen, and kept in mind', async () => {
  const { status, clock, fake, state, events } = make(pi4);
  await status.load();
  status.told();
  const stop = new AbortController();
  const running = status.run(stop.signal);
  const before = state.changes;
  fake.set('sys/class/hwmon/hwmon1/in0_lcrit_alarm', '1\n');
  await until(() => state.changes > before);
  assert.deepEqual(trouble(status.told()), ['UnderVoltage']);
  assert.equal(own(status.told()).power, 'under-voltage now');
  assert.deepEqual(events, ['Warning UnderVoltage: the supply voltage falls below what the board needs']);
  // one change is more than one notice: a reading that ended later would have seen it later
  await diskIsStill();

  // a supply that dips again and again is one story
  fake.set('sys/class/hwmon/hwmon1/in0_lcrit_alarm', '0\n');
  for (let i = 0; i < 4; i++) {
    await clock.advance(60_000);
    assert.deepEqual(trouble(status.told()), ['UnderVoltage']);
  }
  await clock.advance(61_000);
  assert.deepEqual(trouble(status.told()), []);
  assert.equal(own(status.told()).power, 'under-voltage since boot');
  assert.equal(events.length, 1);
  stop.abort();
  await running;
});

test("the firmware's word is read when the kernel says that it changed, and not before", async () => {
  const { status, fake, state } = make({ ...pi4, 'sys/bus/platform/devices/soc:firmware/get_throttled': '50005\n' });
  await status.load();
  assert.equal(own(status.told()).power, 'ok');
  const stop = new AbortController();
  const running = status.run(stop.signal);
  const before = state.changes;
  fake.set('sys/bus/platform/devices/soc:firmware/get_throttled', '40004\n');
  await until(() => state.changes > before);
  assert.deepEqual(trouble(status.told()), ['Throttled']);
  stop.abort();
  await running;
});

test('without the driver that clears them, the marks of the firmware are of the whole boot', async () => {
  const { 'sys/class/hwmon/hwmon1/name': _, ...files } = pi4;
  const { status } = make({
    ...files,
    'sys/class/thermal/thermal_zone0/temp': '60000\n',
    'sys/bus/platform/devices/soc:firmware/get_throttled': '50000\n',
  });
  await status.load();
  assert.deepEqual(trouble(status.told()), []);
  assert.equal(own(status.told()).power, 'under-voltage since boot, throttled since boot');
});

test('a warm processor is reason enough to ask the firmware', async () => {
  const { status } = make({
    ...pi4,
    'sys/class/thermal/thermal_zone0/temp': '82000\n',
    'sys/bus/platform/devices/soc:firmware/get_throttled': 'e0006\n',
  });
  await status.load();
  assert.deepEqual(trouble(status.told()), ['Throttled', 'Overheating']);
});

test('a root that became read-only, a worn card and a clock without a server are conditions', async () => {
  const { 'run/systemd/timesync/synchronized': _, ...files } = pi4;
  const { status } = make({
    ...files,
    'run/systemd/timesync/clock': '',
    'proc/self/mountinfo': mountinfo('ro'),
    'sys/block/mmcblk0/device/life_time': '0x0b 0x01\n',
  });
  await status.load();
  assert.deepEqual(trouble(status.told()), ['ReadOnlyRoot', 'SDCardWear', 'ClockUnsynced']);
  assert.deepEqual(
    status.board().map((c) => c.type),
    ['ReadOnlyRoot', 'SDCardWear', 'ClockUnsynced'],
  );
});

test('an agent that is started anew keeps the times and what was seen of the supply, and tells no old news', async () => {
  const first = make(pi4);
  first.state.others = [{ type: 'WatchDegraded', status: 'True', reason: 'WatchDegraded', message: 'inotify' }];
  first.fake.set('sys/class/hwmon/hwmon1/in0_lcrit_alarm', '1\n');
  await first.status.load();
  first.status.told();
  first.fake.set('sys/class/hwmon/hwmon1/in0_lcrit_alarm', '0\n');
  await first.clock.advance(1_000_000);
  first.status.told();

  const second = make(first.fake, { clock: first.clock, store: first.store });
  second.state.others = first.state.others;
  second.state.ready = { problems: undefined, network: undefined };
  await second.status.load();
  const node = second.status.told();
  assert.equal(own(node).power, 'under-voltage since boot');
  assert.deepEqual(
    node.status.conditions.map((c) => `${c.type} ${c.status} ${c.lastTransitionTime}`).filter((text) => /Ready|Watch/.test(text)),
    ['Ready True 2026-01-01T00:00:00Z', 'WatchDegraded True 2026-01-01T00:00:00Z'],
  );
  assert.deepEqual(second.events, []);

  const rebooted = make(first.fake, { clock: first.clock, store: first.store, bootId: 'boot-2' });
  await rebooted.status.load();
  assert.equal(own(rebooted.status.told()).power, 'ok');
});

test('an entry that cannot be read, or that another version wrote, is no reason to stop', async () => {
  for (const text of ['{', '7', '{"bootId":"boot-1"}', '{"bootId":"boot-1","conditions":[null,{"type":1}],"power":"x"}']) {
    const store = new CountingStore();
    store.entries.set('node-status', text);
    const { status } = make(pi4, { store });
    await status.load();
    assert.equal(status.told().status.conditions.length, 5, text);
  }
});

test('before the board is known the conditions are told and nothing of them is kept', async () => {
  const { status, store, events, state } = make(pi4);
  state.ready = { problems: ['x'], network: undefined };
  assert.equal(status.told().status.conditions.find((c) => c.type === 'Ready')?.status, 'False');
  assert.deepEqual([store.puts, events.length], [0, 0]);
});

test('pressure that eviction judged stands in its place', async () => {
  const { status, state, events } = make(pi4);
  await status.load();
  status.told();
  state.pressures = [
    {
      type: 'MemoryPressure',
      status: 'True',
      reason: 'KubeletHasInsufficientMemory',
      message: 'kubelet has insufficient memory available',
    },
  ];
  assert.deepEqual(trouble(status.told()), ['MemoryPressure']);
  assert.deepEqual(events, ['Normal NodeHasInsufficientMemory: Node pi-07 status is now: NodeHasInsufficientMemory']);
});
