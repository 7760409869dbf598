/** Field cases C13, D4, D12 and D14 and their neighbours: probes and their pods, on the whole agent in virtual time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { V1ContainerStatus } from '../../src/api/status.ts';
import type { ContainerId } from '../../src/container/words.ts';
import type { ProcessBehaviour } from '../fakes/runtimeRecords.ts';
import { manifest, World } from './world.ts';

/** What commands answer, by their first word; absent: they succeed. */
type Answers = Record<string, number | 'hangs'>;

const probe = (word: string, more = ''): string => `{exec: {command: [${word}]}, periodSeconds: 5${more}}`;
const container = (name: string, more: readonly string[] = [], image = 1): string =>
  `{${[`name: ${name}, image: "localhost/busybox:${image}"`, ...more].join(', ')}}`;

class ProbedWorld extends World {
  readonly answers: Answers = {};
  /** Of processes, by container name. */
  readonly ways: Record<string, ProcessBehaviour> = {};

  constructor() {
    super();
    this.runtime.onStart((name) => ({
      ...this.ways[name],
      exec: ([word = '']) => {
        const answer = this.answers[word] ?? 0;
        return answer === 'hangs' ? { takesMs: 3_600_000 } : { exitCode: answer };
      },
    }));
  }

  /** How often each command was run, by its first word. */
  asked(since = 0): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { args } of this.runtime.calls.slice(since).filter((c) => c.method === 'execSync')) {
      const [word = ''] = args[1] as string[];
      counts[word] = (counts[word] ?? 0) + 1;
    }
    return counts;
  }

  status(pod = 'web', name = 'app'): V1ContainerStatus | undefined {
    const { status } = this.pod(pod) ?? {};
    return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].find((c) => c.name === name);
  }

  /** Graces of stops so far. */
  graces(): unknown[] {
    return this.runtime.calls.filter((c) => c.method === 'stopContainer').map((c) => c.args[1]);
  }

  starts(name: string): number {
    const { calls } = this.runtime;
    return calls.filter((c) => c.method === 'createContainer' && (c.args[1] as { name: string }).name === name).length;
  }

  reasons(reason: string): string[] {
    return this.events.filter((e) => e.reason === reason).map((e) => e.message);
  }
}

async function begun(text: string, prepare: (w: ProbedWorld) => void = () => {}): Promise<ProbedWorld> {
  const w = new ProbedWorld();
  prepare(w);
  w.folder.files.set('web.yaml', text);
  await w.start();
  await w.advance(30);
  return w;
}

test('nothing is asked but the startup probe until it has succeeded, and the container is not ready before', async () => {
  const probes = [
    `startupProbe: ${probe('startup', ', failureThreshold: 100')}`,
    `livenessProbe: ${probe('live')}`,
    `readinessProbe: ${probe('ready')}`,
  ];
  const w = await begun(manifest('web', { containers: [container('app', probes)] }), ({ answers }) => {
    answers.startup = 1;
  });
  assert.deepEqual(Object.keys(w.asked()), ['startup']);
  assert.deepEqual([w.status()?.started, w.status()?.ready], [false, false]);
  w.answers.startup = 0;
  await w.advance(12);
  assert.deepEqual([w.status()?.started, w.status()?.ready], [true, true]);
  const { length } = w.runtime.calls;
  await w.advance(60);
  assert.deepEqual(w.asked(length), { live: 12, ready: 12 });
});

test('a startup probe that gives up ends its container, which starts again with the back-off', async () => {
  const startup = probe('startup', ', failureThreshold: 2, terminationGracePeriodSeconds: 3');
  const w = await begun(manifest('web', { containers: [container('app', [`startupProbe: ${startup}`])] }), ({ answers }) => {
    answers.startup = 1;
  });
  assert.deepEqual(new Set(w.graces()), new Set([3]));
  assert.ok(w.reasons('Killing').includes('Container app failed startup probe, will be restarted'));
  await w.advance(120);
  assert.match(w.reasons('BackOff')[0] ?? '', /^Back-off restarting failed container app in pod web/);
  w.answers.startup = 0;
  await w.advance(160);
  assert.equal(w.status()?.ready, true);
});

