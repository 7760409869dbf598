/**
 * Devices of the node for pods without `privileged`: a camera (vivid), a serial port that is pulled and plugged (dummy_hcd with a gadget), and
 * plain character devices where this kernel has nothing of the kind (gpio-sim and i2c-stub are not in it).
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import {
  configure,
  container,
  drop,
  eventsOf,
  type Pod,
  pod,
  podsched,
  remove,
  type Spec,
  script,
  syncs,
  untilPod,
  untilReady,
} from './agent.ts';
import type { Suite } from './checks.ts';
import { run, sh, until } from './machine.ts';

const byId = '/dev/serial/by-id';
const classes = {
  camera: ['/dev/video0'],
  serial: [`${byId}/*`],
  gpio: ['/dev/gpiochip*'],
  i2c: ['/dev/i2c-*'],
};
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
const ready = { readinessProbe: { exec: { command: ['test', '-e', '/tmp/used'] }, periodSeconds: 3, timeoutSeconds: 20 } };

const idOf = (p: Pod | undefined): string => p?.status.containerStatuses?.[0]?.containerID ?? '';
const inside = async (name: string, ...command: readonly string[]): Promise<string> => {
  const { code, out, err } = await podsched('exec', name, '--', ...command);
  assert.equal(code, 0, err);
  return out;
};
const waits = (name: string): Promise<unknown> =>
  until(`${name} to wait for its device`, 60, async () => {
    const s = (await syncs()).find((one) => one.name === name);
    return s?.reason === 'WaitingForDevice' ? s : undefined;
  });
const plug = (): Promise<string> => run('modprobe', 'g_serial');
const unplug = (): Promise<string> => run('modprobe', '-r', 'g_serial');
/** What comes out at the other end of the cable. */
const heard = (): Promise<unknown> => sh('stty -F /dev/ttyGS0 raw -echo && timeout 60 grep -m1 ping /dev/ttyGS0');

