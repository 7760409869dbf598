/** The bundle: bounded, redacted, and whole although parts of it fail. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type BundleDeps, fitted, maxBundleBytes, SupportBundles } from '../../src/operations/bundle.ts';
import { kernelLine, kernelLines } from '../../src/operations/kernelLines.ts';
import { redact, redactText } from '../../src/operations/redact.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { event, sync, told } from './view.ts';

function deps(o: Partial<BundleDeps> = {}): BundleDeps & { readonly clock: FakeClock } {
  return {
    clock: new FakeClock(),
    nodeName: 'pi-07',
    version: '1.2.3',
    pods: () => [told('web')],
    sync: () => [sync('web')],
    files: () => [],
    objects: () => [],
    events: () => [event('web', 'BackOff', 'first'), event('web', 'Started', 'last')],
    conditions: () => [],
    health: () => [{ name: 'runtime', ok: true, message: 'ok' }],
    configuration: () => ({ 'mqtt.passwordFile': '/etc/podsched/pw', 'mqtt.servers': ['mqtts://u:hunter2@broker:8883'] }),
    node: async () => ({ kind: 'Node' }),
    runtime: { version: async () => ({ runtimeName: 'containerd', runtimeVersion: '1.7' }), status: async () => [] },
    agent: () => ({ pid: 1 }),
    kernelLines: async () => ['[    1.000000] usb 1-1: new device', '[    2.000000] Out of memory: Killed process 7'],
    ...o,
  } as BundleDeps & { readonly clock: FakeClock };
}

const never = new AbortController().signal;
async function made(d: BundleDeps): Promise<Record<string, unknown>> {
  const answer = await new SupportBundles(d).make(never);
  assert.ok(answer.ok);
  return answer.value as Record<string, unknown>;
}

test('every part is there, the newest of lists first', async () => {
  const value = await made(
    deps({ doctor: async () => [{ name: 'node', level: 'ok', message: 'Node 20' }], broker: () => ({ connected: true }) }),
  );
  const parts = [
    'kind',
    'apiVersion',
    'node',
    'time',
    'agent',
    'health',
    'conditions',
    'runtime',
    'configuration',
    'broker',
    'sync',
    'files',
  ];
  for (const part of [...parts, 'doctor', 'kernel', 'events', 'pods', 'objects']) assert.ok(part in value, part);
  assert.deepEqual(
    (value.events as { message: string }[]).map((e) => e.message),
    ['last', 'first'],
  );
  assert.match(String((value.kernel as string[])[0]), /Killed process 7/);
  assert.equal(value.leftOut, undefined);
});

test('a part that fails or hangs says so, and the rest is whole', async () => {
  const d = deps({
    runtime: { version: () => Promise.reject(new Error('no socket')), status: async () => [] },
    kernelLines: () => new Promise(() => {}),
    sync: () => {
      throw new Error('broken');
    },
  });
  const asked = made(d);
  await d.clock.advance(15_000);
  const value = await asked;
  assert.deepEqual(
    [value.runtime, value.kernel, value.sync],
    [{ error: 'no socket' }, { error: 'no answer within 15 s' }, { error: 'broken' }],
  );
  assert.equal((value.pods as unknown[]).length, 1);
});

test('whoever gives it up waits no longer, and a third at once is refused', async () => {
  const d = deps({ kernelLines: () => new Promise(() => {}) });
  const bundles = new SupportBundles(d);
  const ends = new AbortController();
  const [first, second] = [bundles.make(ends.signal), bundles.make(never)];
  const third = await bundles.make(never);
  assert.deepEqual([third.ok, !third.ok && third.code], [false, 429]);
  const givenUp = assert.rejects(first, /gone/);
  ends.abort(new Error('gone'));
  await givenUp;
  await d.clock.advance(15_000);
  assert.equal((await second).ok, true);
});

test('no value of an environment, no Secret, no password in a URL leaves the machine, wherever it stands', async () => {
  const spec = {
    containers: [{ name: 'app', image: 'i', env: [{ name: 'A', value: 'hunter2' }], command: ['x', '--pw', 'hunter2'], args: ['hunter2'] }],
  };
  const value = await made(
    deps({
      pods: () => [told('web', { spec })],
      events: () => [event('web', 'Unhealthy', 'get https://me:hunter2@db/x: PASSWORD=hunter2 and Authorization: Bearer hunter2hunter2')],
      node: async () => ({ data: { key: 'hunter2' }, nested: [{ stringData: 'hunter2', token: 'hunter2' }] }),
      broker: () => ({ url: 'mqtts://u:hunter2@broker' }),
    }),
  );
  assert.doesNotMatch(JSON.stringify(value), /hunter2/);
  assert.match(JSON.stringify(value), /etc\/podsched\/pw/);
});

test('redaction leaves what is no secret as it is', () => {
  for (const text of ['https://registry.local/v2/', 'image r.example/a@sha256:0123', 'user@host', 'passwordFile: none'])
    assert.equal(redactText(text), text);
  assert.equal(redactText('redis://:pw@cache:6379'), 'redis://<redacted>@cache:6379');
  assert.equal(redactText('-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----'), '<redacted>');
  assert.deepEqual(redact({ a: 1, b: null, c: [true, 'x'] }), { a: 1, b: null, c: [true, 'x'] });
  let deep: unknown = 'pw';
  for (let i = 0; i < 1000; i++) deep = [deep];
  assert.match(JSON.stringify(redact(deep)), /<redacted>/);
});

test('however much there is, a bundle is no larger than 1 MiB, and says what was left out', async () => {
  const long = 'x'.repeat(2000);
  const value = await made(
    deps({
      sync: () => Array.from({ length: 2000 }, (_, i) => sync(`s${i}`, { message: long })),
      events: () => Array.from({ length: 3000 }, (_, i) => event(`e${i}`, 'BackOff', long)),
      kernelLines: async () => Array.from({ length: 400 }, (_, i) => `${i} ${'k'.repeat(400)}`),
      node: async () => ({ huge: 'n'.repeat(3 << 20) }),
    }),
  );
  const bytes = Buffer.byteLength(JSON.stringify(value));
  assert.ok(bytes <= maxBundleBytes, `${bytes}`);
  assert.ok(bytes > maxBundleBytes / 2, `${bytes}`);
  assert.match(JSON.stringify(value.leftOut), /"sync":"\d+ of 2000".*"events":"\d+ of 3000".*"node":"all of it/);
  for (const part of ['sync', 'events', 'kernel', 'pods']) assert.ok((value[part] as unknown[]).length > 0, part);
});

test('parts that fit are whole', () => {
  assert.deepEqual(
    fitted(
      { kind: 'x' },
      [
        ['a', [1, 2]],
        ['b', { c: 1 }],
      ],
      10_000,
    ),
    { kind: 'x', a: [1, 2], b: { c: 1 } },
  );
});

test('of the kernel’s records those that explain a sick node are told, as dmesg shows them', async () => {
  assert.equal(kernelLine('6,339,5140900,-;usb 1-1: new high-speed USB device'), '[    5.140900] usb 1-1: new high-speed USB device');
  for (const text of [
    'Out of memory: Killed process 7 (node)',
    'Under-voltage detected!',
    'mmc0: timeout',
    'EXT4-fs error (device mmcblk0p2)',
  ])
    assert.ok(kernelLine(`3,1,2000000,-;${text}`)?.endsWith(text), text);
  for (const record of ['6,1,2,-;eth0: link up', ' SUBSYSTEM=usb', '', 'usb without a head']) assert.equal(kernelLine(record), undefined);
  const dir = mkdtempSync(join(tmpdir(), 'podsched-kmsg-'));
  try {
    const path = join(dir, 'kmsg');
    writeFileSync(path, '6,1,1000000,-;usb 1-1: one\n SUBSYSTEM=usb\n6,2,2000000,-;eth0: up\n4,3,3000000,-;oom-kill: two\n');
    assert.deepEqual(await kernelLines(path, never), ['[    1.000000] usb 1-1: one', '[    3.000000] oom-kill: two']);
    await assert.rejects(kernelLines(join(dir, 'none'), never), /ENOENT/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
