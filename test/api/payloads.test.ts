import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import { FileStatusSchema, type NodeOnline, NodeOnlineSchema, type SyncStatus, SyncStatusSchema } from '../../src/api/payloads.ts';

const online: NodeOnline = {
  apiVersion: 'podsched.dev/v1',
  kind: 'NodeOnline',
  node: 'pi-07',
  state: 'online',
  machine: 'ab12',
  bootID: 'b',
  session: 1,
  heartbeatSeconds: 60,
  agentVersion: '0.1.0',
  contract: 1,
  clockSynced: true,
  boot: 1,
  seq: 2,
};
const sync: SyncStatus = {
  apiVersion: 'podsched.dev/v1',
  kind: 'SyncStatus',
  object: { kind: 'Pod', namespace: 'default', name: 'web' },
  phase: 'Running',
  reason: 'Ready',
  message: '',
  desired: { source: 'file:web.yaml', revision: 'abcdef012345' },
  running: { revision: 'abcdef012345', uid: 'u' },
  sources: [
    {
      source: 'file:web.yaml',
      revision: 'abcdef012345',
      phase: 'Accepted',
      reason: 'Accepted',
      message: '',
      problems: [{ path: 'spec', file: 'web.yaml', line: 1, column: 1, expected: 'a', got: 'b', nearest: 'c' }],
    },
  ],
  boot: 1,
  seq: 2,
};

test('the examples of the contract fit their schemas, and unknown fields are no fault', () => {
  assert.ok(Value.Check(NodeOnlineSchema, online));
  assert.ok(Value.Check(SyncStatusSchema, { ...sync, later: 1 }));
  assert.ok(
    Value.Check(FileStatusSchema, {
      apiVersion: 'podsched.dev/v1',
      kind: 'FileStatus',
      file: 'a',
      objects: [],
      problems: [],
      boot: 1,
      seq: 1,
    }),
  );
});

test('what is outside the closed sets is found', () => {
  assert.ok(!Value.Check(NodeOnlineSchema, { ...online, state: 'up' }));
  assert.ok(!Value.Check(SyncStatusSchema, { ...sync, phase: 'Shadowed' }));
  assert.ok(!Value.Check(SyncStatusSchema, { ...sync, seq: 'x' }));
});

test('a schema is JSON Schema as it stands', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(SyncStatusSchema)).required, [
    'apiVersion',
    'kind',
    'object',
    'phase',
    'reason',
    'message',
    'sources',
    'boot',
    'seq',
  ]);
});
