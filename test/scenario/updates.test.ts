/** F7 and F8 on the whole agent: the new image first, the way back, and who holds a pod. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyText, keyText } from '../../src/api/objects.ts';
import type { ContainerId } from '../../src/container/words.ts';
import { World } from './world.ts';

const key: KeyText = keyText({ kind: 'Pod', namespace: 'default', name: 'web' });

interface Text {
  readonly tag: number | string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ready?: boolean;
  readonly policy?: string;
  readonly host?: string;
  readonly grace?: number;
}

const text = ({ tag, annotations = {}, labels = {}, ready = false, policy, host, grace = 5 }: Text): string =>
  [
    'apiVersion: v1',
    'kind: Pod',
    `metadata: {name: web, annotations: ${JSON.stringify(annotations)}, labels: ${JSON.stringify(labels)}}`,
    'spec:',
    `  terminationGracePeriodSeconds: ${grace}`,
    ...(host === undefined ? [] : [`  hostname: ${host}`]),
    '  containers:',
    `  - {name: app, image: "localhost/busybox:${tag}"${policy === undefined ? '' : `, imagePullPolicy: ${policy}`}${
      ready ? `, readinessProbe: {exec: {command: [ready, "${tag}"]}, periodSeconds: 1}` : ''
    }}`,
    '',
  ].join('\n');

async function running(first: Text, world = new World()): Promise<World> {
  world.folder.files.set('web.yaml', text(first));
  await world.start();
  await world.advance(5);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  return world;
}

const image = (w: World): string | undefined => w.runtime.find('web', 'app')?.config.userSpecifiedImage.split(':').at(-1);
const told = (w: World): string => `${w.sync('web')?.phase} ${w.sync('web')?.reason}`;
const starts = (w: World) => w.runtime.calls.filter((c) => c.method === 'startContainer');
const events = (w: World, reason: string) => w.events.filter((e) => e.reason === reason).map((e) => e.message);
const edit = (w: World, t: Text): void => w.folder.write('web.yaml', text(t));
const rollback = (period: string) => ({ annotations: { 'podsched.dev/rollback': period } });

for (const host of [undefined, 'other']) {
  const how = host === undefined ? 'in place' : 'as a new pod';
  test(`F7: edited ${how} to a tag that is not there, the old one keeps serving, and the new one comes when the tag does`, async () => {
    const w = await running({ tag: 1 });
    edit(w, { tag: 'missing', ...(host !== undefined && { host }) });
    await w.advance(120);
    assert.deepEqual([w.runtime.running(), image(w), starts(w).length], [['web/app'], '1', 1]);
    assert.match(told(w), /^UpdateBlocked (ErrImagePull|ImagePullBackOff)$/);
    assert.match(w.sync('web')?.message ?? '', /busybox:missing/);
    assert.notEqual(w.sync('web')?.desired?.revision, w.sync('web')?.running?.revision);
    w.runtime.images.set('localhost/busybox:missing', { state: 'pullable' });
    await w.advance(320);
    assert.deepEqual([w.runtime.running(), image(w), told(w)], [['web/app'], 'missing', 'Running Ready']);
    assert.deepEqual(w.runtime.violations, []);
  });

  test(`F7: edited ${how} to an image that takes ten minutes, the old one runs until it is here; down for less than its grace and a second`, async () => {
    const world = new World();
    world.runtime.onStart(() => ({ ignoresTerm: true }));
    const w = await running({ tag: 1 }, world);
    w.runtime.images.set('localhost/busybox:big', { state: 'pullable', pullMs: 600_000 });
    edit(w, { tag: 'big', ...(host !== undefined && { host }) });
    await w.advance(590);
    assert.deepEqual([w.runtime.running(), image(w), told(w)], [['web/app'], '1', 'UpdateBlocked PullingImage']);
    assert.match(w.sync('web')?.message ?? '', /image "localhost\/busybox:big" of app/);
    assert.equal(w.pod('web')?.status.phase, 'Running');
    await w.advance(40);
    assert.deepEqual([w.runtime.running(), image(w), told(w)], [['web/app'], 'big', 'Running Ready']);
    const stop = w.runtime.calls.find((c) => c.method === 'stopContainer');
    const gap = (starts(w).at(-1)?.at ?? 0) - (stop?.at ?? 0);
    assert.ok(gap < 6_000, `down for ${gap} ms`);
    assert.equal(w.runtime.calls.filter((c) => c.method === 'pullImage').length, 1);
    assert.deepEqual(w.runtime.violations, []);
  });
}

test('an edit to an image that is here is carried out without a word of waiting', async () => {
  const w = await running({ tag: 1 });
  const phases: string[] = [];
  w.onTold.push((topic, payload) => {
    if (topic.includes('/sync/') && payload !== undefined) phases.push((JSON.parse(payload) as { phase: string }).phase);
  });
  edit(w, { tag: 2 });
  await w.advance(10);
  assert.deepEqual([image(w), told(w)], ['2', 'Running Ready']);
  assert.ok(!phases.includes('UpdateBlocked'), phases.join());
  assert.equal(w.runtime.calls.filter((c) => c.method === 'pullImage').length, 0);
});

test('policy Always: what is here is asked for anew before the old one is stopped, and a registry that is away keeps nobody from it', async () => {
  const w = await running({ tag: 1 });
  w.runtime.images.set('localhost/busybox:2', { state: 'present', pullMs: 20_000 });
  edit(w, { tag: 2, policy: 'Always' });
  await w.advance(8);
  assert.deepEqual([image(w), told(w)], ['1', 'UpdateBlocked PullingImage']);
  await w.advance(60);
  assert.deepEqual([image(w), w.sync('web')?.phase], ['2', 'Running']);
});

test('a newer edit, a removal and the way back end the pull', async () => {
  for (const next of ['newer', 'removed', 'back'] as const) {
    const w = await running({ tag: 1 });
    w.runtime.images.set('localhost/busybox:big', { state: 'pullable', pullMs: 600_000 });
    edit(w, { tag: 'big' });
    await w.advance(10);
    assert.equal(told(w), 'UpdateBlocked PullingImage');
    if (next === 'newer') edit(w, { tag: 3 });
    else if (next === 'back') edit(w, { tag: 1 });
    else w.folder.remove('web.yaml');
    await w.advance(620);
    assert.equal(w.runtime.images.get('localhost/busybox:big')?.state, 'pullable', next);
    assert.deepEqual(w.runtime.running(), next === 'removed' ? [] : ['web/app'], next);
    if (next !== 'removed') assert.deepEqual([image(w), told(w)], [next === 'newer' ? '3' : '1', 'Running Ready'], next);
    assert.equal(starts(w).length, next === 'newer' ? 2 : 1, next);
  }
});

test('what waits for its own image has nothing to lose: the edit goes on at once', async () => {
  const w = new World();
  w.folder.files.set('web.yaml', text({ tag: 'missing' }));
  await w.start();
  await w.advance(30);
  assert.match(told(w), /^Waiting (ErrImagePull|ImagePullBackOff)$/);
  w.runtime.images.set('localhost/busybox:slow', { state: 'pullable', pullMs: 30_000 });
  edit(w, { tag: 'slow' });
  await w.advance(5);
  assert.equal(w.sync('web')?.phase, 'Waiting');
  await w.advance(60);
  assert.deepEqual([image(w), told(w)], ['slow', 'Running Ready']);
});

test('a job that ends while its edit waits for an image is replaced at once', async () => {
  const w = new World();
  w.runtime.onStart((_, c) => (c.userSpecifiedImage.endsWith(':1') ? { exitAfterMs: 60_000, exitCode: 0 } : {}));
  const job = (tag: number | string) => text({ tag }).replace('spec:', 'spec:\n  restartPolicy: Never');
  w.folder.files.set('web.yaml', job(1));
  await w.start();
  await w.advance(5);
  w.folder.write('web.yaml', job('missing'));
  await w.advance(20);
  assert.equal(w.sync('web')?.phase, 'UpdateBlocked');
  await w.advance(60);
  assert.equal(w.pod('web')?.status.phase, 'Pending');
  w.runtime.images.set('localhost/busybox:missing', { state: 'present' });
  await w.advance(320);
  assert.deepEqual([w.runtime.running(), image(w)], [['web/app'], 'missing']);
});

for (const what of ['restart', 'reboot'] as const) {
  test(`${what} with an update blocked: the last revision whose image is here runs, both revisions are told, and the new one comes when it can`, async () => {
    const w = await running({ tag: 1 });
    edit(w, { tag: 'missing' });
    await w.advance(20);
    const { desired, running: runs } = w.sync('web') ?? {};
    await w[what]();
    await w.advance(20);
    assert.deepEqual([w.runtime.running(), image(w)], [['web/app'], '1']);
    assert.equal(w.sync('web')?.phase, 'UpdateBlocked');
    assert.deepEqual([w.sync('web')?.desired?.revision, w.sync('web')?.running?.revision], [desired?.revision, runs?.revision]);
    assert.equal(starts(w).length, what === 'restart' ? 1 : 2);
    w.runtime.images.set('localhost/busybox:missing', { state: 'pullable' });
    await w.advance(320);
    assert.deepEqual([w.runtime.running(), image(w), told(w)], [['web/app'], 'missing', 'Running Ready']);
  });

  test(`edited while ${what === 'restart' ? 'the agent' : 'the machine'} was off to an image that is not here: what the checkpoint has runs`, async () => {
    const w = await running({ tag: 1 });
    w.folder.files.set('web.yaml', text({ tag: 'missing' }));
    await w[what]();
    await w.advance(20);
    assert.deepEqual([w.runtime.running(), image(w), w.sync('web')?.phase], [['web/app'], '1', 'UpdateBlocked']);
  });
}

async function rolledBack(period = '5m'): Promise<World> {
  const world = new World();
  world.runtime.onStart(() => ({ exec: (command) => ({ exitCode: command[1] === '2' ? 1 : 0 }) }));
  const w = await running({ tag: 1, ready: true, ...rollback(period) }, world);
  await w.advance(15);
  assert.equal(told(w), 'Running Ready');
  edit(w, { tag: 2, ready: true, ...rollback(period) });
  return w;
}

test('F8: v2 is never Ready: v1 is back at five minutes, the file untouched, both revisions and the reason told; a new edit clears it', async () => {
  const w = await rolledBack();
  const v1 = w.sync('web')?.running?.revision ?? '?';
  await w.advance(10);
  const v2 = w.sync('web')?.running?.revision ?? '?';
  assert.notEqual(v1, v2);
  await w.advance(285);
  assert.equal(image(w), '2');
  await w.advance(25);
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
  const message = w.sync('web')?.message ?? '';
  assert.match(message, new RegExp(`^revision ${v2} was not Ready in 5m0s: .+; revision ${v1} runs again$`));
  assert.deepEqual([w.sync('web')?.desired?.revision, w.sync('web')?.running?.revision], [v2, v1]);
  assert.deepEqual(events(w, 'RolledBack'), [message]);
  assert.match(String(w.folder.files.get('web.yaml')), /busybox:2/);
  const { length } = starts(w);
  await w.advance(3_600);
  assert.equal(starts(w).length, length, 'once, and then held');
  edit(w, { tag: 3, ready: true, ...rollback('5m') });
  await w.advance(30);
  assert.deepEqual([image(w), told(w)], ['3', 'Running Ready']);
  assert.deepEqual(w.runtime.violations, []);
});

test('F8: restarts of the agent give nobody more time, and what went back stays back over a reboot', async () => {
  const w = await rolledBack();
  for (let i = 0; i < 4; i++) {
    await w.advance(60);
    await w.restart();
  }
  await w.advance(50);
  assert.equal(image(w), '2');
  await w.advance(40);
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
  await w.reboot();
  await w.advance(30);
  assert.deepEqual([w.runtime.running(), image(w), told(w)], [['web/app'], '1', 'RolledBack RolledBack']);
  await w.restart();
  await w.advance(600);
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
});

test('F8: a reboot in the middle counts anew, and what was good is still known', async () => {
  const w = await rolledBack();
  await w.advance(200);
  await w.reboot();
  await w.advance(280);
  assert.equal(image(w), '2');
  await w.advance(40);
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
});

test('a revision that was Ready once is not rolled back, also when it fails later or after a reboot', async () => {
  const world = new World();
  let exitCode = 0;
  world.runtime.onStart(() => ({ exec: () => ({ exitCode }) }));
  const w = await running({ tag: 1, ready: true }, world);
  await w.advance(5);
  edit(w, { tag: 2, ready: true, ...rollback('1m') });
  await w.advance(20);
  assert.deepEqual([image(w), told(w)], ['2', 'Running Ready']);
  exitCode = 1;
  await w.advance(120);
  await w.reboot();
  await w.advance(180);
  assert.equal(image(w), '2');
  assert.deepEqual([events(w, 'RolledBack'), events(w, 'NoRollback')], [[], []]);
});

test('without a revision that was Ready there is nothing to go back to: told once, and it goes on', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ exec: () => ({ exitCode: 1 }) }));
  const w = await running({ tag: 1, ready: true, ...rollback('1m') }, world);
  await w.advance(120);
  await w.restart();
  await w.advance(120);
  assert.deepEqual([w.runtime.running(), image(w)], [['web/app'], '1']);
  assert.equal(events(w, 'NoRollback').length, 1);
});

test('the images that a rollback would need are known as long as it may come', async () => {
  const w = await rolledBack();
  await w.advance(30);
  assert.deepEqual([...w.kubelet.config.knownImages()].sort(), ['localhost/busybox:1', 'localhost/busybox:2']);
  await w.advance(300);
  assert.deepEqual([...w.kubelet.config.knownImages()].sort(), ['localhost/busybox:1', 'localhost/busybox:2']);
  edit(w, { tag: 3, ready: true });
  await w.advance(30);
  assert.deepEqual([...w.kubelet.config.knownImages()], ['localhost/busybox:3']);
});

test('release tries what went back once more, and it goes back once more', async () => {
  const w = await rolledBack('1m');
  await w.advance(90);
  assert.equal(told(w), 'RolledBack RolledBack');
  const done = w.kubelet.updates.release(key);
  await w.advance(20);
  assert.deepEqual(await done, { hold: false, rollback: true, stillHeld: false });
  assert.equal(image(w), '2');
  await w.advance(80);
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
});

test('held by its annotation: edits wait, labels do not, and without it they go on', async () => {
  const held = { annotations: { 'podsched.dev/hold': 'true' } };
  const w = await running({ tag: 1, ...held });
  assert.match(w.sync('web')?.message ?? '', /held by its annotation podsched.dev\/hold/);
  edit(w, { tag: 1, ...held, labels: { a: 'b' } });
  await w.advance(5);
  assert.equal(w.pod('web')?.metadata.labels?.a, 'b');
  edit(w, { tag: 2, ...held });
  await w.advance(30);
  assert.deepEqual([image(w), told(w)], ['1', 'Held Held']);
  await w.reboot();
  await w.advance(30);
  assert.deepEqual([w.runtime.running(), image(w), told(w)], [['web/app'], '1', 'Held Held']);
  edit(w, { tag: 2 });
  await w.advance(30);
  assert.deepEqual([image(w), told(w)], ['2', 'Running Ready']);
});

test('held by command: over a reboot, until it is released; a removed pod is not held any more', async () => {
  const w = await running({ tag: 1 });
  assert.equal(await w.kubelet.updates.hold(key), true);
  edit(w, { tag: 2 });
  await w.advance(30);
  await w.reboot();
  await w.advance(30);
  assert.deepEqual([image(w), told(w)], ['1', 'Held Held']);
  assert.match(w.sync('web')?.message ?? '', /the command podsched hold/);
  const done = w.kubelet.updates.release(key);
  await w.advance(30);
  assert.deepEqual([(await done).hold, image(w), told(w)], [true, '2', 'Running Ready']);
  await w.kubelet.updates.hold(key);
  w.folder.remove('web.yaml');
  await w.advance(30);
  assert.deepEqual(await w.stateStore.list('holds/'), []);
});

test('a hold puts off a rollback, which comes when it is released', async () => {
  const w = await rolledBack('1m');
  await w.advance(20);
  await w.kubelet.updates.hold(key);
  await w.advance(120);
  assert.equal(image(w), '2');
  const done = w.kubelet.updates.release(key);
  await w.advance(20);
  await done;
  assert.deepEqual([image(w), told(w)], ['1', 'RolledBack RolledBack']);
});

test('the old one that crashes while its update waits for an image is started again', async () => {
  const w = await running({ tag: 1 });
  edit(w, { tag: 'missing' });
  await w.advance(20);
  w.runtime.exit(w.runtime.find('web', 'app')?.id as ContainerId, 1);
  await w.advance(30);
  assert.deepEqual([w.runtime.running(), image(w), w.sync('web')?.phase], [['web/app'], '1', 'UpdateBlocked']);
});
