/**
 * Brokers of other makes and shapes, at the level of the node's session: a site's mosquitto bridged to a central one, nats-server with JetStream
 * (3.1.1), and three aedes brokers over one Redis.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { desiredTopic } from '../../src/api/topics.ts';
import { until } from '../until.ts';
import { allFilters, startClient, startClientSoon, startNode, stateOf, statusValue } from './brokerNode.ts';
import { type Keep, startProxy, withParts } from './brokerParts.ts';
import { startCluster, startNats } from './brokerServers.ts';
import { fleetBroker, makeAuthority, siteBridge } from './brokerShipped.ts';
import { startMosquitto } from './mosquitto.ts';
import { sleep } from './process.ts';
import { retainedNow } from './watcher.ts';

const prefix = 'podsched/v1';
const pod = (name: string, value: number) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, status: { value } });
const wantedAt = (name: string) => desiredTopic(prefix, { node: 'pi-1' }, { kind: 'Pod', namespace: 'default', name });

/** The central broker of a fleet as it is shipped, and a site that is bridged to it as it is shipped; its own nodes speak plainly. */
async function bridged(keep: Keep) {
  const authority = keep(await makeAuthority('--server', '127.0.0.1', '--operator', 'ops-1', '--operator', 'site-attic'));
  const central = keep(await startMosquitto({ ...fleetBroker(authority), persistence: true }));
  const line = await startProxy(central.port, keep, { tls: true });
  const site = keep(await startMosquitto({ persistence: true, listener: `allow_anonymous true\n${siteBridge(authority, line.port)}` }));
  const operator = keep(
    await startClient(`mqtts://127.0.0.1:${central.port}`, {
      version: 5,
      ca: authority.ca,
      ...authority.of('ops-1'),
      subscribe: `${prefix}/nodes/#`,
    }),
  );
  return { line, site, operator };
}

