import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuListText, parseCpuList } from '../../src/api/cpuList.ts';
import type { CpuClaim } from '../../src/api/exclusiveCpus.ts';
import type { PodUid } from '../../src/api/objects.ts';
import { checkpointOf, readCheckpoint } from '../../src/cm/cpuCheckpoint.ts';
import { isOver, sharedCpus, shareOf } from '../../src/cm/cpuShares.ts';
import type { RuntimePodStatus } from '../../src/container/words.ts';

type Lists = Readonly<Record<string, string>>;

const list = (text: string): readonly number[] => parseCpuList(text) ?? [];
const sets = (of: Lists): ReadonlyMap<string, readonly number[]> => new Map(Object.entries(of).map(([name, cpus]) => [name, list(cpus)]));
const lists = (of: ReadonlyMap<string, readonly number[]>): Lists =>
  Object.fromEntries([...of].map(([name, cpus]) => [name, cpuListText(cpus)]));
const entriesOf = (of: Readonly<Record<string, Lists>>) => new Map(Object.entries(of).map(([uid, s]) => [uid as PodUid, sets(s)]));
const topology = [0, 1, 2, 3, 4, 5].map((cpu) => ({ cpu, core: cpu, socket: 0, node: 0 }));
const ground = { online: list('0-5'), reserved: list('0') };
const claim = (container: string, cpus: number, lends = false): CpuClaim => ({ container, cpus, lends });

const share = (claims: readonly CpuClaim[], entries: Readonly<Record<string, Lists>> = {}, runsOn: Lists = {}): Lists | string => {
  const running = (name: string) => (runsOn[name] === undefined ? undefined : list(runsOn[name] ?? ''));
  const given = shareOf('me' as PodUid, claims, { ...ground, topology, entries: entriesOf(entries), runsOn: running });
  return 'sets' in given ? lists(given.sets) : `${given.container}: ${given.requested} of ${given.available}`;
};

test('a pod gets its CPUs beside the reserved ones and those of others', () => {
  assert.deepEqual(share([claim('a', 2), claim('b', 1)]), { a: '1-2', b: '3' });
  assert.deepEqual(share([claim('a', 2)], { other: { x: '1', y: '3' } }), { a: '2,4' });
  assert.equal(share([claim('a', 3)], { other: { x: '1-3' } }), 'a: 3 of 2');
  assert.deepEqual(cpuListText(sharedCpus(ground, entriesOf({ other: { x: '1', y: '3' } }))), '0,2,4-5');
});

test('CPUs of a plain init container go on to those after it, those of a sidecar do not', () => {
  assert.deepEqual(share([claim('init', 2, true), claim('a', 2), claim('b', 1)]), { init: '1-2', a: '1-2', b: '3' });
  assert.deepEqual(share([claim('init', 3, true), claim('side', 1), claim('a', 2)]), { init: '1-3', side: '1', a: '2-3' });
  assert.deepEqual(share([claim('one', 1, true), claim('two', 2, true), claim('a', 4)]), { one: '1', two: '1-2', a: '1-4' });
  assert.equal(share([claim('init', 4, true), claim('a', 4), claim('b', 2)]), 'b: 2 of 1');
});

test('who has CPUs of the right number keeps them, and nobody else of the pod gets them', () => {
  assert.deepEqual(share([claim('a', 2), claim('b', 1)], { me: { a: '4-5', b: '1' } }), { a: '4-5', b: '1' });
  assert.deepEqual(share([claim('a', 1), claim('b', 1)], { me: { b: '1' } }), { a: '2', b: '1' });
  // edited: another number
  assert.deepEqual(share([claim('a', 3)], { me: { a: '4-5' } }), { a: '1-3' });
  // an init container that keeps what its app container has
  assert.deepEqual(share([claim('init', 2, true), claim('a', 1), claim('b', 1)], { me: { init: '2-3', a: '2' } }), {
    init: '2-3',
    a: '2',
    b: '3',
  });
  assert.deepEqual(share([claim('init', 2, true), claim('b', 1), claim('a', 1)], { me: { init: '2-3', a: '2' } }), {
    init: '2-3',
    b: '3',
    a: '2',
  });
  // what another pod has by now is not kept
  assert.deepEqual(share([claim('a', 1)], { me: { a: '1' }, other: { x: '1' } }), { a: '2' });
});

