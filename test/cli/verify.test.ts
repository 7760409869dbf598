import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CommandError } from '../../src/cli/exitCodes.ts';
import { type VerifyOptions, verify } from '../../src/cli/verify.ts';
import { manifestYaml, payloadTypes } from '../../src/policy/dsse.ts';
import { newSigningKey, signEnvelope } from '../../src/policy/signing.ts';

const alice = newSigningKey();
const stranger = newSigningKey();

const manifest = (audience = 'pi-07', generation = '3'): string =>
  `kind: Pod\nmetadata:\n  name: web\n  annotations: {podsched.dev/audience: "${audience}", podsched.dev/generation: "${generation}"}\n`;

interface Bed {
  put(name: string, text: string | Uint8Array): string;
  run(
    o: Partial<VerifyOptions> & { readonly file: string },
  ): Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
}

async function withBed(work: (bed: Bed) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-verify-'));
  mkdirSync(join(dir, 'keys.d'), { mode: 0o755 });
  const put = (name: string, text: string | Uint8Array): string => {
    writeFileSync(join(dir, name), text, { mode: 0o644 });
    return join(dir, name);
  };
  put('keys.d/ops.json', JSON.stringify({ publicKey: alice.publicKeyPem, namespaces: ['default'] }));
  try {
    await work({
      put,
      run: async (o) => {
        let [out, err] = ['', ''];
        const code = await verify(
          { keys: join(dir, 'keys.d'), ...o },
          { stdin: async () => new Uint8Array() },
          { out: (t) => (out += t), err: (t) => (err += t) },
        );
        return { code, out, err };
      },
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const detached = (text: string, by = alice): string => signEnvelope(Buffer.from(text), manifestYaml, by.privateKeyPem, { detached: true });
const envelope = (text: string, type = manifestYaml, by = alice): string => signEnvelope(Buffer.from(text), type, by.privateKeyPem);

test('a good file: by whom, for whom, which generation', () =>
  withBed(async ({ put, run }) => {
    const file = put('web.yaml', manifest());
    put('web.yaml.sig', detached(manifest()));
    const { code, out } = await run({ file, node: 'pi-07' });
    assert.equal(code, 0);
    assert.match(out, new RegExp(`signed by ${alice.keyid} \\(ops\\.json\\)`));
    assert.match(out, /Pod\/default\/web: good, for pi-07, generation 3/);
  }));

const cases: readonly (readonly [string, (bed: Bed) => string, Partial<VerifyOptions>, number, RegExp])[] = [
  ['an envelope', ({ put }) => put('e.json', envelope(manifest())), {}, 0, /good, for pi-07/],
  ['an envelope for a group', ({ put }) => put('e.json', envelope(manifest('group:attic'))), {}, 0, /good, for group:attic/],
  [
    'an envelope for a group the node is in',
    ({ put }) => put('e.json', envelope(manifest('group:attic'))),
    { node: 'pi-07', groups: ['attic'] },
    0,
    /good/,
  ],
  [
    'an envelope for a group the node is not in',
    ({ put }) => put('e.json', envelope(manifest('group:attic'))),
    { node: 'pi-07' },
    1,
    /WrongAudience/,
  ],
  ['an envelope for all', ({ put }) => put('e.json', envelope(manifest('*'))), { node: 'pi-07' }, 0, /good, for \*/],
  ['another node’s', ({ put }) => put('e.json', envelope(manifest())), { node: 'pi-08' }, 1, /WrongAudience/],
  ['one without generation', ({ put }) => put('e.json', envelope(manifest('pi-07', ''))), {}, 1, /GenerationMissing/],
  ['one without audience', ({ put }) => put('e.json', envelope('kind: Pod\nmetadata: {name: web}\n')), {}, 1, /WrongAudience/],
  [
    'one beyond the scope of its key',
    ({ put }) => put('e.json', envelope(manifest().replace('name: web', 'name: web\n  namespace: apps'))),
    {},
    1,
    /KeyNotAllowed/,
  ],
  ['a stranger’s', ({ put }) => put('e.json', envelope(manifest(), manifestYaml, stranger)), {}, 1, /KeyUnknown/],
  ['a tampered file', ({ put }) => put('w.yaml.sig', detached(manifest())) && put('w.yaml', `${manifest()}#`), {}, 1, /SignatureInvalid/],
  ['a file that nobody signed', ({ put }) => put('w.yaml', manifest()), {}, 1, /Unsigned: .*there is no w\.yaml\.sig/],
  [
    'an index',
    ({ put }) => put('e.json', envelope('{"kind":"DesiredIndex","generation":1,"audience":"*","entries":[]}', payloadTypes.index[0])),
    {},
    1,
    /KeyNotAllowed/,
  ],
  [
    'a command',
    ({ put }) =>
      put(
        'e.json',
        envelope(
          '{"kind":"Command","id":"c","node":"pi-07","verb":"exec","bootID":"b","session":1,"target":{"pod":"web"}}',
          payloadTypes.command[0],
        ),
      ),
    {},
    0,
    /Command: good, for pi-07/,
  ],
  [
    'a command for another node',
    ({ put }) =>
      put(
        'e.json',
        envelope(
          '{"kind":"Command","id":"c","node":"pi-07","verb":"exec","bootID":"b","session":1,"target":{"pod":"web"}}',
          payloadTypes.command[0],
        ),
      ),
    { node: 'pi-08' },
    1,
    /WrongAudience/,
  ],
];
for (const [what, make, o, expected, text] of cases)
  test(`${what}: ${expected === 0 ? 'good' : 'not good'}`, () =>
    withBed(async (bed) => {
      const { code, out } = await bed.run({ file: make(bed), ...o });
      assert.match(out, text);
      assert.equal(code, expected);
    }));

test('without a file or without keys there is nothing to verify', () =>
  withBed(async ({ put, run }) => {
    const file = put('e.json', envelope(manifest()));
    await assert.rejects(run({ file, keys: join(file, '..', 'none') }), (e) => e instanceof CommandError && e.code === 3);
    await assert.rejects(run({ file: `${file}.none` }), (e) => e instanceof CommandError && e.code === 3);
  }));

test('a key that cannot be read is a warning', () =>
  withBed(async ({ put, run }) => {
    put('keys.d/bad.pub', 'x');
    const { code, err } = await run({ file: put('e.json', envelope(manifest())) });
    assert.equal(code, 0);
    assert.match(err, /warning: keys\.d\/bad\.pub/);
  }));

test('something else inside than what it is signed as is told', () =>
  withBed(async ({ put, run }) => {
    const file = put('e.json', envelope('{"kind":"Command","id":"c"}'));
    await assert.rejects(run({ file }), /holds a Command/);
  }));
