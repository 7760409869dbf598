/**
 * The commands of the bundle as a person types them: to another machine over MQTT 5 and over a broker that knows 3.1.1 only (the agent's own,
 * with passwords), to the agent of this machine through its socket, and to the manifest folder. Each story has pods of its own, so they go on
 * beside one another.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse, stringify } from 'yaml';
import type { DesiredIndex } from '../../src/api/messages.ts';
import { type Agent, startAgent } from './agent.ts';
import { type Lab, startLab } from './lab.ts';
import { container, manifest, pod, serve } from './manifest.ts';
import { type Daemon, freePort, type RunResult, sleep, startDaemon, until } from './process.ts';
import { podsOf } from './story.ts';
import { agreed, gone, toldPod, toldSync } from './truth.ts';
import { retainedNow } from './watcher.ts';

const command = new URL('../../systemd/podsched', import.meta.url).pathname;
const bundle = new URL('../../bundle/podsched.cjs', import.meta.url).pathname;
const node = 'fleetcli';
const secret = 'hunter2';
const password = 's3cret-of-the-closet';
const looking = ['get', 'describe', 'why', 'events', 'top', 'doctor', 'identify', 'logs', 'resync'];
const changing = ['exec', 'restart', 'stop', 'start', 'hold', 'release', 'rollback', 'images', 'bundle'];
const patienceMs = 45_000;

let lab: Lab;
/** Has a broker of its own, which knows no MQTT 5 and asks for passwords. */
let closet: Agent;
/** Comes and goes, and takes no orders. */
let spare: Agent;
let dir: string;
const at = (name: string): string => join(dir, name);

/** A way that leads to an agent. */
interface Way {
  readonly agent: Agent;
  readonly options: readonly string[];
}
const ways = {
  'MQTT 5': (): Way => ({ agent: lab.agent, options: ['--node', node, '--server', lab.broker.url] }),
  'MQTT 3.1.1': (): Way => ({ agent: closet, options: ['--node', 'closet', ...closetBroker] }),
  'the socket': (): Way => ({ agent: lab.agent, options: [] }),
} as const;
let closetBroker: readonly string[] = [];

function wholeArgs(args: readonly string[], { options }: Way): string[] {
  const dashes = args.includes('--') ? args.indexOf('--') : args.length;
  return [...args.slice(0, dashes), ...options, ...args.slice(dashes)];
}
const typed = (way: keyof typeof ways, ...args: string[]): Promise<RunResult> => ways[way]().agent.cli(...wholeArgs(args, ways[way]()));
/** Done, and what it said. */
async function done(way: keyof typeof ways, ...args: string[]): Promise<string> {
  const said = await typed(way, ...args);
  assert.equal(said.code, 0, `${args.join(' ')}: ${said.stderr}`);
  return said.stdout;
}
function refused({ code, stderr }: RunResult, expected: number, words: RegExp): void {
  assert.match(stderr, words);
  assert.equal(code, expected, stderr);
}

/** A command that goes on until it is ended. */
interface Begun {
  readonly daemon: Daemon;
  /** So far, on both streams. */
  said(): string;
}
let started = 0;
function begun(args: readonly string[]): Begun {
  const logFile = at(`begun-${started++}`);
  const daemon = startDaemon(command, args, { logFile, env: { ...process.env, PODSCHED_BUNDLE: bundle } });
  return { daemon, said: () => (existsSync(logFile) ? readFileSync(logFile, 'utf8') : '') };
}
const says = (work: Begun, words: RegExp): Promise<void> =>
  until(`${words} is said`, patienceMs, () => words.test(work.said())).catch((e) => {
    throw new Error(`${e}\n${work.said()}`);
  });

