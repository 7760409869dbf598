/** What asking the probes takes, as somebody who asks is told it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerId } from '../../src/container/words.ts';
import { asks, Bed } from './bed.ts';

const id = (text: string) => text as ContainerId;

test('D5: what each probe of a container costs is counted, without waiting for a turn', async () => {
  const bed = new Bed();
  bed.maxExecProbes = 1;
  bed.agent();
  await bed.settled();
  const pod = bed.pod('web', {
    livenessProbe: asks('live', { periodSeconds: 10 }),
    readinessProbe: asks('ready', { periodSeconds: 5 }),
  });
  bed.answers = { live: { takesMs: 300 }, ready: { takesMs: 100, exitCode: 1 } };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  assert.deepEqual(bed.prober.costs(id('c1')), [], 'nothing has been asked');
  await bed.clock.advance(1000);
  // one answer opens a period: it is not taken for one after another
  assert.deepEqual(
    bed.prober.costs(id('c1')).map((c) => [c.probe, c.perMinuteMs]),
    [
      ['liveness', 1800],
      ['readiness', 1200],
    ],
  );
  await bed.clock.advance(20_000);
  assert.deepEqual(bed.prober.costs(id('c1')), [
    { probe: 'liveness', handler: 'exec', count: 3, totalMs: 900, meanMs: 300, perMinuteMs: 1800 },
    { probe: 'readiness', handler: 'exec', count: 5, totalMs: 500, meanMs: 100, perMinuteMs: 1200 },
  ]);
  assert.deepEqual(bed.prober.costs(id('other')), []);
});

test('a time-out costs its whole time, and what is asked less often costs less of a minute', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { readinessProbe: asks('ready', { periodSeconds: 10 }) });
  bed.answers.ready = { takesMs: 60_000 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(599_999);
  const [cost] = bed.prober.costs(id('c1'));
  assert.deepEqual([cost?.count, cost?.totalMs, cost?.meanMs], [bed.ran.length, bed.ran.length * 1000, 1000]);
  assert.equal(cost?.perMinuteMs, bed.ran.length * 100, 'over ten minutes');
});

test('what the end of its container cuts off is not counted', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { livenessProbe: asks('live', { timeoutSeconds: 5 }) });
  bed.answers.live = { takesMs: 3000 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1000);
  bed.shows(pod, { id: 'c1', state: 'exited' });
  bed.prober.look(pod.uid);
  await bed.clock.advance(10_000);
  assert.deepEqual(bed.prober.costs(id('c1')), []);
});

test('the costs go with the container', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { livenessProbe: asks('live') });
  bed.answers.live = { takesMs: 300 };
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(11_000);
  assert.equal(bed.prober.costs(id('c1'))[0]?.count, 2);
  bed.shows(pod, { id: 'c2' });
  bed.prober.look(pod.uid);
  await bed.clock.advance(1000);
  assert.deepEqual([bed.prober.costs(id('c1')), bed.prober.costs(id('c2'))[0]?.count], [[], 1]);
  bed.prober.removePod(pod.uid);
  assert.deepEqual(bed.prober.costs(id('c2')), []);
});

test('a handler is named as in the manifest', async () => {
  const bed = new Bed();
  await bed.settled();
  const pod = bed.pod('web', { livenessProbe: { grpc: { port: 1 } }, readinessProbe: asks('ready') });
  bed.shows(pod, { id: 'c1' });
  bed.prober.addPod(pod);
  await bed.clock.advance(1000);
  assert.deepEqual(
    bed.prober
      .costs(id('c1'))
      .map((c) => `${c.probe} ${c.handler}`)
      .sort(),
    ['liveness grpc', 'readiness exec'],
  );
});
