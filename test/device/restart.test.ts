/** The agent dies and comes back, again and again and at bad moments: who was not meant is not touched, and what was told stays told. */
import assert from 'node:assert/strict';
import { after, before as beforeAll, test } from 'node:test';
import type { SyncStatus } from '../../src/api/payloads.ts';
import type { ToldPod } from '../../src/api/status.ts';
import { type Foreigners, startForeigners } from './foreign.ts';
import { type Lab, startLab } from './lab.ts';
import { container, deaf, exit, manifest, type PodText, pod, serve } from './manifest.ts';
import { sleep, until } from './process.ts';
import { agreed, footprint, gone, type Seen, toldPod, toldSync } from './truth.ts';

let lab: Lab;
let foreigners: Foreigners;
let strangers: string[];
beforeAll(async () => {
  lab = await startLab('restart');
  foreigners = await startForeigners(lab.bed);
  strangers = await foreigners.running();
  assert.equal(strangers.length, 6, 'two of ctr, and two pods of others');
});
after(async () => {
  await foreigners?.remove();
  await lab.stop();
});

const drop = (of: PodText): string => {
  lab.agent.drop(`${of.metadata.name}.yaml`, manifest(of));
  return of.metadata.name;
};
const seqOf = (p: ToldPod | undefined): number => Number(p?.metadata.annotations?.['podsched.dev/seq'] ?? 0);
/** Everything runs, or everything has ended and its sandbox was stopped too. */
const settled = (p: ToldPod): boolean =>
  p.status.phase === 'Succeeded' || p.status.phase === 'Failed'
    ? p.status.conditions?.find((c) => c.type === 'PodReadyToStartContainers')?.status === 'False'
    : (p.status.containerStatuses ?? []).every((c) => c.ready);

/** What `sync` says at last of a pod in a phase. */
const answers: Readonly<Record<string, string>> = { Running: 'Running', Succeeded: 'Completed', Failed: 'Failed' };

/** Pods that have nothing to do but to be there, one of each kind. */
const quiet: readonly PodText[] = [
  pod('quiet-two', { containers: [container('a'), container('b')] }),
  pod('quiet-sidecar', { initContainers: [container('prepare', exit(0)), container('relay', serve, { restartPolicy: 'Always' })] }),
  pod('quiet-host', { hostNetwork: true }),
  pod('quiet-done', { restartPolicy: 'Never', containers: [container('main', exit(0))] }),
  pod('quiet-failed', { restartPolicy: 'Never', containers: [container('main', exit(3))] }),
];
let known: ReadonlyMap<string, Seen>;

/** Each quiet pod is told anew by this run of the agent, and nothing of it is different from before, not for a moment. */
async function quietAsBefore({ seq, heard }: Before): Promise<void> {
  await Promise.all(
    [...known].map(async ([name, first]) => {
      const now = await agreed(lab, name, (p) => seqOf(p) > (seq.get(name) ?? 0) && settled(p));
      assert.equal(now.pod.metadata.uid, first.pod.metadata.uid, name);
      assert.deepEqual(footprint(now.shown), footprint(first.shown), name);
      for (const { topic, text } of lab.watcher.heard.slice(heard)) {
        if (topic.endsWith(`/pods/default/${name}`)) assert.deepEqual((JSON.parse(text) as ToldPod).status, first.pod.status, name);
        if (!topic.endsWith(`/sync/default/${name}`)) continue;
        const { phase, reason } = JSON.parse(text) as SyncStatus;
        assert.deepEqual([phase, reason], [first.sync.phase, first.sync.reason], name);
      }
    }),
  );
}
interface Before {
  /** The stamp of what was told last of each quiet pod. */
  readonly seq: ReadonlyMap<string, number>;
  /** How many messages had been heard. */
  readonly heard: number;
}
const before = (): Before => ({
  seq: new Map([...known.keys()].map((name) => [name, seqOf(toldPod(lab, name))])),
  heard: lab.watcher.heard.length,
});

test('killed and started ten times under load, no quiet pod is touched, and what was told of it stays to the second', async () => {
  for (const p of quiet) drop(p);
  const first = await Promise.all(
    quiet.map((p) =>
      agreed(
        lab,
        p.metadata.name,
        (told, s) => settled(told) && s.phase === answers[told.status.phase] && s.reason !== 'ContainersNotReady',
      ),
    ),
  );
  known = new Map(first.map((s) => [s.pod.metadata.name, s]));
  const labelled = drop(pod('labelled', {}, { labels: { round: 'none' } }));
  const unlabelled = await agreed(lab, labelled, settled);
  await sleep(1_100); // a time that is told anew would be another one
  const busy = 4;
  for (let round = 0; round < 10; round++) {
    const then = before();
    for (let i = 0; i < busy; i++) {
      const name = `busy-${i}`;
      const work = (round + i) % 4;
      if (work === 0) drop(pod(name, { containers: [container('main'), container(`round-${round}`)] }));
      else if (work === 1) drop(pod(name, { containers: [container('main', exit(1))] }));
      else if (work === 2) drop(pod(name, { containers: [container('main', serve, { env: [{ name: 'ROUND', value: `${round}` }] })] }));
      else if (toldPod(lab, name) !== undefined) lab.agent.removeManifest(`${name}.yaml`);
      await sleep(40);
    }
    await sleep((round % 5) * 130); // at another moment of the work each time
    await lab.agent.kill9();
    drop(pod(labelled, {}, { labels: { round: `${round}` } }));
    lab.agent.start();
    await quietAsBefore(then);
  }
  for (let i = 0; i < busy; i++) drop(pod(`busy-${i}`, { containers: [container('last')] }));
  for (let i = 0; i < busy; i++) await agreed(lab, `busy-${i}`, (p) => settled(p) && p.spec.containers[0]?.name === 'last', 60_000);
  const now = await agreed(lab, labelled, (p) => p.metadata.labels?.round === '9' && settled(p));
  assert.deepEqual(footprint(now.shown), footprint(unlabelled.shown), 'ten labels written while it was dead restart nothing');
  assert.deepEqual(lab.witness.offences, []);
});

