import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../src/api/objects.ts';
import type { PodPhase, PodStatus } from '../src/api/status.ts';
import type { SyncResult } from '../src/container/syncResult.ts';
import { emptyPodStatus, type RuntimePod, type RuntimePodStatus } from '../src/container/words.ts';
import { PodSync, type PodSyncDeps } from '../src/podsync.ts';
import { VolumeError } from '../src/volumes/volumeError.ts';
import { silentLog } from '../src/world/log.ts';
import { FakeClock } from './fakes/fakeClock.ts';
import { desiredPod } from './pod/desiredPod.ts';

const never = new AbortController().signal;
const failure = (reason: string): SyncResult => ({ action: 'StartContainer', target: 'app', error: { reason, message: 'no luck' } });

interface Rig {
  readonly did: string[];
  readonly sync: PodSync;
  readonly clock: FakeClock;
}

/** PodSync with hands that write down what they are asked; `phase`: what the status is computed to be. */
function rig(o: { readonly phase?: PodPhase; readonly desired?: boolean; readonly deps?: Partial<PodSyncDeps> } = {}): Rig {
  const did: string[] = [];
  const clock = new FakeClock();
  const status = (phase: PodPhase): PodStatus => ({ phase }) as PodStatus;
  const sync = new PodSync({
    clock,
    log: silentLog,
    bootId: 'boot-1',
    status: {
      generate: (_pod, _runtime, i) => status(i.failed !== undefined ? 'Failed' : (o.phase ?? (i.terminal ? 'Succeeded' : 'Running'))),
      get: () => undefined,
      set: (_pod, s, ending) => did.push(`told ${s.phase}${ending === undefined ? '' : ` ending ${ending.graceSeconds}`}`),
      setReasons: (_uid, results) => did.push(`reasons ${results.length}`),
      terminate: () => did.push('last words'),
    },
    completions: {
      find: () => undefined,
      record: async (_pod, _codes, s) => {
        did.push(`recorded ${s.phase}`);
      },
      adopt: async () => did.push('record adopted'),
    },
    madeOtherwise: () => false,
    endedOtherwise: async () => false,
    renew: () => did.push('renewed'),
    waits: () => {},
    runtime: {
      syncPod: async () => {
        did.push('synced');
        return { results: [], acted: false };
      },
      killPod: async (target, _status, grace) => {
        did.push(`killed ${target?.name ?? 'orphan'} ${grace ?? 'by its own grace'}`);
        return [];
      },
    },
    volumes: {
      setUp: async () => {
        did.push('volumes');
      },
      tearDown: async () => {
        did.push('volumes gone');
      },
    },
    probes: {
      addPod: () => did.push('probed'),
      stopLivenessAndStartup: () => did.push('not judged'),
      removePod: () => did.push('not probed'),
    },
    latestStatus: () => undefined,
    newerStatus: async () => emptyPodStatus('u1' as PodUid, 'web', 'default'),
    networkError: () => undefined,
    runtimeUp: () => true,
    event: (_pod, type, reason) => did.push(`event ${type} ${reason}`),
    desired: () => (o.desired === false ? undefined : desiredPod('web', 'u1')),
    ...o.deps,
  });
  return { did, sync, clock };
}

const web = desiredPod('web', 'u1', { graceSeconds: 30 });
const empty = emptyPodStatus(web.uid, 'web', 'default');
const running = { ...empty, sandboxes: [{ state: 'ready', annotations: {} }], containers: [] } as unknown as RuntimePodStatus;

test('what is so is told before anything is done', async () => {
  const { did, sync } = rig();
  assert.deepEqual(await sync.syncPod(web, empty, never), { terminal: false, acted: false });
  assert.deepEqual(did, ['told Running', 'volumes', 'probed', 'synced', 'reasons 0']);
});

test('a pod that ended is on the card before it is told, and nothing is synced', async () => {
  const { did, sync } = rig({ phase: 'Succeeded' });
  assert.deepEqual(await sync.syncPod(web, empty, never), { terminal: true });
  assert.deepEqual(did, ['recorded Succeeded', 'told Succeeded']);
});

test('a record that cannot be written ends the step: the end is told, the containers stay, and it is tried again', async () => {
  const record = async () => {
    throw new Error('card full');
  };
  const { did, sync } = rig({
    phase: 'Succeeded',
    deps: { completions: { find: () => undefined, record, adopt: async () => undefined } },
  });
  await assert.rejects(sync.syncPod(web, empty, never), /card full/);
  assert.deepEqual(did, ['event Warning StoreFailed', 'told Succeeded']);
});

