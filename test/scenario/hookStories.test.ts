/** Field case D1 and its neighbours: hooks, containers added by hand, volumes, last words and refusals, on the whole agent in virtual time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import type { PodStatus, V1ContainerStatus } from '../../src/api/status.ts';
import { mayLive } from '../../src/kubeletAdmission.ts';
import type { ProcessBehaviour } from '../fakes/runtimeRecords.ts';
import { manifest, World } from './world.ts';

type Answer = { readonly exitCode?: number; readonly takesMs?: number };

const hour = 3_600_000;
const hook = (which: string, word: string): string => `lifecycle: {${which}: {exec: {command: [${word}]}}}`;
const container = (name: string, more: readonly string[] = [], image = 1): string =>
  `{${[`name: ${name}, image: "localhost/busybox:${image}"`, ...more].join(', ')}}`;
const grace = (seconds: number): string => `terminationGracePeriodSeconds: ${seconds}`;

class HookedWorld extends World {
  /** What commands come to, by their first word; absent: they succeed at once. */
  readonly answers: Record<string, Answer> = {};
  readonly ways: Record<string, ProcessBehaviour> = {};

  constructor() {
    super();
    this.runtime.onStart((name) => ({ ...this.ways[name], exec: ([word = '']) => this.answers[word] ?? {} }));
  }

  asked(word: string): number {
    return this.runtime.calls.filter((c) => c.method === 'execSync' && (c.args[1] as string[])[0] === word).length;
  }

  starts(name: string): number {
    return this.runtime.calls.filter((c) => c.method === 'createContainer' && (c.args[1] as { name: string }).name === name).length;
  }

  graces(): unknown[] {
    return this.runtime.calls.filter((c) => c.method === 'stopContainer').map((c) => c.args[1]);
  }

  status(name = 'app'): V1ContainerStatus | undefined {
    const { status } = this.pod('web') ?? {};
    return [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
      ...(status?.ephemeralContainerStatuses ?? []),
    ].find((c) => c.name === name);
  }

  told(reason: string): string[] {
    return this.events.filter((e) => e.reason === reason).map((e) => e.message);
  }

  get uid(): PodUid {
    return (this.pod('web')?.metadata.uid ?? '') as PodUid;
  }

  /** Seconds until the condition holds, at most `limit`. */
  async until(holds: () => boolean, limit: number): Promise<number> {
    const since = this.clock.monotonic();
    while (!holds() && this.clock.monotonic() - since < limit * 1000) await this.advance(0.25);
    return (this.clock.monotonic() - since) / 1000;
  }
}

async function begun(text: string, prepare: (w: HookedWorld) => void = () => {}): Promise<HookedWorld> {
  const w = new HookedWorld();
  prepare(w);
  w.folder.files.set('web.yaml', text);
  await w.start();
  await w.advance(20);
  return w;
}

test('a postStart that fails ends its container, says why, and starts it again with the back-off until it succeeds', async () => {
  const w = await begun(manifest('web', { lines: [grace(5)], containers: [container('app', [hook('postStart', 'post')])] }), (x) => {
    x.answers.post = { exitCode: 3 };
  });
  assert.ok(w.told('FailedPostStartHook').includes('PostStartHook failed'));
  assert.ok(w.told('Killing').includes('FailedPostStartHook'));
  assert.match(w.status()?.state.waiting?.reason ?? '', /^(PostStartHookError|CrashLoopBackOff)$/);
  assert.equal(w.status()?.ready, false);
  await w.advance(60);
  const starts = w.starts('app');
  assert.ok(starts >= 3 && starts <= 5, `${starts} starts in 80 s`);
  w.answers.post = {};
  await w.advance(200);
  assert.equal(w.status()?.ready, true);
  assert.equal(w.told('FailedPostStartHook').length > 0, true);
});

