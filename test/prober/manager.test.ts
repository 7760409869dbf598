import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId } from '../../src/container/words.ts';
import type { WallTime } from '../../src/world/clock.ts';
import { asks, Bed } from './bed.ts';

const id = (text: string) => text as ContainerId;

test('while the startup probe has not succeeded nothing else is asked, and the container is neither started nor ready', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', {
    startupProbe: asks('start', { periodSeconds: 1, failureThreshold: 10 }),
    livenessProbe: asks('live', { periodSeconds: 2 }),
    readinessProbe: asks('ready', { periodSeconds: 3 }),
  });
  bed.answers.start = { exitCode: 1 };
  bed.prober.addPod(pod);
  assert.equal(bed.prober.view(pod).started('app', undefined), false);
  assert.equal(bed.prober.view(pod).ready('app', undefined), false);
  bed.shows(pod, { id: 'c1' });
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false, 'nobody has looked yet');
  bed.prober.look(pod.uid);
  const zero = bed.now;
  await bed.clock.advance(2500);
  assert.deepEqual(
    bed.commands('start').map((at) => at - zero),
    [0, 1000, 2000],
  );
  assert.deepEqual([bed.commands('live'), bed.commands('ready')], [[], []]);
  assert.equal(bed.prober.view(pod).started('app', 'c1'), false);
  assert.equal(bed.prober.startup(id('c1')), 'unknown');

  bed.answers.start = {};
  await bed.clock.advance(7000);
  assert.deepEqual(
    bed.commands('start').map((at) => at - zero),
    [0, 1000, 2000, 3000],
  );
  assert.deepEqual(
    bed.commands('live').map((at) => at - zero),
    [3000, 5000, 7000, 9000],
  );
  assert.deepEqual(
    bed.commands('ready').map((at) => at - zero),
    [3000, 6000, 9000],
  );
  assert.equal(bed.prober.view(pod).started('app', 'c1'), true);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), true);
  assert.deepEqual(bed.changed, [pod.uid, pod.uid]);
});

test('a startup probe that fails to its threshold is a cause for a sync, and asks no more of that container', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { startupProbe: asks('start', { periodSeconds: 1, failureThreshold: 2 }) });
  bed.answers.start = { exitCode: 1, output: 'not yet' };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(5000);
  assert.equal(bed.prober.startup(id('c1')), 'failure');
  assert.equal(bed.commands('start').length, 2);
  assert.deepEqual(bed.changed, [pod.uid]);
  assert.deepEqual(bed.events, Array(2).fill('web/app Warning Unhealthy Startup probe failed: not yet'));
  bed.shows(pod, { id: 'c2', attempt: 1 });
  bed.prober.look(pod.uid);
  assert.equal(bed.prober.startup(id('c1')), undefined);
  assert.equal(bed.prober.startup(id('c2')), 'unknown');
});

test('readiness follows its answers by their thresholds, and each failure is an event', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { readinessProbe: asks('ready', { periodSeconds: 1, failureThreshold: 2 }) });
  bed.prober.addPod(pod);
  bed.shows(pod, { id: 'c1' });
  bed.prober.look(pod.uid);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false);
  assert.equal(bed.prober.view(pod).started('app', 'c1'), undefined);
  await bed.clock.advance(0);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), true);
  bed.answers.ready = { exitCode: 1 };
  await bed.clock.advance(1000);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), true, 'one failure is below the threshold');
  await bed.clock.advance(1000);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false);
  await bed.clock.advance(2000);
  assert.deepEqual(bed.changed, [pod.uid, pod.uid], 'only changes are told');
  assert.deepEqual(bed.events, Array(4).fill('web/app Warning Unhealthy Readiness probe failed: '));
});

