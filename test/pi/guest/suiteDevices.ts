/**
 * Devices of the node for pods without `privileged`: a camera (vivid), a serial port that is pulled and plugged (dummy_hcd with a gadget),
 * the GPIO chip that the emulated board has, and a plain character device in place of I2C (i2c-stub is not in this kernel).
 */
import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import {
  container,
  drop,
  eventsOf,
  mainPid,
  type Pod,
  plain,
  pod,
  podsched,
  type Spec,
  type Sync,
  script,
  serialById,
  syncs,
  takeAway,
  untilPod,
  untilReady,
} from './agent.ts';
import type { Suite } from './checks.ts';
import { run, sh, until } from './machine.ts';

const wants = (...names: readonly string[]): Spec => ({
  resources: { limits: Object.fromEntries(names.map((name) => [`devices.podsched.dev/${name}`, 1])) },
});
const unprivileged = {
  runAsNonRoot: true,
  runAsUser: 1000,
  runAsGroup: 1000,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
};
const stay = "trap 'exit 0' TERM; sleep 2147483647 & wait";
/** Asked until it is so, and not for ever: an exec is seconds of this processor. */
const ready = {
  startupProbe: { exec: { command: ['test', '-e', '/tmp/used'] }, periodSeconds: 3, timeoutSeconds: 20, failureThreshold: 100 },
};

const idOf = (p: Pod | undefined): string => p?.status.containerStatuses?.[0]?.containerID ?? '';
const inside = async (name: string, ...command: readonly string[]): Promise<string> => {
  const { code, out, err } = await podsched('exec', name, '--', ...command);
  assert.equal(code, 0, err);
  return out;
};
const waits = (name: string): Promise<Sync> =>
  until(`${name} to wait for its device`, 90, async () => {
    const s = (await syncs()).find((one) => one.name === name);
    return s?.reason === 'WaitingForDevice' ? s : undefined;
  });
const plug = (): Promise<string> => run('modprobe', 'g_serial');
const unplug = (): Promise<string> => run('modprobe', '-r', 'g_serial');
/** What comes out at the other end of the cable. */
const heard = (): Promise<unknown> => sh('stty -F /dev/ttyGS0 raw -echo && timeout 60 grep -m1 ping /dev/ttyGS0');
/** How /proc has an inotify watch of a folder. The kernel puts the numbers of a file system together in another way than stat tells them. */
function watchOf(folder: string): string {
  const { dev, ino } = statSync(folder);
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
  return ` ino:${ino.toString(16)} sdev:${((major << 20) | minor).toString(16)} `;
}
/** Nodes of every container. */
const usual = [
  ...['core', 'fd', 'full', 'mqueue', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'termination-log', 'tty'],
  ...['urandom', 'zero'],
];

