/** Commands, desired state and forgetting on real brokers: mosquitto by MQTT 5, the embedded one, which refuses MQTT 5, by 3.1.1. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import type { DesiredIndex } from '../../src/api/messages.ts';
import { MqttBroker } from '../../src/broker/client.ts';
import { startEmbedded } from '../../src/broker/embedded.ts';
import { applyRemote } from '../../src/cli/apply.ts';
import { deleteRemote } from '../../src/cli/delete.ts';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { forget } from '../../src/cli/forget.ts';
import { RemoteBroker } from '../../src/cli/remoteBroker.ts';
import { remoteClient } from '../../src/cli/remoteClient.ts';
import { RemoteNode } from '../../src/cli/remoteNode.ts';
import { openNode, openRemote } from '../../src/cli/remoteOpen.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { startMosquitto } from '../device/mosquitto.ts';
import { commandBed } from '../remote/commandBed.ts';
import { online, root } from './fleetBed.ts';

const dir = mkdtempSync(join(tmpdir(), 'podsched-real-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const onlineTopic = `${root}/nodes/pi-07/online`;
const print = { out: () => {}, err: () => {}, nowMs: () => Date.now(), sleep: (ms: number) => systemClock.sleep(ms) };
const stdin = async () => new Uint8Array();

/** pi-07 at that broker, with the code that answers commands in the agent. */
async function startNode(server: string, protocolVersion: 4 | 5): Promise<{ stop(): Promise<void> }> {
  const connection = await new MqttBroker().connect(
    {
      server,
      protocolVersion,
      clientId: 'podsched-pi-07-a',
      cleanStart: true,
      keepaliveSeconds: 30,
      will: { topic: onlineTopic, payload: online('pi-07', 'lost'), qos: 1, retain: true, delaySeconds: 0, expirySeconds: 600 },
    },
    { onMessage: (m) => bed.commands.message({ ...m, queued: false }), onClose: () => {} },
  );
  const long = 'a line of the log\n'.repeat(10_000);
  const bed = commandBed({
    view: {
      logs: async () => ({
        ok: true,
        value: (async function* () {
          yield Buffer.from(long);
        })(),
      }),
    },
    deps: {
      clock: systemClock,
      reply: (topic, payload, { correlationData, expirySeconds }) =>
        connection.publish(topic, payload, { qos: 1, retain: false, expirySeconds, ...(correlationData && { correlationData }) }),
    },
  });
  await connection.subscribe([`${root}/cmd/pi-07/+`], 1);
  await connection.publish(onlineTopic, online('pi-07'), { qos: 1, retain: true });
  return {
    stop: async () => {
      await bed.commands.stop();
      await connection.end('drop');
    },
  };
}

async function withBroker(version: 4 | 5, work: (url: string) => Promise<void>): Promise<void> {
  if (version === 5) {
    const m = await startMosquitto();
    try {
      await work(m.url);
    } finally {
      await m.stop();
    }
    return;
  }
  const embedded = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  try {
    await work(embedded.url);
  } finally {
    await embedded.close();
  }
}

for (const version of [5, 4] as const) {
  describe(version === 5 ? 'mosquitto, MQTT 5' : 'the embedded broker, MQTT 3.1.1', () => {
    test('a node is asked and answers; when it is gone that is said', () =>
      withBroker(version, async (server) => {
        const node = await startNode(server, version);
        const client = await openNode('pi-07', { server }, {});
        assert.deepEqual(
          (await client.pods('default')).map((p) => p.metadata.name),
          ['web'],
        );
        let bytes = 0;
        for await (const part of await client.logs({ namespace: 'default', pod: 'web', container: 'app' }, {})) bytes += part.length;
        assert.equal(bytes, 180_000);
        await assert.rejects(client.act({ act: 'restart', namespace: 'default', pod: 'web' }), /does not allow restart over MQTT/);
        await client.close?.();
        const remote = await openRemote({ server }, {});
        assert.equal(remote.protocolVersion, version);
        await assert.rejects(RemoteNode.open(remote, 'pi-99'), (e) => e instanceof CommandError && e.code === exitCodes.notFound);
        const still = await RemoteNode.open(remote, 'pi-07');
        await node.stop();
        await assert.rejects(
          remoteClient(still).sync(),
          (e) => e instanceof CommandError && e.code === exitCodes.unreachable && /is lost/.test(e.message),
        );
        await remote.close();
      }));

    test('objects and their index are put there, changed and taken away; a dead node is forgotten', () =>
      withBroker(version, async (server) => {
        const remote = await openRemote({ server }, {});
        const file = (n: number, text = ''): string => {
          const path = join(dir, `${version}-${n}.yaml`);
          const pods = Array.from(
            { length: n },
            (_, i) => `apiVersion: v1\nkind: Pod\nmetadata: {name: p${i}}\nspec: {containers: [{name: a, image: "b:1${text}"}]}\n`,
          );
          writeFileSync(path, pods.join('---\n'));
          return path;
        };
        const scope = { group: 'attic' } as const;
        const base = `${root}/desired/groups/attic`;
        const index = async (): Promise<DesiredIndex> =>
          JSON.parse(Buffer.from((await remote.retained([`${base}/_index`], (f) => f.size > 0)).get(`${base}/_index`) ?? '').toString());
        await applyRemote({ filename: [file(30)] }, scope, { remote, stdin }, print);
        assert.equal((await index()).entries.length, 30);
        await applyRemote({ filename: [file(5, '2')] }, scope, { remote, stdin }, print);
        assert.equal((await index()).entries.length, 30);
        assert.equal((await index()).generation, 2);
        await deleteRemote(['p3', 'p4'], { namespace: 'default' }, scope, { remote, stdin }, print);
        assert.equal((await index()).entries.length, 28);
        assert.equal((await remote.retained([`${base}/+/+`])).size, 28);

        for (const topic of ['online', 'info', 'pods/default/web'])
          await remote.publish(`${root}/nodes/pi-08/${topic}`, topic === 'online' ? online('pi-08', 'lost') : '{}', { retain: true });
        assert.equal(await forget('pi-08', {}, remote, print), exitCodes.done);
        assert.equal((await remote.retained([`${root}/nodes/pi-08/#`])).size, 0);
        await remote.close();
      }));
  });
}

test('with an ACL that hides desired state, nothing of it is changed', async () => {
  const acl = `user blind\ntopic write ${root}/desired/#\ntopic read ${root}/nodes/#\nuser admin\ntopic readwrite #\n`;
  const m = await startMosquitto({ listener: 'allow_anonymous true\nacl_file @/acl', files: { acl } });
  try {
    const settings = { servers: [m.url], prefix: root, requester: 'blind', tls: {} };
    const open = (username: string) => RemoteBroker.open({ ...settings, username }, { broker: new MqttBroker(), clock: systemClock });
    const admin = await open('admin');
    const index = `${root}/desired/all/_index`;
    await admin.publish(index, JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'DesiredIndex', generation: 5, entries: [] }), {
      retain: true,
    });
    const blind = await open('blind');
    const path = join(dir, 'blind.yaml');
    writeFileSync(path, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: b}\n');
    await assert.rejects(applyRemote({ filename: [path] }, 'all', { remote: blind, stdin }, print), /may not read/);
    assert.match(Buffer.from((await admin.retained([index])).get(index) ?? '').toString(), /"generation":5/);
    assert.equal((await admin.retained([`${root}/desired/all/+/+`])).size, 0);
    await blind.close();
    await admin.close();
  } finally {
    await m.stop();
  }
});
