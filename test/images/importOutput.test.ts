/** What ctr's words and an archive's first bytes are taken for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOtherPlatform, lastWords, nameProblem, namesIn, packingOf } from '../../src/images/importOutput.ts';

test('an archive is packed as its first bytes say, whatever its name', () => {
  const table = [
    [[0x1f, 0x8b, 8, 0], 'gzip'],
    [[0x28, 0xb5, 0x2f, 0xfd], 'zstd'],
    [[0x6d, 0x61, 0x6e, 0x69], 'plain'],
    [[0x28, 0xb5, 0x2f], 'plain'],
    [[], 'plain'],
  ] as const;
  for (const [bytes, packing] of table) assert.equal(packingOf(Uint8Array.from(bytes)), packing, String(bytes));
});

test('the names are read from the words of containerd 1.x and 2.x, each once', () => {
  const one = `unpacking localhost/a:1 (sha256:${'a'.repeat(64)})...done\nunpacking docker.io/library/b:2 (sha256:${'b'.repeat(64)})...done\n`;
  assert.deepEqual(namesIn(one), ['localhost/a:1', 'docker.io/library/b:2']);
  const two = 'localhost/a:1   saved\t\n└──manifest (aaaa)   complete\t|+++|\nlocalhost/a:1   saved\t\n';
  assert.deepEqual(namesIn(two), ['localhost/a:1']);
  assert.deepEqual(namesIn('application/vnd.oci.image\nunpacking a b (sha256:00)...\n'), []);
  assert.deepEqual(namesIn('unpacking localhost/e\n\x1b[31mvil (x):1 (sha256:aa)...done\n'), []);
});

test('a name that no pod can ask for is told with its reason, and without what could steer a terminal', () => {
  const table = [
    ['localhost/a:1', undefined],
    ['docker.io/library/busybox:1.36', undefined],
    [`registry.k8s.io/pause@sha256:${'a'.repeat(64)}`, undefined],
    ['short:1', /name "short:1" in it is not complete.*docker\.io\/library\/short:1/],
    ['import-2026-11-29:latest', /has no name, only a tag or none/],
    [`import-2026-11-29@sha256:${'a'.repeat(64)}`, /has no name/],
    ['localhost/\x1b[31mA:1', /a name that is none \("localhost\/ \[31mA:1"\)/],
  ] as const;
  for (const [name, expected] of table) {
    const problem = nameProblem(name);
    if (expected === undefined) assert.equal(problem, undefined, name);
    else assert.match(problem ?? '', expected);
  }
});

test('of what a program said before it ended its last line is told, and what it means', () => {
  const table = [
    ['ctr: archive/tar: invalid tar header\n', 'archive/tar: invalid tar header (it is no archive of images, or damaged)'],
    ['ctr: failed to ingest "layer.tar": unexpected EOF', 'failed to ingest "layer.tar": unexpected EOF (the file is cut short)'],
    ['\ngzip: stdin: unexpected end of file\n', 'unexpected end of file (the file is cut short)'],
    ['/*stdin*\\ : Read error (39) : premature end \n', 'Read error (39) : premature end (the file is cut short)'],
    ['first\nctr: no space left on device\n\n', 'no space left on device'],
    ['ctr: \x1b[31mred\u202e', 'red'],
    ['', ''],
  ] as const;
  for (const [stderr, words] of table) assert.equal(lastWords(stderr).replace('[31m', '').replace(/^ /, ''), words);
  assert.equal(lastWords('x'.repeat(2000)).length, 500);
});

test('an archive that has nothing for this platform is known by the words of containerd 1.x', () => {
  assert.equal(isOtherPlatform('image might be filtered out'), true);
  assert.equal(isOtherPlatform('not found'), false);
});
