/** Under pods with probes, hooks and volumes something is pulled away: the runtime, a sandbox, the agent in peace. Nobody is killed for what is not its fault. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToldPod } from '../../src/api/status.ts';
import type { Lab } from './lab.ts';
import { container, type Fields, type PodText, pod, serve } from './manifest.ts';
import { sleep, until } from './process.ts';
import { conditionOf, type Diary, dropPod, eventsOf, podsOf, setStage, sh, statusOf, stay, watchPod } from './story.ts';
import { agreed, footprint, gone, shownOf, toldPod } from './truth.ts';

let lab: Lab;
let diary: Diary;
setStage('shaken', (stage) => {
  ({ lab, diary } = stage);
});

const drop = (of: PodText): string => dropPod(lab, of);
const member = (name: string, more: Fields = {}, script = stay(name)) =>
  container(name, sh(script), { volumeMounts: [diary.mount], ...more });
const ready = (p: ToldPod | undefined): boolean => conditionOf(p, 'Ready') === 'True';
const each = (command: readonly string[]) => ({ exec: { command }, periodSeconds: 1, failureThreshold: 1 });

test('while the runtime is away no probe that cannot be asked counts, no hook is lost, and a removed pod ends when it is back', async () => {
  const probed = drop(
    pod('probed', {
      containers: [
        container('main', serve, {
          livenessProbe: { ...each(['true']), timeoutSeconds: 10 },
          readinessProbe: { ...each(['true']), timeoutSeconds: 10 },
        }),
      ],
    }),
  );
  const hooked = drop(
    pod('hooked', {
      terminationGracePeriodSeconds: 15,
      volumes: [diary.volume],
      containers: [
        member('hooked', { lifecycle: { preStop: { exec: { command: sh('note "hooked asks"; sleep 5; note "hooked is done"') } } } }),
      ],
    }),
  );
  const [first] = await Promise.all([agreed(lab, probed, ready), agreed(lab, hooked, ready)]);
  const watch = watchPod(lab.agent, probed);
  lab.agent.removeManifest(`${hooked}.yaml`);
  await diary.of('hooked asks');
  await lab.bed.stopContainerd('SIGKILL');
  await sleep(5_000);
  await lab.bed.startContainerd();
  await gone(lab, hooked);
  assert.ok(diary.entries().some((e) => e.text === 'hooked TERM'));
  await sleep(3_000);
  await watch.end();
  const now = await agreed(lab, probed, ready);
  assert.deepEqual(footprint(now.shown), footprint(first.shown));
  assert.deepEqual(
    watch.seen.filter((g) => !ready(g.pod)).map((g) => g.pod.status),
    [],
  );
  assert.deepEqual(
    (await eventsOf(lab.agent, probed)).filter((e) => /^(Unhealthy: .*failed|Killing)/.test(e)),
    [],
  );
});

test('a sandbox that dies is made again for the same pod: its init containers and hooks run again, its emptyDir stays, others find its new address', async () => {
  const work = { name: 'work' };
  const mounts = [diary.mount, { name: 'work', mountPath: '/work' }];
  const name = drop(
    pod('fallen', {
      terminationGracePeriodSeconds: 5,
      volumes: [diary.volume, work],
      initContainers: [member('init', { volumeMounts: mounts }, 'echo x >>/work/f; note "init saw $(wc -l </work/f)"')],
      containers: [
        member('main', {
          volumeMounts: mounts,
          readinessProbe: each(['true']),
          lifecycle: { postStart: { exec: { command: sh('note "main postStart"') } } },
        }),
      ],
    }),
  );
  const other = drop(pod('other'));
  const [first, neighbour] = await Promise.all([agreed(lab, name, ready), agreed(lab, other, ready)]);
  const [sandbox] = first.shown.sandboxes;
  await lab.bed.ctr('tasks', 'kill', '--signal', 'SIGKILL', sandbox?.id ?? '');
  await diary.of('init saw 2');
  const now = await agreed(lab, name, (p) => ready(p) && (statusOf(p, 'main')?.restartCount ?? 0) === 1);
  assert.equal(now.pod.metadata.uid, first.pod.metadata.uid);
  assert.notEqual(now.pod.status.podIP, first.pod.status.podIP);
  assert.equal(diary.entries().filter((e) => e.text === 'main postStart').length, 2);
  const id = neighbour.shown.containers[0]?.id ?? '';
  await until('its new address', 45_000, async () =>
    (await lab.bed.cri.exec(id, 'cat', '/etc/hosts')).stdout.includes(`${now.pod.status.podIP}\tfallen`),
  );
  assert.ok((await eventsOf(lab.agent, name)).some((e) => e.startsWith('SandboxChanged')));
});

test('an agent that is stopped in peace while a preStop hook runs does not wait for it, and the next one ends the pod', async () => {
  const name = drop(
    pod('parted', {
      terminationGracePeriodSeconds: 40,
      volumes: [diary.volume],
      containers: [
        member('parted', { lifecycle: { preStop: { exec: { command: sh('note "parted asks"; sleep 10; note "parted has asked"') } } } }),
      ],
    }),
  );
  await agreed(lab, name, ready);
  lab.agent.removeManifest(`${name}.yaml`);
  await diary.of('parted asks');
  assert.equal(await lab.agent.stop(), 0);
  assert.ok(!diary.entries().some((e) => e.text === 'parted has asked'));
  assert.equal((await shownOf(lab, name)).containers[0]?.state, 'running');
  lab.agent.start();
  await gone(lab, name);
  assert.equal(diary.entries().filter((e) => e.text === 'parted TERM').length, 1);
});

test('twelve exec probes a second on a small machine: nobody fails for the agent’s own queue', async () => {
  const probes = { livenessProbe: { ...each(['true']), timeoutSeconds: 5 }, readinessProbe: { ...each(['true']), timeoutSeconds: 5 } };
  const names = Array.from({ length: 6 }, (_, i) => drop(pod(`many-${i}`, { containers: [container('main', serve, probes)] })));
  await Promise.all(names.map((n) => agreed(lab, n, ready, 90_000)));
  await sleep(8_000);
  const pods = (await podsOf(lab.agent)).filter((p) => names.includes(p.metadata.name));
  assert.equal(pods.length, names.length);
  assert.deepEqual(
    pods.filter((p) => !ready(p) || statusOf(p, 'main')?.restartCount !== 0).map((p) => p.status),
    [],
  );
  const events = await Promise.all(names.map((n) => eventsOf(lab.agent, n)));
  assert.deepEqual(
    events.flat().filter((e) => e.startsWith('Unhealthy')),
    [],
  );
  assert.ok(names.every((n) => toldPod(lab, n)?.status.phase === 'Running'));
  assert.deepEqual(lab.witness.offences, []);
});
