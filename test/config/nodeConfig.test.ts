import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readNodeConfig } from '../../src/config/nodeConfig.ts';

const head = { apiVersion: 'podsched.dev/v1', kind: 'NodeConfig' };

test('what may be changed from afar is read, and nothing else of it', () => {
  const value = {
    ...head,
    generation: 2,
    groups: ['attic', 'cams', 'attic'],
    labels: { 'a.b/site': 'x', y: '' },
    heartbeatSeconds: 60,
    logLevel: 'debug',
  };
  const read = readNodeConfig({ ...value, nodeName: 'other', policy: { mqtt: { allow: 'all' } } });
  assert.deepEqual(read, { ok: true, config: { ...value, groups: ['attic', 'cams'] } });
});

test('an empty one is a good one', () => assert.deepEqual(readNodeConfig(head), { ok: true, config: head }));

const bad: readonly (readonly [claim: string, value: unknown, path: string])[] = [
  ['no object', 'x', ''],
  ['another kind', { ...head, kind: 'Command' }, 'kind'],
  ['another version', { ...head, apiVersion: 'v1' }, 'apiVersion'],
  ['groups that are no list', { ...head, groups: 'attic' }, 'groups'],
  ['too many groups', { ...head, groups: Array.from({ length: 33 }, (_, i) => `g${i}`) }, 'groups'],
  ['a group with a slash', { ...head, groups: ['a/b'] }, 'groups[0]'],
  ['a group with a wildcard', { ...head, groups: ['a', '+'] }, 'groups[1]'],
  ['a group that is a number', { ...head, groups: [5] }, 'groups[0]'],
  ['labels that are a list', { ...head, labels: ['a'] }, 'labels'],
  ['a label with a space', { ...head, labels: { a: 'x y' } }, 'labels[a]'],
  ['a label key that is none', { ...head, labels: { '-': 'x' } }, 'labels[-]'],
  ['a label that is a number', { ...head, labels: { a: 5 } }, 'labels[a]'],
  ['a heartbeat of no time', { ...head, heartbeatSeconds: 0 }, 'heartbeatSeconds'],
  ['a heartbeat of two days', { ...head, heartbeatSeconds: 172_800 }, 'heartbeatSeconds'],
  ['an unknown level', { ...head, logLevel: 'loud' }, 'logLevel'],
  ['a generation below zero', { ...head, generation: -1 }, 'generation'],
];
for (const [claim, value, path] of bad) {
  test(`_config is refused as a whole: ${claim}`, () => {
    const read = readNodeConfig(value);
    assert.ok(!read.ok);
    assert.equal(read.problems[0]?.path, path);
  });
}