test('a postStart that never ends keeps back the containers after it, and the removal of its pod does not wait for it', async () => {
  const containers = [container('app', [hook('postStart', 'post')]), container('more')];
  const w = await begun(manifest('web', { lines: [grace(5)], containers }), (x) => {
    x.answers.post = { takesMs: hour };
  });
  assert.deepEqual(w.runtime.running(), ['web/app']);
  w.folder.remove('web.yaml');
  assert.ok((await w.until(() => w.pod('web') === undefined, 60)) <= 10);
  assert.deepEqual(w.told('FailedPostStartHook'), []);
});

test('nothing judges a container before its postStart is over: what it warms up in there is not taken for a failure', async () => {
  const live = 'livenessProbe: {exec: {command: [live]}, periodSeconds: 5, failureThreshold: 2}';
  const w = await begun(manifest('web', { containers: [container('app', [hook('postStart', 'post'), live])] }), (x) => {
    x.answers.post = { takesMs: 60_000 };
    x.answers.live = { exitCode: 1 };
  });
  await w.advance(35);
  assert.equal(w.asked('live'), 0);
  w.answers.live = {};
  await w.advance(60);
  assert.ok(w.asked('live') > 5);
  assert.deepEqual([w.starts('app'), w.status()?.ready], [1, true]);
});

test('a container whose postStart never ends is replaced by an edit, and an agent that comes meanwhile takes it as it is', async () => {
  const text = (image: number, more: readonly string[]) =>
    manifest('web', { containers: [container('app', more, image), container('more')] });
  const w = await begun(text(1, [hook('postStart', 'post')]), (x) => {
    x.answers.post = { takesMs: hour };
  });
  w.folder.write('web.yaml', text(2, [hook('postStart', 'post')]));
  await w.advance(60);
  assert.deepEqual([w.runtime.running(), w.starts('app'), w.asked('post')], [['web/app'], 2, 2]);
  await w.restart();
  await w.advance(20);
  assert.deepEqual([w.runtime.running(), w.starts('app'), w.asked('post')], [['web/app', 'web/more'], 2, 2]);
  assert.equal(w.status()?.ready, true);
});

test('a preStop runs before the stop, and what it took is taken from the grace', async () => {
  const w = await begun(manifest('web', { lines: [grace(10)], containers: [container('app', [hook('preStop', 'pre')])] }), (x) => {
    x.answers.pre = { takesMs: 4000 };
  });
  w.folder.remove('web.yaml');
  await w.advance(30);
  assert.deepEqual([w.asked('pre'), w.graces()], [1, [6]]);
  assert.equal(w.pod('web'), undefined);
});

test('a preStop that fails is told, and keeps nothing from ending', async () => {
  const w = await begun(manifest('web', { containers: [container('app', [hook('preStop', 'pre')])] }), (x) => {
    x.answers.pre = { exitCode: 1 };
  });
  w.folder.remove('web.yaml');
  await w.advance(5);
  assert.deepEqual(w.told('FailedPreStopHook'), ['PreStopHook failed']);
  assert.deepEqual([w.asked('pre'), w.runtime.running()], [1, []]);
});

for (const seconds of [1, 10]) {
  test(`D1: a preStop that hangs is cut off at the end of a grace of ${seconds} s, told, and the pod is gone 2 s later`, async () => {
    const w = await begun(manifest('web', { lines: [grace(seconds)], containers: [container('app', [hook('preStop', 'pre')])] }), (x) => {
      x.answers.pre = { takesMs: hour };
      x.ways.app = { ignoresTerm: true };
    });
    w.folder.remove('web.yaml');
    const took = await w.until(() => w.runtime.running().length === 0, 60);
    assert.ok(took >= seconds && took <= seconds + 4, `${took} s`);
    assert.deepEqual([w.asked('pre'), w.graces()], [1, [2]]);
    assert.deepEqual(w.told('PreStopHookOverran').length, 1);
    await w.advance(10);
    assert.equal(w.pod('web'), undefined);
  });
}

