/** The step of the gates: before anything is made, and only for what was not started in this boot. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../src/api/objects.ts';
import type { PodStatus } from '../src/api/status.ts';
import { startedText } from '../src/container/started.ts';
import type { SyncResult } from '../src/container/syncResult.ts';
import { annotations, emptyPodStatus, type RuntimePodStatus, type SandboxStatus } from '../src/container/words.ts';
import type { Held } from '../src/gates/manager.ts';
import { PodSync } from '../src/podsync.ts';
import { silentLog } from '../src/world/log.ts';
import { FakeClock } from './fakes/fakeClock.ts';
import { desiredPod } from './pod/desiredPod.ts';

const never = new AbortController().signal;
const web = desiredPod('web', 'u1');
const clock = new FakeClock();

const sandboxes = (...list: readonly { readonly state: 'ready' | 'notReady'; readonly boot?: string }[]): RuntimePodStatus => ({
  ...emptyPodStatus('u1' as PodUid, 'web', 'default'),
  sandboxes: list.map(({ state, boot }) => ({
    state,
    annotations: boot === undefined ? {} : { [annotations.started]: startedText(boot, clock.monotonic()) },
  })) as unknown as SandboxStatus[],
});

function rig(held: Held | undefined, check?: () => Promise<Held | undefined>) {
  const did: string[] = [];
  const reasons: SyncResult[] = [];
  const no = (): never => assert.fail();
  const sync = new PodSync({
    clock,
    log: silentLog,
    bootId: 'boot-1',
    status: {
      generate: () => ({ phase: 'Pending' }) as PodStatus,
      get: () => undefined,
      set: () => did.push('told'),
      setReasons: (_uid, results) => reasons.push(...results),
      terminate: no,
    },
    completions: { find: () => undefined, record: async () => no(), adopt: async () => undefined },
    madeOtherwise: () => false,
    endedOtherwise: async () => false,
    renew: no,
    waits: () => {},
    runtime: {
      syncPod: async () => {
        did.push('synced');
        return { results: [], acted: false };
      },
      killPod: async () => no(),
    },
    gates: {
      check:
        check ??
        (async () => {
          did.push('asked');
          return held;
        }),
    },
    volumes: {
      setUp: async () => {
        did.push('volumes');
      },
      tearDown: async () => no(),
    },
    probes: { addPod: () => did.push('probed'), stopLivenessAndStartup: no, removePod: no },
    latestStatus: () => undefined,
    newerStatus: async () => no(),
    networkError: () => undefined,
    runtimeUp: () => true,
    event: no,
    desired: () => web,
  });
  return { did, reasons, sync };
}

const closed: Held = { reason: 'WaitingForMount', message: '/mnt/ssd is not a mount point', retryAfterMs: 5000 };

test('a held pod is told with its reason, and nothing of it is made: no volume, no sandbox', async () => {
  const { did, reasons, sync } = rig(closed);
  assert.deepEqual(await sync.syncPod(web, sandboxes(), never), { terminal: false, acted: false, retryAfterMs: 5000 });
  assert.deepEqual(did, ['told', 'asked']);
  const { reason, message } = closed;
  assert.deepEqual(reasons, [{ action: 'OpenGates', target: 'web', error: { reason, message } }]);
});

test('an open gate lets it go on', async () => {
  const { did, sync } = rig(undefined);
  await sync.syncPod(web, sandboxes(), never);
  assert.deepEqual(did, ['told', 'asked', 'volumes', 'probed', 'synced']);
});

test('what was started in this boot is not asked for again, running or not; what a reboot ended is', async () => {
  const table: readonly (readonly [string, RuntimePodStatus, boolean])[] = [
    ['it runs', sandboxes({ state: 'ready', boot: 'boot-1' }), false],
    ['it runs, made by a release that did not say when', sandboxes({ state: 'ready' }), false],
    ['its sandbox died in this boot', sandboxes({ state: 'notReady', boot: 'boot-1' }), false],
    ['a second sandbox of this boot', sandboxes({ state: 'notReady', boot: 'boot-1' }, { state: 'notReady', boot: 'boot-0' }), false],
    ['its sandbox is of the boot before', sandboxes({ state: 'notReady', boot: 'boot-0' }), true],
    ['nobody knows when', sandboxes({ state: 'notReady' }), true],
  ];
  for (const [name, runtime, asked] of table) {
    const { did, sync } = rig(closed);
    await sync.syncPod(web, runtime, never);
    assert.equal(did.includes('asked'), asked, name);
    assert.equal(did.includes('synced'), !asked, name);
  }
});

test('an edit or removal does not wait for a look at a gate', async () => {
  const stop = new AbortController();
  const { sync } = rig(undefined, () => new Promise(() => {}));
  const step = sync.syncPod(web, sandboxes(), stop.signal);
  stop.abort();
  await assert.rejects(step, { name: 'AbortError' });
});