test('a failed liveness probe is a cause for a sync and holds until the container is another one', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { livenessProbe: asks('live', { periodSeconds: 1 }) });
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1500);
  bed.answers.live = (of) => ({ exitCode: of === 'c1' ? 1 : 0 });
  await bed.clock.advance(3000);
  assert.equal(bed.prober.liveness(id('c1')), 'failure');
  assert.deepEqual(bed.changed, [pod.uid]);
  const asked = bed.commands('live').length;
  await bed.clock.advance(60_000);
  assert.equal(bed.commands('live').length, asked);
  bed.shows(pod, { id: 'c2', attempt: 1 }, { id: 'c1', state: 'exited' });
  bed.prober.look(pod.uid);
  assert.equal(bed.prober.liveness(id('c2')), 'success');
  await bed.clock.advance(1500);
  assert.equal(bed.commands('live').length, asked + 2);
});

// D4: liveness `sleep 4`, timeout 2, threshold 3: restart on the third
test('a time-out is a failure, and the command is given its limit', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { livenessProbe: asks('live', { periodSeconds: 10, timeoutSeconds: 2 }) });
  bed.answers.live = { takesMs: 4000 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(21_900);
  assert.equal(bed.prober.liveness(id('c1')), 'success');
  await bed.clock.advance(200);
  assert.equal(bed.prober.liveness(id('c1')), 'failure');
  assert.deepEqual(
    bed.ran.map((r) => r.timeoutSeconds),
    [2, 2, 2],
  );
  assert.equal(bed.events[0], 'web/app Warning Unhealthy Liveness probe failed: command timed out after 2s');
});

test('D3: an exec probe that only times out is asked less often, which is told once, until it answers', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { readinessProbe: asks('ready', { periodSeconds: 5 }) });
  bed.answers.ready = { takesMs: 10_000_000 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  const zero = bed.now;
  const turns = () => bed.commands('ready').map((at) => (at - zero) / 1000);
  await bed.clock.advance(125_000);
  assert.deepEqual(turns(), [0, 5, 10, 20, 30, 40, 60, 80, 100, 120]);
  const hints = () => bed.events.filter((e) => e.includes('ProbeHint'));
  assert.deepEqual(hints(), [
    'web/app Warning ProbeHint Readiness probe timed out 3 times in a row: until it answers it is asked every 10 s',
  ]);
  bed.answers.ready = {};
  await bed.clock.advance(27_000);
  assert.deepEqual(turns().slice(-3), [140, 145, 150]);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), true);
  assert.equal(hints().length, 1);
});

test('a worker has one probe in flight; turns missed meanwhile are left out and the plan does not drift', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { readinessProbe: asks('ready', { periodSeconds: 1, timeoutSeconds: 10 }) });
  bed.answers.ready = { takesMs: 2300 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  const zero = bed.now;
  await bed.clock.advance(10_000);
  assert.deepEqual(
    bed.commands('ready').map((at) => at - zero),
    [0, 3000, 6000, 9000],
  );
  assert.equal(bed.mostRunning, 1);
});

test('D5: exec probes wait for their turn, and waiting is never a failure', async () => {
  const bed = new Bed();
  bed.maxExecProbes = 2;
  bed.agent();
  await bed.settled();
  bed.answers = { ready: { takesMs: 400 }, live: { takesMs: 400 } };
  const pods = Array.from({ length: 20 }, (_, i) =>
    bed.pod(`p${i}`, { readinessProbe: asks('ready', { periodSeconds: 1 }), livenessProbe: asks('live', { periodSeconds: 1 }) }),
  );
  for (const [i, pod] of pods.entries()) {
    bed.shows(pod, { id: `c${i}` });
    bed.prober.addPod(pod);
  }
  await bed.clock.advance(60_000);
  assert.equal(bed.mostRunning, 2);
  assert.deepEqual(bed.events, []);
  for (const [i, pod] of pods.entries()) {
    assert.equal(bed.prober.view(pod).ready('app', `c${i}`), true, pod.name);
    assert.equal(bed.prober.liveness(id(`c${i}`)), 'success');
  }
  // 40 workers share 60 s × 2 / 0.4 s, each as often as the others
  const counts = pods.map((_, i) => bed.ran.filter((r) => r.id === `c${i}`).length);
  assert.ok(Math.min(...counts) >= 12 && Math.max(...counts) <= 18, String(counts));
});

