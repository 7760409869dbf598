import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { machineHashes, nameFromHardware, readHardware, readModel } from '../../src/node/hardware.ts';
import { type Identity, loadIdentity } from '../../src/node/identity.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';

const folder = await mkdtemp(join(tmpdir(), 'podsched-identity-'));
after(() => rm(folder, { recursive: true }));

interface Board {
  readonly serial?: string;
  readonly bootId?: string;
  /** Interface → address, addr_assign_type, whether a device is behind it. */
  readonly nets?: Readonly<Record<string, readonly [string, string, boolean]>>;
}

let boards = 0;
async function board(b: Board): Promise<{ proc: string; sys: string }> {
  const roots = { proc: join(folder, `${++boards}/proc`), sys: join(folder, `${boards}/sys`) };
  await mkdir(join(roots.proc, 'device-tree'), { recursive: true });
  await mkdir(join(roots.proc, 'sys/kernel/random'), { recursive: true });
  if (b.serial !== undefined) await writeFile(join(roots.proc, 'device-tree/serial-number'), `${b.serial}\0`);
  await writeFile(join(roots.proc, 'sys/kernel/random/boot_id'), `${b.bootId ?? 'boot-1'}\n`);
  for (const [name, [address, kind, device]] of Object.entries(b.nets ?? {})) {
    const net = join(roots.sys, 'class/net', name);
    await mkdir(device ? join(net, 'device') : net, { recursive: true });
    await writeFile(join(net, 'address'), `${address}\n`);
    await writeFile(join(net, 'addr_assign_type'), `${kind}\n`);
  }
  return roots;
}

const load = async (store: MemoryStore, b: Board, configuredName?: string): Promise<Identity> =>
  loadIdentity({
    store,
    log: silentLog,
    configuredName,
    roots: await board(b),
    randomMachine: () => 'cafecafecafe',
    randomBootId: () => 'made-up',
  });

const one = { serial: '10000000a1b2c3d4' };
const two = { serial: '10000000eeeeffff' };

test('the name is made once from the serial number and stays, with the machine', async () => {
  const store = new MemoryStore();
  const first = await load(store, one);
  assert.equal(first.nodeName, 'pi-a1b2c3d4');
  assert.match(first.machine, /^[0-9a-f]{12}$/);
  assert.ok(first.rightful());
  const written = store.entries.get('identity');
  const second = await load(store, one);
  assert.deepEqual([second.nodeName, second.machine], [first.nodeName, first.machine]);
  assert.equal(store.entries.get('identity'), written);
  assert.deepEqual(second.conditions(), []);
});

test('without a serial number the first permanent address counts, not a bridge, not a random one', async () => {
  const nets = {
    lo: ['00:00:00:00:00:00', '0', false],
    cni0: ['4a:00:00:00:00:01', '0', false],
    eth0: ['dc:a6:32:01:02:03', '1', true],
    wlan0: ['DC:A6:32:0A:0B:0C', '0', true],
  } as const;
  const hardware = await readHardware(await board({ nets }));
  assert.deepEqual(hardware, { serial: undefined, macs: ['dc:a6:32:0a:0b:0c'] });
  const identity = await load(new MemoryStore(), { nets });
  assert.equal(identity.nodeName, 'pi-320a0b0c');
});

test('a board with nothing of its own gets a random machine once, and keeps it', async () => {
  const store = new MemoryStore();
  const first = await load(store, {});
  assert.deepEqual([first.nodeName, first.machine], ['pi-cafecafe', 'cafecafecafe']);
  store.entries.set('identity', store.entries.get('identity')?.replaceAll('cafecafecafe', 'beefbeefbeef') ?? '');
  const second = await load(store, {});
  assert.equal(second.machine, 'beefbeefbeef');
  assert.ok(second.rightful());
});

test('every name made is one the contract allows', () => {
  const cases = [
    { serial: 'ABC/def.9', macs: [] },
    { serial: undefined, macs: ['dc:a6:32:0a:0b:0c'] },
    { serial: '///', macs: [] },
    { serial: undefined, macs: [] },
    { serial: 'x', macs: [] },
  ];
  for (const h of cases) assert.match(nameFromHardware(h, 'cafecafecafe'), /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, JSON.stringify(h));
});

test('a serial number of zeros is none', async () => {
  assert.equal((await readHardware(await board({ serial: '0000000000000000' }))).serial, undefined);
});

test('a board known by an address stays the same board when its serial number shows up', async () => {
  const store = new MemoryStore();
  const nets = { eth0: ['dc:a6:32:0a:0b:0c', '0', true] } as const;
  const first = await load(store, { nets });
  const second = await load(store, { nets, ...one });
  assert.equal(second.machine, first.machine);
  assert.equal(second.nodeName, first.nodeName);
  assert.ok(second.rightful());
});

