/** What a person asks of pods, on the whole agent: restarts in place and anew, stops over reboots, the way back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { actOnPod, type PodActRequest } from '../../src/operations/podActs.ts';
import { manifest, World } from './world.ts';

async function running(files: Readonly<Record<string, string>>, world = new World()): Promise<World> {
  for (const [name, content] of Object.entries(files)) world.folder.files.set(name, content);
  await world.start();
  await world.advance(5);
  return world;
}

/** Asked, and what came of it in words, once time has gone on: a status that changes often is told after 5 s. */
async function ask(w: World, r: Partial<PodActRequest> & Pick<PodActRequest, 'act'>, seconds = 10): Promise<string> {
  const words = actOnPod({ namespace: 'default', pod: 'web', ...r }, w.kubelet.verbs.podActs).then(
    (answer) => (answer.ok ? answer.value.message : `refused: ${answer.message}`),
    (e) => `failed: ${e instanceof Error ? e.message : e}`,
  );
  await w.advance(seconds);
  return words;
}

const told = (w: World): string => `${w.sync('web')?.phase} ${w.sync('web')?.reason}`;
const uid = (w: World): string | undefined => w.pod('web')?.metadata.uid;
const counts = (w: World) => {
  const { initContainerStatuses = [], containerStatuses = [] } = w.pod('web')?.status ?? {};
  return Object.fromEntries([...initContainerStatuses, ...containerStatuses].map((c) => [c.name, c.restartCount]));
};
const calls = (w: World, method: string): number => w.runtime.calls.filter((c) => c.method === method).length;
const killings = (w: World) => w.events.filter((e) => e.reason === 'Killing').map((e) => e.message);
const image = (w: World): string | undefined => w.runtime.find('web', 'app')?.config.userSpecifiedImage.split(':').at(-1);
const app = (more = '', tag: number | string = 1) => `{name: app, image: "localhost/busybox:${tag}"${more === '' ? '' : `, ${more}`}}`;
const two = manifest('web', { containers: [app(), '{name: other, image: "localhost/busybox:1"}'] });

test('a restart in place: by grace, attempt and count one more, same instance and sandbox, ready again', async () => {
  const w = await running({ 'web.yaml': two });
  const [before, sandboxes] = [uid(w), calls(w, 'runSandbox')];
  assert.equal(await ask(w, { act: 'restart' }), 'pod/web restarts in place: app, other');
  assert.deepEqual([counts(w), uid(w), told(w)], [{ app: 1, other: 1 }, before, 'Running Ready']);
  assert.deepEqual([calls(w, 'runSandbox') - sandboxes, w.runtime.running()], [0, ['web/app', 'web/other']]);
  assert.deepEqual(killings(w).sort(), [
    'Container app: a restart was asked for, will be restarted',
    'Container other: a restart was asked for, will be restarted',
  ]);
  assert.deepEqual(w.runtime.violations, []);
});

test('of one container only that one restarts', async () => {
  const w = await running({ 'web.yaml': two });
  await ask(w, { act: 'restart', container: 'other' });
  assert.deepEqual([counts(w), told(w)], [{ app: 0, other: 1 }, 'Running Ready']);
});

test('again and again, none of the restarts is a crash: no back-off, and the first crash after them is the first', async () => {
  const w = await running({ 'web.yaml': manifest('web') });
  for (let i = 1; i <= 6; i++) {
    await ask(w, { act: 'restart' });
    assert.deepEqual([counts(w), told(w)], [{ app: i }, 'Running Ready']);
  }
  const found = w.runtime.find('web', 'app');
  assert.ok(found !== undefined);
  w.runtime.exit(found.id, 1);
  await w.advance(3);
  assert.deepEqual([counts(w), told(w)], [{ app: 7 }, 'Running Ready']);
  assert.equal(w.events.filter((e) => e.reason === 'BackOff').length, 0);
});

