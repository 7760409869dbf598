/** restart, stop, start, hold, release and rollback through the socket: what is asked, what is said, how it ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podAct } from '../../src/cli/podActs.ts';
import { actOnPod, type PodAct, type PodActDeps, type PodActRequest } from '../../src/operations/podActs.ts';
import { cs, running, told } from '../operations/view.ts';
import { type Said, withAgent } from './actsAgent.ts';

const deps: PodActDeps = {
  pods: () => [told('web', { status: { containerStatuses: [cs('app', { state: running })] } })],
  sync: () => [],
  isWanted: (key) => key === 'Pod/default/web',
  isStopped: () => false,
  instance: () => 'uid-web' as never,
  restart: () => true,
  renew: async () => {},
  stop: async () => true,
  start: async () => true,
  hold: async () => true,
  release: async () => ({ hold: true, rollback: false, stillHeld: false }),
  rollBack: async () => ({ back: true, from: 'bbb', to: 'aaa', now: true }),
};

type Options = Parameters<typeof podAct>[2];

const withPod = (
  o: Partial<PodActDeps>,
  work: (run: (act: PodAct, what: string, o?: Partial<Options>) => Promise<Said>, asked: readonly PodActRequest[]) => Promise<void>,
): Promise<void> => {
  const asked: PodActRequest[] = [];
  const view = {
    act: (r: PodActRequest) => {
      asked.push(r);
      return actOnPod(r, { ...deps, ...o });
    },
  };
  return withAgent(view, (run) =>
    work((act, what, options) => run((client, print) => podAct(act, what, { namespace: 'default', ...options }, client, print)), asked),
  );
};

test('each act says what it did, and asks for that pod', () =>
  withPod({}, async (run, asked) => {
    const said: string[] = [];
    for (const act of ['restart', 'stop', 'start', 'hold', 'release', 'rollback'] as const) {
      const { code, out, err } = await run(act, 'pod/web');
      assert.deepEqual([code, err], [0, ''], act);
      said.push(out);
    }
    assert.deepEqual(said, [
      'pod/web restarts in place: app\n',
      'pod/web stopped: its containers end by their grace\n',
      'pod/web started\n',
      'pod/web held\n',
      'pod/web released\n',
      'pod/web goes back from revision bbb to aaa, and is held there\n',
    ]);
    assert.ok(asked.every((r) => r.namespace === 'default' && r.pod === 'web' && r.container === undefined && r.new === undefined));
  }));

test('a container, or a new instance, is asked for', () =>
  withPod({}, async (run, asked) => {
    await run('restart', 'web', { container: 'app' });
    await run('restart', 'web', { new: true });
    assert.deepEqual(asked, [
      { act: 'restart', namespace: 'default', pod: 'web', container: 'app' },
      { act: 'restart', namespace: 'default', pod: 'web', new: true },
    ]);
  }));

const rows: readonly (readonly [string, Partial<PodActDeps>, PodAct, string, Partial<Options>, number, RegExp])[] = [
  ['no such pod', {}, 'hold', 'nobody', {}, 3, /^podsched: pod "nobody" not found in namespace "default"\n$/],
  ['no pod at all', {}, 'stop', 'configmap/web', {}, 2, /is no pod/],
  ['a container and a new instance', {}, 'restart', 'web', { container: 'app', new: true }, 2, /not both/],
  ['no such container', {}, 'restart', 'web', { container: 'x' }, 3, /container not found \("x"\).*there are app/],
  ['stopped', { isStopped: () => true }, 'restart', 'web', {}, 1, /podsched start web brings it back/],
  ['stopped already', { stop: async () => false }, 'stop', 'web', {}, 0, /^pod\/web was stopped already\n$/],
  ['not stopped', { start: async () => false }, 'start', 'web', {}, 0, /^pod\/web was not stopped\n$/],
  ['held already', { hold: async () => false }, 'hold', 'web', {}, 0, /^pod\/web was held already\n$/],
  ['not held', { release: async () => ({ hold: false, rollback: false, stillHeld: false }) }, 'release', 'web', {}, 0, /was not held/],
  ['rolled back', { release: async () => ({ hold: false, rollback: true, stillHeld: false }) }, 'release', 'web', {}, 0, /is tried again/],
  [
    'held by its annotation',
    { release: async () => ({ hold: true, rollback: false, stillHeld: true }) },
    'release',
    'web',
    {},
    1,
    /the hold of pod "web" by command is gone, and it is held by its annotation podsched\.dev\/hold: take it out/,
  ],
  [
    'nothing to go back to',
    { rollBack: async () => ({ back: false, message: 'has no other' }) },
    'rollback',
    'web',
    {},
    1,
    /"web" has no other/,
  ],
  ['a full card', { stop: async () => Promise.reject(new Error('no space left')) }, 'stop', 'web', {}, 1, /no space left/],
];
for (const [what, o, act, pod, options, code, text] of rows) {
  test(`${act}: ${what}`, () =>
    withPod(o, async (run) => {
      const said = await run(act, pod, options);
      assert.equal(said.code, code, said.err);
      assert.match(said.out + said.err, text);
    }));
}
