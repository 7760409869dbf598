/** Hooks and probes that fail, hang or overrun on a real containerd: who is ended, by whose grace, what is told, and that an end always comes. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { Lab } from './lab.ts';
import { container, deaf, type Fields, type PodText, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { conditionOf, type Diary, dropPod, eventsOf, setStage, sh, statusOf, stay, uptime, watchPod } from './story.ts';
import { agreed, footprint, gone, shownOf, toldPod, toldSync } from './truth.ts';

let lab: Lab;
let diary: Diary;
setStage('unwell', (stage) => {
  ({ lab, diary } = stage);
});

const drop = (of: PodText): string => dropPod(lab, of);
const exec = (script: string) => ({ exec: { command: sh(script) } });
const member = (name: string, more: Fields = {}, script = stay(name)) =>
  container(name, sh(script), { volumeMounts: [diary.mount], ...more });
const story = (name: string, grace: number, containers: readonly object[], more: Fields = {}) =>
  pod(name, { terminationGracePeriodSeconds: grace, volumes: [diary.volume], containers, ...more });
const count = (text: string): number => diary.entries().filter((e) => e.text === text).length;
const isReady = (name: string): boolean => conditionOf(toldPod(lab, name), 'Ready') === 'True';
const told = (name: string, what: string, check: () => boolean, ms = 60_000) =>
  lab.watcher.untilAll(`${name}: ${what}`, check, ms).catch((e) => {
    throw new Error(`${e}\n${JSON.stringify([toldPod(lab, name)?.status, toldSync(lab, name)])}\n${lab.agent.log().slice(-2000)}`);
  });
async function has(name: string, ...texts: RegExp[]): Promise<void> {
  for (const t of texts) {
    await until(`${t}`, 30_000, async () => (await eventsOf(lab.agent, name)).some((e) => t.test(e))).catch(async () =>
      assert.fail(`${t} is not among\n${(await eventsOf(lab.agent, name)).join('\n')}`),
    );
  }
}

describe('what goes wrong', { concurrency: 8 }, () => {
  test('a preStop hook that hangs is cut at the end of the grace, told, and its container has TERM and 2 s more', async () => {
    const name = drop(story('hangs', 4, [member('hangs', { lifecycle: { preStop: exec('note "hangs asks"; sleep 1000000') } })]));
    await agreed(lab, name, () => isReady(name));
    const from = uptime();
    lab.agent.removeManifest(`${name}.yaml`);
    const term = await diary.of('hangs TERM');
    await gone(lab, name);
    assert.ok(term.at - from >= 3.9 && uptime() - from < 45, `TERM after ${term.at - from} s, gone after ${uptime() - from} s`);
    await has(name, /^PreStopHookOverran: .*grace of 4 s/);
  });

  const failing = [
    { of: 'fails', what: 'exec', preStop: { exec: { command: ['sh', '-c', 'echo hidden; exit 7'] } } },
    // a manifest may name it, and no kubelet ever could do it
    { of: 'knocks', what: 'tcpSocket', preStop: { tcpSocket: { port: 1 } } },
  ];
  for (const { of, what, preStop } of failing)
    test(`a preStop hook that fails (${what}) is told without its details, and the end goes on`, async () => {
      const name = drop(story(of, 60, [member(of, { lifecycle: { preStop } })]));
      await agreed(lab, name, () => isReady(name));
      const from = uptime();
      lab.agent.removeManifest(`${name}.yaml`);
      await gone(lab, name);
      assert.ok(uptime() - from < 45, 'long before its grace is over');
      await diary.of(`${of} TERM`);
      await has(name, /^FailedPreStopHook: PreStopHook failed$/);
    });

  test('a postStart hook that fails ends its container, which backs off and tries again; its neighbour runs', async () => {
    const name = drop(
      story('late', 2, [member('late', { lifecycle: { postStart: exec('note "late asks"; [ -e /diary/fine ]') } }), member('calm')]),
    );
    await told(name, 'PostStartHookError or its back-off', () => {
      const s = statusOf(toldPod(lab, name), 'late');
      return (s?.restartCount ?? 0) >= 1 && s?.state.waiting !== undefined;
    });
    const calm = footprint(await shownOf(lab, name), 'calm');
    await has(name, /^FailedPostStartHook: PostStartHook failed$/, /^Killing: FailedPostStartHook$/);
    assert.ok(!isReady(name));
    diary.put('fine');
    const now = await agreed(lab, name, () => isReady(name), 120_000);
    assert.deepEqual(footprint(now.shown, 'calm'), calm);
    assert.ok(count('late begins') >= 2 && count('late TERM') >= 1);
  });

  test('a startup probe that fails ends its container, and the grace of a probe is its own', async () => {
    const probe = { ...exec('false'), periodSeconds: 1, failureThreshold: 2 };
    const starts = drop(story('starts', 2, [member('starts', { startupProbe: probe })]));
    const own = { ...probe, terminationGracePeriodSeconds: 2 };
    const of = (grace: number) => story('lives', grace, [container('lives', deaf, { livenessProbe: own })]);
    const lives = drop(of(60));
    await told(starts, 'restarted', () => (statusOf(toldPod(lab, starts), 'starts')?.restartCount ?? 0) >= 1);
    await told(lives, 'restarted', () => (statusOf(toldPod(lab, lives), 'lives')?.restartCount ?? 0) >= 1, 45_000);
    assert.equal(statusOf(toldPod(lab, lives), 'lives')?.lastState.terminated?.exitCode, 137);
    await has(starts, /^Unhealthy: Startup probe failed:/, /^Killing: Container starts failed startup probe, will be restarted$/);
    await has(lives, /^Killing: Container lives failed liveness probe, will be restarted$/);
    const revision = () => toldPod(lab, lives)?.metadata.annotations?.['podsched.dev/revision'];
    const before = revision();
    drop(of(1)); // by this one it ends
    await told(lives, 'its new grace', () => revision() !== before);
    for (const n of [starts, lives]) lab.agent.removeManifest(`${n}.yaml`);
  });

  test('a sidecar that never becomes started keeps the rest from starting, and the pod ends while it waits', async () => {
    const relay = member('relay', { restartPolicy: 'Always', startupProbe: { ...exec('false'), periodSeconds: 1, failureThreshold: 600 } });
    const name = drop(story('waits', 3, [member('app')], { initContainers: [relay, member('after', {}, 'note "after begins"')] }));
    await diary.of('relay begins');
    await sleep(3_000);
    await told(
      name,
      'Pending',
      () => toldPod(lab, name)?.status.phase === 'Pending' && statusOf(toldPod(lab, name), 'relay')?.started === false,
    );
    assert.equal(statusOf(toldPod(lab, name), 'app')?.state.waiting?.reason, 'PodInitializing');
    assert.equal(count('after begins') + count('app begins'), 0);
    lab.agent.removeManifest(`${name}.yaml`);
    await gone(lab, name);
    assert.equal(count('relay TERM'), 1);
  });

  test('in a network of its own a pod is probed and its hooks ask at its own address; an edit during a liveness kill ends in the newest definition', async () => {
    const web = (version: string) =>
      `note "web ${version}"; mkdir -p /www; echo ok >/www/healthy; httpd -p 8080 -h /www; trap 'note "web TERM"; exit 0' TERM; sleep 2147483647 & wait $!`;
    const get = { httpGet: { port: 'http', path: '/healthy' } };
    const spec = (version: string) =>
      story('own', 20, [
        member(
          'web',
          {
            ports: [{ name: 'http', containerPort: 8080 }],
            startupProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
            livenessProbe: { ...get, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 },
            readinessProbe: { ...get, periodSeconds: 1, timeoutSeconds: 10 },
            lifecycle: { preStop: exec('note "web preStop"; sleep 6'), postStart: { httpGet: { port: 'http', path: '/absent' } } },
          },
          `${web(version)}`,
        ),
        member('calm2'),
      ]);
    const name = drop(spec('1'));
    // the hook may come before the server listens: then the container is tried again
    const first = await agreed(lab, name, () => isReady(name), 120_000);
    const from = uptime();
    const id = first.shown.containers.find((c) => c.name === 'web' && c.state === 'running')?.id ?? '';
    await lab.bed.ctr('tasks', 'exec', '--exec-id', 'hurt', id, 'rm', '/www/healthy');
    await diary.of('web preStop', undefined, from);
    drop(spec('2'));
    const again = await diary.of('web 2', undefined, from);
    const now = await agreed(lab, name, (p) => isReady(name) && statusOf(p, 'web')?.started === true, 120_000);
    const hooks = diary.entries().filter((e) => e.text === 'web preStop' && e.at >= from && e.at <= again.at);
    assert.equal(hooks.length, 1, 'one end, one hook');
    assert.equal(diary.entries().filter((e) => e.text === 'web 1' && e.at >= from).length, 0, 'the old definition never came back');
    assert.deepEqual(footprint(now.shown, 'calm2'), footprint(first.shown, 'calm2'));
    assert.equal(now.pod.metadata.uid, first.pod.metadata.uid);
  });

  test('added again while its preStop hook runs, a pod comes back as a new instance after the old one', async () => {
    const of = story('back', 8, [
      member('back', { lifecycle: { preStop: exec('note "back preStop"; sleep 3; note "back preStop ends"') } }),
    ]);
    const name = drop(of);
    const first = await agreed(lab, name, () => isReady(name));
    const watch = watchPod(lab.agent, name);
    lab.agent.removeManifest(`${name}.yaml`);
    await diary.of('back preStop');
    drop(of);
    const now = await agreed(lab, name, (p) => isReady(name) && p.metadata.uid !== first.pod.metadata.uid);
    await watch.end();
    const order = diary
      .entries()
      .map((e) => e.text)
      .filter((t) => t.startsWith('back '));
    assert.deepEqual(order, ['back begins', 'back preStop', 'back preStop ends', 'back TERM', 'back begins']);
    assert.equal(statusOf(now.pod, 'back')?.restartCount, 0);
  });
});

test('no two instances or containers lived together, and everything ends', async () => {
  for (const file of readdirSync(lab.agent.manifests)) lab.agent.removeManifest(file);
  await until('all are gone', 90_000, async () => (await lab.bed.cri.sandboxes()).length === 0).catch(async (e) => {
    throw new Error(
      `${e}\n${(await lab.bed.cri.sandboxes()).map((x) => `${x.name} ${x.ready} ${x.uid}`)}\n${(await lab.agent.get('/pods')).body.slice(0, 4000)}\n${(await lab.agent.get('/sync')).body.slice(0, 2000)}\n${lab.agent.log().slice(-3000)}`,
    );
  });
  assert.deepEqual(lab.witness.offences, []);
});
