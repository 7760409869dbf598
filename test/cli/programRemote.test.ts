/** Commands with `--node` and `--server`, as they are typed, over the embedded broker: what is printed, and how they end. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MqttBroker } from '../../src/broker/client.ts';
import { type EmbeddedBroker, startEmbedded } from '../../src/broker/embedded.ts';
import { exitCodes } from '../../src/cli/exitCodes.ts';
import { runCommand } from '../../src/cli/program.ts';
import type { BrokerConnection } from '../../src/world/broker.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { fakeConsole } from '../fakes/fakeConsole.ts';
import { nowMs } from '../operations/view.ts';
import { commandBed } from '../remote/commandBed.ts';
import { online, root } from './fleetBed.ts';

let broker: EmbeddedBroker;
let node: BrokerConnection;
const acts: unknown[] = [];
before(async () => {
  broker = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  const will = {
    topic: `${root}/nodes/pi-07/online`,
    payload: online('pi-07', 'lost'),
    qos: 1,
    retain: true,
    delaySeconds: 0,
    expirySeconds: 60,
  } as const;
  node = await new MqttBroker().connect(
    { server: broker.url, protocolVersion: 4, clientId: 'node', cleanStart: true, keepaliveSeconds: 30, will },
    { onMessage: (m) => bed.commands.message({ ...m, queued: false }), onClose: () => {} },
  );
  const bed = commandBed({
    allows: ['get', 'describe', 'why', 'events', 'top', 'doctor', 'logs', 'stop', 'exec'],
    view: {
      act: async (request) => {
        acts.push(request);
        return { ok: true, value: { message: 'pod/web is stopped' } };
      },
      execCaptured: async () => ({
        ok: true,
        value: { exitCode: 7, stdout: Buffer.from('out'), stderr: new Uint8Array(), truncated: false },
      }),
    },
    deps: { clock: systemClock, reply: (topic, payload) => node.publish(topic, payload, { qos: 1, retain: false }) },
  });
  await node.subscribe([`${root}/cmd/pi-07/+`], 1);
  await node.publish(will.topic, online('pi-07'), { qos: 1, retain: true });
  await node.publish(`${root}/nodes/pi-08/online`, online('pi-08', 'offline'), { qos: 1, retain: true });
});
after(async () => {
  await node.end('disconnect');
  await broker.close();
});

async function typed(command: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const write = async (bytes: Uint8Array): Promise<void> => {
    out += Buffer.from(bytes).toString();
  };
  const terminal = fakeConsole();
  const code = await runCommand([command, '--server', broker.url, ...args], {
    print: { out: (t) => (out += t), err: (t) => (err += t), nowMs: () => nowMs, sleep: async () => {} },
    env: {},
    stdin: async () => new Uint8Array(),
    bytes: { isTerminal: false, write },
    console: () => ({ ...terminal, output: { isTerminal: false, write } }),
  });
  return { code, out, err };
}

test('a node is asked, and the answer looks as it does on the machine itself', async () => {
  const { code, out } = await typed('get', 'pods', '-A', '--node', 'pi-07');
  assert.equal(code, exitCodes.done);
  assert.match(out, /^kitchen +cam +1\/1/m);
  assert.match((await typed('why', 'web', '--node', 'pi-07')).out, /web/);
  assert.match((await typed('describe', 'pod', 'web', '--node', 'pi-07')).out, /^Name: +web$/m);
});

test('what it allows is done, and what it does not allow is said', async () => {
  const stopped = await typed('stop', 'web', '--node', 'pi-07');
  assert.deepEqual(stopped, { code: 0, out: 'pod/web is stopped\n', err: '' });
  assert.deepEqual(acts, [{ act: 'stop', namespace: 'default', pod: 'web' }]);
  const denied = await typed('restart', 'web', '--node', 'pi-07');
  assert.equal(denied.code, exitCodes.failed);
  assert.match(denied.err, /^podsched: node "pi-07" does not allow restart over MQTT/);
  const ran = await typed('exec', 'web', '--node', 'pi-07', '--', 'cat', '--node');
  assert.equal(ran.out, 'out');
  assert.equal(ran.code, 7, ran.err);
});

test('who is not there: 4 for a node that is off, 3 for one that nobody knows', async () => {
  const off = await typed('get', 'pods', '--node', 'pi-08');
  assert.equal(off.code, exitCodes.unreachable);
  assert.match(off.err, /"pi-08" is offline/);
  const unknown = await typed('get', 'pods', '--node', 'pi-09');
  assert.equal(unknown.code, exitCodes.notFound);
});

test('without a node the whole fleet is meant', async () => {
  const { code, out } = await typed('get', 'nodes');
  assert.equal(code, exitCodes.done);
  assert.match(out, /^pi-07 +Unknown[\s\S]*^pi-08 +Offline/m);
});

test('what only the machine itself can do is refused before anything is asked or written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'podsched-cli-'));
  const file = join(folder, 'web.yaml');
  await writeFile(file, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n');
  const before = await readdir(folder);
  for (const [args, words] of [
    [['debug', 'web', '--image', 'busybox:1', '--node', 'pi-07'], /^podsched: debug cannot be done over MQTT/],
    [['doctor', '--node', 'pi-07', '--fix'], /^podsched: over MQTT \(--node\) the doctor looks, and repairs nothing/],
    [['apply', '-f', file], /^podsched: --server is about topics: of which\? --node NAME, --group NAME or --all/],
    [['delete', '-f', file], /^podsched: --server is about topics/],
    [['diff', '-f', file], /^podsched: --server is about topics/],
  ] as const) {
    const [command, ...rest] = args;
    const { code, out, err } = await typed(command, ...rest);
    assert.equal(code, exitCodes.usage, `${args.join(' ')}: ${err}`);
    assert.match(err, words);
    assert.equal(out, '');
  }
  const imported = await runCommand(['images', 'import', file, '--node', 'pi-07', '--server', broker.url], {
    print: { out: () => {}, err: () => {}, nowMs: () => nowMs, sleep: async () => {} },
    env: {},
    stdin: async () => new Uint8Array(),
    bytes: { isTerminal: false, write: async () => {} },
    console: fakeConsole,
  });
  assert.equal(imported, exitCodes.usage);
  assert.deepEqual(await readdir(folder), before);
  await rm(folder, { recursive: true });
});
