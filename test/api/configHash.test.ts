import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  absentHash,
  contentHash,
  hasChanged,
  isUsable,
  markText,
  type ObjectUse,
  readMark,
  usesOf,
  wantsRestartOnChange,
} from '../../src/api/configHash.ts';
import type { ConfigMap, Container, Pod, Secret, Volume } from '../../src/api/v1.ts';

const key = new Uint8Array(32).fill(7);
const otherKey = new Uint8Array(32).fill(8);
const map = (data: Record<string, string>, binaryData?: Record<string, string>): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'site' },
  data,
  ...(binaryData && { binaryData }),
});
const secret = (data: Record<string, string>, stringData?: Record<string, string>): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db' },
  data,
  ...(stringData && { stringData }),
});
const uses = (container: Partial<Container>, volumes: readonly Volume[] = []): ObjectUse[] =>
  usesOf({ spec: { containers: [], volumes } } as unknown as Pod, { ...container });
const first = (container: Partial<Container>, volumes?: readonly Volume[]): ObjectUse => {
  const [use] = uses(container, volumes);
  assert.ok(use);
  return use;
};
const use = (o: Partial<ObjectUse>): ObjectUse => ({
  kind: 'ConfigMap',
  name: 'site',
  what: 'named',
  keys: [],
  required: true,
  requiredKeys: [],
  ...o,
});

test('an environment uses the keys it names, or every key of what it takes whole', () => {
  const env = [
    { name: 'A', valueFrom: { configMapKeyRef: { name: 'site', key: 'b' } } },
    { name: 'B', valueFrom: { configMapKeyRef: { name: 'site', key: 'a', optional: true } } },
    { name: 'C', value: 'plain' },
  ];
  assert.deepEqual(uses({ env }), [use({ keys: ['a', 'b'], requiredKeys: ['b'] })]);
  assert.deepEqual(uses({ env, envFrom: [{ configMapRef: { name: 'site', optional: true } }] }), [
    use({ what: 'texts', keys: ['a', 'b'], requiredKeys: ['b'] }),
  ]);
  assert.deepEqual(uses({ envFrom: [{ secretRef: { name: 'db', optional: true } }] }), [
    use({ kind: 'Secret', name: 'db', what: 'texts', required: false }),
  ]);
  assert.deepEqual(uses({}), []);
});

test('a volume is used by the containers that mount it: all keys, its items, or what a subPath shows', () => {
  const site: Volume = { name: 'v', configMap: { name: 'site' } };
  const items: Volume = {
    name: 'v',
    configMap: {
      name: 'site',
      items: [
        { key: 'a', path: 'etc/a.conf' },
        { key: 'b', path: 'b' },
      ],
    },
  };
  const mount = (o: object = {}) => ({ volumeMounts: [{ name: 'v', mountPath: '/v', ...o }] });
  assert.deepEqual(uses({ volumeMounts: [{ name: 'other', mountPath: '/v' }] }, [site]), []);
  assert.deepEqual(first(mount(), [site]), use({ what: 'all' }));
  assert.deepEqual(first(mount({ subPath: './a' }), [site]), use({ keys: ['a'] }));
  assert.deepEqual(first(mount({ subPathExpr: '$(A)' }), [site]), use({ what: 'all' }));
  assert.deepEqual(first(mount(), [items]), use({ keys: ['a', 'b'], requiredKeys: ['a', 'b'] }));
  assert.deepEqual(first(mount({ subPath: 'etc' }), [items]), use({ keys: ['a'], requiredKeys: ['a', 'b'] }));
  assert.deepEqual(first(mount({ subPath: 'b/' }), [items]), use({ keys: ['b'], requiredKeys: ['a', 'b'] }));
  const twice = { volumeMounts: [...mount({ subPath: 'a' }).volumeMounts, ...mount().volumeMounts] };
  assert.equal(first(twice, [site]).what, 'all');
});

test('sources of a projected volume and Secret volumes count as well', () => {
  const volumes: readonly Volume[] = [
    { name: 's', secret: { secretName: 'db', optional: true } },
    {
      name: 'p',
      projected: { sources: [{ configMap: { name: 'site', items: [{ key: 'a', path: 'a' }] } }, { downwardAPI: {} }] },
    },
  ];
  const volumeMounts = [
    { name: 's', mountPath: '/s' },
    { name: 'p', mountPath: '/p' },
  ];
  assert.deepEqual(uses({ volumeMounts }, volumes), [
    use({ keys: ['a'], requiredKeys: ['a'] }),
    use({ kind: 'Secret', name: 'db', what: 'all', required: false }),
  ]);
});

