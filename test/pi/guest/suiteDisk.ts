/** One pod fills the card: what nobody needs goes first, then that pod, once; others stay, and it comes back. */
import assert from 'node:assert/strict';
import { rmSync, statfsSync } from 'node:fs';
import { configure, container, drop, type Pod, pod, podsched, remove, script, untilReady } from './agent.ts';
import { listen } from './broker.ts';
import type { Suite } from './checks.ts';
import { run, sh, sleep, until } from './machine.ts';

const mb = 2 ** 20;
const free = (): number => statfsSync('/').bavail * statfsSync('/').bsize;
const ballast = '/var/ballast';
const idOf = (p: Pod | undefined): string => p?.status.containerStatuses?.[0]?.containerID ?? '';
const fill =
  '[ -e /mark/evicted ] && exec sh -c "trap \'exit 0\' TERM; sleep 2147483647 & wait"; i=0; ' +
  'while [ $i -lt 60 ]; do dd if=/dev/zero of=/fill/$i bs=1M count=10 2>/dev/null; i=$((i+1)); sleep 0.1; done; sleep 100000';

export const disk: Suite = {
  name: 'disk',
  async run({ check, figure }) {
    await configure({
      evictionHard: { 'nodefs.available': '200Mi', 'imagefs.available': '200Mi', 'memory.available': '50Mi' },
      evictionPressureTransitionPeriod: '15s',
      imageGCHighThresholdPercent: 100,
    });
    await sh('mkdir -p /srv/mark && rm -f /srv/mark/*');
    // an image that nobody uses and nobody pinned
    await sh('ctr -n k8s.io images import /mnt/host/unused.tar');
    drop('idle', { containers: [container()] });
    drop('critical', { priorityClassName: 'system-node-critical', priority: 2000001000, containers: [container()] });
    const others = [await untilReady('idle'), await untilReady('critical')];
    await run('fallocate', '-l', String(free() - 450 * mb), ballast);
    figure('free', `${Math.round(free() / mb)} MiB of the card`);
    const ears = await listen();
    const told = (): Pod[] =>
      ears.heard
        .filter((h) => h.topic.endsWith('/pods/default/writer') && h.text.includes('"Evicted"'))
        .map((h) => JSON.parse(h.text) as Pod);
    await check(
      'G9: the pod that fills the card is evicted, and nobody else',
      async () => {
        drop('writer', {
          volumes: [
            { name: 'fill', emptyDir: {} },
            { name: 'mark', hostPath: { path: '/srv/mark', type: 'Directory' } },
          ],
          containers: [
            container(script(fill), {
              volumeMounts: [
                { name: 'fill', mountPath: '/fill' },
                { name: 'mark', mountPath: '/mark' },
              ],
            }),
          ],
        });
        await until(
          () => `the eviction (${Math.round(free() / mb)} MiB free)`,
          200,
          () => told().length > 0 || undefined,
        );
        await sh('touch /srv/mark/evicted');
        const [gone] = told();
        assert.equal(gone?.status.phase, 'Failed');
        assert.match(
          gone.status.message ?? '',
          /^The node was low on resource: ephemeral-storage\. Threshold quantity: 200Mi, available: \S+\. /,
        );
        assert.deepEqual([idOf(await pod('idle')), idOf(await pod('critical'))], others.map(idOf));
      },
      260,
    );
    await check('G9: what nobody needed went first', async () => {
      assert.ok(!(await sh('ctr -n k8s.io images ls -q')).includes('unused:1'), 'the unused image is gone');
    });
    await check(
      'C11: what it wrote is gone, and it comes back',
      async () => {
        await until(
          () => `room again (${Math.round(free() / mb)} MiB free)`,
          120,
          () => free() > 350 * mb || undefined,
        );
        const p = await untilReady('writer', 240);
        assert.notEqual(p.metadata.uid, told()[0]?.metadata.uid);
      },
      300,
    );
    await check('G9: one eviction, and the others never noticed', async () => {
      await sleep(15_000);
      assert.equal(new Set(told().map((p) => p.metadata.uid)).size, 1);
      assert.deepEqual([idOf(await pod('idle')), idOf(await pod('critical'))], others.map(idOf));
      const { out } = await podsched('get', 'pods');
      figure('pods then', `\n${out.trimEnd()}`);
    });
    ears.end();
    rmSync(ballast, { force: true });
    await remove('writer', 'idle', 'critical');
    await sh('rm -rf /srv/mark');
    await configure();
  },
};
