/** Ending pods against their will: the worker's side of it, with the real workers, PLEG and a fake runtime. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wasEvicted } from '../../src/api/evicted.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { PodStatus } from '../../src/api/status.ts';
import { evictPod } from '../../src/pod/evict.ts';
import { applyUpdate } from '../../src/pod/lifecycle.ts';
import type { PodWorkersDeps } from '../../src/pod/workers.ts';
import { desiredPod } from './desiredPod.ts';
import { World } from './world.ts';

const web = desiredPod('web', 'u1');
const why = { reason: 'Evicted', message: 'The node was low on resource: memory. ', disrupts: true };

class Node extends World {
  readonly statuses = new Map<PodUid, PodStatus>();
  readonly events: string[] = [];

  evict(uid: PodUid, graceSeconds: number | undefined): Promise<void> {
    const { clock, workers } = this;
    return evictPod(
      {
        ...{ clock, workers },
        desired: (u) => this.pods.get(u),
        status: (u) => this.statuses.get(u),
        setStatus: (pod, status) => this.statuses.set(pod.uid, status),
        event: (pod, type, reason, message) => this.events.push(`${pod.name} ${type} ${reason}: ${message}`),
      },
      uid,
      { ...why, graceSeconds },
    );
  }
}

function node(o: Partial<PodWorkersDeps> = {}) {
  const ended: string[] = [];
  return { ended, n: new Node({ evictionEnded: (uid) => ended.push(uid), ...o }) };
}

test('an eviction is told from its decision on, ends the pod by the grace it gives, and is said to be over', async () => {
  const { n, ended } = node();
  n.runtime.onStart(() => ({ ignoresTerm: true }));
  await n.run();
  n.add(web);
  await n.clock.advance(200);
  n.took();
  let over = false;
  const evicting = n.evict(web.uid, 1).then(() => {
    over = true;
  });
  assert.equal(wasEvicted(n.statuses.get(web.uid)), true);
  assert.deepEqual(n.events, ['web Warning Evicted: The node was low on resource: memory. ']);
  await n.clock.advance(500);
  assert.equal(over, false);
  await n.clock.advance(1000);
  await evicting;
  assert.deepEqual(n.took(), ['kill u1 1', 'terminated u1']);
  assert.deepEqual([ended, n.runtime.running(), n.workers.state(web.uid)], [['u1'], [], 'finished']);
  await n.end();
  assert.equal(n.clock.sleeping, 0);
});

test('a pod that does not end is told so after its grace and a half, at least 10 s, and its worker goes on', async () => {
  const { n, ended } = node();
  await n.run();
  n.add(web);
  await n.clock.advance(200);
  const release = n.runtime.hang('stopContainer');
  const evicting = n.evict(web.uid, 1);
  evicting.catch(() => {}); // looked at below
  await n.clock.advance(9_900);
  assert.equal(n.events.length, 1);
  await n.clock.advance(200);
  await assert.rejects(evicting, /did not kill the pod/);
  assert.match(n.events[1] ?? '', /^web Warning ExceededGracePeriod: /);
  release();
  await n.clock.advance(1000);
  assert.deepEqual(ended, ['u1']);
  await n.end();
});

test('what is ending by itself keeps its own reason, and is only waited for; the unknown and the ended are nobody’s victims', async () => {
  const { n, ended } = node();
  n.runtime.onStart(() => ({ ignoresTerm: true }));
  await n.run();
  n.add(web);
  await n.clock.advance(200);
  n.workers.updatePod({ type: 'kill', pod: web });
  const evicting = n.evict(web.uid, undefined);
  await n.clock.advance(31_000);
  await evicting;
  assert.deepEqual([n.events, n.statuses.size, ended], [[], 0, []]);
  await n.evict(web.uid, 1);
  await n.evict('u9' as PodUid, 1);
  await n.end();
});

test('an agent that was started amid an eviction goes on with it: no step but its end, by the grace it had', async () => {
  const { n, ended } = node({ condemned: (uid) => (uid === 'u1' ? { graceSeconds: 1 } : undefined) });
  n.runtime.onStart(() => ({ ignoresTerm: true }));
  await n.run();
  await n.leftBehind('web', 'u1');
  n.add(web);
  n.add(desiredPod('other', 'u2'));
  await n.clock.advance(1500);
  assert.deepEqual(
    n.took().filter((d) => d.endsWith('u1') || d.includes('u1 ')),
    ['kill u1 1', 'terminated u1'],
  );
  assert.deepEqual([ended, n.runtime.running()], [['u1'], ['other/app']]);
  await n.end();
});

test('evicted before it ever ran here, it still comes to its end, once', async () => {
  const { n, ended } = node({ condemned: () => ({}) });
  await n.run();
  n.add(web);
  await n.clock.advance(500);
  assert.deepEqual([n.took(), ended, n.workers.state(web.uid)], [['kill u1 30', 'terminated u1'], ['u1'], 'finished']);
  n.workers.updatePod({ type: 'create', pod: web });
  await n.clock.advance(500);
  assert.deepEqual(n.took(), []);
  await n.end();
});

test('a kill that comes in the moment of the news lets no step take the new status for the pod’s own end', async () => {
  const { n } = node();
  await n.run();
  n.add(web);
  await n.clock.advance(200);
  n.took();
  // a sync begins, and is asked to stop before it has news
  n.workers.updatePod({ type: 'sync', pod: web });
  const evicting = n.evict(web.uid, 1);
  await n.clock.advance(3000);
  await evicting;
  assert.deepEqual(n.took(), ['kill u1 1', 'terminated u1']);
  await n.end();
});

test('only the first wish of an instance can find it condemned', () => {
  const first = applyUpdate(undefined, { type: 'create', pod: web, condemned: true, killGraceSeconds: 1 });
  assert.deepEqual(
    [first?.record.state, first?.record.evicted, first?.record.graceSeconds, first?.record.observedRuntime],
    ['terminating', true, 1, true],
  );
  const born = applyUpdate(undefined, { type: 'create', pod: web });
  assert.equal(applyUpdate(born?.record, { type: 'update', pod: web, condemned: true })?.record.state, 'sync');
});

test('a pod that was let end by its own long grace ends at once when the end is asked for again with less', async () => {
  const { n, ended } = node();
  n.runtime.onStart(() => ({ ignoresTerm: true }));
  await n.run();
  n.add(desiredPod('web', 'u1', { spec: { terminationGracePeriodSeconds: 3600 } }));
  await n.clock.advance(200);
  const patient = n.evict(web.uid, undefined);
  await n.clock.advance(60_000);
  assert.deepEqual(n.runtime.running().length, 1);
  const hurried = n.evict(web.uid, 1);
  await n.clock.advance(3_000);
  await Promise.all([patient, hurried]);
  assert.deepEqual([ended, n.runtime.running(), n.events.length], [['u1'], [], 1]);
  await n.end();
});
