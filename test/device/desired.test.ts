/**
 * The broker as the API server: the real bundle on a real mosquitto and a real containerd takes what is retained under desired/, and nothing
 * that happens to the broker ends a pod. What may not come from there is refused with its path.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { connectAsync } from 'mqtt';
import type { SyncStatus } from '../../src/api/payloads.ts';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { agreed, footprint, gone, toldPod, toldSync } from './truth.ts';

const node = 'desired';
let lab: Lab;
before(async () => {
  lab = await startLab(node, { broker: { persistence: true }, config: { fileCheckFrequency: '1s', mqtt: { groups: ['attic'] } } });
});
after(() => lab?.stop());

const desired = (rest: string): string => `podsched/v1/desired/${rest}`;
const own = (name: string): string => desired(`nodes/${node}/default/${name}`);
const keep = (topic: string, payload: string): Promise<unknown> =>
  lab.watcher.client.publishAsync(topic, payload, { qos: 1, retain: true });
const configMap = (name: string, data: Readonly<Record<string, string>>, metadata: Fields = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data });
const absent = (kind: string, name: string): string =>
  JSON.stringify({ apiVersion: 'v1', kind, metadata: { name, annotations: { 'podsched.dev/state': 'absent' } } });

interface Listed {
  readonly name: string;
  readonly payload: string;
  readonly kind?: string;
}
const index = (generation: number, listed: readonly Listed[]): string =>
  JSON.stringify({
    apiVersion: 'podsched.dev/v1',
    kind: 'DesiredIndex',
    generation,
    entries: listed.map(({ name, payload, kind = 'Pod' }) => ({
      kind,
      ns: 'default',
      name,
      sha256: createHash('sha256').update(payload).digest('hex').slice(0, 16),
    })),
  });

const runs = (p: { readonly status: { readonly phase?: string } }): boolean => p.status.phase === 'Running';
const syncOf = async (name: string, what: string, check: (sync: SyncStatus) => boolean): Promise<SyncStatus> => {
  await lab.watcher.untilAll(
    () => `${name}: ${what} (now: ${JSON.stringify(toldSync(lab, name))})`,
    () => {
      const sync = toldSync(lab, name);
      return sync !== undefined && check(sync);
    },
  );
  const sync = toldSync(lab, name);
  assert.ok(sync);
  return sync;
};
const source = (sync: SyncStatus, name: string) => sync.sources.find((s) => s.source === name);

const online = `podsched/v1/nodes/${node}/online`;
interface Online {
  readonly state: string;
  readonly session: number;
  readonly machine: string;
}
const sessionNow = (): number => (lab.watcher.values.get(online) as Online | undefined)?.session ?? 0;

/** The node is away from its broker while `act` runs, and back when this resolves. */
async function away(act: () => Promise<void>, o: { readonly forgetSession?: boolean } = {}): Promise<void> {
  const before = sessionNow();
  lab.proxy.refusing = true;
  lab.proxy.cut();
  const { machine } = lab.watcher.values.get(online) as Online;
  if (o.forgetSession === true) {
    // as after its hour: the broker remembers nothing of this client
    const clientId = `podsched-${node}-${machine}`;
    const other = await connectAsync(lab.broker.url, { clientId, protocolVersion: 5, clean: true, reconnectPeriod: 0 }, false);
    await other.endAsync();
  }
  await act();
  lab.proxy.refusing = false;
  await lab.watcher.until(online, (v) => (v as Online | undefined)?.state === 'online' && (v as Online).session > before);
}