test('a command that hangs for minutes holds up no other pod, and short ones stay few at a time', async () => {
  const bed = new Bed();
  bed.maxExecProbes = 1;
  bed.agent();
  await bed.settled();
  bed.answers = { hang: { takesMs: 3_600_000 }, live: { takesMs: 100 } };
  const hangs = ['x', 'y'].map((name) => bed.pod(name, { readinessProbe: asks('hang', { periodSeconds: 1, timeoutSeconds: 600 }) }));
  const others = ['a', 'b', 'c'].map((name) => bed.pod(name, { livenessProbe: asks('live', { periodSeconds: 5 }) }));
  for (const pod of [...hangs, ...others]) {
    bed.shows(pod, { id: pod.name });
    bed.prober.addPod(pod);
  }
  await bed.clock.advance(60_000);
  for (const { name } of others) assert.ok(bed.ran.filter((r) => r.id === name).length >= 10, name);
  assert.equal(bed.mostRunning, 3, 'both that hang, and one of the others');
});

test('a pod that goes while its probe waits for a turn takes no turn, and its place is free for the next', async () => {
  const bed = new Bed();
  bed.maxExecProbes = 1;
  bed.agent();
  await bed.settled();
  bed.answers.ready = { takesMs: 800 };
  const pods = ['a', 'b', 'c'].map((name) => bed.pod(name, { readinessProbe: asks('ready', { periodSeconds: 60 }) }));
  for (const pod of pods) {
    bed.shows(pod, { id: pod.name });
    bed.prober.addPod(pod);
  }
  await bed.clock.advance(100);
  for (const pod of pods.slice(0, 2)) bed.prober.removePod(pod.uid);
  await bed.clock.advance(1000);
  assert.deepEqual(
    bed.ran.map((r) => r.id),
    ['a', 'c'],
  );
});

test('C13: a restart of the agent changes no readiness and asks for no sync', async () => {
  const bed = new Bed();
  await bed.settled();
  const probe = { startupProbe: asks('start', { periodSeconds: 1 }), readinessProbe: asks('ready', { periodSeconds: 60 }) };
  const good = bed.pod('good', probe);
  const bad = bed.pod('bad', probe);
  bed.answers.ready = (of) => ({ exitCode: of === 'bad' ? 1 : 0 });
  for (const pod of [good, bad]) {
    bed.shows(pod, { id: pod.name });
    bed.prober.addPod(pod);
  }
  await bed.clock.advance(200_000);
  const shown = () => [good, bad].map((p) => [bed.prober.view(p).started('app', p.name), bed.prober.view(p).ready('app', p.name)]);
  const before = [
    [true, true],
    [true, false],
  ];
  assert.deepEqual(shown(), before);
  await bed.prober.flush();
  bed.prober.stop();
  const starts = bed.commands('start').length;

  bed.changed.length = 0;
  bed.random = 0.5;
  bed.agent();
  await bed.prober.load();
  assert.deepEqual(shown(), before, 'before the first sync');
  for (const pod of [good, bad]) bed.prober.addPod(pod);
  assert.deepEqual(shown(), before);
  const ready = bed.commands('ready').length;
  await bed.clock.advance(29_000);
  assert.equal(bed.commands('ready').length, ready, 'spread over the period');
  await bed.clock.advance(200_000);
  assert.equal(bed.commands('ready').length, ready + 8);
  assert.deepEqual(shown(), before);
  assert.deepEqual(bed.changed, []);
  assert.equal(bed.commands('start').length, starts, 'a start is not asked for twice');

  bed.answers.ready = {};
  await bed.clock.advance(60_000);
  assert.equal(bed.prober.view(bad).ready('app', 'bad'), true, 'until a probe says otherwise');
});