export const devices: Suite = {
  name: 'devices',
  async run({ check, figure }) {
    // Pi OS has rules that give both to a group; here nobody has. The chip is a real one: it opens, and who reads it waits for ever.
    await sh('chgrp dialout /dev/gpiochip0 && chmod 0660 /dev/gpiochip0');
    await sh('rm -f /dev/i2c-1; mknod /dev/i2c-1 c 1 5 && chgrp video /dev/i2c-1 && chmod 0660 /dev/i2c-1');
    const disk = (await sh('stat -c "%Hr %Lr" /dev/vda')).trim();
    drop('camera', {
      ...plain,
      containers: [
        container(script(`head -c 4096 /dev/video0 >/tmp/picture && [ -s /tmp/picture ] && touch /tmp/used || exit 1; ${stay}`), {
          ...wants('camera'),
          ...ready,
          securityContext: unprivileged,
        }),
      ],
    });
    drop('serial', {
      ...plain,
      containers: [
        // it does not mind that its port is gone: whether it works again is not its own doing
        container(
          script(
            `trap 'exit 0' TERM; exec 3>$(echo ${serialById}/*) && touch /tmp/used; while :; do echo ping >&3; sleep 1; done 2>/dev/null`,
          ),
          { ...wants('serial'), ...ready, securityContext: unprivileged },
        ),
      ],
    });
    drop('plain', { ...plain, containers: [container()] });
    drop('curious', {
      ...plain,
      restartPolicy: 'Never',
      containers: [
        container(
          script(
            `true <>/dev/gpiochip0 || exit 8; mknod /tmp/disk b ${disk} || exit 9; head -c 1 /tmp/disk; echo $? >/dev/termination-log`,
          ),
          wants('gpio'),
        ),
      ],
    });
    // a cable with nothing in it yet; its drivers take a while to load
    const cable = sh('modprobe dummy_hcd && modprobe cdc_acm');
    cable.catch(() => {}); // told where it is needed
    await check('K2: a pod whose device is not there waits, and no container crashes meanwhile', async () => {
      await untilReady('plain');
      assert.match((await waits('camera')).message ?? '', /\/dev\/video0/, 'the missing path is named');
      await waits('serial');
      for (const name of ['camera', 'serial']) assert.equal((await pod(name))?.status.containerStatuses?.[0]?.restartCount ?? 0, 0, name);
    });
    await check('a node that root makes by himself in a container opens nothing', async () => {
      const p = await untilPod('curious', 'has ended', ({ status }) => status.phase === 'Succeeded' || status.phase === 'Failed');
      const ended = p.status.containerStatuses?.[0]?.state?.terminated;
      // 8: its own device does not open; 9: it may not make nodes at all
      assert.deepEqual([ended?.exitCode, ended?.message?.trim()], [0, '1']);
    });
    takeAway('curious');
    drop('pins', {
      ...plain,
      containers: [
        container(script(`true <>/dev/gpiochip0 && head -c 1 /dev/i2c-1 >/dev/null && touch /tmp/used || exit 1; ${stay}`), {
          ...wants('gpio', 'i2c'),
          ...ready,
          securityContext: unprivileged,
        }),
      ],
    });

    await check('K1: a camera appears, and an unprivileged container takes a picture', async () => {
      await run('modprobe', 'vivid', 'n_devs=1', 'node_types=0x1');
      await until('/dev/video0', 60, () => existsSync('/dev/video0') || undefined);
      const p = await untilReady('camera');
      figure('/dev/video0', (await sh('stat -c "%A %U:%G" /dev/video0')).trim());
      assert.equal(p.status.containerStatuses?.[0]?.restartCount, 0, 'not before udev has given the camera its group');
    });
    await check('K1: it sees its own device and no other', async () => {
      const seen = (await inside('camera', 'ls', '/dev')).split('\n').filter(Boolean);
      assert.ok(seen.includes('video0'), seen.join(' '));
      assert.deepEqual(
        seen.filter((name) => name !== 'video0' && !usual.includes(name)),
        [],
      );
    });
    await check('K1: GPIO and I2C: a container of user 1000 has both by the groups of their nodes', async () => {
      await untilReady('pins');
      assert.deepEqual((await inside('pins', 'sh', '-c', 'ls -d /dev/gpio* /dev/i2c*')).trim().split('\n'), [
        '/dev/gpiochip0',
        '/dev/i2c-1',
      ]);
    });

    let before: Pod | undefined;
    await check('a serial port is plugged in: its pod starts, and its words arrive', async () => {
      await cable;
      await plug();
      await until('the port', 60, () => existsSync(serialById) || undefined);
      before = await untilReady('serial');
      figure(serialById, (await sh(`ls ${serialById}`)).trim());
      await heard();
    });
    const others = (): Promise<readonly string[]> => Promise.all(['camera', 'plain', 'pins'].map(async (name) => idOf(await pod(name))));
    const untouched = await others();
    await check('K2: it is pulled: told, and nobody else is touched', async () => {
      await unplug();
      await until('the loss to be told', 90, async () => (await eventsOf('serial', 'DeviceGone')).length > 0 || undefined);
      const p = await untilPod(
        'serial',
        'says that its device is gone',
        ({ status }) => (status.conditions ?? []).some((c) => c.type === 'podsched.dev/DeviceGone' && c.status === 'True'),
        60,
      );
      assert.equal(idOf(p), idOf(before), 'its container goes on without it');
      assert.deepEqual(await others(), untouched);
    });
    await check('K2: it is plugged in again: that container starts anew and works, and nobody else is touched', async () => {
      await plug();
      const p = await untilPod('serial', 'is another container and ready', (found) => {
        const [c] = found.status.containerStatuses ?? [];
        return c?.ready === true && idOf(found) !== idOf(before);
      });
      assert.equal(p.metadata.uid, before?.metadata.uid, 'the same pod');
      figure('the port after the replug', (await sh(`readlink -f ${serialById}/*`)).trim());
      await heard();
      assert.deepEqual(await others(), untouched);
    });
    await check('watching devices takes the place of asking for them', async () => {
      const pid = await mainPid();
      const watches = async (): Promise<string[]> =>
        (await sh(`cat /proc/${pid}/fdinfo/* 2>/dev/null | grep ^inotify || true`)).split('\n').filter(Boolean);
      figure('inotify watches of the agent', (await watches()).length);
      // where all devices are, and where the serial port of a class by links is: that folder is made anew with each plug
      for (const folder of ['/dev', serialById]) {
        let found: readonly string[] = [];
        await until(
          () => `a watch of ${folder} (${watchOf(folder)}) among ${found.join('; ')}`,
          30,
          async () => {
            found = await watches();
            return found.some((line) => line.includes(watchOf(folder))) || undefined;
          },
        );
      }
    });
    // whoever ends with words still on their way to nobody's port waits half a minute for them; the modules stay until the power is cut
    await unplug().catch(() => {});
    takeAway('camera', 'serial', 'plain', 'pins');
  },
};
