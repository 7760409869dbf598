import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOfRegistry, isRateLimited, isUnreachable, pullReason, retryAfterMs } from '../../src/images/pullErrors.ts';
import { parseReference } from '../../src/images/reference.ts';

test('image names: the default tag, the registry, and what is no name', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const good: [string, string, string][] = [
    ['busybox', 'busybox:latest', 'docker.io'],
    ['busybox:1', 'busybox:1', 'docker.io'],
    ['library/busybox', 'library/busybox:latest', 'docker.io'],
    ['localhost/busybox:1', 'localhost/busybox:1', 'localhost'],
    ['127.0.0.1:1/none/such:2', '127.0.0.1:1/none/such:2', '127.0.0.1:1'],
    ['registry.example:5000/a/b', 'registry.example:5000/a/b:latest', 'registry.example:5000'],
    ['ghcr.io/x/y__z.w--v:V1.0_a-b', 'ghcr.io/x/y__z.w--v:V1.0_a-b', 'ghcr.io'],
    [`x@${digest}`, `x@${digest}`, 'docker.io'],
    [`x:1@${digest}`, `x:1@${digest}`, 'docker.io'],
    ['[::1]:5000/x', '[::1]:5000/x:latest', '[::1]:5000'],
  ];
  for (const [image, named, registry] of good) assert.deepEqual(parseReference(image), { ok: true, image: named, registry }, image);
  const upper = parseReference('Bad/UPPER:tag');
  assert.ok(!upper.ok);
  assert.equal(
    upper.message,
    `couldn't parse image name "Bad/UPPER:tag": invalid reference format: repository name (UPPER) must be lowercase`,
  );
  const bad = [
    '',
    ' ',
    'Busybox',
    'a b',
    'x:',
    ':1',
    'x@sha256:12',
    '-x',
    'x-',
    'x//y',
    'a..b',
    'x:1:2',
    'ho_st:1x/y',
    `x:${'t'.repeat(129)}`,
    'a'.repeat(250),
    'b'.repeat(64),
  ];
  for (const image of bad) assert.equal(parseReference(image).ok, false, JSON.stringify(image));
});

test('a failed pull: who answered, who did not, who asks for patience', () => {
  const prefix = 'failed to pull and unpack image "x.example/denied:1": failed to resolve reference "x.example/denied:1": ';
  const table: [string, boolean, boolean][] = [
    [
      'failed to do request: Head "https://x.example/v2/denied/manifests/1": dial tcp 192.0.2.1:443: connect: connection refused',
      true,
      false,
    ],
    ['failed to do request: Head "https://x.example/": dial tcp: lookup x.example: no such host', true, false],
    ['failed to do request: Head "https://x.example/": net/http: TLS handshake timeout', true, false],
    ['failed to do request: tls: failed to verify certificate: x509: certificate has expired or is not yet valid', true, false],
    ['unexpected status from HEAD request to https://x.example/v2/: 503 Service Unavailable', true, false],
    ['unexpected status code [manifests 1]: 429 Too Many Requests - toomanyrequests: You have reached your pull rate limit', true, true],
    ['x.example/denied:1: not found', false, false],
    [
      'pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials',
      false,
      false,
    ],
    ['unexpected status from HEAD request to https://x.example/v2/: 401 Unauthorized', false, false],
    ['no match for platform in manifest: not found', false, false],
    ['x.example/app:429: not found', false, false],
    ['pull stalled: 0 bytes in 2m0s', true, false],
  ];
  for (const [text, unreachable, limited] of table) {
    assert.equal(isUnreachable(prefix + text), unreachable, text);
    assert.equal(isRateLimited(prefix + text), limited, text);
  }
  assert.equal(pullReason('RegistryUnavailable: busy'), 'RegistryUnavailable');
  assert.equal(pullReason('SignatureValidationFailed: no'), 'SignatureValidationFailed');
  assert.equal(pullReason('dial tcp'), 'ErrImagePull');
  assert.equal(pullReason('no match for platform in manifest: not found'), 'WrongPlatform');
});

test('a failed pull: whether it is the registry’s, for every image of it, or the image’s own', () => {
  const table: [string, boolean][] = [
    ['failed to do request: Head "https://x.example/": dial tcp 192.0.2.1:443: connect: connection refused', true],
    ['failed to do request: Head "https://x.example/": dial tcp: lookup x.example on 192.0.2.1:53: server misbehaving', true],
    ['failed to do request: Get "https://x.example/": net/http: TLS handshake timeout', true],
    ['unexpected status from HEAD request to https://x.example/v2/app/manifests/1: 503 Service Unavailable', true],
    ['unexpected status from HEAD request to https://x.example/v2/app/manifests/1: 500 Internal Server Error', false],
    ['unexpected status from HEAD request to https://x.example/v2/app/manifests/503: 500 Internal Server Error', false],
    ['unexpected status code [manifests 1]: 429 Too Many Requests', true],
    ['no answer in 10s', true],
    ['pull stalled: 0 bytes in 2m0s', true],
    ['pull stalled: 1048576 bytes in 2m0s', false],
    ['failed to copy: httpReadSeeker: failed open: unexpected EOF', false],
    ['tls: failed to verify certificate: x509: certificate signed by unknown authority', false],
    ['x.example/app:1: not found', false],
    ['"dial tcp" is unauthorized', false],
  ];
  for (const [text, registry] of table) assert.equal(isOfRegistry(text), registry, text);
});

test('Retry-After, in the spellings that texts have it', () => {
  const table: [string, number | undefined][] = [
    ['429 Too Many Requests - toomanyrequests: retry-after: 60', 60_000],
    ['toomanyrequests: retry-after: 851.5µs, allowed: 44000/minute', 0.8515],
    ['retry-after: 1m30s', 90_000],
    ['retry-after: 1.5s', 1500],
    ['toomanyrequests: retry after 30s', 30_000],
    ['{"Retry-After":"5"}', 5000],
    ['Retry-After: 2m', 120_000],
    ['Retry-After: 500 ms', 500],
    ['Retry-After: 99999999', 3_600_000],
    ['try again later', undefined],
  ];
  for (const [text, ms] of table) assert.equal(retryAfterMs(text), ms, text);
});
