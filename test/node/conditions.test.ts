import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boardConditions, boardConditionTypes, isOverheated } from '../../src/node/boardConditions.ts';
import { conditionEvents, type JudgedCondition, kubeletConditions, timed } from '../../src/node/conditions.ts';

const well = { problems: [], network: 'ready' } as const;
const bad = (type: string, message = 'no'): JudgedCondition => ({ type, status: 'True', reason: type, message });
const texts = (all: readonly JudgedCondition[]): string[] => all.map((c) => `${c.type}=${c.status} ${c.reason}: ${c.message}`);

test("a node that is well tells the kubelet's conditions in its order, reasons and words", () => {
  assert.deepEqual(texts(kubeletConditions(well, [])), [
    'NetworkUnavailable=False NetworkReady: the network of pods is ready',
    'MemoryPressure=False KubeletHasSufficientMemory: kubelet has sufficient memory available',
    'DiskPressure=False KubeletHasNoDiskPressure: kubelet has no disk pressure',
    'PIDPressure=False KubeletHasSufficientPID: kubelet has sufficient PID available',
    'Ready=True KubeletReady: kubelet is posting ready status',
  ]);
});

test('what keeps pods from starting is listed, and pressure is told as it was judged', () => {
  const pressed = { type: 'DiskPressure', status: 'True', reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure' } as const;
  const all = texts(
    kubeletConditions({ problems: ['container runtime is down: gone', 'no disk'], network: { error: 'no CNI' } }, [pressed]),
  );
  assert.equal(all[0], 'NetworkUnavailable=True NetworkNotReady: no CNI');
  assert.equal(all[2], 'DiskPressure=True KubeletHasDiskPressure: kubelet has disk pressure');
  assert.equal(all[4], 'Ready=False KubeletNotReady: container runtime is down: gone, no disk');
});

test('the time of a condition is when its status changed, not its message', () => {
  const first = timed([], kubeletConditions(well, []), 't1');
  assert.ok(first.every((c) => c.lastTransitionTime === 't1'));
  const down = timed(first, kubeletConditions({ problems: ['a'], network: 'ready' }, []), 't2');
  const still = timed(down, kubeletConditions({ problems: ['b'], network: undefined }, []), 't3');
  assert.deepEqual(
    still.map((c) => [c.type, c.lastTransitionTime]),
    [
      ['NetworkUnavailable', 't1'],
      ['MemoryPressure', 't1'],
      ['DiskPressure', 't1'],
      ['PIDPressure', 't1'],
      ['Ready', 't2'],
    ],
  );
  assert.equal(still.find((c) => c.type === 'Ready')?.message, 'b');
});

test('an agent that has not asked the runtime yet tells what was told last', () => {
  const before = timed([], [...kubeletConditions(well, []), bad('RuntimeDown')], 't1');
  const now = timed(before, kubeletConditions({ problems: undefined, network: undefined }, []), 't2');
  assert.deepEqual(
    now.map((c) => `${c.type} ${c.status} ${c.lastTransitionTime}`),
    ['NetworkUnavailable False t1', 'MemoryPressure False t1', 'DiskPressure False t1', 'PIDPressure False t1', 'Ready True t1'],
  );
});

test('our own are there while something is wrong, behind the others, one of a type', () => {
  const now = timed(
    [],
    [bad('WatchDegraded'), ...kubeletConditions(well, []), bad('ConfigurationInvalid', 'a'), bad('ConfigurationInvalid', 'b')],
    't',
  );
  assert.deepEqual(
    now.slice(5).map((c) => [c.type, c.message]),
    [
      ['WatchDegraded', 'no'],
      ['ConfigurationInvalid', 'a; b'],
    ],
  );
  assert.deepEqual(timed(now, kubeletConditions(well, []), 't2').length, 5);
});

test("changes are events in the kubelet's words; a start without trouble is none", () => {
  const told = boardConditionTypes;
  const start = timed([], kubeletConditions(well, []), 't1');
  assert.deepEqual(conditionEvents('pi', [], start, told), []);
  const worse = timed(
    start,
    [...kubeletConditions({ problems: ['x'], network: 'ready' }, []), bad('UnderVoltage', 'low'), bad('WatchDegraded')],
    't2',
  );
  assert.deepEqual(conditionEvents('pi', start, worse, told), [
    { type: 'Normal', reason: 'NodeNotReady', message: 'Node pi status is now: NodeNotReady' },
    { type: 'Warning', reason: 'UnderVoltage', message: 'low' },
  ]);
  assert.deepEqual(conditionEvents('pi', worse, worse, told), []);
  assert.deepEqual(
    conditionEvents('pi', worse, start, told).map((e) => e.reason),
    ['NodeReady'],
  );
  assert.deepEqual(
    conditionEvents('pi', [], worse, told).map((e) => e.reason),
    ['NodeNotReady', 'UnderVoltage'],
  );
});

const fine = { power: { held: 0, sinceBoot: 0 }, overheated: false, cards: [], readOnly: [], clockSynced: true };

test('a board that is well tells nothing, and what nobody can say is nothing', () => {
  assert.deepEqual(boardConditions(fine), []);
  assert.deepEqual(boardConditions({ ...fine, clockSynced: undefined, power: { held: 0, sinceBoot: 15 } }), []);
});

test('each trouble of a board is a condition of its own, with a type that is known', () => {
  const worn = { device: 'mmcblk0', name: '', kind: 'MMC', manufacturer: '', made: '', usedPercent: undefined, spare: 'urgent' } as const;
  const all = boardConditions({ power: { held: 7, sinceBoot: 7 }, overheated: true, cards: [worn], readOnly: ['/'], clockSynced: false });
  assert.deepEqual(texts(all), [
    'UnderVoltage=True UnderVoltage: the supply voltage falls below what the board needs',
    'Throttled=True Throttled: the firmware slows the processor: frequency capped, throttled',
    'Overheating=True Overheating: the processor is at 80 °C or more',
    'ReadOnlyRoot=True ReadOnlyRoot: the kernel lets nobody write to /',
    'SDCardWear=True SDCardWear: mmcblk0 says that its spare blocks are all but used up',
    'ClockUnsynced=True ClockUnsynced: the clock was not set from the network since the node started',
  ]);
  assert.deepEqual(all.map((c) => c.type).sort(), [...boardConditionTypes].sort());
});

test('heat is told from 80 degrees on, and is over below 75', () => {
  const steps = [79, 80, 79, 76, 75, 74.9, 79, undefined, 85, undefined];
  let hot = false;
  const told = steps.map((degrees) => {
    hot = isOverheated(degrees, hot);
    return hot;
  });
  assert.deepEqual(told, [false, true, true, true, true, false, false, false, true, true]);
});
