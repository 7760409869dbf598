/** The agent and the runtime are kept when memory is short; nobody else is touched. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Protection } from '../../src/cm/protect.ts';
import { type Log, silentLog } from '../../src/world/log.ts';
import { temporaryFolder } from './cgroupBed.ts';

const sockets = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 900 /run/other/containerd.sock
0000000000000000: 00000003 00000000 00000000 0001 03 901 /run/containerd/containerd.sock
0000000000000000: 00000002 00000000 00010000 0001 01 902 /run/containerd/containerd.sock
`;

interface Process {
  readonly comm: string;
  readonly group: string;
  readonly score?: string;
  readonly socket?: number;
}

function machine(
  processes: Readonly<Record<number, Process>>,
  groups: readonly string[],
  o: { unified?: boolean; memoryBytes?: number; log?: Log } = {},
) {
  const dir = temporaryFolder();
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  };
  put('proc/net/unix', sockets);
  for (const [pid, { comm, group, score = '0', socket }] of Object.entries(processes)) {
    put(`proc/${pid}/comm`, `${comm}\n`);
    put(`proc/${pid}/cgroup`, `0::${group}\n`);
    put(`proc/${pid}/oom_score_adj`, `${score}\n`);
    mkdirSync(join(dir, `proc/${pid}/fd`));
    if (socket !== undefined) symlinkSync(`socket:[${socket}]`, join(dir, `proc/${pid}/fd/7`));
  }
  for (const group of groups) put(`cgroup${group}/memory.min`, '0\n');
  const protection = new Protection({
    log: o.log ?? silentLog,
    root: join(dir, 'cgroup'),
    proc: join(dir, 'proc'),
    pid: 100,
    endpoint: 'unix:///run/containerd/containerd.sock',
    nodeMemoryBytes: o.memoryBytes ?? 2 ** 30,
    unified: () => o.unified ?? true,
  });
  return {
    ...{ protection, put, dir },
    score: (pid: number) => readFileSync(join(dir, `proc/${pid}/oom_score_adj`), 'utf8').trim(),
    min: (group: string) => readFileSync(join(dir, `cgroup${group}/memory.min`), 'utf8').trim(),
  };
}

const agent = { comm: 'node', group: '/system.slice/podsched.service' };
const runtime = { comm: 'containerd', group: '/system.slice/containerd.service', socket: 902 };
const groups = ['/system.slice', '/system.slice/podsched.service', '/system.slice/containerd.service'];
const grant = 96 * 2 ** 20;

test('both get the kubelet’s score, and memory that is theirs as far as the slice above grants it', () => {
  const m = machine({ 100: agent, 200: runtime }, groups);
  m.protection.look(true);
  assert.deepEqual([m.score(100), m.score(200)], ['-999', '-999']);
  assert.deepEqual(
    groups.map((g) => m.min(g)),
    [2 * grant, grant, grant].map(String),
  );
});

test('a small board grants an eighth of its memory', () => {
  const m = machine({ 100: agent }, groups, { memoryBytes: 512 * 2 ** 20 });
  m.protection.look(true);
  assert.equal(m.min('/system.slice/podsched.service'), String(64 * 2 ** 20));
});

test('of several containerds only the one that listens at our endpoint is touched', () => {
  const m = machine(
    { 100: agent, 150: { ...runtime, socket: 900 }, 160: { ...runtime, comm: 'containerd-shim', socket: 902 }, 200: runtime },
    groups,
  );
  m.protection.look(true);
  assert.deepEqual([m.score(150), m.score(160), m.score(200)], ['0', '0', '-999']);
});

test('a cgroup that is shared with others is left alone', () => {
  const shared = ['/user.slice/user-0.slice/session-1.scope', '/', '/user.slice/user-1000.slice/user@1000.service'];
  for (const group of shared) {
    const m = machine({ 100: { ...agent, group } }, shared.slice(0, 1).concat(shared.slice(2), '/user.slice'));
    m.protection.look(true);
    assert.equal(m.min('/user.slice'), '0', group);
  }
});

test('more protection than ours stays, and nothing is written twice', () => {
  const m = machine({ 100: { ...agent, score: '-1000' } }, groups);
  m.put('cgroup/system.slice/podsched.service/memory.min', `${2 ** 28}\n`);
  m.protection.look(true);
  assert.equal(m.score(100), '-1000');
  assert.equal(m.min('/system.slice/podsched.service'), String(2 ** 28));
  m.put('cgroup/system.slice/memory.min', `${grant}\n\n`); // a write of ours would leave the number alone
  m.protection.look(false);
  assert.equal(readFileSync(join(m.dir, 'cgroup/system.slice/memory.min'), 'utf8'), `${grant}\n\n`);
});

test('a runtime that was started anew is found again', () => {
  const m = machine({ 100: agent, 200: runtime }, groups);
  m.protection.look(true);
  m.put('proc/200/comm', 'sleep\n');
  m.put('proc/300/comm', 'containerd\n');
  m.put('proc/300/cgroup', '0::/system.slice/containerd.service\n');
  m.put('proc/300/oom_score_adj', '0\n');
  mkdirSync(join(m.dir, 'proc/300/fd'));
  symlinkSync('socket:[902]', join(m.dir, 'proc/300/fd/3'));
  m.protection.look(false);
  assert.equal(m.score(300), '-999');
});

test('what is refused is told once, and the rest is done', () => {
  const told: unknown[] = [];
  const log: Log = { ...silentLog, info: (fields: unknown) => void told.push(fields) } as Log;
  // a folder in the file's place: it can neither be read nor written
  const bad = machine({ 100: { ...agent, group: '/bad.slice/podsched.service' } }, ['/bad.slice'], { log });
  mkdirSync(join(bad.dir, 'cgroup/bad.slice/podsched.service/memory.min'), { recursive: true });
  bad.protection.look(true);
  bad.protection.look(true);
  assert.equal(told.length, 1);
  assert.equal(bad.score(100), '-999');
  assert.equal(bad.min('/bad.slice'), String(grant));
});

test('on cgroup v1 only the score is set', () => {
  const m = machine({ 100: agent }, groups, { unified: false });
  m.protection.look(true);
  assert.equal(m.score(100), '-999');
  assert.equal(m.min('/system.slice'), '0');
});
