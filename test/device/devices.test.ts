/**
 * Field cases K1 and K2 on a real containerd: device nodes under /dev for containers without privileges, unplugged and back under another
 * number, absent at the start. The nodes are made here, of drivers that every kernel has and that no container may use by itself.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Lab, startLab } from './lab.ts';
import { container, type Fields, manifest, pod } from './manifest.ts';
import { sleep, until } from './process.ts';
import { eventsOf } from './story.ts';
import { toldPod, toldSync } from './truth.ts';

const dev = `/dev/podsched-test-${process.pid}`;
const group = 2345;
/** Minors of major 10: drivers that whoever may open the node can open. */
const [fuse, autofs, tun] = [229, 235, 200];

let lab: Lab;
before(async () => {
  mkdirSync(join(dev, 'by-id'), { recursive: true });
  const devices = { stick: [`${dev}/by-id/usb-*`], late: [`${dev}/late/*`] };
  lab = await startLab('devices', { config: { devices } });
});
after(async () => {
  await lab?.stop();
  rmSync(dev, { recursive: true, force: true });
});

function plug(name: string, minor: number): void {
  const path = join(dev, name);
  execFileSync('mknod', ['-m', '0660', path, 'c', '10', String(minor)]);
  execFileSync('chgrp', [String(group), path]);
}

/** Says what it sees and may do, then serves. */
const tell = (path: string): string[] => [
  'sh',
  '-c',
  `echo user=$(id -u) groups=$(id -G); echo sees=$(find ${dev} -type c | sort | tr '\\n' ' '); ` +
    `echo number=$(stat -c %t:%T ${path}); (exec 3<>${path}) 2>/dev/null && echo opens=yes || echo opens=no; ` +
    `mknod /tmp/own c 10 ${fuse} 2>/dev/null && { (exec 3<>/tmp/own) 2>/dev/null && echo own=opens || echo own=refused; }; ` +
    'echo said; trap "exit 0" TERM; sleep 2147483647 & wait',
];
const drop = (name: string, spec: Fields, metadata: Fields = {}): void =>
  lab.agent.drop(`${name}.yaml`, manifest(pod(name, spec, metadata)));
const wants = (deviceClass: string): Fields => ({ resources: { limits: { [`devices.podsched.dev/${deviceClass}`]: 1 } } });
const nonRoot = { securityContext: { runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000 } };
const reason = (name: string): string | undefined => toldSync(lab, name)?.reason;
const isReady = (name: string): boolean => toldPod(lab, name)?.status.containerStatuses?.every((c) => c.ready) === true;
const stateOf = (name: string): string => {
  const [main] = toldPod(lab, name)?.status.containerStatuses ?? [];
  return `${main?.containerID} ${main?.restartCount}`;
};

const seqOf = (name: string): number => Number(toldPod(lab, name)?.metadata.annotations?.['podsched.dev/seq'] ?? 0);

async function said(name: string, attempt: number): Promise<readonly string[]> {
  const { podLogsDir } = lab.agent;
  let lines: string[] = [];
  await until(`${name} to speak`, 60_000, () => {
    const folder = (existsSync(podLogsDir) ? readdirSync(podLogsDir) : []).find((f) => f.startsWith(`default_${name}_`));
    const file = join(podLogsDir, folder ?? '', 'main', `${attempt}.log`);
    lines = existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .map((line) => line.split(' ').slice(3).join(' ').trim())
      : [];
    return lines.includes('said');
  }).catch((e) => {
    throw new Error(`${e}\n${toldSync(lab, name)?.message}\n${lines.join('\n')}\n${lab.agent.log().slice(-3000)}`);
  });
  return lines.filter((line) => line !== '' && line !== 'said');
}

const link = join(dev, 'by-id/usb-stick');

test('K1: a container without root or privileges uses its device by link and by node, and sees no other', async () => {
  plug('node0', fuse);
  plug('foreign', autofs);
  symlinkSync('../node0', link);
  drop('user', { ...nonRoot, containers: [container('main', tell(link), wants('stick'))] });
  drop('bystander', { containers: [container('main', tell(link))] });
  assert.deepEqual(await said('user', 0), [
    `user=1000 groups=1000 ${group}`,
    `sees=${link} ${join(dev, 'node0')}`,
    `number=a:${fuse.toString(16)}`,
    'opens=yes',
  ]);
  const other = await said('bystander', 0);
  assert.ok(other.includes('sees=') && other.includes('own=refused'), other.join('\n'));
});

