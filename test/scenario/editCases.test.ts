/** Field cases C1–C4 and C17 on the whole agent: edits, removals and re-adds, while a pod ends, while it crashes, while the agent is away. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SandboxConfig } from '../../src/container/runtime.ts';
import { labels, type SandboxId } from '../../src/container/words.ts';
import { FakeBroker } from '../fakes/fakeBroker.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import type { FakeMethod } from '../fakes/fakeMachine.ts';
import { sandboxConfig } from '../fakes/runtimeConfigs.ts';
import { manifest, World } from './world.ts';

const container = (name: string, tag: number, more = '') => `{name: ${name}, image: "localhost/busybox:${tag}"${more}}`;
const calls = (w: World, method: FakeMethod) => w.runtime.calls.filter((c) => c.method === method);

async function running(files: Readonly<Record<string, string>>, world = new World()): Promise<World> {
  for (const [name, text] of Object.entries(files)) world.folder.files.set(name, text);
  await world.start();
  await world.advance(5);
  for (const name of Object.keys(files)) assert.equal(world.pod(name.replace('.yaml', ''))?.status.phase, 'Running', name);
  return world;
}

for (const seconds of [0, 0.1, 1, 5, 40]) {
  for (const ignoresTerm of [false, true]) {
    const how = ignoresTerm ? 'TERM ignored' : 'TERM heeded';
    test(`C1: moved away for ${seconds} s and back, ${how}: runs, in one container, never two at a time`, async () => {
      const world = new World();
      world.runtime.onStart(() => ({ ignoresTerm }));
      const text = manifest('web', { lines: ['terminationGracePeriodSeconds: 30'] });
      await running({ 'web.yaml': text }, world);
      world.folder.remove('web.yaml');
      await world.advance(seconds);
      world.folder.write('web.yaml', text);
      await world.advance(80);
      assert.deepEqual(world.runtime.running(), ['web/app']);
      assert.equal(world.runtime.sandboxes.size, 1);
      assert.equal(world.pod('web')?.status.phase, 'Running');
      assert.equal(world.pod('web')?.metadata.deletionTimestamp, undefined);
      assert.equal(world.sync('web')?.phase, 'Running');
      // away for a moment shorter than the folder's own quiet time is no removal
      assert.equal(calls(world, 'startContainer').length, seconds === 0 ? 1 : 2);
      assert.deepEqual(world.runtime.violations, []);
    });
  }
}

for (const last of ['there', 'away'] as const) {
  test(`C1: five toggles in two seconds, ${last} at the end: what the folder says last holds`, async () => {
    const world = new World();
    world.runtime.onStart(() => ({ ignoresTerm: true }));
    const text = (tag: number) => manifest('web', { lines: ['terminationGracePeriodSeconds: 30'], containers: [container('app', tag)] });
    await running({ 'web.yaml': text(1) }, world);
    for (let i = 0; i < 5; i++) {
      world.folder.remove('web.yaml');
      await world.advance(0.2);
      world.folder.write('web.yaml', text(1 + (i % 3)));
      await world.advance(0.2);
    }
    if (last === 'away') world.folder.remove('web.yaml');
    await world.advance(80);
    assert.deepEqual(world.runtime.running(), last === 'there' ? ['web/app'] : []);
    assert.equal(calls(world, 'stopContainer').length, 1);
    assert.equal(calls(world, 'startContainer').length, last === 'there' ? 2 : 1);
    if (last === 'there') assert.equal(world.runtime.find('web', 'app')?.config.userSpecifiedImage, 'localhost/busybox:2');
    assert.deepEqual(world.runtime.violations, []);
  });
}

test('C1: renamed while the agent reads, and edited in the same breath: one replacement', async () => {
  const world = await running({ 'web.yaml': manifest('web') });
  world.folder.remove('web.yaml');
  world.folder.write('web-new.yaml', manifest('web', { containers: [container('app', 2)] }));
  await world.advance(10);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(calls(world, 'runSandbox').length, 1);
  assert.equal(world.sync('web')?.desired?.source, 'file:web-new.yaml');
});

/** Each edit of C2 says something else in the same place; `pods`: it needs a new pod, else a new container in the old one. */
const edits: readonly { readonly what: string; readonly pods: boolean; readonly text: (n: number) => string }[] = [
  {
    what: 'its hostPort',
    pods: true,
    text: (n) =>
      manifest('web', { lines: grace20(), containers: [container('app', 1, `, ports: [{containerPort: 80, hostPort: ${4444 + n}}]`)] }),
  },
  {
    what: 'its image, under one hostPort',
    pods: false,
    text: (n) =>
      manifest('web', { lines: grace20(), containers: [container('app', 1 + n, ', ports: [{containerPort: 80, hostPort: 4444}]')] }),
  },
  {
    what: 'its environment',
    pods: false,
    text: (n) => manifest('web', { lines: grace20(), containers: [container('app', 1, `, env: [{name: X, value: "${n}"}]`)] }),
  },
  { what: 'its host name', pods: true, text: (n) => manifest('web', { lines: [...grace20(), `hostname: h${n}`] }) },
];
function grace20(): string[] {
  return ['terminationGracePeriodSeconds: 20'];
}

