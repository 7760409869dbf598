import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { annotations, type Sandbox, type SandboxId } from '../../src/container/words.ts';
import { podDeadline } from '../../src/pod/deadline.ts';
import type { WallTime } from '../../src/world/clock.ts';
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