test('D1: a shorter grace that comes while a preStop hangs cuts it off, and no second preStop runs', async () => {
  const text = (seconds: number, image: number) =>
    manifest('web', { lines: [grace(seconds)], containers: [container('app', [hook('preStop', 'pre')], image)] });
  const w = await begun(text(600, 1), (x) => {
    x.answers.pre = { takesMs: hour };
  });
  w.folder.write('web.yaml', text(600, 2));
  await w.advance(20);
  assert.equal(w.asked('pre'), 1);
  w.folder.write('web.yaml', text(5, 2));
  await w.advance(5);
  w.folder.remove('web.yaml');
  const took = await w.until(() => w.runtime.running().length === 0, 700);
  assert.ok(took <= 10, `${took} s`);
  assert.equal(w.asked('pre'), 1);
  assert.equal(w.starts('app'), 1);
  await w.advance(10);
  assert.equal(w.pod('web'), undefined);
});

test('an agent killed in a preStop: the next one runs the hook again, by the grace of the pod, and no two at once', async () => {
  const w = await begun(manifest('web', { lines: [grace(20)], containers: [container('app', [hook('preStop', 'pre')])] }), (x) => {
    x.answers.pre = { takesMs: 12_000 };
  });
  w.folder.remove('web.yaml');
  await w.until(() => w.asked('pre') === 1, 30);
  await w.advance(5);
  await w.restart();
  await w.advance(60);
  assert.deepEqual([w.asked('pre'), w.runtime.running(), w.pod('web')], [2, [], undefined]);
  assert.deepEqual(w.graces(), [8]);
});

test('an edit of a container runs the preStop it was made with, and an exit by itself runs none', async () => {
  const text = (image: number, word: string) =>
    manifest('web', { lines: [grace(10)], containers: [container('app', [hook('preStop', word)], image)] });
  const w = await begun(text(1, 'old'));
  w.folder.write('web.yaml', text(2, 'new'));
  await w.advance(20);
  assert.deepEqual([w.asked('old'), w.asked('new'), w.starts('app')], [1, 0, 2]);
  const app = w.runtime.find('web', 'app');
  assert.ok(app);
  w.runtime.exit(app.id, 1);
  await w.advance(30);
  assert.deepEqual([w.asked('old'), w.asked('new'), w.starts('app')], [1, 0, 3]);
});

const debugging = { name: 'debug', image: 'localhost/busybox:2', command: ['sh'] } as const;

test('a container added by hand runs, is told, outlives the agent, and is no edit; it is not started again', async () => {
  const w = await begun(manifest('web'));
  const before = { id: w.runtime.find('web', 'app')?.id, uid: w.uid, revision: w.sync('web')?.running?.revision };
  await w.kubelet.podSide.addEphemeral(w.uid, debugging);
  await w.advance(5);
  assert.deepEqual(w.runtime.running(), ['web/app', 'web/debug']);
  assert.notEqual(w.status('debug')?.state.running, undefined);
  assert.deepEqual(
    w.pod('web')?.spec.ephemeralContainers?.map((c) => c.name),
    ['debug'],
  );
  const deeds = w.runtime.deeds.length;
  await w.restart();
  await w.advance(60);
  assert.equal(w.runtime.deeds.length, deeds);
  assert.notEqual(w.status('debug')?.state.running, undefined);
  assert.deepEqual({ id: w.runtime.find('web', 'app')?.id, uid: w.uid, revision: w.sync('web')?.running?.revision }, before);
  const debug = w.runtime.find('web', 'debug');
  assert.ok(debug);
  w.runtime.exit(debug.id, 4);
  await w.advance(130);
  await w.restart();
  await w.advance(130);
  assert.equal(w.starts('debug'), 1);
  assert.equal(w.status('debug')?.state.terminated?.exitCode, 4);
  assert.equal(w.pod('web')?.status.phase, 'Running');
  assert.equal(w.sync('web')?.phase, 'Running');
});