for (const { what, pods, text } of edits) {
  test(`C2: edits of ${what} at 0, 5 and 10 s while the old one ignores TERM: one kill of the full grace, one start, the last revision`, async () => {
    const world = new World();
    world.runtime.images.set('localhost/busybox:4', { state: 'present' });
    world.runtime.onStart(() => ({ ignoresTerm: calls(world, 'startContainer').length === 1 }));
    await running({ 'web.yaml': text(0) }, world);
    const begun = world.clock.monotonic();
    for (const n of [1, 2, 3]) {
      world.folder.write('web.yaml', text(n));
      await world.advance(5);
    }
    await world.advance(60);
    const stops = calls(world, 'stopContainer');
    assert.deepEqual(
      stops.map((c) => c.args[1]),
      [20],
    );
    const starts = calls(world, 'startContainer');
    assert.equal(starts.length, 2);
    const after = ((starts[1]?.at ?? 0) - begun) / 1000;
    assert.ok(after >= 20 && after < 22, `started after ${after} s`);
    assert.equal(calls(world, 'runSandbox').length, pods ? 2 : 1);
    assert.deepEqual(world.runtime.running(), ['web/app']);
    assert.equal(world.sync('web')?.running?.revision, world.sync('web')?.desired?.revision);
    assert.equal(world.sync('web')?.phase, 'Running');
    assert.deepEqual(world.runtime.violations, []);
  });
}

test('C2: edited and then edited back while the old one ends: it ends once, and starts once', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ ignoresTerm: true }));
  const text = (host: string) => manifest('web', { lines: [...grace20(), `hostname: ${host}`] });
  await running({ 'web.yaml': text('a') }, world);
  world.folder.write('web.yaml', text('b'));
  await world.advance(5);
  world.folder.write('web.yaml', text('a'));
  await world.advance(60);
  assert.equal(calls(world, 'stopContainer').length, 1);
  assert.equal(calls(world, 'startContainer').length, 2);
  assert.equal([...world.runtime.sandboxes.values()].map((s) => s.config.hostname).join(), 'a');
  assert.deepEqual(world.runtime.violations, []);
});

for (const kind of ['image', 'hostname', 'second container'] as const) {
  test(`C3: three manifests edited (${kind}) while the agent is stopped and the broker is down: old gone, new running, no overlap`, async () => {
    const clock = new FakeClock();
    const broker = new FakeBroker(clock);
    const world = new World({ clock, broker });
    world.runtime.onStart((_, config) => ({ ignoresTerm: config.userSpecifiedImage.endsWith(':1') }));
    const lines = ['terminationGracePeriodSeconds: 5'];
    const before = (name: string) => manifest(name, { lines, containers: [container('app', 1)] });
    const after = (name: string) =>
      kind === 'image'
        ? manifest(name, { lines, containers: [container('app', 2)] })
        : kind === 'hostname'
          ? manifest(name, { lines: [...lines, 'hostname: other'], containers: [container('app', 2)] })
          : manifest(name, { lines, containers: [container('app', 2), container('more', 2)] });
    const names = ['ant', 'bee', 'cat'];
    await running(Object.fromEntries(names.map((n) => [`${n}.yaml`, before(n)])), world);
    const old = new Set([...world.runtime.containers.keys()]);
    broker.kill();
    world.kill();
    for (const n of names) world.folder.files.set(`${n}.yaml`, after(n));
    await world.advance(30);
    await world.start();
    await world.advance(30);
    const now = [...world.runtime.containers.values()].filter((c) => c.state === 'running');
    assert.ok(now.every((c) => !old.has(c.id) && c.config.userSpecifiedImage === 'localhost/busybox:2'));
    assert.deepEqual(
      world.runtime.running(),
      names.flatMap((n) => (kind === 'second container' ? [`${n}/app`, `${n}/more`] : [`${n}/app`])),
    );
    assert.equal(calls(world, 'stopContainer').length, 3, 'each old one is stopped once');
    assert.deepEqual(world.runtime.violations, []);
    broker.restart();
    await world.advance(150);
    for (const n of names) assert.equal(world.pod(n)?.status.phase, 'Running');
    assert.equal(calls(world, 'stopContainer').length, 3, 'the broker is back: nothing restarts');
  });
}

