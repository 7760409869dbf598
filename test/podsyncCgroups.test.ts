/** The steps of a pod's cgroup: made before anything else of it, lowered when nothing old is left, removed last. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../src/api/objects.ts';
import type { PodStatus } from '../src/api/status.ts';
import type { SyncResult } from '../src/container/syncResult.ts';
import { emptyPodStatus, type RuntimePodStatus } from '../src/container/words.ts';
import { PodSync, type PodSyncDeps } from '../src/podsync.ts';
import { silentLog } from '../src/world/log.ts';
import { FakeClock } from './fakes/fakeClock.ts';
import { desiredPod } from './pod/desiredPod.ts';

const never = new AbortController().signal;
const web = desiredPod('web', 'u1');
const nothing = emptyPodStatus('u1' as PodUid, 'web', 'default');
const running = { ...nothing, containers: [{ state: 'running' }] } as unknown as RuntimePodStatus;

function rig(o: { cgroups?: Partial<NonNullable<PodSyncDeps['cgroups']>>; results?: readonly SyncResult[] } = {}) {
  const did: string[] = [];
  const reasons: SyncResult[] = [];
  const told: string[] = [];
  const no = (): never => assert.fail();
  const sync = new PodSync({
    clock: new FakeClock(),
    log: silentLog,
    bootId: 'boot-1',
    status: {
      generate: () => ({ phase: 'Pending' }) as PodStatus,
      get: () => undefined,
      set: () => did.push('told'),
      setReasons: (_uid, results) => reasons.push(...results),
      terminate: () => did.push('last words'),
    },
    completions: { find: () => undefined, record: async () => no(), adopt: async () => undefined },
    madeOtherwise: () => false,
    endedOtherwise: async () => false,
    renew: no,
    waits: () => {},
    runtime: {
      syncPod: async () => {
        did.push('synced');
        return { results: o.results ?? [], acted: true };
      },
      killPod: async () => no(),
    },
    cgroups: {
      ensurePod: async (_desired, { runs }) => {
        did.push(runs ? 'looked after' : 'made');
        return false;
      },
      updatePod: async () => void did.push('lowered'),
      removePod: async () => void did.push('removed'),
      ...o.cgroups,
    },
    volumes: { setUp: async () => void did.push('volumes'), tearDown: async () => void did.push('torn down') },
    probes: { addPod: () => {}, stopLivenessAndStartup: no, removePod: no },
    latestStatus: () => undefined,
    newerStatus: async () => no(),
    networkError: () => undefined,
    runtimeUp: () => true,
    event: (_pod, type, reason, message) => void told.push(`${type} ${reason} ${message}`),
    desired: () => web,
  });
  return { did, reasons, told, sync };
}

test('it is made before the volumes, and what fell is lowered when the containers are as wanted', async () => {
  const { did, sync } = rig();
  await sync.syncPod(web, nothing, never);
  assert.deepEqual(did, ['told', 'made', 'volumes', 'synced', 'lowered']);
});

test('a pod that runs already is looked after as one', async () => {
  const { did, sync } = rig();
  await sync.syncPod(web, running, never);
  assert.deepEqual(did, ['told', 'looked after', 'volumes', 'synced', 'lowered']);
});

test('nothing is lowered while something of the step failed', async () => {
  const { did, sync } = rig({
    results: [{ action: 'KillContainer', target: 'app', error: { reason: 'KillContainerError', message: 'it hangs' } }],
  });
  await sync.syncPod(web, running, never);
  assert.ok(!did.includes('lowered'));
});

test('without its cgroup nothing of the pod starts, and the reason is told', async () => {
  const { did, reasons, sync } = rig({ cgroups: { ensurePod: () => Promise.reject(new Error('no room')) } });
  const outcome = await sync.syncPod(web, nothing, never);
  assert.deepEqual(did, ['told']);
  assert.match(String(outcome.error), /no room/);
  assert.deepEqual(reasons, [
    { action: 'CreatePodCgroup', target: 'web', error: { reason: 'FailedCreatePodContainer', message: 'no room' } },
  ]);
});

test('news of its limits are told at once', async () => {
  const { did, sync } = rig({ cgroups: { ensurePod: async () => true } });
  await sync.syncPod(web, running, never);
  assert.deepEqual(did.slice(0, 3), ['told', 'told', 'volumes']);
});

test('it goes after the volumes, and a cgroup that cannot go keeps the pod from being over', async () => {
  const gone = rig();
  await gone.sync.syncTerminatedPod(web, nothing);
  assert.deepEqual(gone.did, ['told', 'last words', 'torn down', 'removed']);
  const stuck = rig({ cgroups: { removePod: () => Promise.reject(new Error('busy')) } });
  await assert.rejects(stuck.sync.syncTerminatedPod(web, nothing), /busy/);
  assert.deepEqual(
    stuck.told,
    ['Warning FailedKillPod error killing pod: its cgroup cannot be removed: busy'],
    'its successor waits: why is told',
  );
});

test('limits that cannot be lowered are told, and tried again', async () => {
  const { reasons, told, sync } = rig({ cgroups: { updatePod: () => Promise.reject(new Error('device or resource busy')) } });
  const outcome = await sync.syncPod(web, running, never);
  const message = 'limits that fell cannot be written: device or resource busy';
  assert.deepEqual(reasons, [{ action: 'UpdatePodCgroup', target: 'web', error: { reason: 'FailedCreatePodContainer', message } }]);
  assert.deepEqual(told, [`Warning FailedCreatePodContainer ${message}`]);
  assert.match(String(outcome.error), /busy/);
});