test('D14: a sidecar whose startup probe has not succeeded holds back what comes after it', async () => {
  const side = container('side', ['restartPolicy: Always', `startupProbe: ${probe('up', ', failureThreshold: 100')}`]);
  const lines = ['initContainers:', `- ${side}`, `- ${container('init')}`];
  const w = await begun(manifest('web', { lines }), ({ answers, ways }) => {
    answers.up = 1;
    ways.init = { exitAfterMs: 100, exitCode: 0 };
  });
  assert.deepEqual(w.runtime.running(), ['web/side']);
  assert.equal(w.starts('init'), 0);
  assert.equal(w.status('web', 'side')?.started, false);
  w.answers.up = 0;
  await w.advance(10);
  assert.deepEqual(w.runtime.running(), ['web/app', 'web/side']);
  assert.equal(w.starts('init'), 1);
  assert.equal(w.pod('web')?.status.conditions?.find((c) => c.type === 'Ready')?.status, 'True');
});

test('D14: a job with a sidecar ends when the job ends; the sidecar is stopped after it, and its probes ask no more', async () => {
  const side = container('side', ['restartPolicy: Always', `livenessProbe: ${probe('live')}`, `readinessProbe: ${probe('ready')}`]);
  const lines = ['restartPolicy: Never', 'terminationGracePeriodSeconds: 5', 'initContainers:', `- ${side}`];
  const w = await begun(manifest('web', { lines }), ({ ways }) => {
    ways.app = { exitAfterMs: 60_000, exitCode: 0 };
    ways.side = { ignoresTerm: true };
  });
  assert.equal(w.status('web', 'side')?.ready, true);
  await w.advance(60);
  assert.deepEqual(w.runtime.running(), []);
  const [app, sidecar] = [w.runtime.find('web', 'app'), w.runtime.find('web', 'side')];
  assert.ok((sidecar?.finishedAt ?? 0) > (app?.finishedAt ?? Number.POSITIVE_INFINITY));
  assert.equal(w.pod('web')?.status.phase, 'Succeeded');
  assert.equal(w.status('web', 'side')?.ready, false);
  assert.equal(w.sync('web')?.phase, 'Completed');
  const { length } = w.runtime.calls;
  await w.advance(300);
  await w.restart();
  await w.advance(300);
  assert.deepEqual(w.asked(length), {});
  assert.equal(w.starts('side'), 1);
});

test('removed, a pod ends its sidecars last and in reverse order', async () => {
  const side = (name: string) => `- ${container(name, ['restartPolicy: Always'])}`;
  const w = await begun(
    manifest('web', { lines: ['terminationGracePeriodSeconds: 60', 'initContainers:', side('one'), side('two')] }),
    ({ ways }) => {
      for (const name of ['app', 'one', 'two']) ways[name] = { stopDelayMs: 2000 };
    },
  );
  assert.deepEqual(w.runtime.running(), ['web/app', 'web/one', 'web/two']);
  const ids = new Map([...w.runtime.containers.values()].map((c) => [c.id as unknown, c.config.name]));
  const { length } = w.runtime.calls;
  w.folder.remove('web.yaml');
  await w.advance(30);
  const stops = w.runtime.calls.slice(length).filter((c) => c.method === 'stopContainer');
  assert.deepEqual(
    stops.map((c) => [ids.get(c.args[0]), c.args[1]]),
    [
      ['app', 60],
      ['two', 58],
      ['one', 56],
    ],
  );
  assert.equal(w.pod('web'), undefined);
});

const ready = manifest('web', { containers: [container('app', [`readinessProbe: ${probe('ready', ', failureThreshold: 1')}`])] });