/** Pods that are not ours: another tool's in the same containerd, one without any label, and one of another node's name. */
async function strangers(world: World): Promise<SandboxId[]> {
  const others: Partial<SandboxConfig>[] = [
    { labels: { 'io.kubernetes.pod.name': 'web', 'io.kubernetes.pod.namespace': 'default', 'io.kubernetes.pod.uid': 'other' } },
    { labels: {} },
    { labels: { [labels.managed]: 'pi-of-the-neighbour', [labels.podUid]: 'theirs' } },
  ];
  const ids: SandboxId[] = [];
  for (const [i, more] of others.entries()) {
    const ran = world.runtime.runSandbox(sandboxConfig(`stranger${i}`, more), '');
    await world.advance(1);
    ids.push(await ran);
  }
  return ids;
}

for (const left of ['another manifest', 'an empty folder'] as const) {
  test(`C4: a manifest deleted while the agent was away, ${left} left: ended by its grace, told gone; strangers in containerd untouched`, async () => {
    const world = new World();
    const theirs = await strangers(world);
    await running({ 'web.yaml': manifest('web', { lines: ['terminationGracePeriodSeconds: 7'] }), 'db.yaml': manifest('db') }, world);
    world.kill();
    world.folder.files.delete('web.yaml');
    if (left === 'an empty folder') world.folder.files.clear();
    await world.advance(100);
    await world.start();
    await world.advance(70);
    assert.deepEqual(world.runtime.running(), left === 'an empty folder' ? [] : ['db/app']);
    assert.deepEqual(
      calls(world, 'stopContainer').map((c) => c.args[1]),
      left === 'an empty folder' ? [30, 7] : [7],
    );
    for (const id of theirs) assert.equal(world.runtime.sandboxes.get(id)?.state, 'ready');
    assert.equal(world.runtime.sandboxes.size, theirs.length + (left === 'an empty folder' ? 0 : 1));
    assert.equal(world.pod('web'), undefined);
    assert.equal(world.sync('web'), undefined);
  });
}

test('C4: deleted while away, and the checkpoint lost too: what only the runtime knows is ended by the grace on its containers', async () => {
  const world = new World();
  await running({ 'web.yaml': manifest('web', { lines: ['terminationGracePeriodSeconds: 7'] }), 'db.yaml': manifest('db') }, world);
  const db = world.runtime.find('db', 'app')?.id;
  world.kill();
  world.folder.files.delete('web.yaml');
  world.stateStore.entries.clear();
  await world.start();
  await world.advance(70);
  assert.deepEqual(world.runtime.running(), ['db/app']);
  assert.equal(world.runtime.find('db', 'app')?.id, db);
  assert.deepEqual(
    calls(world, 'stopContainer').map((c) => c.args[1]),
    [7],
  );
});

test('C4: deleted while away, and the runtime is away too at the next start: ended as soon as it is back', async () => {
  const world = await running({ 'web.yaml': manifest('web') });
  world.kill();
  world.folder.files.delete('web.yaml');
  world.runtime.setDown(true);
  await world.start();
  await world.advance(300);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  world.runtime.setDown(false);
  await world.advance(70);
  assert.equal(world.runtime.sandboxes.size, 0);
  assert.equal(world.sync('web'), undefined);
});

/** Ways to be stuck for minutes, and the edit that frees. */
const stuck: readonly {
  readonly what: string;
  readonly reason: string;
  readonly before: string;
  readonly after: string;
}[] = [
  {
    what: 'a command that crashes',
    reason: 'CrashLoopBackOff',
    before: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", command: [crash]}'] }),
    after: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", command: [run]}'] }),
  },
  {
    what: 'an image that crashes',
    reason: 'CrashLoopBackOff',
    before: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", command: [crash]}'] }),
    after: manifest('web', { containers: ['{name: app, image: "localhost/busybox:2", command: [run]}'] }),
  },
  {
    what: 'one of two containers that crashes',
    reason: 'CrashLoopBackOff',
    before: manifest('web', {
      containers: ['{name: app, image: "localhost/busybox:1", command: [crash]}', '{name: side, image: "localhost/busybox:1"}'],
    }),
    after: manifest('web', {
      containers: ['{name: app, image: "localhost/busybox:1", command: [run]}', '{name: side, image: "localhost/busybox:1"}'],
    }),
  },
  {
    what: 'an init container that crashes',
    reason: 'CrashLoopBackOff',
    before: manifest('web', { lines: ['initContainers:', '- {name: first, image: "localhost/busybox:1", command: [crash]}'] }),
    after: manifest('web', { lines: ['initContainers:', '- {name: first, image: "localhost/busybox:1", command: [done]}'] }),
  },
  {
    what: 'a field of the whole pod',
    reason: 'CrashLoopBackOff',
    before: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", command: [crash]}'] }),
    after: manifest('web', { lines: ['hostNetwork: true'], containers: ['{name: app, image: "localhost/busybox:1", command: [run]}'] }),
  },
  {
    what: 'an image that is nowhere',
    reason: 'ImagePullBackOff',
    before: manifest('web', { containers: ['{name: app, image: "localhost/nowhere:1"}'] }),
    after: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1"}'] }),
  },
  {
    what: 'an image that may not be pulled',
    reason: 'ErrImageNeverPull',
    before: manifest('web', { containers: ['{name: app, image: "localhost/nowhere:1", imagePullPolicy: Never}'] }),
    after: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", imagePullPolicy: Never}'] }),
  },
  {
    what: 'a command that cannot be started',
    reason: 'CrashLoopBackOff',
    before: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", command: [missing]}'] }),
    after: manifest('web', { containers: ['{name: app, image: "localhost/busybox:1", command: [run]}'] }),
  },
];

