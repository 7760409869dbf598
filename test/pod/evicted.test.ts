/** What becomes of instances that were ended against their will. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { PodUid } from '../../src/api/objects.ts';
import type { PodStatus } from '../../src/api/status.ts';
import type { RestartPolicy } from '../../src/api/v1.ts';
import { EvictedPods } from '../../src/pod/evicted.ts';
import { settle } from '../fakes/fakeClock.ts';
import { desiredPod } from './desiredPod.ts';

const uid = 'u1' as PodUid;
const evicted = {
  phase: 'Failed',
  reason: 'Evicted',
  containerStatuses: [{ name: 'app', containerID: 'containerd://1', state: { terminated: { exitCode: 0 } } }],
} as unknown as PodStatus;

function rig(restartPolicy: RestartPolicy, hasRecord: boolean) {
  const did: string[] = [];
  const pod: DesiredPod = desiredPod('job', uid, { spec: { restartPolicy } });
  const pods = new EvictedPods({
    desired: () => pod,
    status: () => evicted,
    workers: () => ({ state: () => 'finished' }),
    completions: () => ({ has: () => hasRecord, record: async (_pod, phase) => void did.push(`recorded ${phase}`) }),
    graceOf: () => undefined,
    comesBack: () => did.push('comes back'),
    collect: async () => did.push('cleared'),
    event: () => {},
  });
  return { did, pods };
}

test('a job whose own end went onto the card in the moment of its eviction is neither run again nor recorded as failed', async () => {
  for (const policy of ['OnFailure', 'Never'] as const) {
    const { did, pods } = rig(policy, true);
    pods.ended(uid);
    await settle();
    assert.deepEqual(did, []);
  }
});

test('else a Never pod has run, and any other comes back', async () => {
  const [never, other] = [rig('Never', false), rig('OnFailure', false)];
  never.pods.ended(uid);
  other.pods.ended(uid);
  await settle();
  assert.deepEqual([never.did, other.did], [['recorded Failed'], ['comes back']]);
});
