/** Which containers a restart is about, and what is said where there is nothing to restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodStatus, V1ContainerStatus } from '../../src/api/status.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import { restartTargets } from '../../src/operations/restartTargets.ts';
import { cs, ended, running, told, waiting } from './view.ts';

const spec: Partial<PodSpec> = {
  initContainers: [
    { name: 'setup', image: 'i' },
    { name: 'log', image: 'i', restartPolicy: 'Always' },
  ],
  containers: [
    { name: 'app', image: 'i' },
    { name: 'once', image: 'i' },
  ],
  ephemeralContainers: [{ name: 'look', image: 'i' }],
};

interface States {
  readonly setup?: Partial<V1ContainerStatus>;
  readonly log?: Partial<V1ContainerStatus>;
  readonly app?: Partial<V1ContainerStatus>;
  readonly once?: Partial<V1ContainerStatus>;
}
const crashed = { state: waiting('CrashLoopBackOff'), lastState: ended(1, 'Error') };
const runs = { state: running };
const new_ = { state: waiting('ContainerCreating') };

const pod = (
  { setup = { state: ended(0) }, log = runs, app = runs, once = { state: ended(0) } }: States,
  status: Partial<PodStatus> = {},
) =>
  told('web', {
    spec,
    status: {
      phase: 'Running',
      initContainerStatuses: [cs('setup', setup), cs('log', log)],
      containerStatuses: [cs('app', app), cs('once', once)],
      ephemeralContainerStatuses: [cs('look', runs)],
      ...status,
    },
  });

const rows: readonly (readonly [string, States, string | undefined, readonly string[] | RegExp])[] = [
  ['all that run, sidecars too; what ended for good stays ended', {}, undefined, ['log', 'app']],
  ['what waits for its back-off is tried at once', { app: crashed, log: crashed }, undefined, ['log', 'app']],
  [
    'an init container that fails again and again is tried at once',
    { setup: crashed, log: new_, app: new_, once: new_ },
    undefined,
    ['setup'],
  ],
  ['nothing has started', { log: new_, app: new_, once: new_ }, undefined, /nothing runs that could be restarted; podsched why web/],
  ['one by its name', {}, 'app', ['app']],
  ['a sidecar by its name', {}, 'log', ['log']],
  ['one that ended for good runs again when it is named', {}, 'once', ['once']],
  ['an init container that is done', {}, 'setup', /init container "setup" has done its work.*--new/],
  ['an init container at work', { setup: runs }, 'setup', /does its work now.*--new/],
  ['an init container that waits for its back-off', { setup: crashed }, 'setup', ['setup']],
  ['one that has not started', { app: { state: waiting('ImagePullBackOff') } }, 'app', /has not started yet \(ImagePullBackOff\)/],
  ['an ephemeral one', {}, 'look', /starts once; podsched debug adds another/],
  ['nobody', {}, 'nobody', /container not found \("nobody"\) in pod "web"; there are log, app, once/],
];
for (const [what, states, named, expected] of rows) {
  test(`restart: ${what}`, () => {
    const answer = restartTargets(pod(states), named);
    if (expected instanceof RegExp) assert.match(answer.ok ? answer.value.join() : answer.message, expected);
    else assert.deepEqual(answer, { ok: true, value: expected });
  });
}

test('of a pod that has ended or is ending nothing is restarted, and what would help is said', () => {
  for (const phase of ['Succeeded', 'Failed'] as const) {
    const answer = restartTargets(pod({}, { phase, reason: 'Evicted' }), undefined);
    assert.match(answer.ok ? '' : answer.message, new RegExp(`has ended \\(${phase}: Evicted\\): podsched restart web --new`));
  }
  const ending = told('web', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
  assert.match(JSON.stringify(restartTargets(ending, undefined)), /is being ended/);
});
