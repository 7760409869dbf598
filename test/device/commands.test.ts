/**
 * What a person asks a node over MQTT: the real bundle on a real mosquitto and a real containerd, by MQTT 5's response topics and by 3.1.1's
 * reply topics. Looking is allowed; what changes something needs the policy's word.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { connectAsync } from 'mqtt';
import { type Commander, commander } from './commands.ts';
import { type Lab, startLab } from './lab.ts';
import { container, exit, manifest, pod } from './manifest.ts';
import { until } from './process.ts';
import { agreed, footprint, gone, toldPod, toldSync } from './truth.ts';

const node = 'commands';
let lab: Lab;
const askers: Commander[] = [];
before(async () => {
  lab = await startLab(node, { config: { fileCheckFrequency: '1s' } });
  for (const version of [5, 4] as const) askers.push(await commander(lab.broker.url, node, version));
  lab.agent.drop(
    'web.yaml',
    manifest(pod('web', { containers: [container('main', ['sh', '-c', 'echo hello; trap "exit 0" TERM; sleep 2147483647 & wait'])] })),
  );
  lab.agent.drop('once.yaml', manifest(pod('once', { restartPolicy: 'Never', containers: [container('main', exit(0))] })));
  await agreed(lab, 'web', (p) => p.status.phase === 'Running');
});
after(async () => {
  for (const asker of askers) await asker.end();
  await lab?.stop();
});

const target = (name: string, more: Readonly<Record<string, unknown>> = {}) => ({ target: { namespace: 'default', pod: name, ...more } });
/** What a policy without the key allows. */
const looking = ['get', 'describe', 'why', 'events', 'top', 'doctor', 'identify', 'logs', 'resync'];
const allow = async (verbs: readonly string[] | undefined): Promise<void> => {
  const file = readFileSync(lab.agent.configFile, 'utf8').replace(/^policy:[\s\S]*/m, '');
  writeFileSync(lab.agent.configFile, verbs === undefined ? file : `${file}policy:\n  mqtt: {verbs: [${verbs.join(', ')}]}\n`);
  lab.agent.signal('SIGHUP');
  await until('the configuration is read', 45_000, async () => {
    const said = JSON.parse((await lab.agent.get('/configz')).body).podschedconfig as Record<string, { verbs?: readonly string[] }>;
    return JSON.stringify(said['policy.mqtt']?.verbs) === JSON.stringify(verbs);
  });
};

