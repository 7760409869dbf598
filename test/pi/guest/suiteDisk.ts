/** One pod fills the card: what nobody needs goes first, in its order, then that pod, once; others stay, and it comes back. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  configure,
  container,
  drop,
  isReady,
  type Pod,
  plain,
  pod,
  type Spec,
  script,
  syncs,
  takeAway,
  untilPod,
  untilReady,
} from './agent.ts';
import { listen } from './broker.ts';
import type { Suite } from './checks.ts';
import { ran, run, sh, sleep, until } from './machine.ts';
import { evictedTold, pressed } from './suiteEviction.ts';

const mb = 2 ** 20;
const free = (): number => {
  const { bavail, bsize } = statfsSync('/');
  return bavail * bsize;
};
const ballast = '/var/ballast';
const folder = '/srv/fill';
/** Below twice the threshold of 200Mi, so that the agent knows what each pod had written before the writer came. */
const roomMb = 330;

const idOf = (p: Pod | undefined): string => p?.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
const stay = "trap 'exit 0' TERM; sleep 2147483647 & wait";
/** More than the writer has when it must go: by size alone this pod would be the wrong choice. */
const keep = 'fallocate -l 314572800 /data/kept';
const mounts = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
const withData = (command: string, more: Spec = {}): Spec => ({
  ...plain,
  ...more,
  volumes: [{ name: 'data', emptyDir: {} }],
  containers: [container(script(command), mounts)],
});
/**
 * 1 GB a minute or so, and less than the card and what it keeps for root have. It waits a moment first: the agent looks at a disk that has
 * room every 10 s, and should have seen that it is nearly full before the threshold is reached.
 */
const fill =
  `[ -e /mark/evicted ] && exec sh -c "${stay}"; i=0; sleep 4; ` +
  'while [ $i -lt 45 ]; do dd if=/dev/zero of=/data/$i bs=1M count=10 2>/dev/null; i=$((i+1)); sleep 0.5; done; sleep 100000';

interface Deeds {
  /** `date time +0000 UTC namespace topic {…}`, oldest first. */
  readonly lines: readonly string[];
  /** When something was done; NaN: it was not. */
  at(topic: string, word: string): number;
  end(): void;
}

/** What containerd does, told by itself: the journal takes no more lines while the disk is that full. */
function watchContainerd(): Deeds {
  const lines: string[] = [];
  let rest = '';
  const child = spawn('ctr', ['-n', 'k8s.io', 'events'], { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    const all = (rest + part).split('\n');
    rest = all.pop() ?? '';
    lines.push(...all);
  });
  return {
    lines,
    at: (topic, word) => {
      const [day, time] = lines.find((line) => line.includes(` ${topic} `) && line.includes(word))?.split(' ') ?? [];
      return day === undefined || time === undefined ? Number.NaN : Date.parse(`${day}T${time.slice(0, 12)}Z`);
    },
    end: () => void child.kill(),
  };
}