export const devices: Suite = {
  name: 'devices',
  async run({ check, figure }) {
    await configure({ devices: classes });
    drop('camera', {
      containers: [
        container(script(`head -c 4096 /dev/video0 >/tmp/picture && [ -s /tmp/picture ] && touch /tmp/used; ${stay}`), {
          ...wants('camera'),
          ...ready,
          securityContext: unprivileged,
        }),
      ],
    });
    drop('serial', {
      containers: [
        // it does not mind that its port is gone: whether it works again is not its own doing
        container(script(`exec 3>$(echo ${byId}/*) && touch /tmp/used; while :; do echo ping >&3; sleep 1; done 2>/dev/null`), {
          ...wants('serial'),
          ...ready,
          securityContext: unprivileged,
        }),
      ],
    });
    drop('plain', { containers: [container()] });
    await check('K2: a pod whose device is not there waits, and no container crashes meanwhile', async () => {
      await untilReady('plain');
      await waits('camera');
      await waits('serial');
      for (const name of ['camera', 'serial']) assert.equal((await pod(name))?.status.containerStatuses?.[0]?.restartCount ?? 0, 0, name);
    });

    await check('K1: a camera appears, and an unprivileged container takes a picture', async () => {
      await run('modprobe', 'vivid', 'n_devs=1', 'node_types=0x1');
      await until('/dev/video0', 60, () => existsSync('/dev/video0') || undefined);
      figure('/dev/video0', (await sh('stat -c "%A %U:%G" /dev/video0')).trim());
      const p = await untilReady('camera');
      assert.equal(p.status.containerStatuses?.[0]?.restartCount, 0);
    });
    await check('K1: it sees its own device and no other', async () => {
      const seen = (await inside('camera', 'ls', '/dev')).split('\n').filter(Boolean);
      assert.ok(seen.includes('video0'), seen.join(' '));
      const usual = [
        'core',
        'fd',
        'full',
        'mqueue',
        'null',
        'ptmx',
        'pts',
        'random',
        'shm',
        'stderr',
        'stdin',
        'stdout',
        'termination-log',
        'tty',
        'urandom',
        'zero',
      ];
      assert.deepEqual(
        seen.filter((name) => name !== 'video0' && !usual.includes(name)),
        [],
      );
    });
    await check('a node that root makes by himself in a container opens nothing', async () => {
      const disk = (await sh('stat -c "%Hr %Lr" /dev/vda')).trim();
      drop('curious', {
        restartPolicy: 'Never',
        containers: [container(script(`mknod /tmp/disk b ${disk} && head -c 1 /tmp/disk; echo $? >/dev/termination-log`), wants('gpio'))],
      });
      await sh('mknod /dev/gpiochip0 c 1 5 && chgrp dialout /dev/gpiochip0 && chmod 0660 /dev/gpiochip0');
      const p = await untilPod('curious', 'has ended', (found) => found.status.phase === 'Succeeded');
      assert.equal(p.status.containerStatuses?.[0]?.state?.terminated?.message?.trim(), '1');
      await remove('curious');
    });

    let before: Pod | undefined;
    await check('a serial port is plugged in: its pod starts, and its words arrive', async () => {
      await run('modprobe', 'dummy_hcd');
      await plug();
      await until('the port', 60, () => existsSync(byId) || undefined);
      figure(byId, (await sh(`ls ${byId}`)).trim());
      before = await untilReady('serial');
      await heard();
    });
    const [camera, plain] = [idOf(await pod('camera')), idOf(await pod('plain'))];
    await check('K2: it is pulled: told, and nobody else is touched', async () => {
      await unplug();
      await until('the loss to be told', 90, async () => (await eventsOf('serial', 'DeviceGone')).length > 0 || undefined);
      assert.deepEqual([idOf(await pod('camera')), idOf(await pod('plain'))], [camera, plain]);
    });
    await check('K2: it is plugged in again: that container starts anew and works, and nobody else is touched', async () => {
      await plug();
      const p = await untilPod('serial', 'is another container and ready', (found) => {
        const [c] = found.status.containerStatuses ?? [];
        return c?.ready === true && idOf(found) !== idOf(before);
      });
      assert.equal(p.metadata.uid, before?.metadata.uid, 'the same pod');
      figure('the port after the replug', (await sh(`readlink -f ${byId}/*`)).trim());
      await heard();
      assert.deepEqual([idOf(await pod('camera')), idOf(await pod('plain'))], [camera, plain]);
    });

    await check('K1: GPIO and I2C: a container of user 1000 has both by the groups of their nodes', async () => {
      await sh('mknod /dev/i2c-1 c 1 5 && chgrp video /dev/i2c-1 && chmod 0660 /dev/i2c-1');
      drop('pins', {
        containers: [
          container(script(`head -c 1 /dev/gpiochip0 >/dev/null && head -c 1 /dev/i2c-1 >/dev/null && touch /tmp/used; ${stay}`), {
            ...wants('gpio', 'i2c'),
            ...ready,
            securityContext: unprivileged,
          }),
        ],
      });
      await untilReady('pins');
      assert.deepEqual((await inside('pins', 'sh', '-c', 'ls -d /dev/gpio* /dev/i2c*')).trim().split('\n'), [
        '/dev/gpiochip0',
        '/dev/i2c-1',
      ]);
    });
    await check('watching devices takes the place of asking for them', async () => {
      const pid = (await run('systemctl', 'show', '--value', '--property', 'MainPID', 'podsched')).trim();
      const watches = (await sh(`cat /proc/${pid}/fdinfo/* 2>/dev/null | grep -c ^inotify || true`)).trim();
      figure('inotify watches of the agent', watches);
      assert.ok(Number(watches) > 1);
    });
    await remove('camera', 'serial', 'plain', 'pins');
    await sh('rm -f /dev/gpiochip0 /dev/i2c-1; modprobe -r g_serial dummy_hcd vivid || true');
    await configure();
  },
};
