import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from './process.ts';

const systemd = new URL('../../systemd/', import.meta.url).pathname;
const unit = readFileSync(join(systemd, 'podsched.service'), 'utf8');
const settings = unit.split('\n').filter((line) => /^[A-Z]\w+=/.test(line));
const values = (key: string): string[] => settings.filter((l) => l.startsWith(`${key}=`)).map((l) => l.slice(key.length + 1));

test('systemd finds nothing wrong with the unit', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-unit-'));
  try {
    // the command is not installed here: the wrapper of this tree stands in for it
    writeFileSync(join(dir, 'podsched.service'), unit.replace('ExecStart=/usr/bin/podsched', `ExecStart=${join(systemd, 'podsched')}`));
    const { code, stdout, stderr } = await run('systemd-analyze', [
      'verify',
      '--man=no',
      '--recursive-errors=no',
      join(dir, 'podsched.service'),
    ]);
    assert.equal(`${stdout}${stderr}`.trim(), '');
    assert.equal(code, 0);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test('a restart of containerd does not stop podsched: After and Wants only', () => {
  assert.ok(values('After').join(' ').includes('containerd.service'));
  assert.ok(values('Wants').join(' ').includes('containerd.service'));
  for (const key of ['Requires', 'BindsTo', 'PartOf', 'Requisite']) assert.deepEqual(values(key), [], key);
});

test('the unit has no mount namespace of its own, or containerd would not see what is mounted for pods', () => {
  const isolating =
    /^(Protect|Private|ReadWritePaths|ReadOnlyPaths|InaccessiblePaths|BindPaths|BindReadOnlyPaths|TemporaryFileSystem|RootDirectory|RootImage|MountFlags|MountAPIVFS|DynamicUser|NoExecPaths|ExecPaths)/;
  assert.deepEqual(
    settings.filter((line) => isolating.test(line)),
    [],
  );
});

test('a stop leaves /run/podsched and the pods alone, and no number of failures ends the restarts', () => {
  assert.deepEqual(values('RuntimeDirectory'), []);
  assert.deepEqual(values('KillMode'), []);
  assert.deepEqual(values('Restart'), ['always']);
  assert.deepEqual(values('StartLimitIntervalSec'), ['0']);
});

test('tmpfiles.d makes /run/podsched for the group that sysusers.d makes', async () => {
  const root = mkdtempSync(join(tmpdir(), 'podsched-root-'));
  try {
    cpSync(join(systemd, 'tmpfiles.d'), join(root, 'usr/lib/tmpfiles.d'), { recursive: true });
    cpSync(join(systemd, 'sysusers.d'), join(root, 'usr/lib/sysusers.d'), { recursive: true });
    cpSync('/etc/passwd', join(root, 'etc/passwd'));
    cpSync('/etc/group', join(root, 'etc/group'));
    const users = await run('systemd-sysusers', [`--root=${root}`, 'podsched.conf']);
    assert.equal(users.code, 0, users.stderr);
    assert.match(readFileSync(join(root, 'etc/group'), 'utf8'), /^podsched:/m);
    const files = await run('systemd-tmpfiles', ['--create', `--root=${root}`, 'podsched.conf']);
    assert.equal(files.code, 0, files.stderr);
    assert.equal(statSync(join(root, 'run/podsched')).mode & 0o7777, 0o750);
    assert.equal(statSync(join(root, 'var/lib/podsched')).mode & 0o7777, 0o700);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test('the wrapper passes the V8 flags and all arguments', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-wrapper-'));
  try {
    const script = join(dir, 'show.cjs');
    writeFileSync(script, 'console.log(JSON.stringify([process.execArgv, process.argv.slice(2)]))');
    const { stdout } = await run(join(systemd, 'podsched'), ['get', 'pods', '-o', 'a b'], {
      env: { ...process.env, PODSCHED_BUNDLE: script },
    });
    assert.deepEqual(JSON.parse(stdout), [
      ['--max-old-space-size=192', '--max-semi-space-size=1', '--optimize-for-size', '--no-opt'],
      ['get', 'pods', '-o', 'a b'],
    ]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