test('a manifest that goes while the agent is dead: its pod is ended by its own grace, and told gone', async () => {
  const name = drop(pod('left', { terminationGracePeriodSeconds: 3, containers: [container('main', deaf)] }));
  const { shown } = await agreed(lab, name, settled);
  const id = shown.containers[0]?.id ?? '';
  const then = before();
  await lab.agent.kill9();
  lab.agent.removeManifest(`${name}.yaml`);
  await sleep(500);
  assert.equal((await lab.bed.cri.containerStatus(id)).state, 'running', 'nobody ends it yet');
  const startedAt = performance.now();
  lab.agent.start();
  await until('it ended', 60_000, async () => (await lab.bed.cri.containerStatus(id).catch(() => undefined))?.state !== 'running');
  const took = performance.now() - startedAt;
  assert.ok(took >= 2_900, `its grace is 3 s, and it ended after ${took} ms`);
  await gone(lab, name);
  await quietAsBefore(then);
});

test('a manifest that turns bad while the agent is dead: its pod goes on, and the mistake is told', async () => {
  const name = drop(pod('broken'));
  const first = await agreed(lab, name, settled);
  await lab.agent.kill9();
  lab.agent.drop(`${name}.yaml`, manifest(pod(name)).replace('"spec"', '"spce"'));
  lab.agent.start();
  await lab.watcher.untilAll('the mistake', () => toldSync(lab, name)?.reason === 'EditRefused');
  const now = await agreed(lab, name, (p, s) => seqOf(p) > seqOf(first.pod) && s.phase === 'Running');
  assert.deepEqual(footprint(now.shown), footprint(first.shown));
  assert.deepEqual(now.pod.status, first.pod.status);
  const file = lab.watcher.values.get(lab.agent.topic(`sync/_files/${name}~2eyaml`));
  assert.match(JSON.stringify(file), /"path":"spec".*"line":\d+/);
});

test('an edit while the agent is dead touches what it names and nothing else', async () => {
  const two = (b: readonly string[], metadata: object = {}) =>
    pod('edited', { containers: [container('a'), container('b', b)] }, { ...metadata });
  const name = drop(two(serve));
  const first = await agreed(lab, name, settled);
  await lab.agent.kill9();
  drop(two(['sh', '-c', `${serve[2]} # changed`], { labels: { new: 'yes' } }));
  lab.agent.start();
  const now = await agreed(lab, name, (p) => settled(p) && p.status.containerStatuses?.[1]?.restartCount === 1);
  assert.equal(now.pod.metadata.uid, first.pod.metadata.uid);
  assert.equal(now.pod.metadata.labels?.new, 'yes');
  assert.deepEqual(footprint(now.shown, 'a'), footprint(first.shown, 'a'));
});

test('the back-off of a crashing container goes on where it was', async () => {
  const name = drop(pod('crash', { containers: [container('main', exit(1))] }));
  const rests = (p: ToldPod): boolean => {
    const main = p.status.containerStatuses?.[0];
    return main?.state.waiting?.reason === 'CrashLoopBackOff' && main.restartCount >= 2;
  };
  const { pod: told, shown } = await agreed(lab, name, rests, 90_000);
  const count = told.status.containerStatuses?.[0]?.restartCount ?? 0;
  const endedAt = shown.containers[0]?.finishedAt ?? 0n;
  for (let i = 0; i < 3; i++) {
    await lab.agent.kill9();
    lab.agent.start();
    await sleep(1_500);
  }
  const now = await agreed(lab, name, (p, s) => s.reason === 'CrashLoopBackOff' && seqOf(p) > seqOf(told));
  const next = now.shown.containers.findLast((c) => c.attempt > count);
  if (next === undefined) assert.equal(now.pod.status.containerStatuses?.[0]?.restartCount, count);
  else assert.ok(next.createdAt - endedAt >= 19_000_000_000n, 'no restart for a restart of the agent: its back-off is 20 s at least');
});

test('a graceful stop says offline, touches nothing, and the next start finds everything', async () => {
  const then = before();
  const from = lab.watcher.heard.length;
  const code = await lab.agent.stop();
  assert.equal(code, 0);
  await lab.watcher.until(lab.agent.topic('online'), (o) => (o as { state?: string }).state === 'offline');
  for (const [name, first] of known) assert.ok(toldPod(lab, name) !== undefined, `${name} (${first.pod.metadata.uid}) is still told`);
  const cleared = lab.watcher.heard.slice(from).filter((h) => h.text === '');
  assert.deepEqual(cleared, []);
  lab.agent.start();
  await lab.watcher.until(lab.agent.topic('online'), (o) => (o as { state?: string }).state === 'online');
  await quietAsBefore(then);
});

test('what others run in the same containerd was never touched', async () => {
  assert.deepEqual(await foreigners.running(), strangers);
  assert.deepEqual(lab.witness.offences, []);
});