test('readiness is told when it comes and when it goes, and ends nothing', async () => {
  const w = await begun(ready);
  const readyTold = () => [w.status()?.ready, w.pod('web')?.status.conditions?.find((c) => c.type === 'Ready')?.status];
  assert.deepEqual(readyTold(), [true, 'True']);
  const deeds = w.runtime.deeds.length;
  for (const [answer, expected] of [
    [1, [false, 'False']],
    [0, [true, 'True']],
    ['hangs', [false, 'False']],
  ] as const) {
    w.answers.ready = answer;
    await w.advance(10);
    assert.deepEqual(readyTold(), expected);
    assert.equal(w.sync('web')?.phase, 'Running');
  }
  assert.equal(w.runtime.deeds.length, deeds);
  assert.ok(w.reasons('Unhealthy').some((m) => m.startsWith('Readiness probe failed')));
});

test('a failing liveness probe restarts its container by the grace of the probe, and ends in CrashLoopBackOff', async () => {
  const live = probe('live', ', failureThreshold: 2, terminationGracePeriodSeconds: 3');
  const lines = ['terminationGracePeriodSeconds: 40'];
  const w = await begun(manifest('web', { lines, containers: [container('app', [`livenessProbe: ${live}`])] }), ({ ways }) => {
    ways.app = { ignoresTerm: true };
  });
  const uid = w.pod('web')?.metadata.uid;
  w.answers.live = 1;
  await w.advance(100);
  assert.deepEqual(new Set(w.graces()), new Set([3]));
  assert.ok(w.reasons('Killing').every((m) => m === 'Container app failed liveness probe, will be restarted'));
  while (w.status()?.state.running !== undefined) await w.advance(1);
  assert.equal(w.status()?.state.waiting?.reason, 'CrashLoopBackOff');
  assert.equal(w.status()?.lastState.terminated?.exitCode, 137);
  w.answers.live = 0;
  await w.advance(300);
  const restarts = w.status()?.restartCount ?? 0;
  assert.ok(restarts >= 3 && restarts <= 5, `${restarts} restarts`);
  assert.equal(w.pod('web')?.metadata.uid, uid);
  await w.advance(600);
  assert.equal(w.status()?.restartCount, restarts);
  // its owner's wish is another matter than a probe's
  w.folder.remove('web.yaml');
  await w.advance(60);
  assert.equal(w.graces().at(-1), 40);
});

test('D4: a liveness probe that hangs is a failure on its third time-out', async () => {
  const w = await begun(manifest('web', { containers: [container('app', [`livenessProbe: ${probe('live')}`])] }));
  w.answers.live = 'hangs';
  const { length } = w.runtime.calls;
  await w.advance(13);
  assert.deepEqual([w.asked(length), w.starts('app')], [{ live: 3 }, 1]);
  await w.advance(3);
  assert.equal(w.starts('app'), 2);
});

test('an edit while a liveness probe fails: the container is stopped once, and the new one is judged by its own probe', async () => {
  const text = (image: number, word: string) =>
    manifest('web', {
      lines: ['terminationGracePeriodSeconds: 30'],
      containers: [container('app', [`livenessProbe: ${probe(word, ', failureThreshold: 1')}`], image)],
    });
  const w = await begun(text(1, 'old'), ({ ways }) => {
    ways.app = { ignoresTerm: true };
  });
  w.folder.write('web.yaml', text(2, 'new'));
  await w.advance(3);
  w.answers.old = 1;
  await w.advance(60);
  assert.deepEqual(w.graces(), [30]);
  assert.equal(w.starts('app'), 2);
  const { length } = w.runtime.calls;
  await w.advance(60);
  assert.deepEqual(w.asked(length), { new: 12 });
  assert.equal(w.status()?.restartCount, 1);
  w.answers.new = 1;
  await w.advance(40);
  assert.equal(w.starts('app'), 3);
});