test('the card in another board, no name configured: a new name, IdentityMoved, and the old name is remembered', async () => {
  const store = new MemoryStore();
  await load(store, one);
  const moved = await load(store, two);
  assert.equal(moved.nodeName, 'pi-eeeeffff');
  assert.deepEqual(moved.formerNames(), ['pi-a1b2c3d4']);
  assert.ok(moved.rightful());
  assert.deepEqual(
    moved.conditions().map((c) => c.type),
    ['IdentityMoved'],
  );
  assert.match(moved.conditions()[0]?.message ?? '', /pi-a1b2c3d4/);
  const again = await load(store, two);
  assert.deepEqual(
    again.conditions().map((c) => c.type),
    ['IdentityMoved'],
    'told until a name is configured',
  );
  const settled = await load(store, two, 'attic');
  assert.deepEqual(settled.conditions(), []);
  assert.deepEqual(settled.formerNames(), ['pi-a1b2c3d4', 'pi-eeeeffff']);
});

test('the card in another board with a name configured: not rightful until it takes the name', async () => {
  const store = new MemoryStore();
  const before = await load(store, one, 'attic');
  const after = await load(store, two, 'attic');
  assert.equal(after.nodeName, 'attic');
  assert.equal(after.machine, machineHashes({ serial: two.serial, macs: [] })[0]);
  assert.ok(!after.rightful());
  assert.deepEqual(after.conditions(), []);
  await after.claim();
  assert.ok(after.rightful());
  assert.deepEqual(after.formerMachines(), [before.machine]);
  assert.ok((await load(store, two, 'attic')).rightful(), 'over a restart');
  await after.giveBack(before.machine);
  assert.ok(!after.rightful());
  assert.deepEqual(after.formerMachines(), []);
  assert.ok(!(await load(store, two, 'attic')).rightful());
});

test('another name configured: the earlier one is remembered, since pods may still carry it', async () => {
  const store = new MemoryStore();
  await load(store, one, 'attic');
  await load(store, one, 'cellar');
  const back = await load(store, one, 'attic');
  assert.deepEqual(back.formerNames(), ['cellar']);
  assert.equal((await load(store, one)).nodeName, 'attic', 'a name taken out of the configuration stays the name');
});

test('the boot counter rises with each boot id, not with each start', async () => {
  const store = new MemoryStore();
  const first = await load(store, one);
  assert.ok(!first.bootKnown());
  assert.equal(first.boot(), 1);
  await first.adoptBoot(undefined);
  assert.equal(first.boot(), 1);
  assert.equal((await load(store, one)).boot(), 1);
  const rebooted = await load(store, { ...one, bootId: 'boot-2' });
  assert.ok(rebooted.bootKnown());
  assert.equal(rebooted.bootId, 'boot-2');
  assert.equal(rebooted.boot(), 2);
  assert.equal((await load(store, { ...one, bootId: 'boot-2' })).boot(), 2);
});

test('a lost counter goes on after the greatest one seen', async () => {
  const store = new MemoryStore();
  const lost = await load(store, one);
  await lost.adoptBoot(41);
  assert.equal(lost.boot(), 42);
  await lost.adoptBoot(7);
  assert.equal(lost.boot(), 42, 'adopted once');
  assert.equal((await load(store, { ...one, bootId: 'boot-2' })).boot(), 43);
});

test('unreadable entries are made anew: the name comes from the board again, the counter from what is seen', async () => {
  const store = new MemoryStore();
  const first = await load(store, one);
  await first.adoptBoot(6);
  for (const torn of ['{"nodeN', '{"nodeName":7}', 'null', '[]', '"x"']) {
    store.entries.set('identity', torn);
    store.entries.set('boot', torn);
    const again = await load(store, one);
    assert.equal(again.nodeName, 'pi-a1b2c3d4', torn);
    assert.ok(again.rightful());
    assert.ok(!again.bootKnown());
  }
});

test('an unreadable kernel boot id is replaced by one of this start', async () => {
  const identity = await loadIdentity({
    store: new MemoryStore(),
    log: silentLog,
    configuredName: '',
    roots: { proc: join(folder, 'nowhere'), sys: join(folder, 'nowhere') },
    randomMachine: () => 'cafecafecafe',
    randomBootId: () => 'made-up',
  });
  assert.equal(identity.bootId, 'made-up');
});

test('the model is what the device tree calls the board; a machine without one has none', async () => {
  const roots = await board(one);
  assert.equal(await readModel(roots), undefined);
  await writeFile(join(roots.proc, 'device-tree/model'), 'Raspberry Pi 4 Model B Rev 1.4\0');
  assert.equal(await readModel(roots), 'Raspberry Pi 4 Model B Rev 1.4');
});
