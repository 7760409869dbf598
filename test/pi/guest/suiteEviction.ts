/** A pod that takes the node's memory is ended before the kernel ends somebody, once, and comes back; the broker never misses the agent. */
import assert from 'node:assert/strict';
import { conditions, configure, container, drop, events, type Pod, pod, remove, script, syncs, untilPod, untilReady } from './agent.ts';
import { type Heard, listen } from './broker.ts';
import type { Suite } from './checks.ts';
import { memAvailable, memTotal, oomKills, sh, sleep, until } from './machine.ts';

/** Fills a file system in memory, some megabytes a step: memory that can go nowhere. It stops leaking once it was evicted. */
const leak =
  'i=0; [ -e /mark/evicted ] && exec sh -c "trap \'exit 0\' TERM; sleep 2147483647 & wait"; touch /mark/leaking; ' +
  'while :; do dd if=/dev/zero of=/fill/$i bs=1M count=20 2>/dev/null; i=$((i+1)); sleep 0.2; done';

const idOf = (p: Pod | undefined): string => p?.status.containerStatuses?.[0]?.containerID ?? '';

/** When the broker believed the agent lost. */
const lost = (heard: readonly Heard[]): readonly Heard[] => heard.filter((h) => h.topic.endsWith('/online') && h.text.includes('"lost"'));

export const eviction: Suite = {
  name: 'eviction',
  async run({ check, figure }) {
    await configure({ evictionHard: { 'memory.available': '150Mi' }, evictionPressureTransitionPeriod: '15s' });
    drop('calm', { containers: [container()] });
    const calm = await untilReady('calm');
    const ears = await listen();
    const killed = oomKills();
    figure('memory', `${Math.round(memTotal() / 2 ** 20)} MiB, ${Math.round(memAvailable() / 2 ** 20)} available`);
    await sh('mkdir -p /srv/mark && rm -f /srv/mark/*');
    let evicted: Pod | undefined;
    await check(
      'H3: the leaking pod is evicted, in the kubelet’s words, before the kernel ends anybody',
      async () => {
        drop('leaky', {
          volumes: [
            { name: 'fill', emptyDir: { medium: 'Memory' } },
            { name: 'mark', hostPath: { path: '/srv/mark', type: 'Directory' } },
          ],
          containers: [
            container(script(leak), {
              volumeMounts: [
                { name: 'fill', mountPath: '/fill' },
                { name: 'mark', mountPath: '/mark' },
              ],
            }),
          ],
        });
        const first = await untilPod('leaky', 'runs', (p) => p.status.phase === 'Running');
        const from = performance.now();
        // told to the broker: the local list may have the next instance by the time we ask
        await until(
          'its end to be told',
          150,
          () => ears.heard.some((h) => h.topic.endsWith('/pods/default/leaky') && h.text.includes('"Evicted"')) || undefined,
        );
        await sh('touch /srv/mark/evicted');
        figure('from running to evicted', `${((performance.now() - from) / 1000).toFixed(1)} s`);
        const text = ears.heard.find((h) => h.topic.endsWith('/pods/default/leaky') && h.text.includes('"Evicted"'))?.text ?? '{}';
        evicted = JSON.parse(text) as Pod;
        assert.equal(evicted.metadata.uid, first.metadata.uid);
        assert.equal(evicted.status.phase, 'Failed');
        assert.equal(evicted.status.reason, 'Evicted');
        assert.match(evicted.status.message ?? '', /^The node was low on resource: memory\. Threshold quantity: \S+, available: \S+\. /);
        const disruption = evicted.status.conditions?.find((c) => c.type === 'DisruptionTarget');
        assert.deepEqual([disruption?.status, disruption?.reason], ['True', 'TerminationByKubelet']);
        assert.equal(oomKills(), killed, 'the kernel killed nobody');
      },
      240,
    );
    await check('it is told as pressure of the node, and that ends', async () => {
      const all = await events();
      assert.ok(
        all.some((e) => e.reason === 'EvictionThresholdMet' && e.message === 'Attempting to reclaim memory'),
        'the event about the node',
      );
      await until(
        'no pressure any more',
        120,
        async () => !(await conditions()).some((c) => c.type === 'MemoryPressure' && c.status === 'True') || undefined,
      );
    });
    await check(
      'C11: it comes back as a new instance',
      async () => {
        const p = await untilReady('leaky', 240);
        assert.notEqual(p.metadata.uid, evicted?.metadata.uid);
        figure('said of it then', JSON.stringify((await syncs()).find((s) => s.name === 'leaky')).slice(0, 300));
      },
      260,
    );
    await check('it was evicted once, and its neighbour was left alone', async () => {
      await sleep(15_000);
      const ends = new Set(
        ears.heard
          .filter((h) => h.topic.endsWith('/pods/default/leaky') && h.text.includes('"Evicted"'))
          .map((h) => (JSON.parse(h.text) as Pod).metadata.uid),
      );
      assert.equal(ends.size, 1);
      assert.equal(idOf(await pod('calm')), idOf(calm));
    });
    await check('H3: the broker never missed the agent', () => {
      assert.deepEqual(lost(ears.heard), []);
      assert.ok(ears.heard.length > 0);
    });
    ears.end();
    await remove('leaky', 'calm');
    await sh('rm -rf /srv/mark');
    await configure();
  },
};
