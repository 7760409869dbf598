import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseResolvConf } from '../../src/node/resolvConf.ts';

test('servers, the last search line and options are read; comments, dots and unknown words are not', () => {
  const text =
    '# made by dhcp\nnameserver 10.0.0.1\nnameserver 10.0.0.2 # second\nsearch a.example\nsearch lan. . home\noptions ndots:2 edns0\nsortlist 1.2.3.4\n';
  assert.deepEqual(parseResolvConf(text), { servers: ['10.0.0.1', '10.0.0.2'], searches: ['lan', 'home'], options: ['ndots:2', 'edns0'] });
});

test('at most three servers are handed on, and an empty file gives nothing', () => {
  assert.equal(parseResolvConf(['1', '2', '3', '4'].map((n) => `nameserver 10.0.0.${n}`).join('\n')).servers.length, 3);
  assert.deepEqual(parseResolvConf(''), { servers: [], searches: [], options: [] });
});
