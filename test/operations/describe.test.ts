import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describePod } from '../../src/operations/describe.ts';
import { fileRows } from '../../src/operations/fileRows.ts';
import { cs, ended, event, fileStatus, nowMs, ready, running, sync, told } from './view.ts';

const problem = { path: 'spec.containers[0].image', file: 'web.yaml', line: 7, column: 14, expected: 'a string', got: '5' };

test('a pod is described with its containers, sync and events', () => {
  const app = cs('app', { state: running, ready: true, restartCount: 2, lastState: ended(1, 'Error'), containerID: 'containerd://abc' });
  const text = describePod({
    pod: told('web', { status: { ...ready, containerStatuses: [app] }, metadata: { labels: { a: 'b' } } }),
    sync: sync('web'),
    events: [event('web', 'BackOff', 'back-off\n10s', { count: 3 })],
    nowMs,
  });
  for (const line of [
    /^Name: {14}web$/m,
    /^Labels: {12}a=b$/m,
    /^Annotations: {7}<none>$/m,
    /^Source: {12}file:web\.yaml$/m,
    /^Status: {12}Running$/m,
    /^ {4}Last State: +Terminated$/m,
    /^ {6}Exit Code: +1$/m,
    /^ {4}Restart Count: +2$/m,
    /^Sync: {14}Running \(Ready\)/m,
    /^ {2}Warning {2}BackOff {2}30s \(x3 since 10m\) {2}back-off 10s$/m,
  ]) {
    assert.match(text, line);
  }
});

test('a refused object without a pod is described by what its sources say', () => {
  const source = { source: 'file:web.yaml', phase: 'Refused' as const, reason: 'Invalid', message: 'no part', problems: [problem] };
  const text = describePod({
    sync: sync('web', { phase: 'Refused', reason: 'Invalid', message: 'm', sources: [source] }),
    events: [],
    nowMs,
  });
  assert.match(text, /^Status: {12}no pod$/m);
  assert.match(text, /Problem: .*web\.yaml:7:14: spec/);
  assert.match(text, /^Events: {12}<none>$/m);
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
