/** Acts on pods: the words of a path, and whom each act is asked of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import { actOnPod, asksForPodAct, type PodActDeps, type PodActRequest, podActRequest } from '../../src/operations/podActs.ts';
import { cs, running, sync, told } from './view.ts';

const key = 'Pod/default/web' as KeyText;
const web = () => told('web', { status: { containerStatuses: [cs('app', { state: running })] } });

function rig(o: Partial<PodActDeps> = {}) {
  const did: string[] = [];
  const deps: PodActDeps = {
    pods: () => [web()],
    sync: () => [sync('web')],
    isWanted: (k) => k === key,
    isStopped: () => false,
    instance: () => 'uid-web' as PodUid,
    restart: (uid, containers) => did.push(`restart ${uid} ${containers.join()}`) > 0,
    renew: async (uid, k) => {
      did.push(`renew ${uid} ${k}`);
    },
    stop: async () => did.push('stop') > 0,
    start: async () => did.push('start') > 0,
    hold: async () => did.push('hold') > 0,
    release: async () => ({ hold: true, rollback: false, stillHeld: false }),
    rollBack: async () => ({ back: true, from: 'b', to: 'a', now: false }),
    ...o,
  };
  const act = (r: Partial<PodActRequest>) => actOnPod({ act: 'restart', namespace: 'default', pod: 'web', ...r }, deps);
  const text = async (r: Partial<PodActRequest>): Promise<string> => {
    const answer = await act(r);
    return answer.ok ? answer.value.message : `${answer.code} ${answer.message}`;
  };
  return { did, act, text };
}

test('a path says which act, which pod, and of a restart what of it', () => {
  const rows: readonly (readonly [string, string, unknown])[] = [
    ['/restart/default/web', '', { act: 'restart', namespace: 'default', pod: 'web' }],
    ['/restart/default/web', 'container=app', { act: 'restart', namespace: 'default', pod: 'web', container: 'app' }],
    ['/restart/default/web', 'new=1', { act: 'restart', namespace: 'default', pod: 'web', new: true }],
    ['/rollback/k%C3%BCche/cam', '', { act: 'rollback', namespace: 'küche', pod: 'cam' }],
  ];
  for (const [path, query, value] of rows) assert.deepEqual(podActRequest(path, query), { ok: true, value });
  const wrong: readonly (readonly [string, string])[] = [
    ['/stop/web', ''],
    ['/stop/a/b/c', ''],
    ['/stop/a/%', ''],
    ['/stop/a/b', 'container=app'],
    ['/restart/a/b', 'new=true'],
    ['/restart/a/b', 'container='],
    ['/restart/a/b', 'contaner=app'],
  ];
  for (const [path, query] of wrong) {
    const answer = podActRequest(path, query);
    assert.deepEqual([answer.ok, !answer.ok && answer.code], [false, 400], `${path}?${query}`);
  }
  assert.deepEqual(['/stop/a/b', '/stops/a/b', '/stop', '/stopp'].map(asksForPodAct), [true, false, false, false]);
});

test('restart is asked of the instance there is; new of the sources, and of no half-told pod', async () => {
  const { did, text } = rig();
  assert.equal(await text({}), 'pod/web restarts in place: app');
  assert.equal(await text({ container: 'app' }), 'pod/web restarts in place: app');
  assert.match(await text({ new: true }), /starts anew/);
  assert.deepEqual(did, ['restart uid-web app', 'restart uid-web app', 'renew uid-web Pod/default/web']);
  assert.match(await text({ new: true, container: 'app' }), /^400 /);
});

test('what would not help is refused, with what would', async () => {
  const rows: readonly (readonly [string, Partial<PodActDeps>, Partial<PodActRequest>, RegExp])[] = [
    ['not there', {}, { pod: 'cam' }, /^404 pod "cam" not found/],
    ['going', { isWanted: () => false }, {}, /^409 pod "web" is being removed/],
    ['stopped', { isStopped: () => true }, {}, /^409 .*podsched start web/],
    ['stopped, anew', { isStopped: () => true }, { new: true }, /^409 .*podsched start web/],
    ['stopped, back', { isStopped: () => true }, { act: 'rollback' }, /^409 .*podsched start web/],
    ['not begun', { instance: () => undefined }, {}, /^409 .*has not begun yet/],
    ['its predecessor still ends', { instance: () => 'uid-2' as PodUid }, {}, /^409 .*has not started yet/],
    ['nothing told', { pods: () => [] }, {}, /^409 .*has not started yet/],
    [
      'an update that waits',
      { sync: () => [sync('web', { phase: 'UpdateBlocked', reason: 'ErrImagePull', message: 'no such image' })] },
      { new: true },
      /^409 .*ErrImagePull: no such image.*without new it restarts as it is/,
    ],
  ];
  for (const [what, deps, request, expected] of rows) {
    const { did, text } = rig(deps);
    assert.match(await text(request), expected, what);
    assert.deepEqual(did, [], what);
  }
});

test('while the runtime has not said what there is, nothing is promised', async () => {
  assert.match(await rig({ restart: () => false }).text({}), /^409 what runs of pod "web" is not known yet/);
});

test('an update that waits keeps nobody from a restart in place', async () => {
  const { did, text } = rig({ sync: () => [sync('web', { phase: 'UpdateBlocked', reason: 'ErrImagePull', message: '' })] });
  await text({});
  assert.deepEqual(did, ['restart uid-web app']);
});

test('going back says when it waits', async () => {
  assert.match(await rig().text({ act: 'rollback' }), /goes back from revision b to a as soon as it can/);
  const { text } = rig({ rollBack: async () => ({ back: true, from: 'b', to: 'a', now: true }) });
  assert.match(await text({ act: 'rollback' }), /and is held there/);
});

test('what cannot be stored rejects, for whoever asked', async () => {
  await assert.rejects(rig({ stop: async () => Promise.reject(new Error('no space left')) }).act({ act: 'stop' }), /no space left/);
});
