import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fleetAnnotations } from '../../src/agentNodeStatus.ts';

test('a node that nobody set anything of tells nothing beside', () => {
  assert.deepEqual(fleetAnnotations({ groups: [], sealingKey: undefined, config: undefined }), {});
  assert.deepEqual(
    fleetAnnotations({ groups: [], sealingKey: undefined, config: { apiVersion: 'podsched.dev/v1', kind: 'NodeConfig' } }),
    {},
  );
});

test('groups in their order, the sealing key, and what was set from afar are told in info', () => {
  const told = fleetAnnotations({
    groups: ['attic', 'all-cams'],
    sealingKey: 'c2VhbGluZw==',
    config: { apiVersion: 'podsched.dev/v1', kind: 'NodeConfig', generation: 4, heartbeatSeconds: 30, labels: { site: 'attic' } },
  });
  assert.deepEqual(told, {
    groups: 'attic,all-cams',
    'sealing-key': 'c2VhbGluZw==',
    config: '{"generation":4,"heartbeatSeconds":30,"labels":{"site":"attic"}}',
  });
});
