import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describePod } from '../../src/operations/describe.ts';
import { fileRows } from '../../src/operations/fileRows.ts';
import { cs, ended, event, fileStatus, nowMs, ready, running, sync, told } from './view.ts';

const problem = { path: 'spec.containers[0].image', file: 'web.yaml', line: 7, column: 14, expected: 'a string', got: '5' };

test('a pod is described with its containers, sync and events', () => {
  const app = cs('app', { state: running, ready: true, restartCount: 2, lastState: ended(1, 'Error'), containerID: 'containerd://abc' });
  const text = describePod({
    pod: told('web', { status: { ...ready, containerStatuses: [app] }, metadata: { labels: { a: 'b', c: 'd' } } }),
    sync: sync('web'),
    events: [event('web', 'BackOff', 'back-off\n10s', { count: 3 })],
    nowMs,
  });
  for (const line of [
    /^Name: {9}web$/m,
    /^Labels: {7}a=b\n {14}c=d$/m,
    /^Annotations: {2}<none>$/m,
    /^Source: {7}file:web\.yaml$/m,
    /^Status: {7}Running$/m,
    /^ {4}Last State: +Terminated$/m,
    /^ {6}Exit Code: +1$/m,
    /^ {4}Restart Count: +2$/m,
    /^Sync: {9}Running \(Ready\)/m,
    /^ {2}Warning {2}BackOff {2}30s \(x3 over 10m\) {2}back-off 10s$/m,
  ]) {
    assert.match(text, line);
  }
});

test('the values under one heading begin in one column', () => {
  const conditions = ['PodReadyToStartContainers', 'Ready'].map((type) => ({ type, status: 'True' as const, lastTransitionTime: '' }));
  const text = describePod({ pod: told('web', { status: { ...ready, conditions } }), sync: sync('web'), events: [], nowMs });
  assert.match(text, /^Conditions:\n {2}PodReadyToStartContainers: {2}True\n {2}Ready: {22}True$/m);
});

test('a refused object without a pod is described by what its sources say', () => {
  const source = { source: 'file:web.yaml', phase: 'Refused' as const, reason: 'Invalid', message: 'no part', problems: [problem] };
  const text = describePod({
    sync: sync('web', { phase: 'Refused', reason: 'Invalid', message: 'm', sources: [source] }),
    events: [],
    nowMs,
  });
  assert.match(text, /^Status: {7}no pod$/m);
  assert.match(text, /Problem: .*web\.yaml:7:14: spec/);
  assert.match(text, /^Events: {7}<none>$/m);
});

test('files show what each became: its objects, the shadowed ones, and files in which nothing could be read', () => {
  const refused = {
    source: 'file:bad.yaml',
    phase: 'Refused' as const,
    reason: 'Invalid',
    message: 'no part',
    problems: [{ ...problem, file: 'bad.yaml' }],
  };
  const shadowed = {
    source: 'file:copy.yaml',
    phase: 'Shadowed' as const,
    reason: 'Shadowed',
    message: 'file:web.yaml wins',
    problems: [],
  };
  const rows = fileRows(
    [
      sync('web', { sources: [...sync('web').sources, shadowed] }),
      sync('bad', { phase: 'Refused', reason: 'Invalid', sources: [refused] }),
    ],
    [
      fileStatus('bad.yaml', [{ ...problem, file: 'bad.yaml' }]),
      fileStatus('half.yaml', [
        { path: '', file: 'half.yaml', line: 1, column: 2, expected: 'YAML', got: 'no' },
        { path: '', file: 'half.yaml', line: 3, column: 2, expected: 'YAML', got: 'no' },
      ]),
    ],
  );
  assert.deepEqual(
    rows.map((r) => [r.file, r.object, r.state, r.reason]),
    [
      ['bad.yaml', 'Pod/default/bad', 'Refused', 'Invalid'],
      ['copy.yaml', 'Pod/default/web', 'Shadowed', 'Shadowed'],
      ['half.yaml', '', 'Refused', 'Invalid'],
      ['web.yaml', 'Pod/default/web', 'Running', 'Ready'],
    ],
  );
  assert.match(rows[2]?.message ?? '', /half\.yaml:1:2: expected YAML, got no \(and 1 more\)/);
});