test('a Pod and its ConfigMap that are retained run; changed, they follow; an empty payload, a tombstone and an index end them', async () => {
  const web = (more: Fields = {}): string =>
    manifest(
      pod('web', {
        volumes: [{ name: 'conf', configMap: { name: 'app' } }],
        containers: [container('main', undefined, { volumeMounts: [{ name: 'conf', mountPath: '/conf' }], ...more })],
      }),
    );
  await keep(own('web'), web());
  await syncOf('web', 'waits for its ConfigMap', (s) => s.phase === 'Waiting' || s.phase === 'Accepted');
  await keep(own('configmap:app'), configMap('app', { colour: 'red' }));
  const first = await agreed(lab, 'web', runs);
  assert.equal(first.sync.desired?.source, 'mqtt:node');
  const [main] = first.shown.containers;
  const colour = async (): Promise<string> => (await lab.bed.cri.exec(main?.id ?? '', 'cat', '/conf/colour')).stdout;
  assert.equal(await colour(), 'red');
  await keep(own('configmap:app'), configMap('app', { colour: 'blue' }));
  await until('the file follows', 45_000, async () => (await colour()) === 'blue');
  assert.deepEqual(footprint((await agreed(lab, 'web', runs)).shown), footprint(first.shown), 'and nothing was restarted');

  await keep(own('web'), web({ env: [{ name: 'A', value: 'b' }] }));
  const second = await agreed(
    lab,
    'web',
    (p, s) => runs(p) && p.status.containerStatuses?.[0]?.restartCount === 1 && s.phase === 'Running',
  );
  assert.equal(second.pod.metadata.uid, first.pod.metadata.uid, 'in place');
  // the same object once more, in another spelling
  await keep(own('web'), JSON.stringify(JSON.parse(web({ env: [{ name: 'A', value: 'b' }] }))));
  // groups and all are weaker, and are told as shadowed
  await keep(desired('groups/attic/default/web'), web({ env: [{ name: 'A', value: 'c' }] }));
  const shadowed = await syncOf('web', 'shadows the group', (s) => source(s, 'mqtt:group/attic')?.phase === 'Shadowed');
  assert.equal(source(shadowed, 'mqtt:node')?.phase, 'Accepted');
  assert.deepEqual(footprint((await agreed(lab, 'web', runs)).shown), footprint(second.shown));

  await keep(own('web'), '');
  await syncOf('web', 'is the group’s now', (s) => s.desired?.source === 'mqtt:group/attic');
  await keep(desired('groups/attic/default/web'), absent('Pod', 'web'));
  await gone(lab, 'web');
  await keep(own('configmap:app'), absent('ConfigMap', 'app'));

  const listed = manifest(pod('listed'));
  const other = manifest(pod('other'));
  await keep(desired('all/default/listed'), listed);
  await keep(desired('all/default/other'), other);
  await keep(
    desired('all/_index'),
    index(1, [
      { name: 'listed', payload: listed },
      { name: 'other', payload: other },
    ]),
  );
  await agreed(lab, 'listed', (p, s) => runs(p) && s.desired?.source === 'mqtt:all');
  await agreed(lab, 'other', runs);
  await keep(desired('all/_index'), index(2, [{ name: 'other', payload: other }]));
  await gone(lab, 'listed');
  assert.ok(toldPod(lab, 'other'), 'what the index names goes on');
  for (const rest of ['all/default/listed', 'all/default/other', 'all/_index', 'groups/attic/default/web']) await keep(desired(rest), '');
  await gone(lab, 'other');
});

test('while the node is away, a tombstone, an index and, within the session, an empty payload are heard; beyond it only the sure ways', async () => {
  const names = ['tomb', 'index', 'empty'];
  const listed = names.map((name) => ({ name, payload: manifest(pod(name)) }));
  for (const { name, payload } of listed) await keep(own(name), payload);
  await keep(desired(`nodes/${node}/_index`), index(1, listed));
  const lateTopic = desired('groups/attic/default/late');
  await keep(lateTopic, manifest(pod('late')));
  for (const name of names) await agreed(lab, name, runs);
  const late = await agreed(lab, 'late', runs);
  await away(async () => {
    await keep(own('tomb'), absent('Pod', 'tomb'));
    await keep(own('empty'), '');
    await keep(desired(`nodes/${node}/_index`), index(2, [{ name: 'tomb', payload: absent('Pod', 'tomb') }]));
  });
  for (const name of names) await gone(lab, name);
  assert.deepEqual(footprint((await agreed(lab, 'late', runs)).shown), footprint(late.shown));

  const wasGone = (s: SyncStatus): boolean => s.phase === 'SourceGone' || source(s, 'mqtt:group/attic')?.reason === 'SourceGone';
  await away(() => keep(lateTopic, '').then(() => {}), { forgetSession: true });
  const lost = await syncOf('late', 'has no source any more', wasGone);
  assert.equal(lost.desired?.source, 'mqtt:group/attic');
  assert.deepEqual(footprint((await agreed(lab, 'late', runs)).shown), footprint(late.shown), 'missing is not deleted');
  await keep(lateTopic, absent('Pod', 'late'));
  await gone(lab, 'late');
  for (const topic of [own('tomb'), own('index'), lateTopic, desired(`nodes/${node}/_index`)]) await keep(topic, '');
});

