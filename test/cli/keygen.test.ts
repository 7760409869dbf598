import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CommandError } from '../../src/cli/exitCodes.ts';
import { keygen, publicBeside } from '../../src/cli/keygen.ts';
import { readKeyFile } from '../../src/policy/keyFile.ts';
import { readSigningKey } from '../../src/policy/signing.ts';

async function inFolder(work: (dir: string, said: () => string, print: { out(text: string): void }) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-keygen-'));
  let text = '';
  try {
    await work(dir, () => text, { out: (t) => (text += t) });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

test('a pair that fits, the private key for its owner only, and nothing of it is said', () =>
  inFolder(async (dir, said, print) => {
    assert.equal(await keygen({ out: join(dir, 'ops.key') }, print), 0);
    const pem = readFileSync(join(dir, 'ops.key'), 'utf8');
    const key = readKeyFile('ops.pub', readFileSync(join(dir, 'ops.pub'), 'utf8'));
    assert.ok(typeof key !== 'string');
    assert.equal(readSigningKey(pem).keyid, key.keyid);
    assert.equal(statSync(join(dir, 'ops.key')).mode & 0o777, 0o600);
    assert.ok(said().includes(key.keyid) && said().includes('keys.d'));
    assert.ok(!said().includes(pem.split('\n')[1] ?? 'x'));
  }));

test('nothing that is there is overwritten, and no half of a pair is left', () =>
  inFolder(async (dir, _, print) => {
    writeFileSync(join(dir, 'a.key'), 'mine');
    await assert.rejects(
      keygen({ out: join(dir, 'a.key') }, print),
      (e) => e instanceof CommandError && e.code === 1 && /is there already/.test(e.message),
    );
    assert.equal(readFileSync(join(dir, 'a.key'), 'utf8'), 'mine');
    assert.ok(!existsSync(join(dir, 'a.pub')));
    writeFileSync(join(dir, 'b.pub'), 'mine');
    await assert.rejects(keygen({ out: join(dir, 'b.key') }, print), /b\.pub is there already/);
    assert.ok(!existsSync(join(dir, 'b.key')));
    await assert.rejects(keygen({ out: join(dir, 'no/such/c.key') }, print), /cannot be written \(ENOENT\)/);
  }));

test('the public key lies beside, by the name of the private one', () => {
  assert.equal(publicBeside('ops.key'), 'ops.pub');
  assert.equal(publicBeside('a/ops.pem'), 'a/ops.pub');
  assert.equal(publicBeside('ops'), 'ops.pub');
});
