import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathParts } from '../../src/operations/answered.ts';

const of = (path: string) => {
  const parts = pathParts(path, '/debug/', ['namespace', 'pod']);
  return parts.ok ? parts.value : `${parts.code} ${parts.message}`;
};

test('a path has as many parts as are meant, none of them empty, each of them text', () => {
  assert.deepEqual(of('/debug/default/web'), { namespace: 'default', pod: 'web' });
  assert.deepEqual(of('/debug/a%2Fb/w%20b'), { namespace: 'a/b', pod: 'w b' });
  for (const path of [
    '/debug/',
    '/debug/default',
    '/debug/default/',
    '/debug//web',
    '/debug/default/web/',
    '/debug/a/b/c',
    '/debug/%zz/web',
  ])
    assert.equal(of(path), '400 /debug/{namespace}/{pod} is meant', path);
});