test('a container that waits for its back-off starts at once, and its back-off begins anew', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 100, exitCode: 1 }));
  const w = await running({ 'web.yaml': manifest('web') }, world);
  await w.advance(400);
  assert.equal(told(w), 'Waiting CrashLoopBackOff');
  const before = calls(w, 'startContainer');
  await ask(w, { act: 'restart' }, 1);
  assert.equal(calls(w, 'startContainer') - before, 2); // the one that was asked for, and the first try after its crash, which is free
  assert.match(w.sync('web')?.message ?? '', /back-off 10s/);
});

test('one container whose grace is long holds up no other, and all are away for one grace', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ ignoresTerm: true }));
  const w = await running({ 'web.yaml': two.replace('spec:\n', 'spec:\n  terminationGracePeriodSeconds: 8\n') }, world);
  await ask(w, { act: 'restart' }, 12);
  assert.deepEqual([counts(w), told(w)], [{ app: 1, other: 1 }, 'Running Ready']);
});

test('with a sidecar: it ends after those it serves, and starts before them; init containers stay done', async () => {
  const w = await running(
    {
      'web.yaml': manifest('web', {
        lines: [
          'initContainers:',
          '- {name: setup, image: "localhost/busybox:2"}',
          '- {name: log, image: "localhost/busybox:3", restartPolicy: Always}',
        ],
      }),
    },
    withSetup(),
  );
  assert.equal(told(w), 'Running Ready');
  const from = w.runtime.calls.length;
  assert.equal(await ask(w, { act: 'restart' }), 'pod/web restarts in place: log, app');
  assert.deepEqual([counts(w), told(w)], [{ setup: 0, log: 1, app: 1 }, 'Running Ready']);
  const order = w.runtime.calls.slice(from).filter((c) => c.method === 'stopContainer' || c.method === 'startContainer');
  assert.deepEqual(
    order.map((c) => c.method),
    ['stopContainer', 'stopContainer', 'startContainer', 'startContainer'],
  );
  assert.match(await ask(w, { act: 'restart', container: 'setup' }), /refused: init container "setup" has done its work.*--new/);
});

/** Init containers of image 2 end by themselves. */
function withSetup(): World {
  const world = new World();
  world.runtime.onStart((_, c) => (c.userSpecifiedImage.endsWith(':2') ? { exitAfterMs: 100, exitCode: 0 } : {}));
  return world;
}

test('hooks run as at any end and start: preStop before the stop, postStart after the start', async () => {
  const hooks = 'lifecycle: {preStop: {exec: {command: [bye]}}, postStart: {exec: {command: [hello]}}}';
  const w = await running({ 'web.yaml': manifest('web', { containers: [app(hooks)] }) });
  const from = w.runtime.calls.length;
  await ask(w, { act: 'restart' });
  const did = w.runtime.calls.slice(from).flatMap(({ method, args }) => {
    if (method === 'execSync') return [String((args[1] as readonly string[])[0])];
    return method === 'stopContainer' || method === 'startContainer' ? [method] : [];
  });
  assert.deepEqual([did, told(w)], [['bye', 'stopContainer', 'startContainer', 'hello'], 'Running Ready']);
});

test('an end with code 0 on the way is no completion, whatever the restart policy', async () => {
  for (const policy of ['Never', 'OnFailure', 'Always']) {
    const world = new World();
    world.runtime.onStart(() => ({ termExitCode: 0, stopDelayMs: 1500 }));
    const w = await running({ 'web.yaml': manifest('web', { lines: [`restartPolicy: ${policy}`] }) }, world);
    await ask(w, { act: 'restart' });
    assert.deepEqual([counts(w), told(w), await w.stateStore.list('completions/')], [{ app: 1 }, 'Running Ready', []], policy);
  }
});