for (const { what, reason, before, after } of stuck) {
  for (const again of [false, true]) {
    test(`C17: ${what}, in the longest back-off${again ? ' over an agent restart' : ''}: the edit runs within 5 s`, async () => {
      const world = new World();
      world.runtime.onStart((_, { command }) =>
        command[0] === 'crash'
          ? { exitAfterMs: 10, exitCode: 1 }
          : command[0] === 'done'
            ? { exitAfterMs: 10 }
            : command[0] === 'missing'
              ? { startError: 'exec: "missing": not found' }
              : {},
      );
      world.folder.files.set('web.yaml', before);
      await world.start();
      await world.advance(1500);
      assert.equal(world.sync('web')?.reason, reason);
      if (again) {
        await world.restart();
        await world.advance(20);
      }
      world.folder.write('web.yaml', `# looked at, and nothing changed\n${before}`);
      const starts = calls(world, 'startContainer').length;
      await world.advance(1);
      assert.equal(calls(world, 'startContainer').length, starts, 'nothing changed, and the back-off goes on');
      world.folder.write('web.yaml', after);
      await world.advance(5);
      assert.equal(world.runtime.find('web', 'app')?.state, 'running');
      // a topic that changes all the time is told once in 5 s
      await world.advance(5);
      assert.equal(world.pod('web')?.status.phase, 'Running');
      assert.equal(world.sync('web')?.phase, 'Running');
      assert.deepEqual(world.runtime.violations, []);
    });
  }
}

test('C17: an image that is being pulled for hours: the edit ends the pull and runs within 5 s; a label edit does not disturb it', async () => {
  const world = new World();
  world.runtime.images.set('localhost/large:1', { state: 'pullable', pullMs: 2 * 3600 * 1000 });
  const text = (image: string, label: string) => manifest('web', { labels: { label }, containers: [`{name: app, image: "${image}"}`] });
  world.folder.files.set('web.yaml', text('localhost/large:1', 'a'));
  await world.start();
  await world.advance(600);
  assert.equal(world.pod('web')?.status.containerStatuses?.[0]?.state.waiting?.reason, 'ContainerCreating');
  world.folder.write('web.yaml', text('localhost/large:1', 'b'));
  await world.advance(60);
  assert.equal(calls(world, 'pullImage').length, 1);
  world.folder.write('web.yaml', text('localhost/busybox:1', 'b'));
  await world.advance(5);
  assert.deepEqual(world.runtime.running(), ['web/app']);
  assert.equal(world.pod('web')?.status.phase, 'Running');
});

test('C2: an edit taken back while another container is still ending: that one is not touched', async () => {
  const world = new World();
  world.runtime.onStart(() => ({ ignoresTerm: true }));
  const text = (a: number, b: number) => manifest('web', { lines: grace20(), containers: [container('a', a), container('b', b)] });
  await running({ 'web.yaml': text(1, 1) }, world);
  const b = world.runtime.find('web', 'b')?.id;
  world.folder.write('web.yaml', text(2, 2));
  await world.advance(5);
  world.folder.write('web.yaml', text(3, 1));
  await world.advance(60);
  assert.equal(world.runtime.find('web', 'a')?.config.userSpecifiedImage, 'localhost/busybox:3');
  assert.equal(world.runtime.find('web', 'b')?.id, b);
  assert.equal(calls(world, 'stopContainer').length, 1);
  assert.equal(calls(world, 'startContainer').length, 3);
});
