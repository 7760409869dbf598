import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { annotations, type Sandbox, type SandboxId } from '../../src/container/words.ts';
import { parseStarted, podDeadline, startedAt, startedText } from '../../src/pod/deadline.ts';
import type { Monotonic, WallTime } from '../../src/world/clock.ts';
import { desiredPod } from './desiredPod.ts';

const boot = '5f2c1e0a-1111-2222-3333-444444444444';
const sandbox = (started: string | undefined): Sandbox => ({
  id: 's' as SandboxId,
  name: 'job',
  namespace: 'default',
  uid: 'u1' as PodUid,
  attempt: 0,
  state: 'ready',
  createdAt: 0 as WallTime,
  labels: {},
  annotations: started === undefined ? {} : { [annotations.started]: started },
});
const pod = (activeDeadlineSeconds?: number) =>
  desiredPod('job', 'u1', activeDeadlineSeconds === undefined ? {} : { spec: { activeDeadlineSeconds } }).pod;

test('the annotation says the boot and whole monotonic milliseconds, and reads back', () => {
  assert.equal(startedText(boot, 1234.75 as Monotonic), `${boot}/1234`);
  assert.equal(parseStarted(`${boot}/1234`, boot), 1234);
});

for (const text of [
  undefined,
  '',
  boot,
  `${boot}/`,
  `${boot}/x`,
  `${boot}/-5`,
  `${boot}/1e9`,
  `${boot}/12/3`,
  `other/1234`,
  `${boot}x/12`,
]) {
  test(`no start of this boot: ${text}`, () => {
    assert.equal(parseStarted(text, boot), undefined);
  });
}

const table: readonly [string, number | undefined, readonly (string | undefined)[], number | undefined][] = [
  ['no deadline', undefined, [`${boot}/1000`], undefined],
  ['not started', 60, [], undefined],
  ['started', 60, [`${boot}/1000`], 61_000],
  ['a later sandbox of the same boot does not move it', 60, [`${boot}/9000`, `${boot}/1000`], 61_000],
  ['another boot counts anew', 60, [`${boot}/9000`, 'earlier-boot/1000'], 69_000],
  ['only another boot', 60, ['earlier-boot/1000'], undefined],
  ['a sandbox without the annotation', 60, [undefined], undefined],
];
for (const [what, seconds, started, ends] of table) {
  test(`deadline: ${what}`, () => {
    assert.equal(podDeadline(pod(seconds), started.map(sandbox), boot), ends);
  });
}

test('the start of an instance is its earliest in this boot', () => {
  assert.equal(startedAt([sandbox(`${boot}/20`), sandbox(`${boot}/10`)], boot), 10);
});