test('a container that runs on CPUs that can be its own keeps them', () => {
  assert.deepEqual(share([claim('a', 2)], {}, { a: '3-4' }), { a: '3-4' });
  assert.deepEqual(share([claim('a', 2)], {}, { a: '0-1' }), { a: '1-2' });
  assert.deepEqual(share([claim('a', 2)], {}, { a: '1-3' }), { a: '1-2' });
  assert.deepEqual(share([claim('a', 2)], { other: { x: '4' } }, { a: '3-4' }), { a: '1-2' });
});

test('what is kept is read back, and only where it still holds', () => {
  const entries = { one: { init: '1-2', app: '1' }, two: { app: '4-5' } };
  const kept = checkpointOf(ground, entriesOf(entries));
  const read = readCheckpoint(JSON.parse(JSON.stringify(kept)), ground);
  assert.ok(typeof read !== 'string', String(read));
  assert.deepEqual(Object.fromEntries([...read].map(([uid, s]) => [uid, lists(s)])), entries);

  const table: readonly (readonly [unknown, RegExp])[] = [
    [null, /cannot be understood/],
    ['0-3', /cannot be understood/],
    [{ ...kept, policyName: 'none' }, /cannot be understood/],
    [{ ...kept, entries: [] }, /cannot be understood/],
    [{ ...kept, entries: { one: { app: 'x' } } }, /cannot be understood/],
    [{ ...kept, entries: { one: { app: '' } } }, /cannot be understood/],
    [{ ...kept, entries: { one: 'x' } }, /cannot be understood/],
    [{ ...kept, online: '0-7' }, /made for CPUs 0-7, and this machine has 0-5/],
    [{ ...kept, reserved: '0-1' }, /CPUs 0-1 reserved, and now 0 are/],
    [{ ...kept, entries: { one: { app: '0' } } }, /CPUs 0 of app are not there to be given/],
    [{ ...kept, entries: { one: { app: '9' } } }, /CPUs 9 of app/],
    [{ ...kept, entries: { one: { app: '1-2' }, two: { app: '2' } } }, /CPUs 2 of app/],
  ];
  for (const [value, why] of table) {
    const answer = readCheckpoint(value, ground);
    assert.ok(typeof answer === 'string', JSON.stringify(value));
    assert.match(answer, why);
  }
});

test('CPUs are free when a container has ended for good, not when it starts again', () => {
  const status = (state: string, exitCode: number) => ({ containers: [{ name: 'c', state, exitCode }] }) as unknown as RuntimePodStatus;
  const table: readonly (readonly [string | undefined, string, number, boolean])[] = [
    ['Always', 'exited', 0, false],
    [undefined, 'exited', 0, false],
    ['OnFailure', 'exited', 0, true],
    ['OnFailure', 'exited', 1, false],
    ['Never', 'exited', 1, true],
    ['Never', 'running', 0, false],
  ];
  for (const [restartPolicy, state, exitCode, over] of table) {
    const spec = { containers: [{ name: 'c', image: 'x' }], ...(restartPolicy && { restartPolicy: restartPolicy as 'Never' }) };
    assert.equal(isOver({ spec }, 'c', status(state, exitCode)), over, `${restartPolicy} ${state} ${exitCode}`);
  }
  // it runs again in a new sandbox
  const init = {
    containers: [{ name: 'a', image: 'x' }],
    initContainers: [{ name: 'c', image: 'x' }],
    restartPolicy: 'OnFailure' as const,
  };
  assert.equal(isOver({ spec: init }, 'c', status('exited', 0)), false);
  assert.equal(isOver({ spec: init }, 'a', undefined), false);
});
