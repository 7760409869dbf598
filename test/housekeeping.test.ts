import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodUid } from '../src/api/objects.ts';
import type { ContainerState, RuntimePod, SandboxState } from '../src/container/words.ts';
import { Housekeeping, type HousekeepingDeps } from '../src/housekeeping.ts';
import { desiredPod } from './pod/desiredPod.ts';

function runtimePod(uid: string, sandbox: SandboxState, container: ContainerState): RuntimePod {
  return {
    uid: uid as PodUid,
    name: uid,
    namespace: 'default',
    sandboxes: [{ state: sandbox }],
    containers: [{ state: container }],
  } as unknown as RuntimePod;
}

function rig(o: Partial<HousekeepingDeps> & { readonly working?: readonly string[] } = {}) {
  const did: string[] = [];
  const housekeeping = new Housekeeping({
    ready: () => true,
    desired: () => [],
    runtimePods: () => [],
    workers: {
      syncKnownPods: (desired) => {
        did.push(`known ${[...desired].join()}`);
        return new Map((o.working ?? []).map((uid) => [uid as PodUid, {}]));
      },
      updatePod: ({ type, pod, runtimePod: r, reason }) => did.push(`${type} ${pod?.uid ?? r?.uid}${reason ? `: ${reason}` : ''}`),
    },
    isRefused: () => false,
    retain: (known) => did.push(`statuses ${[...known].sort().join()}`),
    collectContainers: async () => {
      did.push('containers');
    },
    collectBackoff: () => did.push('backoff'),
    report: (e) => did.push(`failed ${e}`),
    ...o,
  });
  return { did, housekeeping };
}

test('nothing is judged while the sources or the runtime are unknown: "unknown" would prove nothing', () => {
  const { did, housekeeping } = rig({ ready: () => false, runtimePods: () => [runtimePod('u9', 'ready', 'running')] });
  housekeeping.run();
  assert.deepEqual(did, []);
});

test('a wanted pod without a worker gets one, but not a refused one', () => {
  const [a, b, c] = [desiredPod('a', 'u1'), desiredPod('b', 'u2'), desiredPod('c', 'u3')];
  const { did, housekeeping } = rig({ desired: () => [a, b, c], working: ['u1'], isRefused: (uid) => uid === 'u2' });
  housekeeping.run();
  assert.deepEqual(
    did.filter((d) => d.startsWith('create')),
    ['create u3'],
  );
});

const orphans: readonly (readonly [SandboxState, ContainerState, ended: boolean])[] = [
  ['ready', 'running', true],
  ['ready', 'exited', true],
  ['notready', 'running', true],
  ['notready', 'unknown', true],
  ['notready', 'exited', false],
  ['notready', 'created', false],
];
for (const [sandbox, container, ended] of orphans) {
  test(`an orphan with a ${sandbox} sandbox and a container that is ${container} is ${ended ? 'ended' : 'garbage only'}`, () => {
    const { did, housekeeping } = rig({ runtimePods: () => [runtimePod('u9', sandbox, container)] });
    housekeeping.run();
    assert.equal(did.includes('kill u9: nobody wants it'), ended);
  });
}

test('who is wanted or has a worker still is no orphan, and keeps its status', () => {
  const a = desiredPod('a', 'u1');
  const { did, housekeeping } = rig({
    desired: () => [a],
    working: ['u1', 'u2'],
    runtimePods: () => [runtimePod('u1', 'ready', 'running'), runtimePod('u2', 'ready', 'running')],
  });
  housekeeping.run();
  assert.deepEqual(did, ['known u1', 'statuses u1,u2', 'backoff', 'containers']);
});

test('the slow part goes on beside the loop, never twice at a time, once more when it was asked for meanwhile, and its failure is reported', async () => {
  let end: (e?: Error) => void = () => {};
  let begun = 0;
  const { did, housekeeping } = rig({
    collectContainers: () => {
      begun++;
      return new Promise((resolve, reject) => {
        end = (e) => (e === undefined ? resolve() : reject(e));
      });
    },
  });
  housekeeping.run();
  housekeeping.run();
  housekeeping.run();
  assert.equal(begun, 1);
  end(new Error('no luck'));
  await new Promise(setImmediate);
  assert.ok(did.includes('failed Error: no luck'));
  assert.equal(begun, 2, 'what ended meanwhile is not left to the next minute');
  end();
  await new Promise(setImmediate);
  assert.equal(begun, 2);
  housekeeping.run();
  assert.equal(begun, 3);
  end();
});