test('C13: a restart of the agent changes no readiness, whatever the probe would say later, and asks no startup probe again', async () => {
  const slow = (word: string) => `{exec: {command: [${word}]}, periodSeconds: 60, failureThreshold: 1}`;
  const pod = (name: string) =>
    manifest(name, { containers: [container('app', [`startupProbe: ${probe('startup')}`, `readinessProbe: ${slow(`${name}-ready`)}`])] });
  const w = new ProbedWorld();
  w.answers['sick-ready'] = 1;
  for (const name of ['well', 'sick']) w.folder.files.set(`${name}.yaml`, pod(name));
  await w.start();
  await w.advance(120);
  const told: [string | undefined, boolean | undefined][] = [];
  w.onTold.push((topic, payload) => {
    if (!topic.includes('/pods/') || payload === undefined) return;
    const { metadata, status } = JSON.parse(payload) as { metadata: { name: string }; status: { containerStatuses: V1ContainerStatus[] } };
    told.push([metadata.name, status.containerStatuses[0]?.ready]);
  });
  assert.deepEqual([w.status('well')?.ready, w.status('sick')?.ready], [true, false]);
  const { length } = w.runtime.calls;
  const deeds = w.runtime.deeds.length;
  for (let i = 0; i < 5; i++) {
    await w.restart();
    await w.advance(20);
  }
  assert.ok(told.every(([name, is]) => is === (name === 'well')));
  assert.equal(w.asked(length).startup, undefined);
  assert.equal(w.runtime.deeds.length, deeds);
  w.answers['well-ready'] = 1;
  w.answers['sick-ready'] = 0;
  await w.advance(130);
  assert.deepEqual([w.status('well')?.ready, w.status('sick')?.ready], [false, true]);
});

test('what was told ready is still ready for the next agent, however slowly the run directory takes what probes found', async () => {
  const w = new ProbedWorld();
  const put = w.runStore.put.bind(w.runStore);
  w.runStore.put = async (key, value) => {
    if (key.startsWith('probes/')) await w.clock.sleep(3000);
    await put(key, value);
  };
  w.folder.files.set('web.yaml', manifest('web', { containers: [container('app', [`readinessProbe: ${probe('ready')}`])] }));
  await w.start();
  for (let i = 0; i < 600 && w.status()?.ready !== true; i++) await w.clock.advance(100);
  assert.equal(w.status()?.ready, true);
  w.answers.ready = 'hangs';
  const told: unknown[] = [];
  w.onTold.push(() => told.push(w.status()?.ready));
  await w.restart();
  await w.advance(4);
  assert.ok(!told.includes(false));
  assert.equal(w.status()?.ready, true);
});

test('a liveness that failed while the agent was killed in the stop is carried out by the next agent', async () => {
  const live = probe('live', ', failureThreshold: 1');
  const lines = ['terminationGracePeriodSeconds: 20'];
  const w = await begun(manifest('web', { lines, containers: [container('app', [`livenessProbe: ${live}`])] }), ({ ways }) => {
    ways.app = { ignoresTerm: true };
  });
  w.answers.live = 1;
  while (w.graces().length === 0) await w.advance(1);
  w.answers.live = 0;
  await w.restart();
  await w.advance(60);
  assert.equal(w.starts('app'), 2);
  assert.equal(w.status()?.ready, true);
});

test('D12: after a power cut init containers and the startup probe run again, and the pod is not ready before', async () => {
  const probes = [`startupProbe: ${probe('startup', ', failureThreshold: 100')}`, `readinessProbe: ${probe('ready')}`];
  const lines = ['initContainers:', `- ${container('init')}`];
  const w = await begun(manifest('web', { lines, containers: [container('app', probes)] }), ({ ways }) => {
    ways.init = { exitAfterMs: 100, exitCode: 0 };
  });
  assert.equal(w.status()?.ready, true);
  const { length } = w.runtime.calls;
  w.answers.startup = 1;
  await w.reboot();
  await w.advance(60);
  assert.equal(w.starts('init'), 2);
  assert.deepEqual(Object.keys(w.asked(length)), ['startup']);
  assert.deepEqual([w.status()?.started, w.status()?.ready], [false, false]);
  w.answers.startup = 0;
  await w.advance(20);
  assert.equal(w.status()?.ready, true);
});