test('a container that failed its liveness before the agent was restarted is still to be restarted', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { livenessProbe: asks('live', { periodSeconds: 1, failureThreshold: 1 }) });
  bed.answers.live = { exitCode: 1 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(0);
  await bed.prober.flush();
  bed.prober.stop();
  bed.agent();
  await bed.prober.load();
  assert.equal(bed.prober.liveness(id('c1')), 'failure');
});

test('a container whose postStart is not over is asked nothing, and its delays count from the end of the hook', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { readinessProbe: asks('ready', { initialDelaySeconds: 5 }) });
  bed.starting.add('a');
  bed.shows(pod, { id: 'a' });
  bed.prober.addPod(pod);
  await bed.clock.advance(60_000);
  assert.deepEqual(bed.ran, []);
  assert.equal(bed.prober.view(pod).ready('app', 'a'), false);
  bed.starting.clear();
  bed.prober.look(pod.uid);
  const since = bed.now;
  await bed.clock.advance(6000);
  assert.deepEqual(bed.commands('ready'), [since + 5000]);
});

test('first turns are spread over their period after the agent started, and come at once later', async () => {
  const bed = new Bed();
  bed.random = 0.25;
  await bed.prober.load();
  await bed.clock.advance(5000);
  const slow = bed.pod('slow', { readinessProbe: asks('slow', { periodSeconds: 20 }) });
  const quick = bed.pod('quick', { readinessProbe: asks('quick', { periodSeconds: 4 }) });
  for (const pod of [slow, quick]) {
    bed.prober.addPod(pod);
    bed.shows(pod, { id: pod.name });
    bed.prober.look(pod.uid);
  }
  await bed.clock.advance(20_000);
  assert.deepEqual(bed.commands('slow'), [10_000]);
  assert.equal(bed.commands('quick')[0], 5000);
});

test('what ran before the agent started is spread over its period however late its first sync comes', async () => {
  const bed = new Bed();
  bed.random = 0.5;
  await bed.prober.load();
  await bed.clock.advance(60_000);
  const pod = bed.pod('web', { readinessProbe: asks('ready', { periodSeconds: 4 }) });
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(4000);
  assert.deepEqual(bed.commands('ready'), [62_000]);
});

test('E4: a start in the future delays a probe by its delay and no more', async () => {
  const bed = new Bed();
  await bed.prober.load();
  const probe = { readinessProbe: asks('ready', { initialDelaySeconds: 30, periodSeconds: 10 }) };
  const adopted = bed.pod('adopted', probe);
  const long = bed.pod('long', probe);
  const fresh = bed.pod('fresh', probe);
  bed.shows(adopted, { id: 'adopted', startedAt: Date.parse('2035-01-01') as WallTime });
  bed.shows(long, { id: 'long', startedAt: (bed.clock.now() - 3_600_000) as WallTime });
  for (const pod of [adopted, long, fresh]) bed.prober.addPod(pod);
  bed.shows(fresh, { id: 'fresh', startedAt: Date.parse('2035-01-01') as WallTime });
  bed.prober.look(fresh.uid);
  bed.clock.setWall(Date.parse('1970-01-01'));
  await bed.clock.advance(35_000);
  const first = (of: string) => bed.ran.find((r) => r.id === of)?.at;
  assert.deepEqual([first('adopted'), first('fresh'), first('long')], [30_000, 30_000, 0]);
});

