/**
 * A broker as a fleet has it, at the level of sessions and plain clients: TLS, certificates of the nodes' own, the configuration and access list
 * that are shipped. Who may say and hear what is tried message by message, not read from the list.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { until } from '../until.ts';
import { allFilters, type BrokerNodeOptions, type Client, quiet, startClient, startNode, stateOf } from './brokerNode.ts';
import { startProxy, withParts } from './brokerParts.ts';
import { type Authority, type Certificate, fleetBroker, makeAuthority } from './brokerShipped.ts';
import { type Mosquitto, startMosquitto } from './mosquitto.ts';
import { sleep } from './process.ts';

const prefix = 'podsched/v1';

/** Who takes part, by the common names of their certificates. */
const people = ['pi-a', 'pi-b', 'ops-1', 'admin-1', 'viewer-1', 'home-assistant'] as const;
type Person = (typeof people)[number];

let authority: Authority;
before(async () => {
  authority = await makeAuthority('--server', '127.0.0.1', ...people.flatMap((p) => [p.startsWith('pi-') ? '--node' : '--operator', p]));
});
after(() => authority.stop());

interface Shown {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

const withTls = (tls: () => Shown): BrokerNodeOptions => ({
  insecure: false,
  credentials: async () => {
    const { ca, cert, key } = tls();
    return {
      tls: {
        ...(ca !== undefined && { ca: Buffer.from(ca) }),
        ...(cert !== undefined && { cert: Buffer.from(cert) }),
        ...(key !== undefined && { key: Buffer.from(key) }),
      },
    };
  },
});

const urlOf = (port: number): string => `mqtts://127.0.0.1:${port}`;

function tls(): void {
  test('a server of another authority, of no known one, or of another name is told, and never spoken to', () =>
    withParts(async (keep) => {
      const m = keep(await startMosquitto(fleetBroker(authority)));
      const stranger = keep(await makeAuthority('--server', '192.0.2.1', '--node', 'pi-2'));
      const elsewhere = keep(await startMosquitto(fleetBroker(stranger)));
      const mine = authority.of('pi-a');
      const refused = [
        keep(startNode([urlOf(m.port)], { name: 'pi-1', ...withTls(() => ({ ...mine, ca: stranger.ca })) })),
        keep(startNode([urlOf(m.port)], { name: 'pi-2', ...withTls(() => mine) })),
        keep(startNode([urlOf(elsewhere.port)], { name: 'pi-3', ...withTls(() => ({ ...stranger.of('pi-2'), ca: stranger.ca })) })),
      ];
      for (const n of refused) {
        await until('told', () =>
          n.session.conditions().some((c) => c.type === 'BrokerUnreachable' && /certificate|altname|self.signed/i.test(c.message)),
        );
        assert.deepEqual(n.connects, []);
      }
    }));

  test('a node without a certificate is sent away, with one it is in; a renewed one is read at the next connection, a revoked one is sent away', () =>
    withParts(async (keep) => {
      const own = keep(await makeAuthority('--server', '127.0.0.1', '--node', 'pi-1'));
      const m = keep(await startMosquitto(fleetBroker(own)));
      const proxy = await startProxy(m.port, keep, { tls: true });
      let shown: Shown = { ca: own.ca };
      const node = keep(
        startNode(
          [urlOf(proxy.port)],
          withTls(() => shown),
        ),
      );
      await until('told', () => node.session.conditions().some((c) => c.type === 'BrokerUnreachable'));
      assert.deepEqual(node.connects, []);
      const first = own.of('pi-1');
      shown = { ca: own.ca, ...first };
      await until('connected', () => node.session.connected());
      await own.make('--renew', 'pi-1');
      assert.notEqual(own.of('pi-1').cert, first.cert);
      shown = { ca: own.ca, ...own.of('pi-1') };
      proxy.cut();
      await until('again', () => node.connects.length === 2 && node.settled());
      assert.deepEqual(node.session.conditions(), []);
      const connects = node.connects.length;
      await own.make('--revoke', 'pi-1');
      await m.restart();
      await until('sent away', () => node.session.conditions().some((c) => c.type === 'BrokerUnreachable'));
      await sleep(1_500);
      assert.equal(node.connects.length, connects);
    }));

  test('plain mqtt:// beyond loopback is refused unless the configuration says insecure', () =>
    withParts(async (keep) => {
      const node = keep(startNode(['mqtt://192.0.2.1:1883']));
      await until('told', () => node.session.conditions().some((c) => c.reason === 'Refused' && /insecure/.test(c.message)));
    }));
}

const topicsOf = (node: string): readonly string[] =>
  ['online', 'info', '_marker', 'pods/default/web', 'sync/default/web', 'events/default', 'duplicates/aaaa'].map(
    (t) => `${prefix}/nodes/${node}/${t}`,
  );

interface Rule {
  readonly topics: readonly string[];
  readonly write: readonly Person[];
  readonly read: readonly Person[];
}

const [operators, watchers]: readonly [readonly Person[], readonly Person[]] = [
  ['ops-1', 'admin-1'],
  ['ops-1', 'admin-1', 'viewer-1', 'home-assistant'],
];

const rules: readonly Rule[] = [
  { topics: topicsOf('pi-a'), write: ['pi-a', 'admin-1'], read: ['pi-a', ...watchers] },
  { topics: topicsOf('pi-b'), write: ['pi-b', 'admin-1'], read: ['pi-b', ...watchers] },
  {
    topics: [`${prefix}/desired/nodes/pi-a/default/web`, `${prefix}/desired/nodes/pi-a/_index`],
    write: operators,
    read: ['pi-a', ...operators],
  },
  {
    topics: [`${prefix}/desired/nodes/pi-b/default/web`, `${prefix}/desired/nodes/pi-b/_config`],
    write: operators,
    read: ['pi-b', ...operators],
  },
  // a pattern without a name in it is everybody's: what is secret is in node topics, or sealed
  {
    topics: [`${prefix}/desired/groups/attic/default/web`, `${prefix}/desired/all/_index`, `${prefix}/rollouts/r1`],
    write: operators,
    read: people,
  },
  { topics: [`${prefix}/cmd/pi-a/restart`], write: [...operators, 'home-assistant'], read: ['pi-a'] },
  { topics: [`${prefix}/cmd/pi-b/exec`], write: operators, read: ['pi-b'] },
  { topics: [`${prefix}/reply/ops-1/pi-a`], write: ['pi-a'], read: ['ops-1'] },
  { topics: [`${prefix}/reply/admin-1/pi-b`], write: ['pi-b'], read: ['admin-1'] },
  { topics: ['homeassistant/device/pi-a/config'], write: ['pi-a', 'admin-1'], read: ['home-assistant'] },
  { topics: ['homeassistant/status'], write: ['home-assistant'], read: people },
  { topics: ['elsewhere/x', 'podsched/v2/nodes/pi-a/online'], write: [], read: [] },
];

function accessList(): void {
  let m: Mosquitto;
  let certificates: Readonly<Record<Person, Certificate>>;
  before(async () => {
    m = await startMosquitto(fleetBroker(authority));
    certificates = Object.fromEntries(people.map((p) => [p, authority.of(p)] as const)) as Record<Person, Certificate>;
  });
  after(() => m.stop());

  const clientOf = (person: Person, subscribe?: string): Promise<Client> =>
    startClient(urlOf(m.port), { version: 5, ca: authority.ca, ...certificates[person], ...(subscribe !== undefined && { subscribe }) });

  test('each person says everything and listens to everything: what arrives is what the contract allows, message by message', () =>
    withParts(async (keep) => {
      const clients = new Map<Person, Client>();
      for (const person of people) {
        // the list grants the subscription, and then gives what may be read
        clients.set(person, keep(await clientOf(person, '#')));
      }
      const want = new Set<string>();
      for (const { topics, write, read } of rules) {
        for (const topic of topics) {
          for (const [person, client] of clients) {
            await client.publish(topic, person).catch(() => {}); // refused: it does not arrive, which is what counts
            for (const reader of read) if (write.includes(person)) want.add(`${person} says ${topic}, ${reader} hears it`);
          }
        }
      }
      const heard = () =>
        new Set(
          [...clients].flatMap(([reader, client]) => client.heard.map(({ text, topic }) => `${text} says ${topic}, ${reader} hears it`)),
        );
      await until('what may arrive has arrived', () => [...want].every((w) => heard().has(w))).catch(() => {}); // compared below
      await quiet(() => heard().size);
      assert.deepEqual([...heard()].sort(), [...want].sort());
    }));

  test('with a good certificate of another name nothing of a node can be written, cleared or read, retained or not', () =>
    withParts(async (keep) => {
      const info = `${prefix}/nodes/pi-a/info`;
      const wanted = `${prefix}/desired/nodes/pi-a/default/web`;
      const a = keep(await clientOf('pi-a', `${prefix}/nodes/pi-a/#`));
      const operator = keep(await clientOf('ops-1'));
      await a.publish(info, 'mine', { retain: true });
      await operator.publish(wanted, 'wanted', { retain: true });
      const b = keep(await clientOf('pi-b', `${prefix}/nodes/pi-a/#`));
      await b.mqtt.subscribeAsync([`${prefix}/desired/nodes/pi-a/#`, `${prefix}/cmd/pi-a/#`, wanted, info], { qos: 1 });
      for (const topic of [info, wanted]) {
        await b.publish(topic, 'forged', { retain: true }).catch(() => {}); // refused
        await b.publish(topic, '', { retain: true }).catch(() => {}); // refused
      }
      await operator.publish(`${prefix}/cmd/pi-a/get`, '{}');
      const later = keep(await clientOf('ops-1', info));
      await later.mqtt.subscribeAsync(wanted, { qos: 1 });
      await until('what is retained', () => later.heard.length === 2);
      await quiet(() => later.heard.length + b.heard.length);
      assert.deepEqual(
        later.heard.map((h) => [h.topic, h.text]),
        [
          [info, 'mine'],
          [wanted, 'wanted'],
        ],
      );
      assert.deepEqual(b.heard, []);
      await a.publish(info, '', { retain: true });
      await operator.publish(wanted, '', { retain: true });
    }));

  for (const version of [5, 4] as const) {
    test(`a node's session needs nothing beyond the list, MQTT ${version}: telling, desired state, groups, commands, replies, ghosts, the will`, () =>
      withParts(async (keep) => {
        const proxy = await startProxy(m.port, keep, { tls: true });
        const options = {
          name: 'pi-a',
          ...withTls(() => ({ ca: authority.ca, ...certificates['pi-a'] })),
          ...(version === 4 && { version }),
        };
        const operator = keep(await clientOf('ops-1', `${prefix}/nodes/#`));
        await operator.mqtt.subscribeAsync(`${prefix}/reply/ops-1/#`, { qos: 1 });
        const admin = keep(await clientOf('admin-1'));
        const ghost = `${prefix}/nodes/pi-a/pods/default/ghost`;
        await admin.publish(ghost, { kind: 'Pod' }, { retain: true });
        await operator.publish(`${prefix}/desired/groups/attic/default/web`, { kind: 'Pod' }, { retain: true });

        const node = keep(startNode([urlOf(proxy.port)], options));
        const filters = [...allFilters(node.topics, ['attic']), 'homeassistant/status'];
        node.session.follow(filters);
        node.tellPod('web', { status: { value: 1 } });
        node.session.tell('homeassistant/device/pi-a/config', '{}', { qos: 1 });
        node.session.setReady();
        await until('told and read', () => node.settled() && filters.every((f) => node.snapshots.includes(f)));
        await until('desired', () => node.arrived.some((a) => a.topic.endsWith('/groups/attic/default/web')));
        await operator.publish(`${prefix}/cmd/pi-a/get`, { id: '1', replyTo: `${prefix}/reply/ops-1/pi-a` });
        await until('the command', () => node.arrived.some((a) => a.topic.endsWith('/cmd/pi-a/get')));
        await node.session.reply(`${prefix}/reply/ops-1/pi-a`, '{"id":"1"}', { expirySeconds: 60 });
        await until('the reply', () => operator.heard.some((h) => h.topic === `${prefix}/reply/ops-1/pi-a`));
        await until('the ghost is gone', () => operator.heard.some((h) => h.topic === ghost && h.text === ''));
        assert.deepEqual([node.session.conditions(), node.reports], [[], []]);
        if (version === 4) {
          // in MQTT 5 the will waits for 30 s
          proxy.refusing = true;
          proxy.cut();
          await until('lost', () => stateOf(operator.last(node.topics.online)) === 'lost');
          proxy.refusing = false;
          await until('online', () => stateOf(operator.last(node.topics.online)) === 'online');
        }
        await operator.publish(`${prefix}/desired/groups/attic/default/web`, '', { retain: true });
        await node.stop();
        await until('offline', () => stateOf(operator.last(node.topics.online)) === 'offline');
      }));
  }
}

describe('mosquitto as it is shipped', { concurrency: 2 }, () => {
  describe('TLS', { concurrency: 3 }, tls);
  // one after the other: what one says, another would hear
  describe('the access list', { concurrency: 1 }, accessList);
});
