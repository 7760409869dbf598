/** A pod that takes the node's memory is ended before the kernel ends somebody, once, and comes back; the broker never misses the agent. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import {
  brokerPort,
  conditions,
  configure,
  container,
  drop,
  events,
  isReady,
  type Pod,
  plain,
  pod,
  type Settings,
  script,
  syncs,
  takeAway,
  untilPod,
  untilReady,
} from './agent.ts';
import { type Heard, listen } from './broker.ts';
import type { Suite } from './checks.ts';
import { memAvailable, memTotal, oomKills, order, run, sh, sleep, until } from './machine.ts';

const mb = 2 ** 20;
const folder = '/srv/leak';
/** Memory of nobody's: the leak has less to fill, which would only take its time. */
const ballast = '/dev/shm/ballast';
const leftMb = 600;

/** Of this suite and the next one, for a restart of the agent costs half a minute. */
export const pressed: Settings = {
  evictionHard: { 'memory.available': '150Mi', 'nodefs.available': '200Mi', 'imagefs.available': '200Mi' },
  evictionPressureTransitionPeriod: '5s',
  // what goes of a full disk goes by eviction alone
  imageGCHighThresholdPercent: 99,
  // a third of what the agent has by itself, and its processor is slower by more than that
  mqtt: { servers: [`mqtt://127.0.0.1:${brokerPort}`], keepalive: `${Math.ceil(10 * order.patience)}s` },
};

/**
 * Fills a file system in memory, some 30 MB a second: memory that can go nowhere. Not faster: what takes the agent 100 ms on a Pi takes a
 * second or two here. It stops leaking once it was evicted.
 */
const leak =
  'i=0; [ -e /mark/evicted ] && exec sh -c "trap \'exit 0\' TERM; sleep 2147483647 & wait"; ' +
  'while :; do dd if=/dev/zero of=/fill/$i bs=1M count=10 2>/dev/null; i=$((i+1)); sleep 0.2; done';

const idOf = (p: Pod | undefined): string => p?.status.containerStatuses?.[0]?.containerID ?? '';

interface Online {
  readonly state: string;
  /** Another one for each connection. */
  readonly session: number;
}
const onlines = (heard: readonly Heard[]): Online[] =>
  heard.filter((h) => h.topic.endsWith('/online') && h.text !== '').map((h) => JSON.parse(h.text) as Online);

/** Evicted, and not only kept out for a pressure. */
export const evictedTold = (heard: readonly Heard[], name: string): Pod[] =>
  heard
    .filter((h) => h.topic.endsWith(`/pods/default/${name}`) && h.text.includes('"Evicted"'))
    .map((h) => JSON.parse(h.text) as Pod)
    .filter((p) => p.status.reason === 'Evicted' && p.status.message?.startsWith('The node was low') === true);

export const eviction: Suite = {
  name: 'eviction',
  async run({ check, figure }) {
    await configure(pressed);
    drop('calm', { ...plain, containers: [container()] });
    const calm = await untilReady('calm');
    const ears = await listen();
    try {
      const before = await until('the agent on the broker', 60, () => {
        const last = onlines(ears.heard).at(-1);
        return last?.state === 'online' ? last : undefined;
      });
      const heardBefore = ears.heard.length;
      const killed = oomKills();
      await sh(`mkdir -p ${folder} && rm -f ${folder}/*`);
      // a file system in memory has half of it at most
      const bytes = Math.min(memAvailable() - leftMb * mb, 0.45 * memTotal());
      await run('fallocate', '-l', String(Math.floor(Math.max(mb, bytes))), ballast);
      figure('memory', `${Math.round(memTotal() / mb)} MiB, ${Math.round(memAvailable() / mb)} available`);
      const told = (): Pod[] => evictedTold(ears.heard, 'leaky');
      let endedAt = performance.now();
      await check(
        'H3: the leaking pod is evicted, in the kubelet’s words, before the kernel ends anybody',
        async () => {
          drop('leaky', {
            ...plain,
            volumes: [
              { name: 'fill', emptyDir: { medium: 'Memory' } },
              { name: 'mark', hostPath: { path: folder, type: 'Directory' } },
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
            () => `its end to be told (${Math.round(memAvailable() / mb)} MiB available)`,
            150,
            () => told().length > 0 || undefined,
          );
          endedAt = performance.now();
          await sh(`touch ${folder}/evicted`);
          figure('from running to evicted', `${((endedAt - from) / 1000).toFixed(1)} s`);
          const [evicted] = told();
          assert.equal(evicted?.metadata.uid, first.metadata.uid);
          assert.equal(evicted.status.phase, 'Failed');
          const { message = '' } = evicted.status;
          figure('in its words', message);
          assert.match(message, /^The node was low on resource: memory\. Threshold quantity: 150Mi, available: \S+\. /);
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
          const uid = told()[0]?.metadata.uid;
          await untilPod('leaky', 'is another instance and ready', (p) => p.metadata.uid !== uid && isReady(p) && idOf(p) !== '', 240);
          figure('said of it then', JSON.stringify((await syncs()).find((s) => s.name === 'leaky')).slice(0, 300));
        },
        260,
      );
      await check('it was evicted once, its neighbour was left alone, and the kernel never acted', async () => {
        // the agent waits 12 s between two evictions for memory
        await sleep(Math.max(0, endedAt + 20_000 - performance.now()));
        assert.equal(new Set(told().map((p) => p.metadata.uid)).size, 1);
        assert.equal(idOf(await pod('calm')), idOf(calm));
        assert.equal(oomKills(), killed);
      });
      await check('H3: the broker never missed the agent: one connection from beginning to end', () => {
        // its will comes only 30 s after a missed keepalive; another session tells of each
        const others = onlines(ears.heard.slice(heardBefore)).filter((o) => o.state !== 'online' || o.session !== before.session);
        assert.deepEqual(others, []);
        assert.ok(ears.heard.length > heardBefore);
      });
    } finally {
      ears.end();
      rmSync(ballast, { force: true });
      // they end while the next suite begins, which has the same settings
      takeAway('leaky', 'calm');
    }
  },
};