test('while its update waits for an image, what runs restarts as it is; a new instance would be of the update, and is refused', async () => {
  const w = await running({ 'web.yaml': manifest('web', { containers: [app()] }) });
  w.folder.write('web.yaml', manifest('web', { containers: [app('', 'missing')] }));
  await w.advance(20);
  assert.equal(w.sync('web')?.phase, 'UpdateBlocked');
  assert.match(
    await ask(w, { act: 'restart', new: true }),
    /refused: pod "web" has an update that waits \((ErrImagePull|ImagePullBackOff)/,
  );
  await ask(w, { act: 'restart' });
  assert.deepEqual([counts(w), image(w), w.sync('web')?.phase], [{ app: 1 }, '1', 'UpdateBlocked']);
});

test('a pod that the node refused is stopped and started like any other', async () => {
  const w = await running({ 'web.yaml': manifest('web', { lines: ['nodeSelector: {shelf: a}'] }) });
  assert.equal(w.sync('web')?.phase, 'Failed');
  await ask(w, { act: 'stop' });
  assert.equal(told(w), 'Stopped Stopped');
  w.nodeLabels = { shelf: 'a' };
  await w.advance(400);
  assert.deepEqual([w.runtime.running(), told(w)], [[], 'Stopped Stopped']);
  await ask(w, { act: 'start' });
  assert.deepEqual([w.runtime.running(), told(w)], [['web/app'], 'Running Ready']);
});

test('with a card that is full nothing is stopped, and what is stopped stays so', async () => {
  const w = await running({ 'web.yaml': manifest('web') });
  const put = w.stateStore.put.bind(w.stateStore);
  const full = (key: string): Promise<never> => Promise.reject(new Error(`no space left for ${key}`));
  w.stateStore.put = full;
  assert.match(await ask(w, { act: 'stop' }), /failed: no space left/);
  assert.deepEqual([w.runtime.running(), told(w)], [['web/app'], 'Running Ready']);
  w.stateStore.put = put;
  await ask(w, { act: 'stop' });
  w.stateStore.put = full;
  assert.match(await ask(w, { act: 'start' }), /failed: no space left/);
  assert.deepEqual([w.runtime.running(), told(w)], [[], 'Stopped Stopped']);
  w.stateStore.put = put;
  await ask(w, { act: 'start' });
  assert.deepEqual([w.runtime.running(), told(w)], [['web/app'], 'Running Ready']);
});

test('anew: another instance, when the old one has ended by its grace', async () => {
  const w = await running({ 'web.yaml': manifest('web') });
  const before = uid(w);
  assert.match(await ask(w, { act: 'restart', new: true }, 10), /^pod\/web starts anew/);
  assert.notEqual(uid(w), before);
  assert.deepEqual([counts(w), told(w), w.runtime.running()], [{ app: 0 }, 'Running Ready', ['web/app']]);
  assert.deepEqual(w.runtime.violations, []);
});

test('a one-shot that has run: in place it is refused with what helps, anew it runs again, and once', async () => {
  for (const policy of ['Never', 'OnFailure']) {
    const world = new World();
    world.runtime.onStart(() => ({ exitAfterMs: 100, exitCode: 0 }));
    const w = await running({ 'web.yaml': manifest('web', { lines: [`restartPolicy: ${policy}`] }) }, world);
    assert.equal(told(w), 'Completed Succeeded');
    assert.match(await ask(w, { act: 'restart' }), /refused: pod "web" has ended \(Succeeded\): podsched restart web --new/);
    assert.equal(calls(w, 'startContainer'), 1);
    await ask(w, { act: 'restart', new: true }, 20);
    assert.deepEqual([calls(w, 'startContainer'), told(w)], [2, 'Completed Succeeded'], policy);
    await w.restart();
    await w.advance(30);
    assert.deepEqual([calls(w, 'startContainer'), told(w)], [2, 'Completed Succeeded'], policy);
  }
});

test('a pod that runs once restarts in place like any other', async () => {
  const w = await running({ 'web.yaml': manifest('web', { lines: ['restartPolicy: Never'] }) });
  await ask(w, { act: 'restart' });
  assert.deepEqual([counts(w), told(w)], [{ app: 1 }, 'Running Ready']);
});

test('a stopped pod ends by its grace and is told Stopped, its topic goes; started, it is a new instance', async () => {
  const w = await running({ 'web.yaml': manifest('web'), 'cam.yaml': manifest('cam') });
  const before = uid(w);
  assert.match(await ask(w, { act: 'stop' }, 10), /^pod\/web stopped/);
  assert.deepEqual([w.runtime.running(), told(w), w.pod('web')], [['cam/app'], 'Stopped Stopped', undefined]);
  assert.equal(w.sync('web')?.running, undefined);
  assert.ok(w.sync('web')?.desired !== undefined);
  assert.match(await ask(w, { act: 'stop' }), /was stopped already/);
  assert.match(await ask(w, { act: 'restart' }), /refused: .*podsched start web/);
  assert.match(await ask(w, { act: 'start' }, 10), /^pod\/web started$/);
  assert.deepEqual([w.runtime.running(), told(w)], [['cam/app', 'web/app'], 'Running Ready']);
  assert.notEqual(uid(w), before);
  assert.match(await ask(w, { act: 'start' }), /was not stopped/);
  assert.deepEqual(w.runtime.violations, []);
});

test('a stop lasts over agents and reboots; an edit meanwhile is what starts', async () => {
  const w = await running({ 'web.yaml': manifest('web', { containers: [app()] }) });
  await ask(w, { act: 'stop' });
  await w.restart();
  await w.advance(70);
  assert.deepEqual([w.runtime.running(), told(w)], [[], 'Stopped Stopped']);
  await w.reboot();
  await w.advance(70);
  assert.deepEqual([w.runtime.running(), told(w), calls(w, 'runSandbox')], [[], 'Stopped Stopped', 1]);
  w.folder.write('web.yaml', manifest('web', { containers: [app('', 2)] }));
  await w.advance(10);
  assert.deepEqual([w.runtime.running(), told(w)], [[], 'Stopped Stopped']);
  await ask(w, { act: 'start' });
  assert.deepEqual([image(w), told(w)], ['2', 'Running Ready']);
});

test('an agent that is killed while a stopped pod ends: the next one ends it', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ ignoresTerm: true }));
  const w = await running({ 'web.yaml': manifest('web', { lines: ['terminationGracePeriodSeconds: 20'] }) }, world);
  await ask(w, { act: 'stop' }, 1);
  assert.equal(w.sync('web')?.phase, 'Terminating');
  await w.restart();
  await w.advance(120);
  assert.deepEqual([w.runtime.running(), told(w)], [[], 'Stopped Stopped']);
});