test('a pod that drains is told not ready before it is gone, and its liveness judges it no more', async () => {
  const probes = [`livenessProbe: ${probe('live', ', failureThreshold: 1')}`, `readinessProbe: ${probe('ready', ', failureThreshold: 1')}`];
  const w = await begun(manifest('web', { lines: ['terminationGracePeriodSeconds: 40'], containers: [container('app', probes)] }), (x) => {
    x.ways.app = { ignoresTerm: true };
  });
  w.folder.remove('web.yaml');
  await w.advance(3);
  assert.notEqual(w.pod('web')?.metadata.deletionTimestamp, undefined);
  assert.equal(w.status()?.ready, true);
  w.answers.live = 1;
  w.answers.ready = 1;
  await w.advance(10);
  assert.equal(w.status()?.ready, false);
  assert.notEqual(w.status()?.state.running, undefined);
  assert.notEqual(w.pod('web')?.metadata.deletionTimestamp, undefined);
  await w.advance(40);
  assert.deepEqual(w.graces(), [40]);
  assert.equal(w.pod('web'), undefined);
  assert.deepEqual(await w.runStore.list('probes/'), []);
});

test('nothing is asked of a pod that has completed, whatever its probes found before', async () => {
  const probes = [`livenessProbe: ${probe('live', ', failureThreshold: 1')}`, `readinessProbe: ${probe('ready')}`];
  const w = await begun(manifest('web', { lines: ['restartPolicy: OnFailure'], containers: [container('app', probes)] }), ({ ways }) => {
    ways.app = { exitAfterMs: 40_000, exitCode: 0 };
  });
  assert.equal(w.status()?.ready, true);
  await w.advance(20);
  assert.equal(w.pod('web')?.status.phase, 'Succeeded');
  assert.equal(w.status()?.ready, false);
  const { length } = w.runtime.calls;
  await w.advance(120);
  assert.deepEqual(w.asked(length), {});
  assert.deepEqual(await w.runStore.list('probes/'), []);
});

test('a Never pod whose liveness fails is ended, is Failed, and does not run again', async () => {
  const live = `livenessProbe: ${probe('live', ', failureThreshold: 1')}`;
  const w = await begun(manifest('web', { lines: ['restartPolicy: Never'], containers: [container('app', [live])] }));
  w.answers.live = 1;
  await w.advance(60);
  assert.deepEqual(w.reasons('Killing'), ['Stopping container app']);
  assert.equal(w.pod('web')?.status.phase, 'Failed');
  await w.restart();
  await w.advance(120);
  assert.equal(w.starts('app'), 1);
});

test('what happens during a long pull is told all the same: the container that ended before it, and the readiness of its neighbour', async () => {
  const [app, side] = [container('app', [`readinessProbe: ${probe('ready', ', failureThreshold: 1')}`]), container('side', [], 2)];
  const w = await begun(manifest('web', { containers: [app, side] }));
  assert.deepEqual([w.status()?.ready, w.status('web', 'side')?.ready], [true, true]);
  w.runtime.images.set('localhost/busybox:2', { state: 'pullable' });
  const release = w.runtime.hang('pullImage');
  w.runtime.exit(w.runtime.find('web', 'side')?.id as ContainerId, 1);
  await w.advance(10);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  assert.deepEqual([w.status()?.ready, w.status('web', 'side')?.ready], [true, false]);
  w.answers.ready = 1;
  await w.advance(12);
  assert.equal(w.status()?.ready, false);
  assert.equal(w.pod('web')?.status.phase, 'Running');
  release();
});

test('a container runs for people when its postStart hook has ended; one that ends before is told so, and its pod can go', async () => {
  const hooked = (tag: number) => container('app', ['lifecycle: {postStart: {exec: {command: [post]}}}'], tag);
  const w = await begun(manifest('web', { containers: [hooked(1)] }));
  assert.equal(w.status()?.ready, true);
  w.answers.post = 'hangs';
  w.folder.write('web.yaml', manifest('web', { containers: [hooked(2)] }));
  await w.advance(10);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  assert.deepEqual([w.status()?.ready, w.status()?.state.running, w.pod('web')?.status.phase], [false, undefined, 'Running']);
  w.runtime.exit(w.runtime.find('web', 'app')?.id as ContainerId, 7);
  await w.advance(10);
  assert.deepEqual([w.status()?.ready, w.status()?.state.terminated?.exitCode], [false, 7]);
  w.folder.remove('web.yaml');
  await w.advance(60);
  assert.equal(w.pod('web'), undefined);
});
