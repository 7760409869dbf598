/** Policy, keys and seals as the agent has them together: read at start and again at SIGHUP. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import { HeldBack } from '../../src/container/heldBack.ts';
import { buildPolicy, type PolicyParts, type PolicySettings } from '../../src/kubeletPolicy.ts';
import { manifestYaml } from '../../src/policy/dsse.ts';
import { newSigningKey, signEnvelope } from '../../src/policy/signing.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

async function withNode(
  work: (dir: string, settings: { -readonly [K in keyof PolicySettings]: PolicySettings[K] }, parts: PolicyParts) => Promise<void>,
): Promise<void> {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'podsched-policy-')));
  mkdirSync(join(dir, 'keys.d'), { mode: 0o755 });
  const settings = { 'policy.file': { allow: 'all' }, 'policy.mqtt': {}, strict: false, staticPodPath: dir };
  const parts = {
    clock: new FakeClock(),
    log: silentLog,
    stateStore: new MemoryStore(),
    settings: () => settings,
    receiver: () => ({ node: 'pi-07', groups: [] }),
  };
  try {
    await work(dir, settings, parts);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const of = (source: DesiredPod['source']): DesiredPod => ({ source }) as DesiredPod;

test('a key that is put into keys.d counts from the next reload on, and so does a policy', () =>
  withNode(async (dir, settings, parts) => {
    const policy = await buildPolicy(parts);
    const key = newSigningKey();
    const envelope = Buffer.from(signEnvelope(Buffer.from('kind: Pod\n'), manifestYaml, key.privateKeyPem));
    settings['policy.mqtt'] = { requireSignature: true };
    assert.ok(!policy.gate.requiresSignature('mqtt:node'));
    assert.equal(await policy.reload(), true);
    assert.ok(!policy.gate.open(envelope, { source: 'mqtt:node', of: 'manifest' }).ok);
    writeFileSync(join(dir, 'keys.d/ops.pub'), key.publicKeyPem, { mode: 0o644 });
    assert.equal(await policy.reload(), true);
    const opened = policy.gate.open(envelope, { source: 'mqtt:node', of: 'manifest' });
    assert.ok(opened.ok && opened.signed === key.keyid);
    assert.equal(await policy.reload(), false);
  }));

test('a hostPath is judged by where it leads, for each source by its own policy', () =>
  withNode(async (dir, settings, parts) => {
    mkdirSync(join(dir, 'data'));
    symlinkSync('/etc', join(dir, 'data/out'));
    settings['policy.mqtt'] = { hostPath: [join(dir, 'data')] };
    const policy = await buildPolicy(parts);
    await policy.checkPath(of('mqtt:node'), join(dir, 'data'));
    await policy.checkPath(of('file:x.yaml'), join(dir, 'data/out'));
    await assert.rejects(
      policy.checkPath(of('mqtt:all'), join(dir, 'data/out')),
      (e) => e instanceof HeldBack && e.reason === 'PolicyDenied' && /leads to \/etc/.test(e.message),
    );
    assert.equal(policy.rootOf(of('mqtt:node'), join(dir, 'data/x')), join(dir, 'data'));
    assert.equal(policy.rootOf(of('file:x.yaml'), '/data'), undefined);
  }));

test('the sealing key is the same after a restart, and a store that takes nothing does not hold up the start', () =>
  withNode(async (_, __, parts) => {
    const first = await buildPolicy(parts);
    assert.equal((await buildPolicy(parts)).sealingKey(), first.sealingKey());
    const errors: string[] = [];
    const without = await buildPolicy({
      ...parts,
      log: { ...silentLog, error: (_nouns, sentence) => errors.push(sentence) },
      stateStore: { get: async () => undefined, put: async () => Promise.reject(new Error('EROFS')) },
    });
    assert.equal(without.sealingKey(), undefined);
    assert.equal(errors.length, 1);
  }));