test('a delay is not begun anew by a restart of the agent, whatever the wall clock says', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { readinessProbe: asks('ready', { initialDelaySeconds: 100, periodSeconds: 5 }) });
  bed.prober.addPod(pod);
  bed.shows(pod, { id: 'c1' });
  bed.prober.look(pod.uid);
  const zero = bed.now;
  await bed.clock.advance(60_000);
  await bed.prober.flush();
  bed.prober.stop();
  bed.clock.setWall(0);
  bed.agent();
  await bed.prober.load();
  bed.prober.addPod(pod);
  await bed.clock.advance(60_000);
  assert.equal((bed.commands('ready')[0] ?? 0) - zero, 100_000);
});

test('D6: a slow start that its liveness probe ends is told its remedy, a startupProbe, and survives with it', async () => {
  for (const remedied of [false, true]) {
    const bed = new Bed();
    await bed.settled();
    const pod = bed.pod('web', { livenessProbe: asks('app'), ...(remedied && { startupProbe: asks('app', { failureThreshold: 30 }) }) });
    const zero = bed.now;
    bed.answers.app = () => ({ exitCode: bed.now - zero < 90_000 ? 1 : 0 });
    bed.prober.addPod(pod);
    bed.shows(pod, { id: 'c1' });
    bed.prober.look(pod.uid);
    await bed.clock.advance(200_000);
    assert.equal(bed.prober.liveness(id('c1')), remedied ? 'success' : 'failure');
    assert.deepEqual(
      bed.events.filter((e) => e.includes('ProbeHint')),
      remedied
        ? []
        : [
            'web/app Warning ProbeHint container app failed its liveness probe before it ever succeeded: if it only starts slowly, give it a startupProbe',
          ],
    );
  }
});

test('a container that was alive once, or has a startup probe, gets no hint at its end', async () => {
  const bed = new Bed();
  await bed.settled();
  const livenessProbe = asks('live', { periodSeconds: 1 });
  const lived = bed.pod('lived', { livenessProbe });
  const gated = bed.pod('gated', { livenessProbe, startupProbe: asks('start', { periodSeconds: 1 }) });
  for (const pod of [lived, gated]) {
    bed.prober.addPod(pod);
    bed.shows(pod, { id: pod.name });
  }
  // the one lives at first, the other starts and never answers
  bed.answers.live = (of) => ({ exitCode: of === 'lived' ? 0 : 1 });
  for (const pod of [lived, gated]) bed.prober.look(pod.uid);
  await bed.clock.advance(5000);
  assert.equal(bed.prober.liveness(id('gated')), 'failure');
  // known to the next agent too
  await bed.prober.flush();
  bed.prober.stop();
  bed.agent();
  await bed.prober.load();
  bed.answers.live = { exitCode: 1 };
  for (const pod of [lived, gated]) bed.prober.addPod(pod);
  await bed.clock.advance(10_000);
  assert.deepEqual([bed.prober.liveness(id('lived')), bed.prober.liveness(id('gated'))], ['failure', 'failure']);
  assert.deepEqual(
    bed.events.filter((e) => e.includes('ProbeHint')),
    [],
  );
});

test('what cannot be asked is tried three times, told, and not counted', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { livenessProbe: asks('live', { periodSeconds: 10, failureThreshold: 1 }) });
  bed.answers.live = { error: new RuntimeError('unknown', 'container c1: no such file') };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(5000);
  assert.equal(bed.commands('live').length, 3);
  assert.deepEqual(bed.events, ['web/app Warning Unhealthy Liveness probe errored: container app: no such file']);
  assert.equal(bed.prober.liveness(id('c1')), 'success');
  const noPort = bed.pod('named', { readinessProbe: { tcpSocket: { port: 'htpp' } }, ports: [{ name: 'http', containerPort: 80 }] });
  bed.shows(noPort, { id: 'c9' });
  bed.prober.addPod(noPort);
  await bed.clock.advance(100);
  assert.equal(
    bed.events.at(-1),
    'named/app Warning Unhealthy Readiness probe errored: container app has no port named "htpp": it has http',
  );
});

