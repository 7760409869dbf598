/** A kernel without the memory controller, as Pi OS boots by default: pods run, and the node says what to change. */
import assert from 'node:assert/strict';
import { answers, conditions, container, drop, plain, pod, podsched, remove, removeAll, syncs, untilReady } from './agent.ts';
import type { Suite } from './checks.ts';
import { read, until } from './machine.ts';

export const noMemory: Suite = {
  name: 'no-memory',
  async run({ check }) {
    await check(
      'H1: the kernel has no memory controller, and the agent runs',
      async () => {
        assert.ok(!read('/sys/fs/cgroup/cgroup.controllers').split(' ').includes('memory'));
        await answers(180);
        await removeAll();
      },
      200,
    );
    await check(
      'a pod with a memory limit runs, and what is not enforced is told',
      async () => {
        drop('limited', { ...plain, containers: [container(undefined, { resources: { limits: { memory: '20Mi' } } })] });
        drop('free', { ...plain, containers: [container()] });
        const p = await untilReady('limited', 240);
        await untilReady('free', 240);
        const said = await until('LimitsNotEnforced to be told', 60, async () => {
          const s = (await syncs()).find((one) => one.name === 'limited');
          const text = JSON.stringify([s, p.status.conditions]);
          return text.includes('LimitsNotEnforced') ? text : undefined;
        });
        assert.match(said, /LimitsNotEnforced[^}]*memory/);
        assert.doesNotMatch(
          JSON.stringify([(await syncs()).find((s) => s.name === 'free'), await pod('free')]),
          /not enforced|LimitsNotEnforced/,
        );
      },
      300,
    );
    await check('H1: the node names the words to add and the file', async () => {
      const c = (await conditions()).find((one) => one.type === 'MemoryCgroupOff');
      assert.equal(c?.status, 'True');
      assert.match(c.message ?? '', /add cgroup_enable=memory cgroup_memory=1 to the line in \/boot\/firmware\/cmdline\.txt and reboot/);
    });
    // each starts a Node of its own, which is what takes its time here
    const doctor = podsched('doctor');
    const exec = podsched('exec', 'limited', '--', 'true');
    await check('doctor names them too', async () => {
      const { code, out } = await doctor;
      assert.equal(code, 1);
      assert.match(out, /cgroup_enable=memory[\s\S]*\/boot\/firmware\/cmdline\.txt/);
    });
    await check('exec and the end of a pod work as ever', async () => {
      const { code, err } = await exec;
      assert.equal(code, 0, err);
      await remove('limited', 'free');
    });
  },
};