test('the hash follows the values that are used, and nothing else', () => {
  const named = use({ keys: ['a'] });
  const of = (u: ObjectUse, o: ConfigMap | Secret): string => contentHash(key, u, o);
  assert.equal(of(named, map({ a: '1', b: '2' })), of(named, map({ b: '3', a: '1' })));
  assert.notEqual(of(named, map({ a: '1' })), of(named, map({ a: '2' })));
  assert.notEqual(of(named, map({ a: '' })), of(named, map({})));
  const all = use({ what: 'all' });
  assert.equal(of(all, map({ a: '1', b: '2' })), of(all, map({ b: '2', a: '1' })));
  assert.notEqual(of(all, map({ a: '1' })), of(all, map({ a: '1' }, { b: 'AA==' })));
  assert.notEqual(of(all, map({ a: '1', b: '' })), of(all, map({ a: '1' })));
  // an environment holds no bytes
  assert.equal(of(use({ what: 'texts' }), map({ a: '1' })), of(use({ what: 'texts' }), map({ a: '1' }, { b: 'AA==' })));
  assert.notEqual(of(use({ what: 'texts', keys: ['b'] }), map({})), of(use({ what: 'texts', keys: ['b'] }), map({}, { b: 'AA==' })));
  // two values that run together are not one
  assert.notEqual(of(all, map({ a: '1', b: '2' })), of(all, map({ a: '1b2' })));
});

test('a Secret means its values, however they are written; stringData wins', () => {
  const db = use({ kind: 'Secret', name: 'db', what: 'all' });
  const hash = contentHash(key, db, secret({ pw: 'c2VjcmV0' }));
  assert.equal(contentHash(key, db, secret({}, { pw: 'secret' })), hash);
  assert.equal(contentHash(key, db, secret({ pw: 'b2xk' }, { pw: 'secret' })), hash);
  assert.notEqual(contentHash(key, db, secret({ pw: 'b2xk' })), hash);
});

test('without the node’s key nobody can try out values: another key gives another hash', () => {
  const db = use({ kind: 'Secret', name: 'db', what: 'all' });
  const value = secret({}, { pw: '1234' });
  assert.match(contentHash(key, db, value), /^[0-9a-f]{16}$/);
  assert.notEqual(contentHash(key, db, value), contentHash(otherKey, db, value));
});

test('the mark is text of scheme 1, which stays as it is', () => {
  const mark = new Map([
    ['ConfigMap/site', contentHash(key, use({ keys: ['a'] }), map({ a: '1' }))],
    ['Secret/db', absentHash],
  ]);
  const text = markText(key, mark);
  assert.equal(text, '1:4bb06f8e ConfigMap/site=da016b1c2767a129 Secret/db=-');
  assert.deepEqual(readMark(key, text), mark);
  for (const foreign of [undefined, '', '2:4bb06f8e ConfigMap/site=1', markText(otherKey, mark), 'x'])
    assert.equal(readMark(key, foreign), undefined);
});

test('changed is what has another value now; what is missing now, or what the mark does not know, is not', () => {
  const was = new Map([
    ['ConfigMap/a', '1'],
    ['Secret/b', absentHash],
  ]);
  const changed = (...now: [string, string][]): boolean => hasChanged(was, new Map(now));
  assert.equal(changed(['ConfigMap/a', '1'], ['Secret/b', absentHash]), false);
  assert.equal(changed(['ConfigMap/a', '2'], ['Secret/b', absentHash]), true);
  assert.equal(changed(['ConfigMap/a', absentHash]), false);
  assert.equal(changed(['Secret/b', '1']), true);
  assert.equal(changed(['Secret/c', '1']), false);
});

test('what a container cannot do without must be there', () => {
  const needs = use({ requiredKeys: ['a'] });
  assert.equal(isUsable(needs, map({ a: '' })), true);
  assert.equal(isUsable(needs, map({}, { a: 'AA==' })), true);
  assert.equal(isUsable(needs, map({ b: '' })), false);
  assert.equal(isUsable(needs, undefined), false);
  assert.equal(isUsable(use({ required: false }), undefined), true);
  assert.equal(isUsable(use({ kind: 'Secret', requiredKeys: ['a'] }), secret({}, { a: '' })), true);
});

test('only the annotation asks for it', () => {
  const pod = (value?: string) => ({
    metadata: { name: 'web', annotations: value === undefined ? {} : { 'podsched.dev/restart-on-change': value } },
  });
  assert.equal(wantsRestartOnChange(pod('true')), true);
  for (const value of [undefined, 'false', '']) assert.equal(wantsRestartOnChange(pod(value)), false);
});