test('B8: the argv of a command reaches the runtime unchanged but for $(VAR) of written values', async () => {
  const bed = new Bed();
  await bed.settled();
  const hard = 'curl -f "x y" \'z\' $HOME $$ \n \\ `id`';
  const pod = bed.pod('web', {
    env: [
      { name: 'PORT', value: '80' },
      { name: 'REF', value: '$(PORT)' },
      { name: 'FROM', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ],
    readinessProbe: { exec: { command: ['sh', '-c', hard, '', '$(PORT)-$(REF)-$(FROM)-$(NONE)'] } },
  });
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(0);
  assert.deepEqual(bed.ran[0]?.command, ['sh', '-c', hard.replace('$$', '$'), '', '80-$(PORT)--$(NONE)']);
});

test('before a kill liveness and startup of app containers stop; readiness goes on, and so do sidecars', async () => {
  const bed = new Bed();
  await bed.settled();
  const probes = (of: string) => ({
    livenessProbe: asks(`live-${of}`, { periodSeconds: 1 }),
    readinessProbe: asks(`ready-${of}`, { periodSeconds: 1 }),
  });
  const pod = bed.pod('web', probes('app'), {
    initContainers: [
      { name: 'side', image: 'i', restartPolicy: 'Always', ...probes('side') },
      { name: 'init', image: 'i', ...probes('init') },
    ],
  });
  bed.shows(pod, { id: 'c1' }, { id: 'c2', name: 'side' }, { id: 'c3', name: 'init' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1500);
  bed.prober.stopLivenessAndStartup(pod.uid);
  bed.answers['ready-app'] = { exitCode: 1 };
  bed.ran.length = 0;
  await bed.clock.advance(3000);
  const asked = ['live-app', 'ready-app', 'live-side', 'ready-side', 'live-init', 'ready-init'].map((what) => bed.commands(what).length);
  assert.deepEqual(asked, [0, 3, 3, 3, 0, 0]);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false);
  bed.prober.removePod(pod.uid);
  await bed.clock.advance(3000);
  assert.equal(bed.ran.length, 9);
  assert.equal(bed.clock.sleeping, 0, 'no timer is left');
});

test('a container that does not run is not asked, and its probe in flight is heard no more', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { readinessProbe: asks('ready', { periodSeconds: 10, timeoutSeconds: 5 }) });
  bed.answers.ready = { takesMs: 3000, exitCode: 1 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1000);
  bed.shows(pod, { id: 'c1', state: 'exited' });
  bed.prober.look(pod.uid);
  await bed.clock.advance(60_000);
  assert.equal(bed.ran.length, 1);
  assert.deepEqual(bed.events, []);
  assert.equal(bed.clock.sleeping, 0);
});

test('an edit of a probe is followed by the container that replaces the old one, which is judged by its own probe until then', async () => {
  const bed = new Bed();
  await bed.settled();
  const hash = (of: string) => ({ annotations: { 'podsched.dev/container-hash': of } });
  const old = { ...bed.pod('web', { readinessProbe: asks('old', { periodSeconds: 1 }) }), containerHashes: { app: '1:old' } };
  bed.shows(old, { id: 'c1', ...hash('1:old') });
  bed.prober.addPod(old);
  await bed.clock.advance(500);
  const edited = bed.pod('web', {
    readinessProbe: asks('new', { periodSeconds: 1 }),
    startupProbe: asks('start', { periodSeconds: 1 }),
  });
  const wanted = { ...edited, containerHashes: { app: '1:new' } };
  bed.prober.addPod(wanted);
  await bed.clock.advance(1000);
  assert.deepEqual([bed.commands('old').length, bed.commands('new').length], [2, 0]);
  const shown = () => [bed.prober.view(wanted).started('app', 'c1'), bed.prober.view(wanted).ready('app', 'c1')];
  assert.deepEqual(shown(), [undefined, true]);
  // the next agent does not know the old probes: what they found stands, and the new ones are not asked of the old container
  await bed.prober.flush();
  bed.prober.stop();
  bed.agent();
  await bed.prober.load();
  bed.prober.addPod(wanted);
  await bed.clock.advance(5000);
  assert.deepEqual([bed.commands('old').length, bed.commands('new').length], [2, 0]);
  assert.deepEqual(shown(), [undefined, true]);

  bed.shows(wanted, { id: 'c2', attempt: 1, ...hash('1:new') });
  bed.prober.look(wanted.uid);
  assert.equal(bed.prober.view(wanted).ready('app', 'c2'), false);
  await bed.clock.advance(500);
  assert.deepEqual([bed.prober.view(wanted).started('app', 'c2'), bed.prober.view(wanted).ready('app', 'c2')], [true, true]);
});

