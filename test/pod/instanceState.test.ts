import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceState } from '../../src/api/desired.ts';
import type { RuntimePodStatus } from '../../src/container/words.ts';
import { instanceState } from '../../src/pod/instanceState.ts';
import { desiredPod } from './desiredPod.ts';

const image = 'i';
const plain = desiredPod('web', 'u1');
const withInit = desiredPod('web', 'u1', { spec: { initContainers: [{ name: 'init', image }] } });
const withSidecar = desiredPod('web', 'u1', { spec: { initContainers: [{ name: 'side', image, restartPolicy: 'Always' }] } });

/** `app running`, `init exited 0`, `init exited 0 OOMKilled`; newest first. */
const runtime = (sandboxes: readonly string[], ...records: string[]): RuntimePodStatus =>
  ({
    sandboxes: sandboxes.map((state) => ({ state })),
    containers: records.map((r) => {
      const [name, state, code, reason = ''] = r.split(' ');
      return { name, state, exitCode: Number(code ?? 0), reason };
    }),
  }) as unknown as RuntimePodStatus;

const calm: InstanceState = { sandboxDead: false, finished: false, initUnfinished: false, terminating: false };
type Case = readonly [
  what: string,
  desired: typeof plain | undefined,
  status: RuntimePodStatus | undefined,
  worker: string | undefined,
  completed: boolean,
  differs: Partial<InstanceState>,
];
const table: readonly Case[] = [
  ['nothing known of it', undefined, undefined, undefined, false, {}],
  ['accepted, not begun', withInit, undefined, 'sync', false, {}],
  ['running', plain, runtime(['ready'], 'app running'), 'sync', false, {}],
  ['its newest sandbox is dead', plain, runtime(['notready', 'notready'], 'app exited 1'), 'sync', false, { sandboxDead: true }],
  ['an older sandbox is dead', plain, runtime(['ready', 'notready'], 'app running'), 'sync', false, {}],
  ['init has not begun', withInit, runtime(['ready']), 'sync', false, { initUnfinished: true }],
  ['init runs', withInit, runtime(['ready'], 'init running'), 'sync', false, { initUnfinished: true }],
  ['init failed the last time', withInit, runtime(['ready'], 'init exited 1', 'init exited 0'), 'sync', false, { initUnfinished: true }],
  ['init was killed for memory', withInit, runtime(['ready'], 'init exited 0 OOMKilled'), 'sync', false, { initUnfinished: true }],
  ['init is done', withInit, runtime(['ready'], 'init exited 0'), 'sync', false, {}],
  ['its init record was removed beside the app', withInit, runtime(['ready'], 'app running'), 'sync', false, {}],
  ['a sidecar is no init to wait for', withSidecar, runtime(['ready']), 'sync', false, {}],
  ['it is being ended', plain, runtime(['ready'], 'app running'), 'terminating', false, { terminating: true }],
  ['it was ended and its worker closes', plain, runtime(['notready']), 'terminated', false, { sandboxDead: true, terminating: true }],
  ['it has ended by itself', plain, runtime(['notready']), 'finished', false, { sandboxDead: true, finished: true, terminating: true }],
  ['completed, its worker still at it', plain, runtime(['notready']), 'terminating', true, { sandboxDead: true, finished: true }],
  ['completed in the life of an earlier agent', plain, undefined, undefined, true, { finished: true }],
];

for (const [what, desired, status, worker, completed, differs] of table) {
  test(`${what}: ${Object.keys(differs).join(', ') || 'nothing to spare'}`, () => {
    assert.deepEqual(instanceState(desired, status, { worker, completed }), { ...calm, ...differs });
  });
}