test('K2: unplugged, the pod goes on and says so; back under another number, it alone starts again, with the new node', async () => {
  await until('both are ready', 60_000, () => isReady('user') && isReady('bystander'));
  const [before, bystander] = [stateOf('user'), stateOf('bystander')];
  rmSync(link);
  rmSync(join(dev, 'node0'));
  await until('the loss is told', 45_000, () => reason('user') === 'DeviceGone');
  await sleep(2_000);
  assert.equal(stateOf('user'), before, 'what runs goes on');
  rmSync(join(dev, 'foreign'));
  plug('node7', autofs);
  symlinkSync('../node7', link);
  await until('it is started again', 60_000, () => stateOf('user').endsWith(' 1') && isReady('user'));
  assert.deepEqual((await said('user', 1)).slice(1), [
    `sees=${link} ${join(dev, 'node7')}`,
    `number=a:${autofs.toString(16)}`,
    'opens=yes',
  ]);
  await until('all is well', 45_000, () => reason('user') === 'Ready');
  assert.equal(stateOf('bystander'), bystander, 'others are untouched');
  const events = await eventsOf(lab.agent, 'user');
  assert.equal(events.filter((e) => e.includes('DeviceGone')).length, 1, events.join('\n'));
  assert.ok(
    events.some((e) => e.includes('a device it had lost is back')),
    events.join('\n'),
  );
});

test('an agent that starts anew restarts nobody, and finds what was changed behind its back', async () => {
  const [before, told] = [stateOf('user'), seqOf('user')];
  await lab.agent.restart();
  await until('the new agent has told', 60_000, () => seqOf('user') > told && reason('user') === 'Ready' && isReady('user'));
  await sleep(3_000);
  assert.equal(stateOf('user'), before);
  await lab.agent.stop();
  rmSync(link);
  rmSync(join(dev, 'node7'));
  plug('node8', fuse);
  symlinkSync('../node8', link);
  lab.agent.start();
  await until('it is started again', 60_000, () => stateOf('user').endsWith(' 2') && isReady('user'));
  assert.ok((await said('user', 2)).includes(`number=a:${fuse.toString(16)}`));
});

test('K2: absent at the start, a pod waits without a try and starts when the device is there; a gate holds another one before its sandbox', async () => {
  const path = join(dev, 'late/one');
  drop('late', { containers: [container('main', tell(path), wants('late'))] });
  drop('gated', {}, { annotations: { 'podsched.dev/wait-for': 'device:late' } });
  await until('both wait', 60_000, () => reason('late') === 'WaitingForDevice' && reason('gated') === 'WaitingForDevice');
  assert.match(toldSync(lab, 'late')?.message ?? '', /no device of class late is there/);
  assert.deepEqual(
    (await lab.bed.cri.sandboxes()).filter((s) => s.name === 'gated'),
    [],
  );
  await sleep(3_000);
  mkdirSync(join(dev, 'late'));
  plug('late/one', tun);
  // by the kernel's word: a poll comes each 20 s
  await until('it is seen', 10_000, () => reason('late') !== 'WaitingForDevice' && reason('gated') !== 'WaitingForDevice');
  await until('both run', 60_000, () => isReady('late') && isReady('gated'));
  assert.ok((await said('late', 0)).includes('opens=yes'));
  assert.match(stateOf('late'), / 0$/);
});

test('a class that the configuration has not is refused by path with the nearest one; SIGHUP brings it', async () => {
  drop('typo', { containers: [container('main', undefined, wants('stik'))] });
  await until('it is refused', 60_000, () => reason('typo') === 'Invalid');
  const sync = JSON.stringify(toldSync(lab, 'typo'));
  assert.match(sync, /devices\.podsched\.dev\/stik/);
  assert.match(sync, /"nearest":"devices\.podsched\.dev\/stick"/);
  const config = readFileSync(lab.agent.configFile, 'utf8');
  plug('spare', autofs);
  writeFileSync(lab.agent.configFile, config.replace(/^devices:\n/m, `devices:\n  stik:\n    - ${dev}/spare\n`));
  lab.agent.signal('SIGHUP');
  await until('it runs', 60_000, () => isReady('typo'));
});
