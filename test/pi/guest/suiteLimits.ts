/** Limits hold, and who hits one is told: memory, processes, CPU. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import {
  container,
  drop,
  events,
  type Pod,
  plain,
  pod,
  remove,
  type Spec,
  type State,
  script,
  syncs,
  takeAway,
  untilPod,
  untilReady,
} from './agent.ts';
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
const hasFailed = (p: Pod): boolean => p.status.phase === 'Failed';
const terminated = (p: Pod): State['terminated'] => p.status.containerStatuses?.[0]?.state?.terminated;

const memory = (limit: string): Spec => ({ resources: { limits: { memory: limit } } });
/** Keeps what it reads: a line without an end. */
const hog = 'tail /dev/zero';

export const limits: Suite = {
  name: 'limits',
  async run({ check, figure }) {
    // all at once: most of a pod's start is waiting for one program after the other
    drop('hog', { ...plain, restartPolicy: 'Never', containers: [container(script(hog), memory('20Mi'))] });
    drop('grouped', { ...plain, restartPolicy: 'Never', containers: [container(script(`${hog}; sleep 600`), memory('20Mi'))] });
    drop(
      'single',
      {
        ...plain,
        restartPolicy: 'Never',
        containers: [container(script(`${hog}; echo survived >/dev/termination-log; sleep 600`), memory('20Mi'))],
      },
      { annotations: { 'podsched.dev/memory-oom-group': 'false' } },
    );
    drop('full', {
      ...plain,
      volumes: [{ name: 'fill', emptyDir: { medium: 'Memory' } }],
      containers: [
        container(script('dd if=/dev/zero of=/fill/file bs=1M count=40 2>/dev/null; sleep 600'), {
          ...memory('20Mi'),
          volumeMounts: [{ name: 'fill', mountPath: '/fill' }],
        }),
      ],
    });
    await check('a container over its memory limit is OOMKilled, and told so', async () => {
      const p = await untilPod('hog', 'has failed', hasFailed);
      assert.equal(terminated(p)?.exitCode, 137);
      // the kernel's word may come after the end of the container
      await untilPod('hog', 'is told as OOMKilled', (found) => terminated(found)?.reason === 'OOMKilled', 30);
      const why = (await syncs()).find((s) => s.name === 'hog');
      assert.match(`${why?.reason} ${why?.message}`, /OOMKilled/);
    });
    await check('H4: a child over the limit ends the whole container: one group, as the kubelet has it', async () => {
      await untilPod('grouped', 'has failed', hasFailed);
      await untilPod('grouped', 'is told as OOMKilled', (found) => terminated(found)?.reason === 'OOMKilled', 30);
    });
    await check('H4: with podsched.dev/memory-oom-group: "false" only the child dies, and that is told too', async () => {
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
    });
    await check('H4: a volume in memory that stays full ends each attempt, and the pod says what fills its memory', async () => {
      const p = await untilPod('full', 'was restarted and killed again', (found) => {
        const [c] = found.status.containerStatuses ?? [];
        const ended = c?.state?.terminated ?? c?.lastState?.terminated;
        return (c?.restartCount ?? 0) >= 1 && (ended?.reason === 'OOMKilled' || ended?.reason === 'StartError');
      });
      figure('told of the volume', JSON.stringify(p.status.containerStatuses).slice(0, 900));
      assert.match(JSON.stringify(p.status.containerStatuses), /volumes in memory [^"]*: fill \d+Mi/);
    });
    takeAway('hog', 'grouped', 'single', 'full');
    await check('a fork bomb stops at pids.max, and the agent goes on', async () => {
      drop('bomb', { ...plain, containers: [container(script('(while :; do sleep 1000 & done) 2>/dev/null; sleep 100000'))] });
      const p = await untilPod('bomb', 'runs', (found) => found.status.phase === 'Running');
      const cgroup = podCgroup(p);
      assert.equal(read(`${cgroup}/pids.max`), '200');
      await until('the limit to be hit', 90, () => stat(`${cgroup}/pids.events`, 'max') > 0 || undefined);
      assert.ok(Number(read(`${cgroup}/pids.current`)) <= 200);
      assert.match(await run('systemctl', 'is-active', 'podsched'), /^active/);
    });
    await check(
      'a CPU hog gets its quota and not more (± 10 %)',
      async () => {
        // who ends beside it would take its share
        await remove('hog', 'grouped', 'single', 'full', 'bomb');
        drop('busy', { ...plain, containers: [container(script('while :; do :; done'), { resources: { limits: { cpu: '500m' } } })] });
        const p = await untilPod('busy', 'runs', (found) => found.status.phase === 'Running');
        const [ofContainer, ofPod] = [containerCgroup(p), podCgroup(p)];
        const periodUs = Number(read(`${ofContainer}/cpu.max`).split(' ')[1]);
        const look = () => ({
          usage: stat(`${ofContainer}/cpu.stat`, 'usage_usec'),
          periods: stat(`${ofContainer}/cpu.stat`, 'nr_periods'),
          // pod and container have the same quota: whoever is at its end first is the one that is throttled
          throttled: stat(`${ofContainer}/cpu.stat`, 'nr_throttled') + stat(`${ofPod}/cpu.stat`, 'nr_throttled'),
          at: performance.now(),
        });
        await sleep(5000);
        const before = look();
        await sleep(15_000);
        const after = look();
        const [usage, periods] = [after.usage - before.usage, after.periods - before.periods];
        const share = usage / (periods * periodUs);
        const held = (after.throttled - before.throttled) / periods;
        const byClock = usage / 1000 / (after.at - before.at);
        figure(
          'share of a CPU with a limit of 500m',
          `${share.toFixed(3)} in ${periods} periods (${byClock.toFixed(3)} by the clock), throttled in ${(held * 100).toFixed(0)} %`,
        );
        assert.ok(share > 0.45 && share < 0.55, `it used ${share.toFixed(3)} of a CPU`);
        assert.ok(held > 0.5, 'it was throttled');
      },
      240,
    );
    takeAway('busy');
    await check(
      'C10: a pod that has no room is refused, and starts by itself when there is',
      async () => {
        const half = { resources: { requests: { memory: `${Math.round((memTotal() / 2 ** 20) * 0.6)}Mi` } } };
        drop('first', { ...plain, containers: [container(undefined, half)] });
        await untilPod('first', 'is let in', (p) => p.status.phase !== 'Failed');
        drop('second', { ...plain, containers: [container(undefined, half)] });
        const refused = await untilPod('second', 'is refused', (p) => p.status.phase === 'Failed' || p.status.reason !== undefined);
        assert.equal(refused.status.reason, 'OutOfmemory');
        await untilReady('first');
        assert.equal((await pod('second'))?.metadata.uid, refused.metadata.uid, 'it is refused as long as there is no room');
        takeAway('first');
        const p = await untilReady('second');
        assert.notEqual(p.metadata.uid, refused.metadata.uid, 'a new instance');
      },
      240,
    );
    takeAway('first', 'second');
    await check('nothing of these pods is left in the cgroups', async () => {
      const left = (): string[] =>
        ['kubepods', 'kubepods/burstable', 'kubepods/besteffort'].flatMap((level) =>
          existsSync(`${root}/${level}`) ? readdirSync(`${root}/${level}`).filter((name) => name.startsWith('pod')) : [],
        );
      await until(
        () => `no pod cgroup: ${left().join(', ')}`,
        120,
        () => left().length === 0 || undefined,
      );
      assert.match(await run('systemctl', 'is-active', 'podsched'), /^active/);
    });
  },
};