test('a container that is edited before its probes found anything is not ready, after a restart of the agent neither', async () => {
  const hash = (of: string) => ({ annotations: { 'podsched.dev/container-hash': of } });
  for (const when of ['asked', 'starting'] as const) {
    const bed = new Bed();
    await bed.settled();
    const probes = { startupProbe: asks('start', { periodSeconds: 1, failureThreshold: 9 }), readinessProbe: asks('ready') };
    const old = { ...bed.pod('web', probes), containerHashes: { app: '1:old' } };
    const wanted = { ...bed.pod('web', {}), containerHashes: { app: '1:new' } };
    bed.answers.start = { exitCode: 1 };
    if (when === 'starting') bed.starting.add('c1');
    bed.prober.addPod(old);
    bed.shows(old, { id: 'c1', ...hash('1:old') });
    bed.prober.look(old.uid);
    await bed.clock.advance(500);
    const shown = () => [bed.prober.view(wanted).started('app', 'c1'), bed.prober.view(wanted).ready('app', 'c1')];
    assert.deepEqual(shown(), [false, false], when);
    bed.prober.addPod(wanted);
    assert.deepEqual(shown(), [false, false], when);
    await bed.prober.flush();
    bed.prober.stop();
    bed.starting.clear();
    bed.agent();
    await bed.prober.load();
    assert.deepEqual(shown(), [false, false], `${when}, next agent`);
    bed.prober.addPod(wanted);
    assert.deepEqual(shown(), [false, false], `${when}, next agent, synced`);
    assert.equal(bed.prober.liveness(id('c1')), 'success', 'what has found nothing kills nothing');
  }
});

test('a container without probes that is to get some is not judged by them before it is replaced', async () => {
  const bed = new Bed();
  await bed.settled();
  const wanted = { ...bed.pod('web', { readinessProbe: asks('new') }), containerHashes: { app: '1:new' } };
  bed.shows(wanted, { id: 'c1', annotations: { 'podsched.dev/container-hash': '1:old' } });
  bed.prober.addPod(wanted);
  await bed.clock.advance(20_000);
  assert.equal(bed.prober.view(wanted).ready('app', 'c1'), undefined);
  assert.deepEqual(bed.ran, []);
});

test('results are stored once per change, and leave with the pod, at the latest by housekeeping', async () => {
  const bed = new Bed();
  let puts = 0;
  const put = bed.store.put.bind(bed.store);
  bed.store.put = (key, value) => {
    puts += 1;
    return put(key, value);
  };
  await bed.settled();
  const pods = ['a', 'b'].map((name) => bed.pod(name, { readinessProbe: asks('ready', { periodSeconds: 1 }) }));
  for (const pod of pods) {
    bed.shows(pod, { id: pod.name });
    bed.prober.addPod(pod);
  }
  await bed.clock.advance(60_000);
  assert.equal(bed.store.entries.size, 2);
  assert.equal(puts, 4, 'seen, and ready');
  const [a, b] = pods;
  assert.ok(a && b);
  bed.prober.removePod(a.uid);
  await bed.prober.flush();
  assert.deepEqual([...bed.store.entries.keys()], ['probes/uid-b']);
  bed.prober.stop();
  bed.agent();
  await bed.prober.load();
  bed.prober.retain(new Set([a.uid]));
  await bed.prober.flush();
  assert.equal(bed.store.entries.size, 0);
});