test('what stands in the way is told with what the runtime shows now, not with what it showed before the step', async () => {
  const now = { ...running, ips: ['10.0.0.9'] };
  const seen: unknown[] = [];
  const error = { reason: 'PostStartHookError', message: 'no' };
  const { sync } = rig({
    deps: {
      latestStatus: () => now,
      runtime: {
        syncPod: async () => ({ results: [{ action: 'StartContainer', target: 'app', error }], acted: true }),
        killPod: async () => [],
      },
      status: {
        generate: (_pod, runtime) => {
          seen.push(runtime);
          return { phase: 'Running' } as PodStatus;
        },
        get: () => undefined,
        set: () => {},
        setReasons: () => {},
        terminate: () => {},
      },
    },
  });
  await sync.syncPod(web, empty, never);
  assert.deepEqual(seen, [empty, now]);
});

for (const [what, last, told] of [
  ['nothing is known of it in this boot', undefined, 'kept'],
  ['it was told in this boot', { phase: 'Succeeded', message: 'as told' }, 'as told'],
  ['it was last told running', { phase: 'Running', message: 'x' }, 'kept'],
] as const) {
  test(`a recorded pod is asked for no more; ${what}: told ${told}`, async () => {
    const said: unknown[] = [];
    const done = { phase: 'Succeeded', status: { phase: 'Succeeded', message: 'kept' } as PodStatus } as const;
    const { did, sync } = rig({
      deps: {
        completions: { find: () => done, record: async () => assert.fail(), adopt: async () => undefined },
        status: {
          generate: () => assert.fail(),
          get: () => last as PodStatus | undefined,
          set: (_pod, s) => said.push(s.message),
          setReasons: () => assert.fail(),
          terminate: () => assert.fail(),
        },
      },
    });
    assert.deepEqual(await sync.syncPod(web, running, never), { terminal: true });
    assert.deepEqual(said, [told]);
    assert.deepEqual(did, []);
  });
}

test('what ended is another work than the wanted one: a new instance, and no record', async () => {
  const { did, sync } = rig({ phase: 'Succeeded', deps: { endedOtherwise: async () => true } });
  assert.equal((await sync.syncPod(web, empty, never)).terminal, false);
  assert.deepEqual(did, ['renewed']);
});

test('without a pod network nothing is made, unless the pod uses the host’s; it is an event only when the runtime says so', async () => {
  const networkError = () => 'cni plugin not initialized';
  const { did, sync } = rig({ deps: { networkError } });
  assert.match(String((await sync.syncPod(web, empty, never)).error), /cni plugin not initialized/);
  assert.deepEqual(did, ['told Running', 'event Warning NetworkNotReady']);
  const host = desiredPod('web', 'u1', { spec: { hostNetwork: true } });
  const other = rig({ deps: { networkError } });
  await other.sync.syncPod(host, empty, never);
  assert.ok(other.did.includes('synced'));
  const asking = rig({ deps: { networkError, runtimeUp: () => false } });
  await asking.sync.syncPod(web, empty, never);
  assert.deepEqual(asking.did, ['told Running']);
});

test('what stands in the way is told at once; a back-off is a wait and no error', async () => {
  const results: SyncResult[] = [{ ...failure('CrashLoopBackOff'), waitMs: 7_000 }];
  const waiting = rig({
    deps: { runtime: { syncPod: async () => ({ results, acted: false, nextWaitMs: 7_000 }), killPod: async () => [] } },
  });
  assert.deepEqual(await waiting.sync.syncPod(web, empty, never), { terminal: false, acted: false, retryAfterMs: 7_000 });
  assert.deepEqual(waiting.did, ['told Running', 'volumes', 'probed', 'reasons 1', 'told Running']);
  const failing = rig({
    deps: { runtime: { syncPod: async () => ({ results: [failure('ErrImagePull')], acted: true }), killPod: async () => [] } },
  });
  const outcome = await failing.sync.syncPod(web, empty, never);
  assert.match(String(outcome.error), /ErrImagePull: no luck/);
  assert.equal(outcome.acted, true);
});

test('a deadline that is over ends the pod for good; one to come is the next look', async () => {
  const limited = desiredPod('web', 'u1', { spec: { activeDeadlineSeconds: 60 } });
  const began = (secondsAgo: number) =>
    ({
      ...running,
      sandboxes: [{ state: 'ready', attempt: 0, annotations: { 'podsched.dev/started': `boot-1/${1_000_000 - secondsAgo * 1000}` } }],
    }) as unknown as RuntimePodStatus;
  const over = rig();
  assert.deepEqual(await over.sync.syncPod(limited, began(61), never), { terminal: true });
  assert.deepEqual(over.did, ['event Normal DeadlineExceeded', 'recorded Failed', 'told Failed']);
  const toCome = rig();
  assert.equal((await toCome.sync.syncPod(limited, began(20), never)).retryAfterMs, 40_000);
});