for (const version of [5, 4] as const) {
  const ask: Commander['ask'] = (...a) => (askers.find((c) => c.version === version) as Commander).ask(...a);
  describe(`over MQTT ${version === 5 ? '5' : '3.1.1'}`, () => {
    test('looking: get, describe, why, events, top, doctor and logs answer what the local commands say', async () => {
      const pods = JSON.parse((await ask('get', { args: { what: 'pods' } })).text) as { items: readonly { metadata: { name: string } }[] };
      assert.deepEqual(pods.items.map((p) => p.metadata.name).sort(), ['once', 'web']);
      assert.match((await ask('describe', target('web'))).text, /Name:\s+web/);
      assert.match((await ask('why', target('once'))).text, /completed/);
      assert.match((await ask('events', target('web'))).text, /Started/);
      assert.match((await ask('doctor')).text, /containerd/i);
      const logs = await ask('logs', { ...target('web'), args: { tailLines: 10 } });
      assert.equal(logs.text, 'hello\n');
      const missing = await ask('logs', target('nobody'));
      assert.equal(missing.last.status, 'error');
      assert.match(missing.last.message ?? '', /nobody/);
    });

    test('what the policy does not name is denied, and nothing happens', async () => {
      const before = footprint((await agreed(lab, 'web')).shown);
      for (const verb of ['exec', 'restart', 'stop', 'bundle', 'decommission']) {
        const { last } = await ask(verb, { ...target('web'), args: { command: ['true'], confirm: node } });
        assert.equal(last.status, 'denied', `${verb}: ${JSON.stringify(last)}`);
      }
      const unknown = await ask('explode', target('web'));
      assert.equal(unknown.last.status, 'error');
      assert.deepEqual(footprint((await agreed(lab, 'web')).shown), before);
    });

    test('allowed: exec has the exit code, restart is in place, stop keeps it away, start brings it back, bundle has it all', async () => {
      await allow([...looking, 'exec', 'restart', 'stop', 'start', 'bundle']);
      const said = await ask('exec', {
        ...target('web', { container: 'main' }),
        args: { command: ['sh', '-c', 'echo out; echo err >&2; exit 3'] },
      });
      assert.equal(said.last.exitCode, 3, JSON.stringify(said.replies));
      assert.match(said.text, /out/);
      const first = await agreed(lab, 'web');
      const restarts = first.pod.status.containerStatuses?.[0]?.restartCount ?? 0;
      const noTarget = await ask('restart');
      assert.equal(noTarget.last.reason, 'TargetRequired');
      const id = `restart-${version}`;
      assert.equal((await ask('restart', target('web'), { id })).last.status, 'ok');
      const second = await agreed(lab, 'web', (p) => p.status.containerStatuses?.[0]?.restartCount === restarts + 1);
      assert.equal(second.pod.metadata.uid, first.pod.metadata.uid);
      assert.equal((await ask('restart', target('web'), { id })).last.status, 'ok', 'a known id is answered');
      assert.deepEqual(footprint((await agreed(lab, 'web')).shown), footprint(second.shown), 'and not run again');
      assert.equal((await ask('stop', target('web'))).last.status, 'ok');
      await lab.watcher.untilAll('web is stopped', () => toldSync(lab, 'web')?.phase === 'Stopped');
      await until('it has ended', 45_000, async () => !(await lab.bed.cri.sandboxes()).some((s) => s.name === 'web' && s.ready));
      await lab.agent.restart();
      await lab.watcher.untilAll('web is still stopped', () => toldSync(lab, 'web')?.phase === 'Stopped');
      // until the snapshot of its new connection has ended, whatever comes may have waited in the broker
      await until('commands are taken', 45_000, async () => (await ask('get', { args: { what: 'version' } })).last.status === 'ok');
      assert.equal((await ask('start', target('web'))).last.status, 'ok');
      await agreed(lab, 'web', (p, s) => p.status.phase === 'Running' && s.phase === 'Running');
      const bundle = JSON.parse((await ask('bundle')).text) as Record<string, unknown>;
      assert.ok(Object.keys(bundle).length > 3, Object.keys(bundle).join());
      await allow(undefined);
    });

    test('logs follow by a lease: lines come on the logs topic and end with it', async () => {
      lab.agent.drop(
        'ticks.yaml',
        manifest(pod('ticks', { containers: [container('main', ['sh', '-c', 'while true; do date +%s.%N; sleep 1; done'])] })),
      );
      await agreed(lab, 'ticks', (p) => p.status.phase === 'Running');
      const topic = lab.agent.topic('logs/default/ticks');
      const lines = () => lab.watcher.heard.filter((h) => h.topic === topic).length;
      const began = lines();
      const lease = await ask('logs', { ...target('ticks'), args: { follow: true, leaseSeconds: 5, tailLines: 1 } });
      assert.equal(lease.last.status, 'ok', JSON.stringify(lease.replies));
      await until('lines come', 45_000, () => lines() >= began + 3);
      await until('the lease ends', 60_000, async () => {
        const before = lines();
        await new Promise((resolve) => setTimeout(resolve, 3_000));
        return lines() === before;
      });
      lab.agent.removeManifest('ticks.yaml');
      await gone(lab, 'ticks');
    });

    test('a retained command is dropped, a reply topic of somebody else is not written to', async () => {
      await allow([...looking, 'restart']);
      const before = footprint((await agreed(lab, 'web')).shown);
      const asker = askers.find((c) => c.version === version) as Commander;
      const command = { apiVersion: 'podsched.dev/v1', kind: 'Command', id: `retained-${version}`, ...target('web') };
      const topic = `podsched/v1/cmd/${node}/restart`;
      await asker.client.publishAsync(topic, JSON.stringify(command), { qos: 1, retain: true });
      await asker.client.publishAsync(topic, '', { qos: 1, retain: true });
      await asker.client.publishAsync(topic, JSON.stringify({ ...command, replyTo: 'podsched/v1/nodes/another/online' }), { qos: 1 });
      // the next answer comes after all of it was judged
      await ask('get', { args: { what: 'version' } });
      assert.ok(!lab.watcher.values.has('podsched/v1/nodes/another/online'));
      assert.ok(toldPod(lab, 'web'));
      await allow(undefined);
      assert.deepEqual(footprint((await agreed(lab, 'web')).shown), before);
    });
  });
}

test('a command that comes while the node is away is answered `expired`, and not run', async () => {
  await allow([...looking, 'restart']);
  const online = lab.agent.topic('online');
  const session = (): number => (lab.watcher.values.get(online) as { session?: number } | undefined)?.session ?? 0;
  const before = session();
  const seen = await agreed(lab, 'web');
  lab.proxy.refusing = true;
  lab.proxy.cut();
  // published by 3.1.1, which knows no expiry, into the session of an MQTT 5 node
  const asker = askers.find((c) => c.version === 4) as Commander;
  const answer = asker.ask('restart', target('web'), { timeoutMs: 90_000 });
  await new Promise((resolve) => setTimeout(resolve, 300));
  lab.proxy.refusing = false;
  assert.equal((await answer).last.status, 'expired');
  assert.ok(session() > before);
  assert.deepEqual(footprint((await agreed(lab, 'web')).shown), footprint(seen.shown));
  const other = await connectAsync(lab.broker.url, { protocolVersion: 5 }, false);
  await other.endAsync();
  await allow(undefined);
});
