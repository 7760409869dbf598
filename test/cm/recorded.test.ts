/** Every value that a real kubelet 1.32 wrote on cgroup v2, of the node's, the QoS classes' and the pods' cgroups, with both drivers. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { leftForPods } from '../../src/cm/hierarchy.ts';
import { type Bed, bed, podWith } from './cgroupBed.ts';

const recording = (name: string): string => readFileSync(new URL(`../conformance/kubelet-1.32/${name}`, import.meta.url), 'utf8');

async function start(b: Bed, pods: readonly DesiredPod[]): Promise<void> {
  b.active = pods;
  await b.manager.load();
  await b.manager.runtimeUp();
  for (const pod of pods) await b.manager.ensurePod(pod, { runs: false });
}

/** Rows of the table as cgroup, file, value; a row that lists several files, or says that it is the same, is taken apart. */
function rowsOf(table: string): [string, string, string][] {
  let [cgroup, files, values]: [string, string[], string[]] = ['', [], []];
  return table
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| cgroup '))
    .flatMap((line) => {
      const [first = '', second = '', third = ''] = line
        .split('|')
        .slice(1)
        .map((cell) => cell.trim());
      cgroup = first === '' ? cgroup : (/`(?:\/sys\/fs\/cgroup\/)?([^`]+)`/.exec(first)?.[1] ?? first);
      if (second !== 'the same') {
        files = second.split(' / ');
        values = third.split(' / ').map((value) => value.replace(/ \(.*\)$/, ''));
      }
      return files.map((file, i): [string, string, string] => [cgroup, file, values[i] ?? '']);
    });
}

test('with the cgroupfs driver each recorded value stands in each recorded file', async () => {
  const b = bed();
  await start(b, [podWith('guar', { limits: { cpu: '100m', memory: '20Mi' } }, 'u-1')]);
  const rows = rowsOf(recording('cgroup-v2-arm64.md'));
  const ours = rows.filter(([cgroup]) => !cgroup.endsWith('/<container>')); // those are the runtime's
  assert.equal(rows.length - ours.length, 6);
  assert.equal(ours.length, 18);
  for (const [cgroup, file, value] of ours) assert.equal(b.text(cgroup.replace('<uid>', 'u-1'), file), value, `${cgroup}/${file}`);
});

test('with the systemd driver each recorded value stands in each recorded file', async () => {
  const may = leftForPods(
    { cpuMilli: 2000, memoryBytes: 2_067_390_464, pids: 14_949, hugepages: {} },
    { cpuMilli: 0, memoryBytes: 0, pids: 0 },
  );
  const b = bed({ driver: 'systemd', settings: { podPidsLimit: 200, may } });
  await start(
    b,
    [
      podWith('guar', { limits: { cpu: '100m', memory: '20Mi' } }, 'u-1'),
      podWith('burst', { requests: { cpu: '150m', memory: '10Mi' }, limits: { memory: '30Mi' } }, 'u-1'),
      podWith('best', {}, 'u-1'),
    ].map((pod, i) => ({ ...pod, uid: `${pod.uid}-${i}` as DesiredPod['uid'] })),
  );
  const uids = {
    'kubepods-pod<uid>': 'kubepods-podu_1_0',
    'burstable-pod<uid>': 'burstable-podu_1_1',
    'besteffort-pod<uid>': 'besteffort-podu_1_2',
  };
  const rows = recording('cgroup-v2-systemd-arm64.tsv')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('cgroup\t'))
    .map((line) => line.split('\t'));
  // scopes, and what a pod's slice hands on to them, are the runtime's
  const ours = rows.filter(
    ([cgroup = '', file]) => !cgroup.endsWith('.scope') && !(cgroup.includes('<uid>') && file === 'cgroup.subtree_control'),
  );
  assert.equal(rows.length, 120);
  assert.equal(ours.length, 57);
  const inOrder = (words: string): string => words.split(' ').sort().join(' ');
  for (const [cgroup = '', file = '', value = ''] of ours) {
    const path = Object.entries(uids).reduce((text, [written, real]) => text.replaceAll(written, real), cgroup);
    assert.equal(inOrder(b.text(path, file)), inOrder(value), `${path}/${file}`);
  }
});

test('what is reserved is taken from what all pods may have, of memory, processors and processes', async () => {
  const has = { cpuMilli: 2000, memoryBytes: 2_067_386_368, pids: 14_949, hugepages: {} };
  const may = leftForPods(has, { cpuMilli: 500, memoryBytes: 100 * 2 ** 20, pids: 1000 });
  const b = bed({ settings: { may } });
  await start(b, []);
  assert.equal(b.text('kubepods', 'memory.max'), String(2_067_386_368 - 100 * 2 ** 20));
  assert.equal(b.text('kubepods', 'cpu.weight'), '59'); // 1536 shares
  assert.equal(b.text('kubepods', 'pids.max'), '13949');
});
