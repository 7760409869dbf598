import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRateLimited, isUnreachable, pullReason } from '../../src/images/pullErrors.ts';
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
  ];
  for (const [text, unreachable, limited] of table) {
    assert.equal(isUnreachable(prefix + text), unreachable, text);
    assert.equal(isRateLimited(prefix + text), limited, text);
  }
  assert.equal(pullReason('RegistryUnavailable: busy'), 'RegistryUnavailable');
  assert.equal(pullReason('SignatureValidationFailed: no'), 'SignatureValidationFailed');
  assert.equal(pullReason('dial tcp'), 'ErrImagePull');
});
