import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SyncStatus } from '../../src/api/payloads.ts';
import { why, whyText } from '../../src/operations/why.ts';
import { missingObject } from '../../src/operations/whyMissing.ts';
import { cs, sync, told, waiting } from './view.ts';

test('what a container waits for is read from the kubelet’s texts, and from nothing else', () => {
  const table: readonly (readonly [string, ReturnType<typeof missingObject>])[] = [
    ['container web: configmap "site" not found', { kind: 'ConfigMap', name: 'site' }],
    ['container web: secret "db.pw" not found; it last ended with exit code 1 (Error)', { kind: 'Secret', name: 'db.pw' }],
    ["container web: couldn't find key app.port in ConfigMap kitchen/site", { kind: 'ConfigMap', name: 'site', key: 'app.port' }],
    ["couldn't find key k in Secret default/db; it last ended with exit code 1", { kind: 'Secret', name: 'db', key: 'k' }],
    ['container web: container has runAsNonRoot and image will run as root', undefined],
    ['service "x" not found', undefined],
  ];
  for (const [message, expected] of table) assert.deepEqual(missingObject(message), expected, message);
});

const object = (kind: string, name: string, o: Partial<SyncStatus> = {}): SyncStatus =>
  sync(name, { object: { kind, namespace: 'default', name }, phase: 'Accepted', reason: 'Accepted', message: 'accepted and kept', ...o });

const answer = (text: string, others: readonly SyncStatus[] = [], source = 'file:web.yaml'): string => {
  const reason = 'CreateContainerConfigError';
  const desired = { source, revision: 'abc123' };
  const w = why(
    { kind: 'Pod', namespace: 'default', name: 'web' },
    {
      pods: [told('web', { status: { containerStatuses: [cs('app', { state: waiting(reason, text) })] } })],
      sync: [sync('web', { phase: 'Waiting', reason, message: `container app: ${text}`, desired }), ...others],
      files: [],
      conditions: [],
    },
  );
  assert.ok(w);
  return whyText(w);
};

test('a missing object is named with its kind, where it belongs, and that the pod goes on by itself', () => {
  const text = answer('configmap "site" not found');
  assert.match(text, /^web is not running: CreateContainerConfigError\n {2}container app: configmap "site" not found\n/);
  assert.match(text, /Meaning: {4}The container's environment needs ConfigMap site, which is not there\.\n/);
  assert.match(
    text,
    /What helps: Put a file of kind: ConfigMap with the name site and the namespace default into the manifest folder, or mark the reference `optional: true`\. The pod starts by itself when it is there\.\n/,
  );
  assert.match(
    answer('secret "db" not found', [], 'mqtt:node'),
    /What helps: Put Secret db of the namespace default under this node's topics/,
  );
  assert.match(
    answer("couldn't find key k in Secret default/db", [object('Secret', 'db')]),
    /What helps: Add the key k to Secret db, or mark/,
  );
});

test('what is there and does not help is told: refused, of another source, in another namespace, spelt otherwise', () => {
  const table: readonly (readonly [SyncStatus, RegExp])[] = [
    [
      object('ConfigMap', 'site', { phase: 'Refused', reason: 'Invalid', message: 'site.yaml:3:1: data: expected a mapping, got 5' }),
      /What helps: ConfigMap site is there and refused \(site\.yaml:3:1: data: expected a mapping, got 5\)\. Correct it\./,
    ],
    [
      object('ConfigMap', 'site', { desired: { source: 'mqtt:all', revision: 'x' } }),
      /comes from mqtt:all, and a pod sees only .*Put a file/,
    ],
    [
      object('ConfigMap', 'site', { object: { kind: 'ConfigMap', namespace: 'kitchen', name: 'site' } }),
      /one in the namespace kitchen; .*Put a/,
    ],
    [object('ConfigMap', 'sites'), /What helps: Did you mean sites\? If not: put a file/],
    [object('Secret', 'site'), /What helps: Put a file/],
  ];
  for (const [other, expected] of table) assert.match(answer('configmap "site" not found', [other]), expected);
});

test('another mistake of a configuration keeps its own words', () => {
  const text = answer('container has runAsNonRoot and image will run as root');
  assert.match(text, /What helps: Read the message\./);
});
