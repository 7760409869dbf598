import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podHashes } from '../../src/api/hash.ts';
import { toDesiredPod } from '../../src/api/instance.ts';
import type { PodUid, Source } from '../../src/api/objects.ts';
import { pod, rawPod } from './objects.ts';

const of = (raw: Record<string, unknown>, source: Source = 'file:web.yaml') =>
  toDesiredPod(pod(raw), { uid: 'u-1' as PodUid, source, nodeName: 'pi-07', firstSeen: '2024-05-01T10:00:00Z' });

test('an instance has its own UID, the hashes of what was written, and the defaults', () => {
  const raw = rawPod({}, {}, { uid: 'mine', labels: { a: 'b' }, annotations: { note: 'x' } });
  const desired = of(raw);
  assert.deepEqual(
    {
      uid: desired.uid,
      key: desired.key,
      name: desired.name,
      namespace: desired.namespace,
      source: desired.source,
      firstSeen: desired.firstSeen,
    },
    { uid: 'u-1', key: 'Pod/default/web', name: 'web', namespace: 'default', source: 'file:web.yaml', firstSeen: '2024-05-01T10:00:00Z' },
  );
  const { podHash, workHash, revision, containerHashes } = desired;
  assert.deepEqual({ podHash, workHash, revision, containerHashes }, podHashes(pod(raw)));
  assert.deepEqual(desired.pod.metadata, {
    name: 'web',
    namespace: 'default',
    uid: 'u-1',
    creationTimestamp: '2024-05-01T10:00:00Z',
    labels: { a: 'b' },
    annotations: {
      note: 'x',
      'kubernetes.io/config.hash': revision,
      'kubernetes.io/config.seen': '2024-05-01T10:00:00Z',
      'kubernetes.io/config.source': 'file',
    },
  });
  assert.equal(desired.pod.spec.nodeName, 'pi-07');
  assert.equal(desired.pod.spec.restartPolicy, 'Always');
});

test('bookkeeping of an API server in a manifest is not told as ours', () => {
  const { pod: told } = of(
    rawPod({}, {}, { deletionTimestamp: '2020-01-01T00:00:00Z', generation: 4, finalizers: ['x'], ownerReferences: [{}] }),
    'mqtt:all',
  );
  assert.deepEqual(Object.keys(told.metadata), ['name', 'namespace', 'uid', 'creationTimestamp', 'annotations']);
  assert.equal(told.metadata.annotations?.['kubernetes.io/config.source'], 'mqtt');
});
