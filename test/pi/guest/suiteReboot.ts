/** The power is cut while pods run; what comes back, in which order, and what does not run again. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { answers, container, drop, plain, pod, remove, script, untilPod, untilReady } from './agent.ts';
import { listen } from './broker.ts';
import type { Suite } from './checks.ts';
import { read, run, sh, unit, until } from './machine.ts';

const folder = '/srv/diary';
const mount = { volumeMounts: [{ name: 'diary', mountPath: '/diary' }] };
const volumes = [{ name: 'diary', hostPath: { path: folder, type: 'Directory' } }];
/** Boot and seconds since then, before each word: the guest's clock may say anything. */
const note = (word: string): string =>
  `echo "$(cat /proc/sys/kernel/random/boot_id) $(cut -d' ' -f1 /proc/uptime) ${word}" >>/diary/log; sync`;
const stay = "trap 'exit 0' TERM; sleep 2147483647 & wait";

interface Online {
  readonly boot: number;
  readonly state: string;
}
interface Entry {
  readonly boot: string;
  readonly at: number;
  readonly word: string;
}
const entries = (): Entry[] =>
  !existsSync(`${folder}/log`)
    ? []
    : readFileSync(`${folder}/log`, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => {
          const [boot = '', at = '', word = ''] = line.split(' ');
          return { boot, at: Number(at), word };
        });

export const beforeReboot: Suite = {
  name: 'before-reboot',
  async run({ check }) {
    rmSync(folder, { recursive: true, force: true }); // a kept layer may have an older one
    mkdirSync(folder, { recursive: true });
    drop('db', {
      volumes,
      containers: [
        container(script(`sleep 2; ${note('db')}; touch /tmp/ready; ${stay}`), {
          ...mount,
          startupProbe: { exec: { command: ['test', '-e', '/tmp/ready'] }, periodSeconds: 2, timeoutSeconds: 20, failureThreshold: 100 },
        }),
      ],
    });
    drop(
      'web',
      {
        volumes,
        initContainers: [{ ...container(script(note('web-init')), mount), name: 'init' }],
        containers: [container(script(`${note('web')}; ${stay}`), mount)],
      },
      { annotations: { 'podsched.dev/wait-for': 'pod/default/db=Ready' } },
    );
    drop('once', { ...plain, restartPolicy: 'Never', volumes, containers: [container(script(note('once')), mount)] });
    await check('two pods run, one after the other, and a third is done', async () => {
      await untilReady('db');
      await untilReady('web');
      await untilPod('once', 'has succeeded', (p) => p.status.phase === 'Succeeded');
      assert.deepEqual(
        entries()
          .map((e) => e.word)
          .sort(),
        ['db', 'once', 'web', 'web-init'],
      );
    });
    await sh('sync');
  },
};

export const reboot: Suite = {
  name: 'reboot',
  async run({ check, figure }) {
    const thisBoot = read('/proc/sys/kernel/random/boot_id');
    await check(
      'systemd has started the agent by itself',
      async () => {
        await answers(180);
        assert.equal(await unit('podsched.service', 'ActiveState'), 'active');
        figure(
          'seconds from the kernel to the agent',
          String(Number(await unit('podsched.service', 'ExecMainStartTimestampMonotonic')) / 1e6),
        );
      },
      200,
    );
    await check(
      'the pods are back',
      async () => {
        await untilReady('db', 240);
        await untilReady('web', 240);
      },
      300,
    );
    const again = entries().filter((e) => e.boot === thisBoot);
    await check('in their order: web waited for db', () => {
      const at = (word: string): number => again.find((e) => e.word === word)?.at ?? Number.NaN;
      assert.ok(at('db') < at('web-init') && at('web-init') < at('web'), JSON.stringify(again));
    });
    await check('init containers ran again, once', () => assert.equal(again.filter((e) => e.word === 'web-init').length, 1));
    await check('what was done once is not done again, and is still told', async () => {
      assert.deepEqual(
        entries()
          .filter((e) => e.word === 'once')
          .map((e) => e.boot === thisBoot),
        [false],
      );
      assert.equal((await pod('once'))?.status.phase, 'Succeeded');
    });
    await check('nothing of before is left in containerd', async () => {
      const sandboxes = (await sh("ctr -n k8s.io containers ls | grep -c 'pause' || true")).trim();
      const running = async (): Promise<string> => (await sh('ctr -n k8s.io tasks ls -q | wc -l')).trim();
      figure('sandboxes and tasks', `${sandboxes}, ${await running()}`);
      // a container that has just ended is taken away a moment later
      await until('the tasks of two pods and no others', 30, async () => (await running()) === '4' || undefined);
    });
    await check('the broker hears of a new boot', async () => {
      const ears = await listen();
      try {
        // retained messages come in any order
        const online = await until('the node’s word', 30, () => ears.last('/online') as Online | undefined);
        assert.equal(online.state, 'online');
        assert.ok(online.boot >= 2, JSON.stringify(online));
      } finally {
        ears.end();
      }
    });
    await remove('db', 'web', 'once');
    await run('rm', '-rf', folder);
  },
};
