/** Limits hold, and who hits one is told: memory, processes, CPU. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { container, drop, events, type Pod, pod, remove, type Spec, script, syncs, untilPod, untilReady } from './agent.ts';
import type { Suite } from './checks.ts';
import { memTotal, read, run, sleep, stat, until } from './machine.ts';

const root = '/sys/fs/cgroup';

/** Where a pod's cgroup is with the cgroupfs driver. */
const podCgroup = (p: Pod): string => {
  const found = ['kubepods', 'kubepods/burstable', 'kubepods/besteffort']
    .map((level) => `${root}/${level}/pod${p.metadata.uid}`)
    .find((d) => existsSync(d));
  if (found === undefined) throw new Error(`no cgroup of ${p.metadata.name}`);
  return found;
};
const idOf = (p: Pod): string => p.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
const containerCgroup = (p: Pod): string => `${podCgroup(p)}/${idOf(p)}`;

const memory = (limit: string): Spec => ({ resources: { limits: { memory: limit } } });
/** Keeps what it reads: a line without an end. */
const hog = 'tail /dev/zero';

export const limits: Suite = {
  name: 'limits',
  async run({ check, figure }) {
    await check('a container over its memory limit is OOMKilled, and told so', async () => {
      drop('hog', { restartPolicy: 'Never', containers: [container(script(hog), memory('20Mi'))] });
      const p = await untilPod('hog', 'has failed', (found) => found.status.phase === 'Failed');
      assert.deepEqual(
        {
          reason: p.status.containerStatuses?.[0]?.state?.terminated?.reason,
          exitCode: p.status.containerStatuses?.[0]?.state?.terminated?.exitCode,
        },
        { reason: 'OOMKilled', exitCode: 137 },
      );
      const why = (await syncs()).find((s) => s.name === 'hog');
      assert.match(`${why?.reason} ${why?.message}`, /OOMKilled/);
      await remove('hog');
    });
    await check('H4: a child over the limit ends the whole container: one group, as the kubelet has it', async () => {
      drop('grouped', { restartPolicy: 'Never', containers: [container(script(`${hog}; sleep 600`), memory('20Mi'))] });
      const p = await untilPod('grouped', 'has failed', (found) => found.status.phase === 'Failed');
      assert.equal(p.status.containerStatuses?.[0]?.state?.terminated?.reason, 'OOMKilled');
      await remove('grouped');
    });
    await check('H4: with podsched.dev/memory-oom-group: "false" only the child dies, and that is told too', async () => {
      drop(
        'single',
        {
          restartPolicy: 'Never',
          containers: [container(script(`${hog}; echo survived >/dev/termination-log; sleep 600`), memory('20Mi'))],
        },
        { annotations: { 'podsched.dev/memory-oom-group': 'false' } },
      );
      const p = await untilReady('single');
      const cgroup = containerCgroup(p);
      assert.equal(read(`${cgroup}/memory.oom.group`), '0');
      await until('the kernel to kill the child', 90, () => stat(`${cgroup}/memory.events`, 'oom_kill') > 0 || undefined);
      const told = await until(
        'the child’s end to be told',
        60,
        async () => (await events()).find((e) => e.involvedObject.name === 'single' && e.reason === 'ProcessOOMKilled')?.message,
      );
      figure('told of the child', told);
      const after = await pod('single');
      assert.equal(after?.status.phase, 'Running');
      assert.equal(after.status.containerStatuses?.[0]?.restartCount, 0);
      await remove('single');
    });
    await check('H4: a volume in memory that stays full ends each attempt, and the pod says what fills its memory', async () => {
      drop('full', {
        volumes: [{ name: 'fill', emptyDir: { medium: 'Memory' } }],
        containers: [
          container(script('dd if=/dev/zero of=/fill/file bs=1M count=40 2>/dev/null; sleep 600'), {
            ...memory('20Mi'),
            volumeMounts: [{ name: 'fill', mountPath: '/fill' }],
          }),
        ],
      });
      const p = await untilPod('full', 'was restarted and killed again', (found) => {
        const [c] = found.status.containerStatuses ?? [];
        const ended = c?.state?.terminated ?? c?.lastState?.terminated;
        return (c?.restartCount ?? 0) >= 1 && (ended?.reason === 'OOMKilled' || ended?.reason === 'StartError');
      });
      figure('told of the volume', JSON.stringify(p.status.containerStatuses).slice(0, 900));
      assert.match(JSON.stringify(p.status.containerStatuses), /volumes in memory [^"]*: fill \d+Mi/);
      await remove('full');
    });
    await check('a fork bomb stops at pids.max, and the agent goes on', async () => {
      drop('bomb', { containers: [container(script('(while :; do sleep 1000 & done) 2>/dev/null; sleep 100000'))] });
      const p = await untilPod('bomb', 'runs', (found) => found.status.phase === 'Running');
      const cgroup = podCgroup(p);
      assert.equal(read(`${cgroup}/pids.max`), '200');
      await until('the limit to be hit', 90, () => stat(`${cgroup}/pids.events`, 'max') > 0 || undefined);
      assert.ok(Number(read(`${cgroup}/pids.current`)) <= 200);
      await remove('bomb');
    });
    await check('a CPU hog gets its quota and not more (± 10 %)', async () => {
      drop('busy', { containers: [container(script('while :; do :; done'), { resources: { limits: { cpu: '500m' } } })] });
      const p = await untilPod('busy', 'runs', (found) => found.status.phase === 'Running');
      const file = `${containerCgroup(p)}/cpu.stat`;
      await sleep(3000);
      const [usage, periods, throttled, at] = [
        stat(file, 'usage_usec'),
        stat(file, 'nr_periods'),
        stat(file, 'nr_throttled'),
        performance.now(),
      ];
      await sleep(20_000);
      const share = (stat(file, 'usage_usec') - usage) / 1000 / (performance.now() - at);
      const held = (stat(file, 'nr_throttled') - throttled) / (stat(file, 'nr_periods') - periods);
      figure('share of a CPU with a limit of 500m', `${share.toFixed(3)}, throttled in ${(held * 100).toFixed(0)} % of its periods`);
      assert.ok(share > 0.45 && share < 0.55, `it used ${share.toFixed(3)} of a CPU`);
      assert.ok(held > 0.5, 'it was throttled');
      await remove('busy');
    });
    await check(
      'C10: a pod that has no room is refused, and starts by itself when there is',
      async () => {
        const half = { resources: { requests: { memory: `${Math.round((memTotal() / 2 ** 20) * 0.6)}Mi` } } };
        drop('first', { containers: [container(undefined, half)] });
        await untilReady('first');
        drop('second', { containers: [container(undefined, half)] });
        const refused = await untilPod('second', 'is refused', (p) => p.status.phase === 'Failed' || p.status.reason !== undefined);
        assert.equal(refused.status.reason, 'OutOfmemory');
        await remove('first');
        await untilReady('second');
        await remove('second');
      },
      240,
    );
    await check('nothing of these pods is left in the cgroups', async () => {
      const left = (): string[] =>
        ['kubepods', 'kubepods/burstable', 'kubepods/besteffort'].flatMap((level) =>
          existsSync(`${root}/${level}`) ? readdirSync(`${root}/${level}`).filter((name) => name.startsWith('pod')) : [],
        );
      await until(
        () => `no pod cgroup: ${left().join(', ')}`,
        60,
        () => left().length === 0 || undefined,
      );
      assert.match(await run('systemctl', 'is-active', 'podsched'), /^active/);
    });
  },
};
