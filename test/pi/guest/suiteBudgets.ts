/** What the agent costs beside five quiet pods. kubelet 1.32 had 77 668 kB there. */
import assert from 'node:assert/strict';
import { container, drop, mainPid, plain, takeAway, untilReady } from './agent.ts';
import type { Suite } from './checks.ts';
import { cpuSeconds, rssKb, sleep, stat } from './machine.ts';

const kubeletKb = 77_668;
const aimKb = 70 * 1024;
/** G5 is about a minute. */
const quietSeconds = 60;

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
    }
    takeAway(...names);
  },
};