for (const desired of [true, false]) {
  test(`ending ${desired ? 'by itself is told without' : 'by removal is told with'} a deletion time; then killed, checked, told`, async () => {
    const { did, sync } = rig({ desired });
    await sync.syncTerminatingPod(web, running, { graceSeconds: undefined }, never);
    const ending = desired ? '' : ' ending 30';
    assert.deepEqual(did, [`told Running${ending}`, 'not judged', 'killed web by its own grace', 'not probed', `told Succeeded${ending}`]);
  });
}

test('a shorter grace that was asked for is the grace that is told and used', async () => {
  const { did, sync } = rig({ desired: false });
  await sync.syncTerminatingPod(web, running, { graceSeconds: 5 }, never);
  assert.deepEqual(did.slice(0, 3), ['told Running ending 5', 'not judged', 'killed web 5']);
});

test('what is down already is not touched again', async () => {
  const { did, sync } = rig();
  // a power cut between create and start leaves a container that cannot run any more
  const containers = [{ state: 'exited' }, { state: 'created' }];
  const down = { ...empty, sandboxes: [{ state: 'notready' }], containers } as unknown as RuntimePodStatus;
  await sync.syncTerminatingPod(web, down, { graceSeconds: undefined }, never);
  assert.ok(!did.some((d) => d.startsWith('killed')));
});

test('a stop that fails, and a runtime that still shows a container running, are no end', async () => {
  const failing = rig({ deps: { runtime: { syncPod: async () => assert.fail(), killPod: async () => [failure('KillContainerError')] } } });
  assert.match(String((await failing.sync.syncTerminatingPod(web, running, { graceSeconds: 1 }, never)).error), /KillContainerError/);
  assert.ok(failing.did.includes('event Warning FailedKillPod'));
  const still = { ...empty, containers: [{ name: 'app', state: 'running' }] } as unknown as RuntimePodStatus;
  const stuck = rig({ deps: { newerStatus: async () => still } });
  assert.match(String((await stuck.sync.syncTerminatingPod(web, running, { graceSeconds: 1 }, never)).error), /still shows running: app/);
});

test('an orphan is ended by what its containers say, and a failure of it is told to the worker', async () => {
  const orphan = { uid: 'u9', name: 'old', namespace: 'default', sandboxes: [], containers: [] } as unknown as RuntimePod;
  const { did, sync } = rig();
  await sync.syncTerminatingRuntimePod(orphan);
  assert.deepEqual(did, ['killed orphan by its own grace']);
  const failing = rig({ deps: { runtime: { syncPod: async () => assert.fail(), killPod: async () => [failure('KillPodSandboxError')] } } });
  await assert.rejects(failing.sync.syncTerminatingRuntimePod(orphan), /KillPodSandboxError: no luck/);
});

test('the last words come after the last status', async () => {
  const { did, sync } = rig({ desired: false });
  await sync.syncTerminatedPod(web, empty);
  assert.deepEqual(did, ['told Succeeded ending 0', 'last words', 'volumes gone']);
});

test('a volume that cannot be set up keeps the pod from starting, and says so everywhere', async () => {
  const setUp = async () => {
    throw new Error('MountVolume.SetUp failed for volume "d" : hostPath type check failed: /mnt/ssd is not a directory');
  };
  const { did, sync } = rig({ deps: { volumes: { setUp, tearDown: async () => {} } } });
  const outcome = await sync.syncPod(web, empty, never);
  assert.match(String(outcome.error), /volume "d".*\/mnt\/ssd is not a directory/);
  assert.equal(outcome.terminal, false);
  assert.deepEqual(did, ['told Running', 'event Warning FailedMount', 'reasons 1']);
});

test('files of a volume that cannot follow are told, keep nothing from running, and are come back to', async () => {
  const failure = { volume: 'conf', message: 'configmap "app" not found' };
  const refresh = async () => Promise.reject(new VolumeError([failure]));
  const waited: (number | undefined)[] = [];
  const { did, sync } = rig({
    deps: { volumes: { setUp: async () => {}, refresh, tearDown: async () => {} }, waits: (_uid, ms) => waited.push(ms) },
  });
  const outcome = await sync.syncPod(web, running, never);
  assert.deepEqual(outcome, { terminal: false, acted: false, retryAfterMs: 60_000 });
  assert.deepEqual(did, ['told Running', 'event Warning FailedMount', 'probed', 'synced', 'reasons 1', 'told Running']);
  assert.deepEqual(waited, [60_000]);
});

test('a volume that is still in use when its pod has ended is an error to come back to, after the last words', async () => {
  const tearDown = async () => {
    throw new Error('busy');
  };
  const { did, sync } = rig({ desired: false, deps: { volumes: { setUp: async () => {}, tearDown } } });
  await assert.rejects(sync.syncTerminatedPod(web, empty), /busy/);
  assert.deepEqual(did, ['told Succeeded ending 0', 'last words', 'event Warning FailedUnmount']);
});
