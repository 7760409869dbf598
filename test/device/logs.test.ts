/** `podsched logs` on a real containerd: what containers say, across rotations, restarts and ends. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ToldPod, V1ContainerStatus } from '../../src/api/status.ts';
import { type Agent, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { container, exit, manifest, type PodText, pod } from './manifest.ts';
import { type Daemon, startDaemon, until } from './process.ts';

const command = new URL('../../systemd/podsched', import.meta.url).pathname;
const bundle = new URL('../../bundle/podsched.cjs', import.meta.url).pathname;

let bed: Bed;
let agent: Agent;
before(async () => {
  bed = await startBed({ name: 'logs' });
  agent = await startAgent(bed, { nodeName: 'logs' });
  await until('the agent answers', 60_000, async () => (await agent.get('/pods').catch(() => undefined))?.status === 200);
});
after(async () => {
  await agent?.remove();
  await bed?.stop();
});

const say = (script: string): readonly string[] => ['sh', '-c', script];
/** Counts aloud, ten times a second, until it is asked to end. */
const counting = say("trap 'echo bye; exit 0' TERM; i=0; while true; do i=$((i+1)); echo line $i; sleep 0.1; done");

/** Waits until the told status of a container of a dropped pod is as wanted. */
async function told(
  of: PodText,
  name: string,
  wanted: (c: V1ContainerStatus) => boolean,
): Promise<{ pod: ToldPod; status: V1ContainerStatus }> {
  let found: { pod: ToldPod; status: V1ContainerStatus } | undefined;
  await until(`${of.metadata.name}/${name}`, 120_000, async () => {
    const { items } = JSON.parse((await agent.get('/pods')).body) as { items?: ToldPod[] };
    const seen = items?.find((p) => p.metadata.name === of.metadata.name);
    const status = [...(seen?.status.initContainerStatuses ?? []), ...(seen?.status.containerStatuses ?? [])].find((c) => c.name === name);
    if (seen !== undefined && status !== undefined && wanted(status)) found = { pod: seen, status };
    return found !== undefined;
  });
  assert.ok(found);
  return found;
}
const drop = (of: PodText): PodText => {
  agent.drop(`${of.metadata.name}.yaml`, manifest(of));
  return of;
};

/** `podsched logs` as a process whose output goes to a file. */
function logs(file: string, ...args: string[]): { daemon: Daemon; bytes(): Buffer } {
  const logFile = join(agent.dir, file);
  const env = { ...process.env, PODSCHED_BUNDLE: bundle, PODSCHED_RUN_DIR: agent.runDir };
  const daemon = startDaemon(command, ['logs', ...args], { logFile, env });
  return { daemon, bytes: () => (existsSync(logFile) ? readFileSync(logFile) : Buffer.alloc(0)) };
}

/** What `podsched logs` shows, once it is so: what a container says comes into its log a moment later. */
async function says(wanted: RegExp, ...args: string[]): Promise<string> {
  let text = '';
  await until(`${args.join(' ')} to be ${wanted}`, 45_000, async () => {
    text = (await agent.cli('logs', ...args)).stdout;
    return wanted.test(text);
  }).catch(() => assert.match(text, wanted));
  return text;
}