test('a manifest that goes and comes back forgets the stop', async () => {
  const w = await running({ 'web.yaml': manifest('web') });
  await ask(w, { act: 'stop' });
  w.folder.remove('web.yaml');
  await w.advance(10);
  assert.deepEqual([w.sync('web'), await w.stateStore.list('stops/')], [undefined, []]);
  w.folder.write('web.yaml', manifest('web'));
  await w.advance(10);
  assert.deepEqual([w.runtime.running(), told(w)], [['web/app'], 'Running Ready']);
});

test('the images of a stopped pod stay', async () => {
  const w = await running({ 'web.yaml': manifest('web', { containers: [app('', 3)] }) });
  await ask(w, { act: 'stop' });
  const pruned = w.kubelet.images.gc.prune(false);
  await w.advance(5);
  const names = (await pruned)?.removed.flatMap((i) => i.names) ?? [];
  assert.ok(names.length > 0 && !names.some((name) => name.endsWith('busybox:3')), names.join());
});

test('a stopped one-shot that had run, started, runs again; one that had not begun does not begin before', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exitAfterMs: 100, exitCode: 0 }));
  const w = await running({ 'web.yaml': manifest('web', { lines: ['restartPolicy: Never'] }) }, world);
  await ask(w, { act: 'stop' });
  assert.deepEqual([told(w), calls(w, 'startContainer')], ['Stopped Stopped', 1]);
  await ask(w, { act: 'start' }, 20);
  assert.deepEqual([told(w), calls(w, 'startContainer')], ['Completed Succeeded', 2]);
});