export const disk: Suite = {
  name: 'disk',
  async run({ check, figure }) {
    await configure(pressed);
    const deeds = watchContainerd();
    const ears = await listen();
    try {
      await sh(`mkdir -p ${folder} && rm -f ${folder}/*`);
      // an image may only go where another one could come from: a way out, which leads nowhere here
      await sh('ip route show default | grep -q . || ip route add default via 10.0.2.2 || true');
      drop('idle', withData(`[ -e /data/kept ] || { ${keep}; echo first; exit 1; }; ${stay}`));
      drop('critical', withData(`${keep}; ${stay}`, { priorityClassName: 'system-node-critical' }));
      drop('done', { ...plain, restartPolicy: 'Never', containers: [container(script('echo done'))] });
      // an image that nobody uses and nobody pinned
      const imported = ran('ctr', ['-n', 'k8s.io', 'images', 'import', '/mnt/host/unused.tar']);
      let idle: Pod | undefined;
      let critical: Pod | undefined;
      let done: Pod | undefined;
      let oldLog = '';
      const ready = await check(
        'there are things that nobody needs: a log of before, an ended container, an image; and quiet pods that have much',
        async () => {
          idle = await untilPod('idle', 'is in its second life', (p) => isReady(p) && p.status.containerStatuses?.[0]?.restartCount === 1);
          critical = await untilReady('critical');
          done = await untilPod('done', 'has succeeded', (p) => p.status.phase === 'Succeeded');
          oldLog = `/var/log/pods/default_idle_${idle.metadata.uid}/main/0.log`;
          assert.ok(existsSync(oldLog), oldLog);
          assert.notEqual(idOf(done), '');
          const { code, err } = await imported;
          assert.equal(code, 0, err);
          assert.ok((await sh('ctr -n k8s.io images ls -q')).includes('unused:1'));
          assert.ok(deeds.lines.length > 0, 'containerd is heard');
        },
        240,
      );
      if (!ready) return;
      await run('fallocate', '-l', String(free() - roomMb * mb), ballast);
      const room = free();
      figure('free', `${Math.round(room / mb)} MiB of the card`);
      const told = (): Pod[] => evictedTold(ears.heard, 'writer');
      let endedAt = performance.now();
      await check(
        'G9: the pod that fills the card is evicted, and nobody else',
        async () => {
          drop('writer', {
            ...plain,
            volumes: [
              { name: 'data', emptyDir: {} },
              { name: 'mark', hostPath: { path: folder, type: 'Directory' } },
            ],
            containers: [container(script(fill), { volumeMounts: [...mounts.volumeMounts, { name: 'mark', mountPath: '/mark' }] })],
          });
          await until(
            () => `the eviction (${Math.round(free() / mb)} MiB free)`,
            200,
            () => told().length > 0 || undefined,
          );
          endedAt = performance.now();
          await sh(`touch ${folder}/evicted`);
          const [gone] = told();
          figure('in its words', gone?.status.message ?? '');
          figure('its way out', (await sh('ip route show default; ip -6 route show default')).trim());
          assert.equal(gone?.status.phase, 'Failed');
          assert.match(
            gone.status.message ?? '',
            /^The node was low on resource: ephemeral-storage\. Threshold quantity: 200Mi, available: \S+\. /,
          );
          assert.deepEqual([idOf(await pod('idle')), idOf(await pod('critical'))], [idle, critical].map(idOf));
        },
        260,
      );
      await check('G9: before it went what nobody needed: the old log, the ended container, the image, in this order', async () => {
        const writer = idOf(told()[0]);
        await until('its end', 60, () => !Number.isNaN(deeds.at('/tasks/exit', writer)) || undefined);
        assert.ok(!existsSync(oldLog), 'the old log is gone');
        const times = {
          // nothing else came or went there since
          log: statSync(dirname(oldLog)).mtimeMs,
          container: deeds.at('/containers/delete', idOf(done)),
          image: deeds.at('/images/delete', 'unused:1'),
          pod: deeds.at('/tasks/exit', writer),
        };
        const all = Object.values(times);
        const shown = JSON.stringify(times);
        assert.ok(!all.includes(Number.NaN), shown);
        const inOrder = [...all].sort((a, b) => a - b);
        assert.deepEqual(all, inOrder, shown);
        figure('seconds before its end', all.map((t) => ((times.pod - t) / 1000).toFixed(1)).join(', '));
        assert.equal((await pod('done'))?.status.phase, 'Succeeded', 'what has ended is still told');
        assert.equal((await pod('idle'))?.status.containerStatuses?.[0]?.restartCount, 1);
      });
      await check(
        'C11: what it wrote is gone, and it comes back',
        async () => {
          await until(
            () => `room again (${Math.round(free() / mb)} MiB free)`,
            120,
            () => free() > room - 40 * mb || undefined,
          );
          const uid = told()[0]?.metadata.uid;
          await untilPod('writer', 'is another instance and ready', (p) => p.metadata.uid !== uid && isReady(p) && idOf(p) !== '', 240);
        },
        300,
      );
      await check('G9: one eviction, and the others never noticed', async () => {
        // the agent waits 30 s between two evictions for the disk, and looks every 5 s while it is nearly full
        await sleep(Math.max(0, endedAt + 37_000 - performance.now()));
        assert.equal(new Set(told().map((p) => p.metadata.uid)).size, 1);
        assert.deepEqual([...evictedTold(ears.heard, 'idle'), ...evictedTold(ears.heard, 'critical')], []);
        assert.deepEqual([idOf(await pod('idle')), idOf(await pod('critical'))], [idle, critical].map(idOf));
        figure('said of them then', (await syncs()).map((s) => `${s.name} ${s.phase} ${s.reason ?? ''}`.trim()).join(', '));
      });
    } finally {
      ears.end();
      deeds.end();
      rmSync(ballast, { force: true });
      // they end meanwhile; whoever comes next has settings of his own
      takeAway('writer', 'idle', 'critical', 'done');
    }
  },
};
