/** What the agent costs beside five quiet pods. kubelet 1.32 had 77 668 kB there. */
import assert from 'node:assert/strict';
import { container, drop, mainPid, plain, podsched, takeAway, untilReady } from './agent.ts';
import type { Suite } from './checks.ts';
import { cpuSeconds, read, rssKb, sleep, stat, unit, until } from './machine.ts';

const kubeletKb = 77_668;
const aimKb = 70 * 1024;
/** G5 is about a minute. */
const quietSeconds = 60;
/** What each of the two programs is granted; an eighth of this machine would be more. */
const grantedBytes = 96 * 2 ** 20;
const memoryMin = (path: string): number => Number(read(`/sys/fs/cgroup${path}/memory.min`));

/** The kernel takes others first, and does not take their memory; a grant counts only as far as the slice above has it as well. */
async function protectedFromShortage(): Promise<void> {
  const services = ['podsched.service', 'containerd.service'];
  for (const name of services) assert.equal(read(`/proc/${await unit(name, 'MainPID')}/oom_score_adj`), '-999', `oom_score_adj of ${name}`);
  const paths = await Promise.all(services.map((name) => unit(name, 'ControlGroup')));
  assert.deepEqual(
    paths,
    services.map((name) => `/system.slice/${name}`),
  );
  const granted = (): number[] => ['/system.slice', ...paths].map(memoryMin);
  // systemd puts its own values back when it reloads, and the agent looks once a minute
  await until(
    () => `memory.min of system.slice, podsched and containerd; it is ${granted().join(', ')}`,
    120,
    () => {
      const [ofSlice = 0, ...ofEach] = granted();
      return (ofSlice >= 2 * grantedBytes && ofEach.every((bytes) => bytes === grantedBytes)) || undefined;
    },
  );
}

export const budgets: Suite = {
  name: 'budgets',
  async run({ check, figure }) {
    const names = [1, 2, 3, 4, 5].map((n) => `quiet-${n}`);
    for (const name of names) drop(name, { ...plain, containers: [container()] });
    const ready = await check(
      'five pods run',
      async () => {
        for (const name of names) await untilReady(name, 240);
      },
      300,
    );
    if (ready) {
      const pid = await mainPid();
      const written = (): number => stat(`/proc/${pid}/io`, 'write_bytes');
      // what follows a start is over when ten seconds pass without a write; an agent that never rests is judged all the same
      for (let i = 0; i < 4; i++) {
        const before = written();
        await sleep(10_000);
        if (written() === before) break;
      }
      const [cpu, bytes, at] = [cpuSeconds(pid), written(), performance.now()];
      await sleep(quietSeconds * 1000);
      const used = ((cpuSeconds(pid) - cpu) * 1000) / (performance.now() - at);
      const more = written() - bytes;
      const rss = rssKb(pid);
      figure(
        'memory of the agent with 5 pods',
        `${(rss / 1024).toFixed(1)} MiB (kubelet: ${(kubeletKb / 1024).toFixed(1)}; aim ${aimKb / 1024})`,
      );
      figure('CPU of the agent with 5 quiet pods', `${(used * 100).toFixed(1)} % of an emulated core`);
      await check('H5: the agent is smaller than the kubelet was', () => assert.ok(rss < kubeletKb, `${rss} kB`));
      await check('H6: an idle agent takes at most a tenth of an emulated core', () => assert.ok(used <= 0.1, `${used}`));
      await check('G5: an idle agent writes nothing to the card', () => assert.equal(more, 0));
      await check('top tells what each pod and the node use now', async () => {
        const [ofPods, ofNode] = await Promise.all([podsched('top', 'pods'), podsched('top', 'node')]);
        assert.equal(ofPods.code, 0, ofPods.err);
        assert.match(ofPods.out, /^NAME +CPU\(cores\) +MEMORY\(bytes\)$/m);
        for (const name of names) assert.match(ofPods.out, new RegExp(`^${name} +\\d+m +\\d+Mi$`, 'm'));
        assert.equal(ofNode.code, 0, ofNode.err);
        assert.match(ofNode.out, /^NAME +CPU\(cores\) +CPU% +MEMORY\(bytes\) +MEMORY%$/m);
        assert.match(ofNode.out, /^\S+ +\d+m +\d+% +[1-9]\d*Mi +[1-9]\d*%$/m);
      });
    }
    await check('H3: the agent and containerd are protected', protectedFromShortage);
    takeAway(...names);
  },
};
