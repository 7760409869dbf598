/**
 * Field cases I2, I5 and I6 on a real mosquitto, at the level of the node's session: a line that is cut between PUBLISH and PUBACK, is half-open,
 * or slow; a broker that forgets, or remembers; one that takes small packets only; what was queued while the node was away.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { desiredTopic } from '../../src/api/topics.ts';
import { until } from '../until.ts';
import { allFilters, type BrokerNode, startClient, startClientSoon, startNode, stateOf, statusValue } from './brokerNode.ts';
import { startProxy, withParts } from './brokerParts.ts';
import { startMosquitto } from './mosquitto.ts';
import { sleep } from './process.ts';
import { retainedNow } from './watcher.ts';

const prefix = 'podsched/v1';

const event = (n: number) => JSON.stringify({ apiVersion: 'v1', kind: 'Event', metadata: { name: `e${n}` } });

describe('a session on a line and a broker with faults', { concurrency: 8 }, () => {
  for (const [where, from, packet] of [
    ['the PUBACK of a status never arrives', 'server', 'PUBACK'],
    ['the PUBLISH of a status never arrives', 'client', 'PUBLISH'],
  ] as const) {
    for (const version of [5, 4] as const) {
      test(`cut where ${where}, MQTT ${version}: told again, no event lost, none told more than twice`, () =>
        withParts(async (keep) => {
          const m = keep(await startMosquitto());
          const proxy = await startProxy(m.port, keep);
          const node = keep(startNode([proxy.url], version === 4 ? { version } : {}));
          const watcher = keep(await startClient(m.url, { subscribe: `${prefix}/#` }));
          const topic = node.topics.pod('default', 'web');
          node.tellPod('web', { status: { value: 0 } });
          await until('told', () => node.settled() && statusValue(watcher.last(topic)) === 0);

          let cuts = 0;
          let watched: number | undefined;
          proxy.onPacket = (p, side) => {
            if (side === 'client' && p.topic === topic) watched = p.packetId;
            const hit = side === from && p.name === packet && (packet === 'PUBACK' ? p.packetId === watched : p.topic === topic);
            if (!hit || watched === undefined || cuts >= 1) return 'pass';
            cuts++;
            watched = undefined;
            return 'cut';
          };
          for (let i = 1; i <= 5; i++) {
            node.session.send(node.topics.events('default'), event(i), { qos: 1, expirySeconds: 3600 });
            node.tellPod('web', { status: { value: i } });
          }
          await until('cut, and everything told', () => cuts === 1 && node.connects.length === 2 && node.settled());
          await until('the last value', () => statusValue(watcher.last(topic)) === 5);
          assert.equal(statusValue((await retainedNow(m.url)).get(topic)), 5);
          const names = watcher.heard.filter((h) => h.topic.includes('/events/')).map((h) => JSON.parse(h.text).metadata.name as string);
          for (let i = 1; i <= 5; i++) {
            const times = names.filter((n) => n === `e${i}`).length;
            assert.ok(times === 1 || times === 2, `e${i} was told ${times} times`);
          }
          assert.deepEqual(node.reports, []);
        }));
    }
  }

  test('I5: a half-open line is found by keepalive, the new connection is no fight with the old one, and the last values are told', () =>
    withParts(async (keep) => {
      const m = keep(await startMosquitto());
      const proxy = await startProxy(m.port, keep);
      const node = keep(startNode([proxy.url], { keepaliveSeconds: 2 }));
      node.tellPod('web', { status: { value: 0 } });
      await until('told', () => node.settled());
      proxy.halfOpen();
      node.tellPod('web', { status: { value: 1 } });
      const silentAt = performance.now();
      await until('a second connection', () => node.connects.length === 2);
      const foundMs = performance.now() - silentAt;
      await until('told', () => node.settled());
      assert.equal(statusValue((await retainedNow(m.url)).get(node.topics.pod('default', 'web'))), 1);
      // the broker throws the old one out when the new one comes: that is nothing to answer
      await sleep(2_500);
      assert.equal(node.connects.length, 2);
      assert.ok(node.session.connected());
      assert.deepEqual(node.session.conditions(), []);
      console.log(`  a half-open line is found after ${(foundMs / 1000).toFixed(1)} s (keepalive 2 s)`);
    }));

  test('a slow line (300 ms each way) and one that swallows PINGs: slow is no fault, silent is', () =>
    withParts(async (keep) => {
      const m = keep(await startMosquitto());
      const proxy = await startProxy(m.port, keep);
      proxy.delayMs = 300;
      const node = keep(startNode([proxy.url], { keepaliveSeconds: 2 }));
      for (let i = 0; i < 40; i++) node.tellPod(`p${i}`);
      await until('all told', () => node.settled());
      await sleep(2_500);
      assert.equal(node.connects.length, 1);
      assert.deepEqual(node.session.conditions(), []);
      proxy.onPacket = (p) => (p.name === 'PINGREQ' ? 'drop' : 'pass');
      await until('a second connection', () => node.connects.length >= 2);
    }));

  for (const version of [5, 4] as const) {
    for (const persistence of [true, false]) {
      const what = persistence ? 'with a store' : 'without one';
      test(`I2: mosquitto ${what} restarts, MQTT ${version}: subscriptions and what is retained are back, and nothing looks deleted`, () =>
        withParts(async (keep) => {
          const m = keep(await startMosquitto({ persistence }));
          const scope = { node: 'pi-1' };
          const wanted = desiredTopic(prefix, scope, { kind: 'Pod', namespace: 'default', name: 'wanted' });
          const first = await startClient(m.url);
          await first.publish(wanted, { kind: 'Pod' }, { retain: true });
          await first.stop();
          const node = keep(startNode([m.url], version === 4 ? { version } : {}));
          const filters = allFilters(node.topics, ['attic']);
          node.session.follow(filters);
          for (let i = 0; i < 5; i++) node.tellPod(`p${i}`);
          await until('told and read', () => node.settled() && filters.every((f) => node.snapshots.includes(f)));
          assert.deepEqual(
            node.arrived.map((a) => [a.topic, a.retain]),
            [[wanted, true]],
          );
          const [arrived, snapshots] = [node.arrived.length, node.snapshots.length];
          await m.restart({ empty: !persistence });
          await until('connected again', () => node.connects.length === 2 && node.settled());
          assert.equal(node.connects[1]?.sessionPresent, version === 5 && persistence);
          if (version === 4 || !persistence) await until('read again', () => node.snapshots.length >= snapshots + filters.length);
          const operator = keep(await startClientSoon(m.url));
          const live = desiredTopic(prefix, { group: 'attic' }, { kind: 'ConfigMap', namespace: 'default', name: 'live' });
          await operator.publish(live, { kind: 'ConfigMap' }, { retain: true });
          await until('what is new arrives', () => node.arrived.some((a) => a.topic === live));
          assert.ok(!node.arrived.slice(arrived).some((a) => a.text === ''), 'what the broker lost is not deleted');
          const now = [...(await retainedNow(m.url, `${prefix}/nodes/#`)).keys()].sort();
          assert.deepEqual(now, [node.topics.online, ...[0, 1, 2, 3, 4].map((i) => node.topics.pod('default', `p${i}`))].sort());
        }));
    }
  }

  test('I6: mosquitto takes 2,000 bytes, MQTT 5: a large status is told cut and says so, and the connection stays', () =>
    withParts(async (keep) => {
      const m = keep(await startMosquitto({ listener: 'allow_anonymous true\nmax_packet_size 2000' }));
      const node = keep(startNode([m.url]));
      for (let i = 0; i < 5; i++) {
        node.tellPod('large', { status: { value: i, message: 'x'.repeat(10_000) } });
        await until('told', () => node.settled());
      }
      const now = (await retainedNow(m.url)).get(node.topics.pod('default', 'large')) as { metadata: { annotations: object } };
      assert.ok('podsched.dev/truncated' in now.metadata.annotations);
      assert.equal(statusValue(now), 4);
      assert.equal(node.connects.length, 1);
    }));

  test('I6: the same in 3.1.1, where nobody says how much it takes: after two disconnects that status is dropped and told, the rest goes on', () =>
    withParts(async (keep) => {
      const m = keep(await startMosquitto({ listener: 'allow_anonymous true\nmax_packet_size 2000' }));
      const node = keep(startNode([m.url], { version: 4 }));
      node.tellPod('small', { status: { value: 0 } });
      await until('told', () => node.settled());
      node.tellPod('large', { status: { message: 'x'.repeat(10_000) } });
      await until('dropped, and told', () => node.reports.some((r) => r.topic.endsWith('/large')));
      await until('connected', () => node.session.connected());
      node.tellPod('small', { status: { value: 1 } });
      await until('the other goes on', async () => statusValue((await retainedNow(m.url)).get(node.topics.pod('default', 'small'))) === 1);
      const connects = node.connects.length;
      await sleep(3_000);
      assert.equal(node.connects.length, connects, 'no loop');
      assert.ok(connects <= 4, `${connects} connections`);
      assert.ok(node.session.connected());
    }));

  test('a command that a 3.1.1 client sends while an MQTT 5 node is away, within its session, arrives marked as queued; a later one is not', () =>
    withParts(async (keep) => {
      const m = keep(await startMosquitto());
      const proxy = await startProxy(m.port, keep);
      const node: BrokerNode = keep(startNode([proxy.url]));
      node.session.follow([node.topics.commands]);
      const operator = keep(await startClient(m.url, { version: 4 }));
      const topic = `${prefix}/cmd/${node.name}/restart`;
      const command = (id: string) => ({
        apiVersion: 'podsched.dev/v1',
        kind: 'Command',
        id,
        replyTo: `${prefix}/reply/ops-1/${node.name}`,
      });
      await until('followed', () => node.snapshots.includes(node.topics.commands));
      await operator.publish(topic, command('before'));
      await until('it arrives', () => node.arrived.length === 1);
      proxy.refusing = true;
      proxy.cut();
      await until('away', () => !node.session.connected());
      await operator.publish(topic, command('meanwhile'));
      proxy.refusing = false;
      await until('back', () => node.session.connected());
      await until('what waited arrives', () => node.arrived.length === 2);
      await until('followed again', () => node.snapshots.length === 2);
      await operator.publish(topic, command('after'));
      await until('it arrives', () => node.arrived.length === 3);
      assert.equal(node.connects[1]?.sessionPresent, true);
      assert.deepEqual(
        node.arrived.map((a) => [JSON.parse(a.text).id, a.queued]),
        [
          ['before', false],
          ['meanwhile', true],
          ['after', false],
        ],
      );
    }));

  test('a node whose line breaks is told lost, and says online again by itself', () =>
    withParts(async (keep) => {
      const m = keep(await startMosquitto());
      const proxy = await startProxy(m.port, keep);
      // 3.1.1 has no delay of wills
      const node = keep(startNode([proxy.url], { version: 4 }));
      const watcher = keep(await startClient(m.url, { subscribe: node.topics.online }));
      await until('online', () => stateOf(watcher.last(node.topics.online)) === 'online');
      proxy.refusing = true;
      proxy.cut();
      await until('lost', () => stateOf(watcher.last(node.topics.online)) === 'lost');
      proxy.refusing = false;
      await until('online', () => stateOf(watcher.last(node.topics.online)) === 'online');
    }));
});