test('stopped while its image is missing: nothing is tried any more', async () => {
  const w = await running({ 'web.yaml': manifest('web', { containers: [app('', 'missing')] }) });
  await w.advance(30);
  await ask(w, { act: 'stop' });
  assert.equal(told(w), 'Stopped Stopped');
  const pulls = calls(w, 'pullImage');
  await w.advance(600);
  assert.equal(calls(w, 'pullImage'), pulls);
});

const probed = (tag: number) =>
  manifest('web', { containers: [app(`readinessProbe: {exec: {command: [ready, "${tag}"]}, periodSeconds: 1}`, tag)] });

/** Revision 1 was Ready, revision 2 runs and is not. */
async function bad(): Promise<World> {
  const world = new World();
  world.runtime.onStart(() => ({ exec: (command) => ({ exitCode: command[1] === '2' ? 1 : 0 }) }));
  const w = await running({ 'web.yaml': probed(1) }, world);
  await w.advance(20);
  w.folder.write('web.yaml', probed(2));
  await w.advance(10);
  assert.deepEqual([image(w), w.sync('web')?.phase], ['2', 'Running']);
  return w;
}

test('back by command: the last good revision runs at once and is held; release tries the newer one again', async () => {
  const w = await bad();
  assert.match(await ask(w, { act: 'rollback' }, 10), /^pod\/web goes back from revision \w+ to \w+, and is held there$/);
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
  w.folder.write('web.yaml', probed(3));
  await w.advance(20);
  assert.deepEqual([image(w), w.sync('web')?.phase], ['1', 'Held']);
  await w.reboot();
  await w.advance(20);
  assert.deepEqual([image(w), w.sync('web')?.phase], ['1', 'Held']);
  await ask(w, { act: 'release' });
  assert.equal(image(w), '3');
});

test('back by command from a revision that is Ready itself: to the one before it, also after a reboot', async () => {
  for (const off of [false, true]) {
    const w = await running({ 'web.yaml': manifest('web', { containers: [app()] }) });
    await w.advance(20);
    w.folder.write('web.yaml', manifest('web', { containers: [app('', 2)] }));
    await w.advance(30);
    assert.deepEqual([image(w), told(w)], ['2', 'Running Ready']);
    if (off) {
      await w.reboot();
      await w.advance(30);
    }
    assert.match(await ask(w, { act: 'rollback' }), /^pod\/web goes back from revision \w+ to \w+, and is held there$/);
    assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
    await w.reboot();
    await w.advance(30);
    assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
    assert.match(await ask(w, { act: 'rollback' }), /refused: .*podsched hold keeps it so/);
    await ask(w, { act: 'release' }, 30);
    assert.deepEqual([image(w), told(w)], ['2', 'Running Ready'], String(off));
    assert.match(await ask(w, { act: 'rollback' }), /goes back/);
    assert.equal(image(w), '1');
  }
});

test('back by command while it is held at the bad one', async () => {
  const w = await bad();
  await ask(w, { act: 'hold' });
  await ask(w, { act: 'rollback' });
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
});

test('with nothing to go back to, back is refused with words, and nothing is touched', async () => {
  const w = await running({ 'web.yaml': manifest('web') });
  assert.match(await ask(w, { act: 'rollback' }), /refused: pod "web" has no other revision that is known to have been Ready/);
  assert.deepEqual([counts(w), told(w)], [{ app: 0 }, 'Running Ready']);
});