test('a broker that lost its store, and an agent that starts without a broker, change nothing; the truth is whole again', async () => {
  await keep(own('stays'), manifest(pod('stays')));
  const first = await agreed(lab, 'stays', runs);
  await lab.broker.restart({ empty: true });
  const goesOn = await syncOf(
    'stays',
    'is told again, without its source',
    (s) => s.phase === 'SourceGone' || source(s, 'mqtt:node')?.reason === 'SourceGone',
  );
  assert.equal(goesOn.desired?.source, 'mqtt:node');
  assert.deepEqual(footprint((await agreed(lab, 'stays', runs)).shown), footprint(first.shown));
  await away(async () => {
    await lab.agent.restart();
    await lab.agent.get('/sync');
    await sleep(2_000);
    assert.ok((await lab.agent.get('/pods')).body.includes('"stays"'), 'it needs no broker to know what it runs');
  });
  assert.deepEqual(footprint((await agreed(lab, 'stays', runs)).shown), footprint(first.shown));
  await keep(own('stays'), manifest(pod('stays')));
  await syncOf('stays', 'has its source again', (s) => s.phase === 'Running' && source(s, 'mqtt:node')?.phase === 'Accepted');
  assert.deepEqual(footprint((await agreed(lab, 'stays', runs)).shown), footprint(first.shown), 'connecting restarts nothing');
  await keep(own('stays'), '');
  await gone(lab, 'stays');
});

test('what the policy does not allow from the broker is refused by path; allowed, it runs; denied again, it ends', async () => {
  const greedy = {
    privileged: manifest(pod('privileged', { containers: [container('main', undefined, { securityContext: { privileged: true } })] })),
    hostpath: manifest(pod('hostpath', { volumes: [{ name: 'etc', hostPath: { path: '/etc' } }] })),
  };
  const paths: Readonly<Record<string, string>> = {
    privileged: 'spec.containers[0].securityContext.privileged',
    hostpath: 'spec.volumes[0].hostPath.path',
  };
  for (const [name, text] of Object.entries(greedy)) await keep(own(name), text);
  for (const name of Object.keys(greedy)) {
    const sync = await syncOf(name, 'is refused', (s) => s.phase === 'Refused');
    const said = source(sync, 'mqtt:node');
    assert.equal(said?.reason, 'PolicyDenied', JSON.stringify(sync));
    assert.ok(
      said.problems.some((p) => p.path === paths[name]),
      JSON.stringify(said),
    );
    assert.equal(toldPod(lab, name), undefined);
  }
  const before = readFileSync(lab.agent.configFile, 'utf8');
  const reload = (text: string): void => {
    writeFileSync(lab.agent.configFile, text);
    lab.agent.signal('SIGHUP');
  };
  reload(`${before}policy:\n  mqtt: {privileged: true, hostPath: [/etc]}\n`);
  for (const name of Object.keys(greedy)) await agreed(lab, name, runs);
  reload(before);
  for (const name of Object.keys(greedy)) {
    await syncOf(name, 'is refused again', (s) => s.phase === 'Refused');
    await lab.watcher.untilAll(`${name} ended`, () => toldPod(lab, name) === undefined);
    await keep(own(name), '');
    await gone(lab, name);
  }
});

test('hostile payloads are refused with a reason, and nothing else is concerned', async () => {
  await keep(own('calm'), manifest(pod('calm')));
  const calm = await agreed(lab, 'calm', runs);
  const refusals: Readonly<Record<string, readonly [payload: string | Buffer, reason: RegExp]>> = {
    nojson: ['{"apiVersion":', /Invalid/],
    deep: ['['.repeat(20_000), /Invalid/],
    renamed: [manifest(pod('somebody-else')), /NameMismatch/],
    large: [configMap('large', { a: 'x'.repeat(100 * 1024) }), /Invalid|TooLarge/],
    bytes: [Buffer.from([0xff, 0xfe, 0x00, 0x61]), /Invalid/],
    kind: [JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'kind' } }), /Invalid|NameMismatch/],
  };
  for (const [name, [payload]] of Object.entries(refusals))
    await lab.watcher.client.publishAsync(own(name), payload, { qos: 1, retain: true });
  for (const [name, [, reason]] of Object.entries(refusals)) {
    const sync = await syncOf(name, 'is refused', (s) => s.phase === 'Refused');
    assert.match(source(sync, 'mqtt:node')?.reason ?? '', reason, name);
  }
  // nobody's topics
  for (const rest of [`nodes/${node}/../etc`, `nodes/${node}/default/..%2f`, 'nodes/another/default/web', `nodes/${node}/_what/x`])
    await lab.watcher.client.publishAsync(desired(rest), manifest(pod('web')), { qos: 1 });
  for (const name of Object.keys(refusals)) await keep(own(name), '');
  for (const name of Object.keys(refusals)) await lab.watcher.untilAll(`${name} is forgotten`, () => toldSync(lab, name) === undefined);
  assert.deepEqual(footprint((await agreed(lab, 'calm', runs)).shown), footprint(calm.shown));
  await keep(own('calm'), '');
  await gone(lab, 'calm');
  assert.deepEqual(lab.witness.offences, []);
});