test('a container added by hand outlives edits in place, and goes with its instance: then the card knows nothing of it', async () => {
  const w = await begun(manifest('web'));
  await w.kubelet.podSide.addEphemeral(w.uid, debugging);
  await w.advance(5);
  const uid = w.uid;
  // a label and an image touch it not
  w.folder.write('web.yaml', manifest('web', { labels: { a: 'b' }, containers: [container('app', [], 3)] }));
  await w.advance(60);
  assert.deepEqual([w.uid, w.runtime.running(), w.starts('debug')], [uid, ['web/app', 'web/debug'], 1]);
  w.folder.write('web.yaml', manifest('web', { containers: [container('app'), container('more')] }));
  await w.advance(130);
  assert.notEqual(w.uid, uid);
  assert.deepEqual(w.runtime.running(), ['web/app', 'web/more']);
  assert.equal(w.status('debug'), undefined);
  assert.deepEqual(await w.stateStore.list('ephemeral/'), []);
  await w.kubelet.podSide.addEphemeral(w.uid, debugging);
  await w.advance(5);
  w.folder.remove('web.yaml');
  await w.advance(130);
  assert.deepEqual([w.runtime.running(), w.pod('web'), await w.stateStore.list('ephemeral/')], [[], undefined, []]);
});

test('after a power cut a container added by hand is told as ended, and does not start again', async () => {
  const w = await begun(manifest('web'));
  await w.kubelet.podSide.addEphemeral(w.uid, debugging);
  await w.advance(5);
  const { uid } = w;
  await w.reboot();
  await w.advance(130);
  assert.deepEqual([w.uid, w.runtime.running(), w.starts('app'), w.starts('debug')], [uid, ['web/app'], 2, 1]);
  assert.notEqual(w.status('debug')?.state.terminated, undefined);
  assert.equal(w.sync('web')?.phase, 'Running');
});

test('volumes that cannot be made are told and tried again, and no container starts before', async () => {
  const w = await begun(manifest('web'), (x) => {
    x.volumes.failure = 'MountVolume.SetUp failed for volume "data": no such directory';
  });
  assert.deepEqual(w.runtime.sandboxes.size, 0);
  assert.equal(w.pod('web')?.status.phase, 'Pending');
  assert.match(w.told('FailedMount')[0] ?? '', /no such directory$/);
  const { reason, message } = w.sync('web') ?? {};
  assert.deepEqual([reason, /no such directory/.test(message ?? '')], ['FailedMount', true]);
  const tries = w.volumes.asked.filter((a) => a === 'set up web').length;
  await w.advance(600);
  assert.ok(w.volumes.asked.filter((a) => a === 'set up web').length > tries);
  w.volumes.failure = undefined;
  const took = await w.until(() => w.runtime.running().length === 1, 400);
  assert.ok(took <= 330, `${took} s`);
  await w.advance(5);
  assert.deepEqual([w.sync('web')?.phase, w.sync('web')?.reason], ['Running', 'Ready']);
  // broken later, what runs is not touched
  w.volumes.failure = 'gone';
  const deeds = w.runtime.deeds.length;
  await w.advance(200);
  await w.restart();
  await w.advance(200);
  assert.equal(w.runtime.deeds.length, deeds);
  w.folder.remove('web.yaml');
  await w.advance(60);
  assert.equal(w.pod('web'), undefined);
});

test('what a container said last is told with its end, and stays told over agent restarts', async () => {
  const w = await begun(manifest('web', { lines: ['restartPolicy: Never'] }), (x) => {
    x.lastWords.set('app', 'the disk is full');
    x.ways.app = { exitAfterMs: 5000, exitCode: 9 };
  });
  const said = () => [w.status()?.state.terminated?.exitCode, w.status()?.state.terminated?.message];
  assert.deepEqual(said(), [9, 'the disk is full']);
  w.lastWords.clear();
  await w.restart();
  await w.advance(100);
  assert.deepEqual(said(), [9, 'the disk is full']);
});

test('a preStop that waits for its pod to be replaced: the wish with a taken port is refused, tried again, and runs once the old one has gone', async () => {
  const holds = (name: string) =>
    manifest(name, {
      lines: [grace(30)],
      containers: [container('app', ['ports: [{containerPort: 80, hostPort: 80}]', hook('preStop', 'pre')])],
    });
  const w = await begun(holds('web'), (x) => {
    x.answers.pre = { takesMs: 20_000 };
  });
  w.folder.write('next.yaml', holds('next'));
  await w.advance(10);
  assert.equal(w.sync('next')?.reason, 'NodePorts');
  w.folder.remove('web.yaml');
  await w.advance(15);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  assert.equal(w.sync('next')?.reason, 'NodePorts');
  await w.advance(120);
  assert.deepEqual(w.runtime.running(), ['next/app']);
  assert.equal(w.sync('next')?.phase, 'Running');
});