test('what stands in the store is checked, and a store that cannot be read or written stops nothing', async () => {
  const bed = new Bed();
  bed.store.entries.set('probes/uid-x', '"text"');
  bed.store.entries.set('probes/uid-y', '{broken');
  bed.store.entries.set('probes/uid-web', JSON.stringify({ c1: { seenAt: 'x', readiness: 'maybe' }, c2: 7 }));
  const pod = bed.pod('web', { readinessProbe: asks('ready', { periodSeconds: 1 }) });
  await bed.prober.load();
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false);
  bed.store.put = () => Promise.reject(new Error('no space'));
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1000);
  await bed.prober.flush();
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), true);
});

const readyEvery = (periodSeconds: number, failureThreshold = 1) => ({
  readinessProbe: asks('ready', { periodSeconds, failureThreshold }),
});

for (const how of ['exited', 'gone'] as const)
  test(`what a probe finds of a container that is ${how} already is not told and not counted`, async () => {
    const bed = new Bed();
    await bed.settled();
    const pod = bed.pod('web', { ...readyEvery(1), livenessProbe: asks('live', { periodSeconds: 1, failureThreshold: 1 }) });
    bed.shows(pod, { id: 'c1' });
    bed.prober.addPod(pod);
    await bed.clock.advance(3500);
    assert.equal(bed.prober.view(pod).ready('app', 'c1'), true);
    const { length } = bed.changed;
    // it ends, and the news of it are not here yet
    bed.over.set('c1', how);
    bed.answers.ready = { exitCode: 1, output: 'connection refused' };
    bed.answers.live = { error: new RuntimeError('unknown', 'container is in CONTAINER_EXITED state') };
    await bed.clock.advance(3000);
    assert.deepEqual(bed.events, []);
    assert.equal(bed.prober.view(pod).ready('app', 'c1'), true);
    assert.equal(bed.prober.liveness(id('c1')), 'success');
    assert.equal(bed.changed.length, length);
  });

test('a container that still runs while its pod ends is told as it answers: draining is seen', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', readyEvery(1));
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1500);
  bed.prober.stopLivenessAndStartup(pod.uid);
  bed.answers.ready = { exitCode: 1, output: 'draining' };
  await bed.clock.advance(2000);
  assert.deepEqual([...new Set(bed.events)], ['web/app Warning Unhealthy Readiness probe failed: draining']);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false);
  // its last words are of another kind
  bed.over.set('c1', 'exited');
  bed.answers.ready = { exitCode: 1, output: 'no route to host' };
  await bed.clock.advance(3000);
  assert.deepEqual([...new Set(bed.events)], ['web/app Warning Unhealthy Readiness probe failed: draining']);
});

test('a probe that fails again and again asks the runtime once, and one that succeeds never', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', readyEvery(1));
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(5500);
  assert.equal(bed.asked, 0);
  bed.answers.ready = { exitCode: 1, output: 'no' };
  await bed.clock.advance(10_000);
  assert.equal(bed.asked, 1);
  assert.ok(bed.events.length >= 9);
});

test('a runtime that does not say whether the container has ended holds nothing up', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', readyEvery(1));
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1500);
  bed.over.set('c1', 'silent');
  bed.answers.ready = { exitCode: 1, output: 'no' };
  await bed.clock.advance(1000);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false);

  bed.answers.ready = {};
  await bed.clock.advance(1000);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), true);
  bed.over.set('c1', 'hung');
  bed.answers.ready = { exitCode: 1, output: 'no' };
  await bed.clock.advance(2100);
  assert.equal(bed.prober.view(pod).ready('app', 'c1'), false);
});
