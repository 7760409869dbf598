/**
 * One card in two boards, on a real mosquitto: what names a node is read from a copied state folder and from device trees of different serial
 * numbers.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { NodeOnline } from '../../src/api/payloads.ts';
import { type Identity, loadIdentity } from '../../src/node/identity.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { until } from '../until.ts';
import { startClient, startNode, stateOf } from './brokerNode.ts';
import { type Keep, startProxy, withParts } from './brokerParts.ts';
import { startMosquitto } from './mosquitto.ts';
import { sleep } from './process.ts';

/** A board, as far as a node asks for it: a device tree with this serial number. */
function board(keep: Keep, serial: string): { readonly proc: string; readonly sys: string } {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-board-'));
  keep({ stop: async () => rmSync(dir, { recursive: true, force: true }) });
  mkdirSync(join(dir, 'proc/device-tree'), { recursive: true });
  writeFileSync(join(dir, 'proc/device-tree/serial-number'), `${serial}\0`);
  return { proc: join(dir, 'proc'), sys: join(dir, 'sys') };
}

const identify = (
  store: MemoryStore,
  roots: { readonly proc: string; readonly sys: string },
  configuredName: string | undefined,
): Promise<Identity> =>
  loadIdentity({
    store,
    log: silentLog,
    configuredName,
    roots,
    randomMachine: () => '0123456789ab',
    randomBootId: () => `boot-of-${roots.proc}`,
  });

function copy(store: MemoryStore): MemoryStore {
  const second = new MemoryStore();
  for (const [key, text] of store.entries) second.entries.set(key, text);
  return second;
}

const online = 'podsched/v1/nodes/twin/online';
const fast = { heartbeatSeconds: () => 1, splayRangeMs: 0 };

describe('two boards, one card', { concurrency: 2 }, () => {
  test('one configured name: the rightful one goes on, the other tells that it is the duplicate, and takes the name when the first is gone', () =>
    withParts(async (keep) => {
      const broker = keep(await startMosquitto());
      const line = await startProxy(broker.port, keep);
      const card = new MemoryStore();
      const first = await identify(card, board(keep, '10000000aaaaaaaa'), 'twin');
      await first.adoptBoot(undefined);
      const copied = copy(card);
      const secondBoard = board(keep, '10000000bbbbbbbb');
      const second = await identify(copied, secondBoard, 'twin');
      assert.deepEqual([first.rightful(), second.rightful(), second.nodeName], [true, false, 'twin']);

      const watcher = keep(await startClient(broker.url, { subscribe: 'podsched/v1/nodes/twin/#' }));
      const machineOnline = () => (watcher.last(online) as NodeOnline | undefined)?.machine;
      const a = keep(startNode([line.url], { name: 'twin', identity: first, ...fast }));
      a.session.setReady();
      a.tellPod('web', { status: { of: 'first' } });
      await until('the first is online', () => stateOf(watcher.last(online)) === 'online' && a.settled());
      const b = keep(startNode([broker.url], { name: 'twin', identity: second, ...fast }));
      b.session.follow([b.topics.commands]);
      b.session.setReady();
      b.tellPod('web', { status: { of: 'second' } });
      const aside = b.topics.duplicate(second.machine);
      await until('the second says what it is', () => stateOf(watcher.last(aside)) === 'duplicate');
      await sleep(2_500);
      const told = watcher.last(a.topics.pod('default', 'web')) as { status: { of: string } };
      assert.deepEqual([machineOnline(), stateOf(watcher.last(online)), told.status.of], [first.machine, 'online', 'first']);
      assert.deepEqual(
        b.session.conditions().map((c) => [c.type, c.reason]),
        [['DuplicateNode', 'NameTaken']],
      );
      assert.deepEqual([a.connects.length, b.connects.length], [1, 1], 'no reconnect storm');
      await watcher.publish('podsched/v1/cmd/twin/resync', '{}');
      await sleep(200);
      assert.deepEqual(b.arrived, [], 'a duplicate hears no commands');

      // the first board dies; the second one is started again
      line.refusing = true;
      line.cut();
      await b.stop();
      const again = await identify(copied, secondBoard, 'twin');
      const heir = keep(startNode([broker.url], { name: 'twin', identity: again, ...fast }));
      heir.tellPod('web', { status: { of: 'second' } });
      await until('the second takes the name', () => machineOnline() === second.machine && heir.settled());
      assert.equal(again.rightful(), true);
      assert.equal((watcher.last(a.topics.pod('default', 'web')) as { status: { of: string } }).status.of, 'second');
      assert.deepEqual(heir.session.conditions(), []);

      // and gives it back when the first was only away
      line.refusing = false;
      await until('the first has its name again', () => machineOnline() === first.machine && stateOf(watcher.last(aside)) === 'duplicate');
      assert.equal(again.rightful(), false);
      const [ofFirst, ofSecond] = [a.connects.length, heir.connects.length];
      await sleep(2_500);
      assert.deepEqual([a.connects.length, heir.connects.length], [ofFirst, ofSecond], 'no reconnect storm');
      assert.equal(machineOnline(), first.machine);
    }));

  test('no configured name: the copied card gives its new board another name, which says so, and both are online', () =>
    withParts(async (keep) => {
      const broker = keep(await startMosquitto());
      const card = new MemoryStore();
      const first = await identify(card, board(keep, '10000000cccccccc'), undefined);
      await first.adoptBoot(undefined);
      const second = await identify(copy(card), board(keep, '10000000dddddddd'), undefined);
      assert.notEqual(second.nodeName, first.nodeName);
      assert.deepEqual(
        second.conditions().map((c) => c.type),
        ['IdentityMoved'],
      );
      const watcher = keep(await startClient(broker.url, { subscribe: 'podsched/v1/nodes/#' }));
      const nodes = [first, second].map((identity) => keep(startNode([broker.url], { name: identity.nodeName, identity, ...fast })));
      await until('both are online', () => nodes.every((n) => stateOf(watcher.last(n.topics.online)) === 'online'));
      await sleep(2_500);
      for (const node of nodes) assert.deepEqual([node.connects.length, node.session.conditions()], [1, []]);
      assert.deepEqual(
        watcher.heard.filter((h) => h.topic.includes('/duplicates/')),
        [],
      );
    }));
});
