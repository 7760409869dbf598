/** The file on the disk: changed whole or not at all, with a copy of what was there. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fixSandboxImage } from '../../src/operations/containerdConfigFile.ts';

const image = 'podsched.dev/pause:1';

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-config-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test('the file keeps its mode, what was there lies beside it, and containerd itself reads the new value', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'config.toml');
  const before = execFileSync('containerd', ['config', 'default'], { encoding: 'utf8' });
  writeFileSync(file, before);
  chmodSync(file, 0o640);
  assert.deepEqual(await fixSandboxImage(file, image), { done: 'changed', file, backup: `${file}.before-podsched` });
  assert.equal(statSync(file).mode & 0o777, 0o640);
  assert.equal(readFileSync(`${file}.before-podsched`, 'utf8'), before);
  assert.match(execFileSync('containerd', ['--config', file, 'config', 'dump'], { encoding: 'utf8' }), /podsched\.dev\/pause:1/);
  assert.deepEqual(await fixSandboxImage(file, image), { done: 'already' });
  assert.deepEqual(readdirSync(dir).sort(), ['config.toml', 'config.toml.before-podsched']);
});

test('an older copy is kept, and a link stays one', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'config.toml');
  const real = join(dir, 'real.toml');
  writeFileSync(real, 'version = 2\n');
  writeFileSync(`${real}.before-podsched`, 'old');
  symlinkSync(real, file);
  assert.deepEqual(await fixSandboxImage(file, image), { done: 'changed', file: real, backup: `${real}.before-podsched-1` });
  assert.ok(lstatSync(file).isSymbolicLink());
  assert.equal(readFileSync(`${real}.before-podsched`, 'utf8'), 'old');
});

test('a missing file is made, in the version that this containerd writes', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'etc/config.toml');
  const three = join(dir, 'containerd');
  writeFileSync(three, '#!/bin/sh\n[ "$2" = default ] && echo "version = 3"\nexit 0\n', { mode: 0o755 });
  assert.deepEqual(await fixSandboxImage(file, image, three), { done: 'changed', file });
  assert.equal(
    readFileSync(file, 'utf8'),
    `version = 3\n\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = "${image}"\n`,
  );
  rmSync(file);
  await fixSandboxImage(file, image, '/no/such/containerd');
  assert.match(readFileSync(file, 'utf8'), /^version = 2\n\n\[plugins\."io\.containerd\.grpc\.v1\.cri"\]\n/);
});

test('a file that cannot be changed safely, or that containerd would not take, is left byte for byte', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'config.toml');
  const picky = join(dir, 'containerd');
  writeFileSync(picky, '#!/bin/sh\necho "containerd: no such table" >&2\nexit 1\n', { mode: 0o755 });
  for (const [text, program, why] of [
    ['version = 2\nimports = ["x"]\n', 'containerd', /imports other files/],
    ['version = 2\n', picky, /containerd does not take the file with it: containerd: no such table/],
  ] as const) {
    writeFileSync(file, text);
    const result = await fixSandboxImage(file, image, program);
    assert.ok(result.done === 'refused' && why.test(result.why), JSON.stringify(result));
    assert.deepEqual(result.lines, ['[plugins."io.containerd.grpc.v1.cri"]', `  sandbox_image = "${image}"`]);
    assert.equal(readFileSync(file, 'utf8'), text);
    assert.deepEqual(readdirSync(dir).sort(), ['config.toml', 'containerd']);
  }
});

test('what is tried is never open to others, and a link that somebody put in its place is not written through', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'config.toml');
  const looks = join(dir, 'containerd');
  writeFileSync(looks, `#!/bin/sh\nstat -c %a "$2" >'${dir}/mode'\nexit 0\n`, { mode: 0o755 });
  writeFileSync(file, 'version = 2\n# password = "canary"\n', { mode: 0o600 });
  writeFileSync(join(dir, 'other'), 'precious');
  symlinkSync(join(dir, 'other'), `${file}.podsched-new`);
  assert.equal((await fixSandboxImage(file, image, looks)).done, 'changed');
  assert.equal(readFileSync(join(dir, 'mode'), 'utf8').trim(), '600');
  assert.deepEqual(
    [file, `${file}.before-podsched`].map((f) => statSync(f).mode & 0o777),
    [0o600, 0o600],
  );
  assert.equal(readFileSync(join(dir, 'other'), 'utf8'), 'precious');
  const made = join(dir, 'new.toml');
  assert.equal((await fixSandboxImage(made, image, looks)).done, 'changed');
  assert.equal(statSync(made).mode & 0o777, 0o644);
});

test('a file with bytes that are no text is left byte for byte', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'config.toml');
  const bytes = Buffer.from('version = 2\n# f\xfcr\n', 'latin1');
  writeFileSync(file, bytes);
  const result = await fixSandboxImage(file, image);
  assert.equal(result.done === 'refused' && result.why, 'it has bytes that are no UTF-8');
  assert.deepEqual(readFileSync(file), bytes);
});