/** Says three lines, has a second container that goes on talking, and holds a secret in its environment. */
const talker = (name: string): string => {
  const words = "for i in one two three; do echo $i; done; trap 'exit 0' TERM; sleep 2147483647 & wait";
  const main = container('main', ['sh', '-c', words], { env: [{ name: 'PASSWORD', value: secret }] });
  const ticks = container('ticks', ['sh', '-c', "trap 'exit 0' TERM; while true; do echo tick; sleep 0.3; done"]);
  return manifest(pod(name, { containers: [main, ticks] }, { annotations: { 'kubectl.kubernetes.io/default-container': 'main' } }));
};
const crasher = (name: string): string => manifest(pod(name, { containers: [container('main', ['sh', '-c', 'echo boom; exit 7'])] }));
const configMap = (name: string, key = '1'): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { key } });
const runs = (p: { readonly status: { readonly phase?: string } }): boolean => p.status.phase === 'Running';

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'podsched-fleet-cli-'));
  lab = await startLab(node, {
    config: { fileCheckFrequency: '1s', mqtt: { groups: ['attic'] }, policy: { mqtt: { verbs: [...looking, ...changing] } } },
  });
  const port = await freePort();
  writeFileSync(at('users'), `closet:${password}\nops:of-ops\n`);
  writeFileSync(at('closet'), `${password}\n`);
  writeFileSync(at('ops'), 'of-ops\n');
  closetBroker = ['--server', `mqtt://127.0.0.1:${port}`, '--username', 'ops', '--password-file', at('ops')];
  const embedded = { listen: `127.0.0.1:${port}`, passwordFile: at('users') };
  closet = await startAgent(lab.bed, {
    nodeName: 'closet',
    servers: ['embedded'],
    config: {
      mqtt: { username: 'closet', passwordFile: at('closet'), embedded },
      policy: { mqtt: { verbs: [...looking, 'exec', 'bundle'] } },
    },
  });
  spare = await startAgent(lab.bed, { nodeName: 'spare', servers: [lab.broker.url], config: { mqtt: { config: false } } });
  lab.agent.drop('web.yaml', talker('web'));
  lab.agent.drop('crash.yaml', crasher('crash'));
  lab.agent.drop('settings.yaml', configMap('settings'));
  lab.agent.drop('bad.yaml', 'apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: [{nam: x}]}\n');
  closet.drop('web.yaml', talker('cup'));
  closet.drop('crash.yaml', crasher('crock'));
  await agreed(lab, 'web', runs);
  const again = (pods: Awaited<ReturnType<typeof podsOf>>): boolean =>
    pods.some((p) => (p.status.containerStatuses?.[0]?.restartCount ?? 0) > 0);
  for (const agent of [lab.agent, closet])
    await until('what crashes was started again', patienceMs, async () => {
      const pods = await podsOf(agent);
      return again(pods) && pods.some((p) => p.spec.containers.length === 2 && p.status.containerStatuses?.every((c) => c.ready));
    });
});
after(async () => {
  await spare?.remove();
  await closet?.remove();
  await lab?.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe('the commands', { concurrency: 6 }, () => {
  for (const [way, web, crash] of [
    ['MQTT 5', 'web', 'crash'],
    ['MQTT 3.1.1', 'cup', 'crock'],
  ] as const) {
    test(`over ${way}: get, describe, why and top say what they say on the machine itself`, async () => {
      const table = await done(way, 'get', 'pods');
      assert.match(table, /^NAME +READY +STATUS +RESTARTS +AGE$/m);
      assert.match(table, new RegExp(`^${web} +2/2 +Running +0 `, 'm'));
      assert.match(await done(way, 'describe', 'pod', web), new RegExp(`^Name: +${web}$[\\s\\S]*ticks:`, 'm'));
      // it is started now and then, and runs for a moment
      const crashes = new RegExp(`^${crash} is not running: CrashLoopBackOff$`, 'm');
      await until('why says it', patienceMs, async () => crashes.test(await done(way, 'why', crash)));
      assert.match(await done(way, 'get', 'nodes'), new RegExp(`^${way === 'MQTT 5' ? node : 'closet'} +Ready `, 'm'));
      assert.match(await done(way, 'top', 'pods', web, '--containers'), new RegExp(`^${web} +ticks +\\d+m +\\d+Mi$`, 'm'));
      assert.match(await done(way, 'top', 'node'), /^(fleetcli|closet) +\d+m +\d+%/m);
    });

    test(`over ${way}: logs have their options, and -f goes on over the lease until Ctrl-C`, async () => {
      const { options } = ways[way]();
      const work = begun(['logs', web, '-c', 'ticks', '-f', '--tail', '1', ...options]);
      assert.equal(await done(way, 'logs', web), 'one\ntwo\nthree\n');
      assert.equal(await done(way, 'logs', web, '--since', '1h', '--limit-bytes', '5'), 'one\nt');
      assert.equal(await done(way, 'logs', web, '--since-time', '2100-01-01T00:00:00Z'), '');
      assert.match(await done(way, 'logs', web, '--timestamps', '--tail', '1'), /^\d{4}-\d\d-\d\dT\S+Z three\n$/);
      assert.equal(await done(way, 'logs', crash, '-p', '-f'), 'boom\n');
      refused(await typed(way, 'logs', web, '-p'), 1, /previous terminated container "main" in pod "\w+" not found/);
      await says(work, /^tick\ntick\ntick\n/);
      work.daemon.signal('SIGINT');
      assert.equal(await work.daemon.exited, 'SIGINT');
    });

    test(`over ${way}: exec has its exit code, and what it says in two streams`, async () => {
      const said = await typed(way, 'exec', web, '--', 'sh', '-c', 'echo out; echo err >&2; exit 3');
      assert.deepEqual(said, { code: 3, stdout: 'out\n', stderr: 'err\ncommand terminated with exit code 3\n' });
      assert.equal(await done(way, 'exec', web, '-c', 'ticks', '--', 'echo', '--node', 'x'), '--node x\n');
      refused(await typed(way, 'exec', '-it', web, '--', 'sh'), 2, /no sessions over MQTT/);
    });
  }

  test('get: every kind, in every form', async () => {
    const way = 'MQTT 5';
    const [json, yaml] = await Promise.all([done(way, 'get', 'pods', 'web', '-o', 'json'), done(way, 'get', 'pods', '-o', 'yaml')]);
    assert.equal(JSON.parse(json).metadata.uid, toldPod(lab, 'web')?.metadata.uid);
    assert.ok((parse(yaml) as { items: { metadata: { name: string } }[] }).items.some((p) => p.metadata.name === 'crash'));
    assert.match(await done(way, 'get', 'pods', 'web', 'crash', '-o', 'name'), /^pod\/crash\npod\/web\n$/);
    assert.match(await done(way, 'get', 'pods', '-o', 'wide'), /REVISION\n(.*\n)*web .* file:web\.yaml /);
    assert.match(await done(way, 'get', 'events'), /Started +pod\/web/);
    assert.match(await done(way, 'get', 'images'), /^localhost\/busybox:1 .* pod$/m);
    assert.match(await done(way, 'get', 'configmaps'), /^settings /m);
    assert.match(await done(way, 'get', 'files'), /^bad\.yaml +Pod\/default\/bad +Refused +Invalid/m);
    refused(await typed(way, 'get', 'pods', 'wep'), 3, /pod "wep" not found.*did you mean "?web/);
  });

  test('get -w goes on with what changes, until a signal ends it', async () => {
    const { options } = ways['MQTT 5']();
    const watching = ['pods', 'events', 'files'].map((kind) => begun(['get', kind, '-w', ...options]));
    for (const work of watching) await says(work, /web/);
    lab.agent.drop('late.yaml', manifest(pod('late')));
    const [pods, events, files] = watching as [Begun, Begun, Begun];
    await says(pods, /^late +1\/1 +Running/m);
    await says(events, /Started +pod\/late/);
    await says(files, /^late\.yaml +Pod\/default\/late +Running/m);
    lab.agent.removeManifest('late.yaml');
    await says(pods, /^default\/pod\/late is gone$/m);
    for (const [i, { daemon }] of watching.entries()) {
      daemon.signal(i === 0 ? 'SIGTERM' : 'SIGINT');
      assert.equal(await daemon.exited, i === 0 ? 'SIGTERM' : 'SIGINT');
    }
  });

  for (const way of ['MQTT 5', 'the socket'] as const)
    test(`through ${way}: restart, stop, start, hold, release and rollback do what they say`, async () => {
      const name = way === 'MQTT 5' ? 'acts-mqtt' : 'acts-local';
      const write = (env: string): void =>
        lab.agent.drop(
          `${name}.yaml`,
          manifest(pod(name, { containers: [container('main', serve, { env: [{ name: 'EDIT', value: env }] })] })),
        );
      write('1');
      const first = await agreed(lab, name, runs);
      assert.match(await done(way, 'restart', name), new RegExp(`^pod/${name} restarts in place: main\n$`));
      await agreed(lab, name, (p) => p.status.containerStatuses?.[0]?.restartCount === 1 && p.metadata.uid === first.pod.metadata.uid);
      await done(way, 'restart', `pod/${name}`, '--new');
      await agreed(lab, name, (p) => runs(p) && p.metadata.uid !== first.pod.metadata.uid);
      refused(await typed(way, 'restart', name, '-c', 'none'), 3, /container not found \("none"\)/);
      await done(way, 'stop', name);
      await lab.watcher.untilAll('it is stopped', () => toldSync(lab, name)?.phase === 'Stopped');
      await done(way, 'start', name);
      await agreed(lab, name, (p, s) => runs(p) && s.phase === 'Running');
      // a revision counts as good when it has been Ready for ten seconds
      await sleep(12_000);
      await done(way, 'hold', name);
      write('2');
      await lab.watcher.untilAll('the edit waits', () => toldSync(lab, name)?.phase === 'Held');
      await done(way, 'release', name);
      const second = await agreed(
        lab,
        name,
        (p, s) => runs(p) && s.phase === 'Running' && s.running?.revision !== first.sync.running?.revision,
      );
      await done(way, 'rollback', name);
      const back = await agreed(lab, name, (p, s) => runs(p) && s.running?.revision === first.sync.running?.revision);
      assert.equal(back.sync.desired?.revision, second.sync.desired?.revision, 'the manifest stays');
      lab.agent.removeManifest(`${name}.yaml`);
      await gone(lab, name);
    });

  test('the node as a whole: resync, identify, images, bundle and doctor, over MQTT and through the socket', async () => {
    for (const way of ['MQTT 5', 'the socket'] as const) {
      assert.match(await done(way, 'resync'), /^the sources were read, and everything is told again\n$/);
      refused(await typed(way, 'identify'), 1, /no light that could blink/);
      assert.match(await done(way, 'images', 'pin', 'localhost/busybox:2'), /pinned: it stays/);
      assert.match(await done(way, 'images', 'list'), /^localhost\/busybox:2 .* person$/m);
      assert.doesNotMatch(await done(way, 'images', 'prune', '--dry-run'), /busybox:2/);
      await done(way, 'images', 'unpin', 'localhost/busybox:2');
      assert.match(await done(way, 'images', 'prune', '--dry-run'), /^would remove localhost\/busybox:2 /m);
      const file = at(`bundle-${way === 'MQTT 5'}.json`);
      assert.match((await typed(way, 'bundle', '-o', file)).stderr, /written: no values of environments/);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const text = readFileSync(file, 'utf8');
      assert.ok(Object.keys(JSON.parse(text)).length > 5 && text.includes('CrashLoopBackOff'));
      assert.ok(!text.includes(secret), 'a value of an environment is in the bundle');
      refused(await typed(way, 'bundle', '-o', file), 1, /it is there already/);
    }
    const ofCloset = await done('MQTT 3.1.1', 'bundle');
    assert.ok(JSON.parse(ofCloset) && !ofCloset.includes(password) && !ofCloset.includes(secret));
    const { code, stdout } = await typed('MQTT 5', 'doctor');
    assert.match(stdout, /^ok +containerd: .* answers on/m);
    assert.equal(code, /^WRONG/m.test(stdout) ? 1 : 0);
  });

  test('what the policy does not allow is refused with its reason, and what is typed wrongly is said to be so', async () => {
    refused(
      await typed('MQTT 5', 'decommission', '--confirm', node),
      1,
      /node "fleetcli" does not allow decommission over MQTT: policy\.mqtt\.verbs/,
    );
    refused(await typed('MQTT 3.1.1', 'restart', 'cup'), 1, /node "closet" does not allow restart over MQTT/);
    refused(await typed('MQTT 5', 'decommission'), 2, /--confirm NODE/);
    const wrong: readonly (readonly [words: RegExp, ...args: string[]])[] = [
      [/there is no kind "podz".*did you mean pods?/, 'get', 'podz', '--node', node, '--server', lab.broker.url],
      [/which broker\? --server/, 'get', 'pods', '--node', node],
      [/"pods" is asked of one node: --node NAME/, 'get', 'pods', '--server', lab.broker.url],
      [/--server: of which node\?/, 'why', 'web', '--server', lab.broker.url],
      [/--server is about topics/, 'apply', '-f', 'x', '--server', lab.broker.url],
      [/debug cannot be done over MQTT/, 'debug', 'web', '--image', 'x', '--node', node],
    ];
    for (const [words, ...args] of wrong) refused(await lab.agent.cli(...args), 2, words);
  });

  test('apply, diff and delete in the manifest folder: a file for each object, and none is taken that holds more', async () => {
    const here = (...args: string[]): Promise<RunResult> => lab.agent.cli(...args, '--config', lab.agent.configFile);
    const file = at('site.yaml');
    const write = (value: string): void => writeFileSync(file, `# ours\n${configMap('site', value)}\n---\n${manifest(pod('site'))}\n`);
    write('1');
    const missing = await here('diff', '-f', file);
    assert.match(missing.stdout, /^\+\+\+ Pod\/default\/site/m);
    assert.equal(missing.code, 1);
    assert.equal((await here('apply', '-f', file)).stdout, 'configmap/site created\npod/site created\n');
    assert.deepEqual(
      readdirSync(lab.agent.manifests).filter((f) => f.includes('site')),
      ['default.site.configmap.yaml', 'default.site.pod.yaml'],
    );
    await agreed(lab, 'site', runs);
    assert.deepEqual(await here('diff', '-f', file), { code: 0, stdout: '', stderr: '' });
    write('2');
    assert.match((await here('diff', '-f', file)).stdout, /^- +key: "1"\n\+ +key: "2"$/m);
    assert.equal((await here('apply', '-f', file)).stdout, 'configmap/site configured\npod/site unchanged\n');
    assert.equal((await here('delete', 'site')).stdout, 'pod "site" deleted\n');
    await gone(lab, 'site');
    await here('delete', 'configmap/site');
    lab.agent.drop('both.yaml', readFileSync(file, 'utf8'));
    refused(await here('delete', 'site'), 1, /both\.yaml holds pod "site" and ConfigMap\/default\/site: take it out there/);
    refused(await here('apply', '-f', file), 1, /both\.yaml/);
    assert.equal((await here('delete', '-f', file)).code, 0);
    assert.ok(!existsSync(join(lab.agent.manifests, 'both.yaml')));
    refused(await here('delete', 'site'), 3, /no manifest in .* has pod "site"/);
  });

  for (const [scope, topic] of [
    [['--node', node], `nodes/${node}`],
    [['--group', 'attic'], 'groups/attic'],
    [['--all'], 'all'],
  ] as const)
    test(`apply ${scope[0]}: what is published runs, is listed in the index, and ends when it is deleted`, async () => {
      const name = `on-${scope[0].slice(2)}`;
      const base = `podsched/v1/desired/${topic}`;
      const file = at(`${name}.yaml`);
      const write = (env: string): void =>
        writeFileSync(
          file,
          stringify({
            apiVersion: 'v1',
            kind: 'Pod',
            ...pod(name, { containers: [container('main', serve, { env: [{ name: 'EDIT', value: env }] })] }),
          }),
        );
      const there = (...args: string[]): Promise<RunResult> => lab.agent.cli(...args, ...scope, '--server', lab.broker.url);
      const kept = (): Promise<Map<string, unknown>> => retainedNow(lab.broker.url, `${base}/#`);
      const indexOf = (all: Map<string, unknown>): DesiredIndex => all.get(`${base}/_index`) as DesiredIndex;
      write('1');
      assert.equal((await there('diff', '-f', file)).code, 1);
      assert.match((await there('apply', '-f', file)).stdout, new RegExp(`^pod/${name} created \\(`));
      const first = await agreed(lab, name, runs);
      assert.equal(first.sync.desired?.source, `mqtt:${topic.replace('groups/', 'group/').replace(/^nodes.*/, 'node')}`);
      assert.match((await there('apply', '-f', file)).stdout, /unchanged/);
      write('2');
      assert.equal((await there('diff', '-f', file)).code, 1);
      assert.match((await there('apply', '-f', file)).stdout, /configured/);
      assert.deepEqual(await there('diff', '-f', file), { code: 0, stdout: '', stderr: '' });
      const all = await kept();
      const sha256 = createHash('sha256')
        .update(JSON.stringify(all.get(`${base}/default/${name}`)))
        .digest('hex')
        .slice(0, 16);
      assert.equal(indexOf(all).generation, 2, 'one for each that changed something');
      assert.deepEqual(indexOf(all).entries, [{ kind: 'Pod', ns: 'default', name, sha256 }]);
      await agreed(lab, name, (p, s) => runs(p) && s.running?.revision !== first.sync.running?.revision);
      const how = scope[0] === '--group' ? ['--tombstone'] : [];
      assert.match((await there('delete', name, ...how)).stdout, new RegExp(`^pod "${name}" deleted`));
      await gone(lab, name);
      const left = await kept();
      assert.equal(indexOf(left).generation, 3);
      assert.deepEqual(indexOf(left).entries, []);
      assert.equal(left.has(`${base}/default/${name}`), how.length > 0);
      if (how.length > 0) assert.match((await there('delete', name)).stdout, /it was a tombstone/);
      refused(await there('delete', name), 3, /is not desired of/);
    });

  test('a fleet: who is there, who is off and since when, who is stale, who is unknown; and the one that is off can be forgotten', async () => {
    const server = ['--server', lab.broker.url];
    const info = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'ghost' }, status: {} });
    await lab.watcher.client.publishAsync('podsched/v1/nodes/ghost/info', info, { qos: 1, retain: true });
    const watching = begun(['get', 'nodes', '-w', ...server]);
    await says(watching, /^spare +Ready/m);
    const forgetting = begun(['forget', 'spare', ...server]);
    await says(forgetting, /listening for \d+ s/);
    await spare.restart();
    assert.equal(await forgetting.daemon.exited, 1);
    assert.match(forgetting.said(), /node "spare" is alive/);
    await lab.watcher.until('podsched/v1/nodes/spare/online', (v) => (v as { state?: string } | undefined)?.state === 'online');
    assert.equal(await spare.stop(), 0);
    await says(watching, /^spare +Offline/m);
    watching.daemon.signal('SIGINT');
    await watching.daemon.exited;
    const table = (await lab.agent.cli('get', 'nodes', ...server)).stdout;
    assert.match(table, /^fleetcli +Ready +\d+\/\d+ [\s\S]*^ghost +Stale [\s\S]*^spare +Offline /m);
    refused(await lab.agent.cli('get', 'pods', '--node', 'spare', ...server), 4, /node "spare" is offline: its agent was ended \d+s ago/);
    refused(await lab.agent.cli('get', 'pods', '--node', 'ghost', ...server), 4, /node "ghost" is stale/);
    refused(await lab.agent.cli('get', 'pods', '--node', 'nobody', ...server), 3, /no node "nobody" is known on this broker/);
    const nowhere = `mqtt://127.0.0.1:${await freePort()}`;
    refused(await lab.agent.cli('get', 'pods', '--node', node, '--server', nowhere), 4, /no broker can be reached: .*ECONNREFUSED/);
    refused(await lab.agent.cli('get', 'nodes', ...closetBroker.slice(0, 4)), 4, /no broker can be reached: .*password/);
    assert.match((await lab.agent.cli('forget', 'spare', ...server)).stdout, /^node\/spare forgotten: \d+ topics cleared\n$/);
    assert.equal((await retainedNow(lab.broker.url, 'podsched/v1/nodes/spare/#')).size, 0);
  });
});
