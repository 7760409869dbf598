import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTarget, type Target } from '../../src/operations/target.ts';
import { type WhyFacts, why, whyText } from '../../src/operations/why.ts';
import { cs, ended, fileStatus, sync, told, waiting } from './view.ts';

const web: Target = { kind: 'Pod', namespace: 'default', name: 'web' };
const facts = (o: Partial<WhyFacts> = {}): WhyFacts => ({ pods: [], sync: [], files: [], conditions: [], ...o });
const problem = { path: 'spec.containers[0].image', file: 'web.yaml', line: 7, column: 14, expected: 'a string', got: '5', nearest: '"5"' };

test('a pod that runs well is told in one line, without advice', () => {
  const w = why(web, facts({ sync: [sync('web')], pods: [told('web')] }));
  assert.ok(w?.well);
  assert.equal(whyText(w), 'web is running\n  all containers are ready\n');
});

test('a crash loop is told with its container, its last end, the remedy and the next try', () => {
  const app = cs('app', { state: waiting('CrashLoopBackOff', 'back-off 40s'), restartCount: 4, lastState: ended(137, 'OOMKilled') });
  const w = why(
    web,
    facts({
      sync: [sync('web', { phase: 'Waiting', reason: 'CrashLoopBackOff', message: 'app: back-off 40s', nextRetrySeconds: 32 })],
      pods: [told('web', { status: { containerStatuses: [cs('ok'), app] } })],
    }),
  );
  assert.ok(w);
  assert.equal(w.well, false);
  assert.deepEqual(w.container, {
    name: 'app',
    restarts: 4,
    lastEnd: 'exit code 137 (OOMKilled)',
    logs: 'podsched logs web -c app',
  });
  const text = whyText(w);
  assert.match(text, /^ {2}Log: {8}podsched logs web -c app$/m);
  assert.match(text, /^web is not running: CrashLoopBackOff\n {2}app: back-off 40s\n/);
  assert.match(text, /What helps: .*memory limit/);
  assert.match(text, /Next try: {3}within 32 s/);
});

test('the log that says more is named by its command: the previous one of a container that runs again', () => {
  const c = cs('app', { state: { running: { startedAt: '2026-01-01T00:59:00Z' } }, restartCount: 1, lastState: ended(1, 'Error') });
  const object = { kind: 'Pod', namespace: 'kitchen', name: 'web' };
  const pod = told('web', { metadata: { namespace: 'kitchen' }, status: { containerStatuses: [c] } });
  const w = why({ ...web, namespace: 'kitchen' }, facts({ sync: [sync('web', { object, reason: 'ContainersNotReady' })], pods: [pod] }));
  assert.equal(w?.container?.logs, 'podsched logs web -n kitchen -p');
});

test('a refused object is told with the place of each mistake, under the folder it lies in', () => {
  const source = {
    source: 'file:web.yaml',
    phase: 'Refused' as const,
    reason: 'Invalid',
    message: 'it takes no part',
    problems: [problem],
  };
  const { desired: _, ...rest } = sync('web', {
    phase: 'Refused',
    reason: 'Invalid',
    message: 'web.yaml:7:14 spec.containers[0].image: expected a string, got 5',
    sources: [source],
  });
  const w = why(web, facts({ sync: [rest] }));
  assert.ok(w);
  assert.match(
    whyText(w, '/etc/podsched/'),
    /^web is refused: Invalid\n {2}\/etc\/podsched\/web\.yaml:7:14: spec\.containers\[0\]\.image: expected a string, got 5; did you mean "5"\?\n {2}Meaning/,
  );
});

test('an object that is accepted and runs is not well when its newest text is refused', () => {
  const refused = { source: 'file:web.yaml', phase: 'Refused' as const, reason: 'Invalid', message: 'refused', problems: [problem] };
  const w = why(web, facts({ sync: [sync('web', { reason: 'EditRefused', sources: [refused] })], pods: [told('web')] }));
  assert.equal(w?.well, false);
  assert.equal(w?.state, 'is running');
  assert.equal(w?.problems.length, 1);
  assert.ok(w?.remedy);
});

test('what of the node stands in the way is told, and other sources of the object', () => {
  const shadowed = { source: 'file:b.yaml', phase: 'Shadowed' as const, reason: 'Shadowed', message: 'file:web.yaml wins', problems: [] };
  const w = why(
    web,
    facts({
      sync: [sync('web', { phase: 'Waiting', reason: 'ContainerCreating', message: '', sources: [...sync('web').sources, shadowed] })],
      conditions: [
        { type: 'NetworkNotReady', status: 'True', reason: 'X', message: 'no CNI' },
        { type: 'WatchDegraded', status: 'True', reason: 'X', message: 'polling' },
        { type: 'RuntimeDown', status: 'False', reason: 'X', message: '' },
      ],
    }),
  );
  assert.deepEqual(w?.notes, ['file:b.yaml: Shadowed: file:web.yaml wins', 'node: NetworkNotReady: no CNI']);
});

test('a file in which no object can be read answers for the pod of its name', () => {
  const half = { path: '', file: 'web.yaml', line: 2, column: 1, expected: 'YAML', got: 'half of it' };
  const w = why(web, facts({ files: [fileStatus('web.yaml', [half])] }));
  assert.deepEqual([w?.state, w?.reason, w?.problems.length], ['is refused', 'Invalid', 1]);
  assert.equal(why(web, facts({ files: [fileStatus('other.yaml', [half])] })), undefined);
});

test('a pod that no source names any more is ending', () => {
  const w = why(web, facts({ pods: [told('web', { metadata: { deletionTimestamp: '2026-01-01T01:00:00Z' } })] }));
  assert.deepEqual([w?.state, w?.reason], ['is ending', 'Removed']);
  assert.equal(why(web, facts()), undefined);
});

test('ConfigMaps and Secrets have an answer too', () => {
  const object = { kind: 'ConfigMap', namespace: 'default', name: 'app' };
  const target = parseTarget('cm/app', 'default');
  assert.ok(target);
  const w = why(target, facts({ sync: [sync('app', { object, phase: 'Accepted', reason: 'Accepted', message: 'accepted and kept' })] }));
  assert.deepEqual([w?.well, w?.state], [true, 'is accepted and kept']);
});

test('an object is written NAME or kind/NAME', () => {
  assert.deepEqual(parseTarget('web', 'x'), { kind: 'Pod', namespace: 'x', name: 'web' });
  assert.deepEqual(parseTarget('Pods/web', 'x'), { kind: 'Pod', namespace: 'x', name: 'web' });
  for (const text of ['', 'a/b/c', 'node/x', 'pod/', 'constructor/x']) assert.equal(parseTarget(text, 'x'), undefined, text);
});