describe('brokers of other shapes', { concurrency: 4 }, () => {
  test('a bridge: status goes up, desired state comes down; while the line is away the node hears nothing of it, and what changed follows', () =>
    withParts(async (keep) => {
      const { line, operator, site } = await bridged(keep);
      const node = keep(startNode([site.url]));
      const filters = allFilters(node.topics);
      node.session.follow(filters);
      node.tellPod('web', { status: { value: 1 } });
      const topic = node.topics.pod('default', 'web');
      await until('the status is at the centre', () => statusValue(operator.last(topic)) === 1);
      assert.equal(stateOf(operator.last(node.topics.online)), 'online');
      await operator.publish(wantedAt('a'), pod('a', 1), { retain: true });
      await operator.publish(wantedAt('b'), pod('b', 1), { retain: true });
      await until('what is wanted is at the node', () => node.arrived.length === 2 && filters.every((f) => node.snapshots.includes(f)));

      line.refusing = true;
      line.cut();
      await until('the bridge is down', () => line.connections() === 0);
      const [arrived, snapshots] = [node.arrived.length, node.snapshots.length];
      await operator.publish(wantedAt('a'), pod('a', 2), { retain: true });
      node.tellPod('web', { status: { value: 2 } });
      await until('told at the site', () => node.settled());
      await sleep(1_500);
      assert.deepEqual([node.arrived.length, node.snapshots.length, node.connects.length], [arrived, snapshots, 1]);
      assert.deepEqual(node.session.conditions(), []);
      assert.equal(statusValue((await retainedNow(site.url)).get(wantedAt('b'))), 1, 'a node that starts now finds it all at the site');

      line.refusing = false;
      await until('the status follows', () => statusValue(operator.last(topic)) === 2);
      await until('the wish follows', () => node.arrived.some((a) => a.topic === wantedAt('a') && statusValue(JSON.parse(a.text)) === 2));
      assert.ok(!node.arrived.some((a) => a.text === ''), 'nothing was ever taken back');
      // another life of the node, on what the site keeps
      await node.stop();
      const later = keep(startNode([site.url], { follow: allFilters(node.topics) }));
      await until('both again', () => later.arrived.length === 2);
      assert.deepEqual(later.arrived.map((a) => [a.topic, a.retain, statusValue(JSON.parse(a.text))]).sort(), [
        [wantedAt('a'), true, 2],
        [wantedAt('b'), true, 1],
      ]);
    }));

  test('a command through the bridge is answered through the bridge', () =>
    withParts(async (keep) => {
      const { operator, site } = await bridged(keep);
      const node = keep(startNode([site.url]));
      node.session.follow([node.topics.commands]);
      const reply = `${prefix}/reply/ops-1/pi-1`;
      await operator.mqtt.subscribeAsync(reply, { qos: 1 });
      await until('followed', () => node.snapshots.length === 1);
      await until('it arrives', async () => {
        await operator.publish(`${prefix}/cmd/pi-1/resync`, { id: '1', replyTo: reply });
        await sleep(200);
        return node.arrived.length > 0;
      });
      await node.session.reply(reply, '{"id":"1"}', { expirySeconds: 60 });
      await until('the answer', () => operator.heard.some((h) => h.topic === reply && h.text === '{"id":"1"}'));
    }));

  test('nats-server with JetStream: 3.1.1 by itself, retained topics and the will, commands with a reply topic, names with dots, a restart', () =>
    withParts(async (keep) => {
      const nats = keep(await startNats());
      const line = await startProxy(nats.port, keep);
      const node = keep(startNode([line.url]));
      const filters = allFilters(node.topics, ['attic']);
      node.session.follow(filters);
      node.session.setReady();
      node.tellPod('web', { status: { value: 1 } });
      node.tellPod('web.with.dots', { status: { value: 1 } });
      const watcher = keep(await startClient(nats.url, { subscribe: `${prefix}/#` }));
      await until('told and read', () => node.settled() && filters.every((f) => node.snapshots.includes(f)));
      assert.equal(node.connects[0]?.protocolVersion, 4);
      assert.deepEqual(node.session.conditions(), []);
      const dotted = node.topics.pod('default', 'web.with.dots');
      assert.ok(dotted.endsWith('/web~with~dots'));
      await until('a reader has it', () => statusValue(watcher.last(dotted)) === 1);

      const wanted = wantedAt('some.thing');
      await watcher.publish(wanted, pod('some.thing', 1), { retain: true });
      await until('what is wanted arrives', () => node.arrived.some((a) => a.topic === wanted));
      const reply = `${prefix}/reply/ops-1/pi-1`;
      await watcher.publish(`${prefix}/cmd/pi-1/get`, { id: '1', replyTo: reply });
      await until('the command arrives', () => node.arrived.some((a) => a.topic === `${prefix}/cmd/pi-1/get` && !a.queued));
      await node.session.reply(reply, '{"id":"1","status":"ok"}', { expirySeconds: 60 });
      await until('the reply', () => watcher.heard.some((h) => h.topic === reply));

      line.refusing = true;
      line.cut();
      await until('lost is told', () => stateOf(watcher.last(node.topics.online)) === 'lost');
      line.refusing = false;
      await until('online again', () => stateOf(watcher.last(node.topics.online)) === 'online' && node.settled());

      await nats.restart();
      await until('away', () => !watcher.mqtt.connected);
      node.tellPod('web', { status: { value: 2 } });
      const reader = keep(await startClientSoon(nats.url, { subscribe: `${prefix}/#` }));
      await until('everything is true again', () => statusValue(reader.last(node.topics.pod('default', 'web'))) === 2 && node.settled());
      await until('what was kept', () => statusValue(reader.last(dotted)) === 1 && statusValue(reader.last(wanted)) === 1);
      const dots = [...watcher.heard, ...reader.heard].map((h) => h.topic).filter((t) => t.replace(prefix, '').includes('.'));
      assert.deepEqual(dots, []);
      assert.ok(!node.arrived.some((a) => a.text === ''));
    }));

  test('three aedes over one Redis, one killed while statuses change: the others have every topic as it is, and the inbox goes on', () =>
    withParts(async (keep) => {
      const cluster = keep(await startCluster());
      const [first = '', second = '', third = ''] = cluster.urls;
      const node = keep(startNode(cluster.urls));
      const filters = allFilters(node.topics);
      node.session.follow(filters);
      const pods = Array.from({ length: 20 }, (_, i) => `p${i}`);
      for (const name of pods) node.tellPod(name, { status: { value: 0 } });
      await until('told and read', () => node.settled() && filters.every((f) => node.snapshots.includes(f)));
      assert.equal(node.connects[0]?.server, first);
      const operator = keep(await startClient(third, { subscribe: `${prefix}/nodes/#` }));
      await operator.publish(wantedAt('a'), pod('a', 1), { retain: true });
      await until('through another broker', () => node.arrived.some((a) => a.topic === wantedAt('a')));

      let value = 1;
      const changing = setInterval(() => {
        for (const name of pods) node.tellPod(name, { status: { value } });
        value++;
      }, 100);
      await sleep(300);
      await cluster.kill(first);
      await until('moved', () => node.connects.length >= 2 && node.session.connected());
      clearInterval(changing);
      await until('told', () => node.settled());
      assert.notEqual(node.connects.at(-1)?.server, first);
      for (const url of [second, third]) {
        const now = await retainedNow(url, `${prefix}/nodes/#`);
        assert.deepEqual(
          pods.map((name) => statusValue(now.get(node.topics.pod('default', name)))),
          pods.map(() => value - 1),
        );
        assert.equal(stateOf(now.get(node.topics.online)), 'online');
      }
      await operator.publish(wantedAt('b'), pod('b', 1), { retain: true });
      await until('the inbox goes on', () => node.arrived.some((a) => a.topic === wantedAt('b')));
      assert.ok(!node.arrived.some((a) => a.text === ''));
    }));
});