test('a refused pod that is removed or edited is gone or runs at once, and leaves nothing behind', async () => {
  const away = (more: readonly string[] = []) => manifest('web', { lines: ['nodeSelector: {disk: nvme}', ...more] });
  const w = await begun(away());
  assert.equal(w.pod('web')?.status.reason, 'NodeAffinity');
  w.folder.write('web.yaml', manifest('web'));
  await w.advance(5);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  const { uid } = w;
  // moved off the node: it ends by its grace and hooks, and is told as refused
  w.folder.write('web.yaml', away([grace(5)]));
  await w.advance(30);
  assert.deepEqual([w.runtime.running(), w.pod('web')?.status.reason], [[], 'NodeAffinity']);
  assert.notEqual(w.uid, uid);
  w.folder.remove('web.yaml');
  await w.advance(10);
  assert.deepEqual([w.pod('web'), w.sync('web'), w.runtime.sandboxes.size], [undefined, undefined, 0]);
});

test('D9: an agent killed while a pod ends: the next one lets nobody have its port before it has gone', async () => {
  const holds = (name: string) =>
    manifest(name, { lines: [grace(30)], containers: [container('app', ['ports: [{containerPort: 80, hostPort: 80}]'])] });
  const w = await begun(holds('web'), (x) => {
    x.ways.app = { ignoresTerm: true };
  });
  w.folder.write('next.yaml', holds('next'));
  await w.advance(10);
  w.folder.remove('web.yaml');
  await w.advance(5);
  await w.restart();
  await w.advance(10);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  assert.match(w.pod('next')?.status.message ?? '', /port 80\/TCP is used by pod default\/web, which is ending$/);
  await w.advance(60);
  assert.deepEqual(w.runtime.running(), ['next/app']);
  assert.equal(w.sync('next')?.phase, 'Running');
});

test('a refused pod that comes in after a restart of the agent is never told as ending: it had nothing', async () => {
  const lines = ['nodeSelector: {disk: nvme}'];
  const w = await begun(manifest('web', { lines }));
  const told: unknown[] = [];
  w.onTold.push((topic, payload) => {
    const pod = JSON.parse(payload ?? '{}');
    if (topic.endsWith('/pods/default/web')) told.push(pod.metadata?.deletionTimestamp);
  });
  w.kill();
  w.nodeLabels = { disk: 'nvme' };
  await w.start();
  await w.advance(10);
  assert.deepEqual(w.runtime.running(), ['web/app']);
  await w.kubelet.stop();
  w.folder.write('web.yaml', manifest('web', { lines: ['nodeSelector: {disk: none}'] }));
  w.kill();
  w.nodeLabels = {};
  await w.start();
  await w.advance(60);
  assert.equal(w.pod('web')?.status.reason, 'NodeAffinity');
  told.length = 0;
  w.kill();
  w.folder.files.delete('web.yaml');
  w.runtime.setDown(true);
  await w.start();
  await w.advance(20);
  w.runtime.setDown(false);
  await w.advance(20);
  assert.deepEqual(
    told.filter((t) => t !== undefined),
    [],
  );
  assert.equal(w.pod('web'), undefined);
});

test('what was refused has nothing in the runtime, also before the runtime was listed; of others nobody knows then', () => {
  const unlisted = { listed: () => false, pods: () => [] };
  const told = { phase: 'Failed', reason: 'NodePorts', message: 'Pod was rejected: taken' } as PodStatus;
  assert.equal(mayLive(unlisted, 'u' as PodUid, told), false);
  assert.equal(mayLive(unlisted, 'u' as PodUid, { ...told, message: 'it ended' }), true);
  assert.equal(mayLive(unlisted, 'u' as PodUid, undefined), true);
  assert.equal(mayLive({ ...unlisted, listed: () => true }, 'u' as PodUid, undefined), false);
});
