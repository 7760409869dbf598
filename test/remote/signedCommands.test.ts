/** Commands in envelopes, judged by the real gate of policy. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { verbs } from '../../src/api/verbs.ts';
import type { TrustedKey } from '../../src/policy/dsse.ts';
import { Gatekeeper } from '../../src/policy/gatekeeper.ts';
import { readPolicy } from '../../src/policy/policy.ts';
import { signEnvelope } from '../../src/policy/signing.ts';
import { commandBed, replyTopic, self } from './commandBed.ts';

const pair = generateKeyPairSync('ed25519');
const pem = String(pair.privateKey.export({ format: 'pem', type: 'pkcs8' }));
const stranger = String(generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
const type = 'application/vnd.podsched.command+json';

function bed(scope: Partial<TrustedKey> = {}) {
  let runs = 0;
  const key: TrustedKey = { keyid: 'ops-key', publicKey: pair.publicKey, file: 'ops.pub', ...scope };
  const gate = new Gatekeeper({
    policy: (of) => readPolicy({ verbs: ['*'], requireSignature: true }, of),
    keys: () => [key],
    receiver: () => ({ node: self, groups: [] }),
    sealingKey: () => undefined,
  });
  const b = commandBed({
    allows: verbs,
    view: {
      execCaptured: async () => {
        runs++;
        return { ok: true, value: { exitCode: 0, stdout: Buffer.from('hi'), stderr: new Uint8Array(), truncated: false } };
      },
    },
    deps: {
      openCommand: (bytes) => gate.openCommand(bytes),
      judgeCommand: (command, verb, signed) => gate.judgeCommand(command, verb, signed),
    },
  });
  const command = (o: object = {}): object => ({
    apiVersion: 'podsched.dev/v1',
    kind: 'Command',
    id: 'x-1',
    node: self,
    verb: 'exec',
    bootID: 'boot-1',
    session: 1000,
    target: { pod: 'web' },
    args: { command: ['ls'] },
    replyTo: replyTopic(),
    ...o,
  });
  // an unknown key id is a key that is not known; without one all are tried
  const envelope = (value: unknown, by = pem, payloadType = type): string => {
    const signed = JSON.parse(signEnvelope(Buffer.from(JSON.stringify(value)), payloadType, by)) as { signatures: { keyid?: string }[] };
    return JSON.stringify({ ...signed, signatures: signed.signatures.map(({ keyid: _, ...s }) => s) });
  };
  const send = async (payload: string, verb = 'exec'): Promise<void> => {
    b.raw(verb, payload);
    await b.rest();
  };
  return { ...b, send, command, envelope, runs: () => runs };
}

test('a program is run when it is signed for this node, boot, session and verb', async () => {
  const b = bed();
  await b.send(b.envelope(b.command()));
  assert.deepEqual([b.runs(), b.said()], [1, ['accepted', 'ok']]);
  assert.match(b.events[0]?.message ?? '', /asked for by ops, signed with key ops-key#[0-9a-f]{16}$/);
});

test('what is unsigned, by a stranger, tampered or signed as something else is not run', async () => {
  const b = bed();
  await b.send(JSON.stringify(b.command()));
  assert.deepEqual(b.said(), ['denied Unsigned']);
  await b.send(b.envelope(b.command(), stranger));
  const tampered = JSON.parse(b.envelope(b.command())) as { payload: string };
  await b.send(
    JSON.stringify({ ...tampered, payload: Buffer.from(JSON.stringify(b.command({ args: { command: ['rm'] } }))).toString('base64') }),
  );
  await b.send(b.envelope(b.command(), pem, 'application/vnd.podsched.manifest+json'));
  assert.equal(b.runs(), 0);
  // nobody can be answered: what is not proven names no reply topic
  assert.equal(b.published.length, 1);
  assert.equal(b.events.length, 4);
});

test('signed for another node, verb, boot or session, or without one of them', async () => {
  const b = bed();
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ node: 'pi-08' }, /denied/],
    [{ verb: 'restart' }, /denied/],
    [{ bootID: 'boot-0' }, /expired OtherBoot/],
    [{ session: 999 }, /expired OtherSession/],
    [{ node: undefined }, /denied/],
    [{ verb: undefined }, /denied/],
    [{ bootID: undefined }, /denied/],
    [{ session: undefined }, /denied/],
    [{ id: undefined }, /denied/],
  ];
  for (const [change, expected] of cases) {
    await b.send(b.envelope(b.command(change)));
    assert.match(b.said().at(-1) ?? '', expected, JSON.stringify(change));
  }
  assert.equal(b.runs(), 0);
});

test('a signed command that is sent again is answered from memory, and after that never run', async () => {
  const b = bed();
  const envelope = b.envelope(b.command());
  await b.send(envelope);
  await b.send(envelope);
  await b.clock.advance(11 * 60_000);
  await b.send(envelope);
  assert.equal(b.runs(), 1);
  assert.deepEqual(b.said(), ['accepted', 'ok', 'ok', 'expired Replayed']);
});

test('a key with a scope commands within it', async () => {
  for (const scope of [{ verbs: ['logs'] }, { namespaces: ['kitchen'] }, { sources: ['file'] }] as const) {
    const b = bed(scope);
    await b.send(b.envelope(b.command()));
    assert.equal(b.runs(), 0);
    assert.match(b.said()[0] ?? '', /^denied /);
  }
  const b = bed({ verbs: ['exec'], namespaces: ['default'], sources: ['mqtt'] });
  await b.send(b.envelope(b.command()));
  assert.equal(b.runs(), 1);
});

test('an envelope in an envelope is no command', async () => {
  const b = bed();
  await b.send(b.envelope(JSON.parse(b.envelope(b.command()))));
  assert.equal(b.runs(), 0);
});