describe('logs of real containers', { concurrency: 4 }, () => {
  test('a follower misses no line across rotations, and ends with its container', async () => {
    const talk = drop(pod('talk', { terminationGracePeriodSeconds: 30, containers: [container('main', counting)] }));
    const { pod: running, status } = await told(talk, 'main', (c) => c.state.running !== undefined);
    const id = status.containerID?.replace('containerd://', '') ?? '';
    const log = join(agent.podLogsDir, `default_talk_${running.metadata.uid}`, 'main', '0.log');
    const follower = logs('talk.out', 'talk', '-f');
    const lines = (): string[] => follower.bytes().toString().split('\n').slice(0, -1);
    for (const turn of [1, 2, 3]) {
      const before = lines().length;
      await until('more lines', 45_000, () => lines().length >= before + 10);
      renameSync(log, `${log}.${turn}`);
      await bed.cri.reopenLog(id);
    }
    const before = lines().length;
    await until('lines of the last file', 45_000, () => lines().length >= before + 10);
    agent.removeManifest('talk.yaml');
    assert.equal(await follower.daemon.exited, 0);
    const all = lines();
    assert.equal(all.pop(), 'bye');
    assert.deepEqual(
      all,
      all.map((_, i) => `line ${i + 1}`),
    );
  });

  test('of a container that crashes again and again there are the current log and the previous one, and why names the command', async () => {
    const signs = join(agent.dir, 'signs');
    mkdirSync(signs);
    const script = 'cat /proc/sys/kernel/random/uuid; [ -e /signs/stay ] && exec sleep 1000; sleep 1; exit 1';
    const spec = {
      volumes: [{ name: 'signs', hostPath: { path: signs } }],
      containers: [container('main', say(script), { volumeMounts: [{ name: 'signs', mountPath: '/signs' }] })],
    };
    // long enough for three commands on a busy machine
    const crash = drop(pod('crash', spec, { annotations: { 'podsched.dev/crash-backoff': '20s,20s' } }));
    await told(crash, 'main', (c) => c.state.waiting?.reason === 'CrashLoopBackOff');
    const [first, same, why] = await Promise.all([agent.cli('logs', 'crash'), agent.cli('logs', 'crash', '-p'), agent.cli('why', 'crash')]);
    writeFileSync(join(signs, 'stay'), '');
    assert.match(first.stdout, /^[0-9a-f-]{36}\n$/);
    assert.equal(same.stdout, first.stdout);
    assert.match(why.stdout, /Log: +podsched logs crash$/m);
    const { status } = await told(crash, 'main', (c) => c.state.running !== undefined && c.restartCount === 2);
    const now = await says(/^[0-9a-f-]{36}\n$/, 'crash');
    assert.equal((await agent.cli('logs', 'crash', '-p')).stdout, first.stdout);
    assert.notEqual(now, first.stdout);
    // a follower stays with its instance, as with kubectl
    const follower = logs('crash.out', 'crash', '-f');
    await until('it follows', 45_000, () => follower.bytes().toString() === now);
    await bed.ctr('tasks', 'kill', '-s', 'SIGKILL', status.containerID?.replace('containerd://', '') ?? '');
    assert.equal(await follower.daemon.exited, 0);
    assert.equal(follower.bytes().toString(), now);
  });

  test('init containers have logs too; a pod with several containers asks which, unless its manifest says', async () => {
    const spec = {
      initContainers: [container('first', say('echo prepared; echo careful >&2'))],
      containers: [container('a', say('echo I am a; exec sleep 1000')), container('b', say('echo I am b; exec sleep 1000'))],
    };
    const several = drop(pod('several', spec));
    const annotated = drop(pod('annotated', spec, { annotations: { 'kubectl.kubernetes.io/default-container': 'b' } }));
    for (const p of [several, annotated]) for (const name of ['a', 'b']) await told(p, name, (c) => c.state.running !== undefined);
    const init = await says(/\n.*\n/, 'several', '-c', 'first');
    assert.deepEqual(init.split('\n').sort(), ['', 'careful', 'prepared']);
    await says(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{9}(Z|[+-]\d\d:\d\d) I am a\n$/, 'several', '-c', 'a', '--timestamps');
    const which = await agent.cli('logs', 'several');
    assert.equal(which.code, 2);
    assert.match(which.stderr, /must be specified for pod several, choose one of: \[a b\] or one of the init containers: \[first\]/);
    await says(/^I am b\n$/, 'annotated');
    assert.equal((await agent.cli('logs', 'several', '-c', 'a', '-p')).code, 1);
    assert.equal((await agent.cli('logs', 'nobody')).code, 3);
  });

  test('bytes that are no text and lines longer than a record come out as they went in, and a Ctrl-C ends a follower', async () => {
    const wild = drop(
      pod('wild', {
        containers: [
          container('main', say("printf '\\377\\001\\033[2J\\n'; head -c 100000 /dev/zero | tr '\\0' z; echo; exec sleep 1000")),
        ],
      }),
    );
    await told(wild, 'main', (c) => c.state.running !== undefined);
    const follower = logs('wild.out', 'wild', '-f');
    const wanted = Buffer.concat([Buffer.from([0xff, 0x01]), Buffer.from('\x1b[2J\n'), Buffer.from(`${'z'.repeat(100_000)}\n`)]);
    await until('all of it', 45_000, () => follower.bytes().length >= wanted.length);
    assert.ok(follower.bytes().equals(wanted));
    follower.daemon.signal('SIGINT');
    assert.equal(await follower.daemon.exited, 'SIGINT');
    assert.equal((await agent.cli('logs', 'wild', '--tail', '1', '--limit-bytes', '5')).stdout, 'zzzzz');
  });

  test('while its image cannot be had the kubelet’s words say so', async () => {
    const absent = drop(
      pod('absent', { containers: [container('main', exit(0), { image: 'localhost/nowhere:1', imagePullPolicy: 'Never' })] }),
    );
    await told(absent, 'main', (c) => c.state.waiting?.reason === 'ErrImageNeverPull');
    const { code, stderr } = await agent.cli('logs', 'absent');
    assert.deepEqual([code, stderr], [1, 'podsched: container "main" in pod "absent" is waiting to start: ErrImageNeverPull\n']);
  });
});
