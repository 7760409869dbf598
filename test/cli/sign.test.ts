import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CommandError } from '../../src/cli/exitCodes.ts';
import { type SignOptions, sign } from '../../src/cli/sign.ts';
import { manifestJson, openDetached, openEnvelope, type PayloadKind, type TrustedKey } from '../../src/policy/dsse.ts';
import { readKeyFile } from '../../src/policy/keyFile.ts';
import { newSigningKey } from '../../src/policy/signing.ts';

interface Bed {
  readonly dir: string;
  readonly key: TrustedKey;
  path(name: string): string;
  put(name: string, text: string): string;
  run(
    o: Partial<SignOptions> & { readonly file: string },
    stdin?: string,
  ): Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
}

async function withBed(work: (bed: Bed) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-sign-'));
  const { privateKeyPem, publicKeyPem } = newSigningKey();
  const key = readKeyFile('ops.pub', publicKeyPem);
  assert.ok(typeof key !== 'string');
  const path = (name: string): string => join(dir, name);
  const put = (name: string, text: string): string => {
    writeFileSync(path(name), text, { mode: 0o600 });
    return path(name);
  };
  put('ops.key', privateKeyPem);
  mkdirSync(path('keys.d'));
  try {
    await work({
      ...{ dir, key, path, put },
      run: async (o, stdin = '') => {
        let [out, err] = ['', ''];
        const code = await sign(
          { key: path('ops.key'), envelope: false, ...o },
          { stdin: async () => Buffer.from(stdin) },
          { out: (t) => (out += t), err: (t) => (err += t) },
        );
        return { code, out, err };
      },
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const fails = (code: number, text: RegExp) => (e: unknown) => e instanceof CommandError && e.code === code && text.test(e.message);

const manifest = `apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations: {podsched.dev/audience: pi-07, podsched.dev/generation: "3"}
spec: {containers: [{name: a, image: a}]}
`;
const bare = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: apps}\ndata: {a: b}\n';

test('a file is signed beside, as it is: every byte counts', () =>
  withBed(async ({ put, path, run, key }) => {
    const file = put('web.yaml', manifest);
    const { code, out } = await run({ file });
    assert.equal(code, 0);
    assert.match(out, /web\.yaml: signed in .*web\.yaml\.sig/);
    assert.equal(readFileSync(file, 'utf8'), manifest);
    const signature = readFileSync(path('web.yaml.sig'));
    assert.ok(openDetached(signature, Buffer.from(manifest), [key], 'manifest').ok);
    assert.ok(!openDetached(signature, Buffer.from(`${manifest}\n`), [key], 'manifest').ok);
    assert.ok(!signature.toString().includes(Buffer.from('kind: Pod').toString('base64').slice(0, 8)));
  }));

test('each object of a file says for whom it is and its generation, or nothing is written', () =>
  withBed(async ({ put, path, run }) => {
    const file = put('two.yaml', `${manifest}---\n${bare}`);
    await assert.rejects(run({ file }), fails(1, /^ConfigMap\/apps\/c has no audience.*\nConfigMap\/apps\/c has no generation/));
    assert.ok(!existsSync(path('two.yaml.sig')));
    await assert.rejects(run({ file: put('number.yaml', manifest.replace('"3"', '3')) }), fails(1, /no generation/));
    await assert.rejects(run({ file: put('who.yaml', manifest.replace('pi-07', '"PI 7"')) }), fails(1, /no audience/));
    await assert.rejects(run({ file, audience: 'pi-07' }), fails(2, /signed as it is/));
  }));

test('an envelope carries one object, with audience and generation of the arguments put in', () =>
  withBed(async ({ put, path, run, key }) => {
    const { code, out } = await run({ file: put('c.yaml', bare), envelope: true, audience: 'group:attic', generation: '7' });
    assert.equal(code, 0);
    const opened = openEnvelope(Buffer.from(out), [key], 'manifest');
    assert.ok(opened.ok);
    assert.equal(opened.payloadType, manifestJson);
    assert.deepEqual(JSON.parse(Buffer.from(opened.payload).toString()), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'c', namespace: 'apps', annotations: { 'podsched.dev/audience': 'group:attic', 'podsched.dev/generation': '7' } },
      data: { a: 'b' },
    });
    await run({ file: path('c.yaml'), envelope: true, audience: '*', generation: '8', output: path('c.signed') });
    assert.ok(openEnvelope(readFileSync(path('c.signed')), [key], 'manifest').ok);
  }));

test('an envelope without audience or generation is not made, and the way is said', () =>
  withBed(async ({ put, run }) => {
    const file = put('c.yaml', bare);
    await assert.rejects(run({ file, envelope: true }), fails(1, /podsched\.dev\/audience/));
    await assert.rejects(run({ file, envelope: true, audience: 'pi-07' }), fails(1, /podsched\.dev\/generation/));
    await assert.rejects(run({ file, envelope: true, audience: 'a,b', generation: '1' }), fails(2, /--audience/));
    await assert.rejects(run({ file, envelope: true, audience: '*', generation: '-1' }), fails(2, /--generation/));
    await assert.rejects(
      run({ file: put('two.yaml', `${bare}---\n${bare}`), envelope: true, audience: '*', generation: '1' }),
      fails(2, /has 2/),
    );
  }));

const other: readonly (readonly [string, string, PayloadKind, Partial<SignOptions>])[] = [
  ['an index', 'kind: DesiredIndex\napiVersion: podsched.dev/v1\ngeneration: 4\nentries: []\n', 'index', { audience: 'pi-07' }],
  [
    'a configuration',
    '{"kind":"NodeConfig","apiVersion":"podsched.dev/v1","groups":["attic"]}',
    'config',
    { audience: 'pi-07', generation: '2' },
  ],
  ['a command', 'kind: Command\nid: c1\nnode: pi-07\nverb: exec\nbootID: b\nsession: 5\n', 'command', {}],
  [
    'a tombstone',
    `kind: Pod\nmetadata: {name: web, annotations: {podsched.dev/state: absent}}\n`,
    'manifest',
    { audience: 'pi-07', generation: '9' },
  ],
];
for (const [what, text, kind, o] of other)
  test(`${what} is signed for its own use`, () =>
    withBed(async ({ put, run, key }) => {
      const { out } = await run({ file: put('x.yaml', text), envelope: true, ...o });
      assert.ok(openEnvelope(Buffer.from(out), [key], kind).ok);
      const wrong = openEnvelope(Buffer.from(out), [key], kind === 'command' ? 'manifest' : 'command');
      assert.ok(!wrong.ok && wrong.reason === 'WrongPayloadType');
      if (kind !== 'manifest') await assert.rejects(run({ file: put('y.yaml', text) }), fails(2, /--envelope/));
    }));

test('a command that names no session is not signed', () =>
  withBed(async ({ put, run }) => {
    await assert.rejects(
      run({ file: put('x.yaml', 'kind: Command\nid: c\nnode: n\nverb: exec\nbootID: b\n'), envelope: true }),
      fails(1, /no session/),
    );
  }));

test('standard input is read by -, and its signature needs a name', () =>
  withBed(async ({ path, run, key }) => {
    await assert.rejects(run({ file: '-' }, manifest), fails(2, /-o FILE/));
    await run({ file: '-', output: path('web.sig') }, manifest);
    assert.ok(openDetached(readFileSync(path('web.sig')), Buffer.from(manifest), [key], 'manifest').ok);
  }));

test('what is no key, no manifest, or too large is said in one line and never quoted', () =>
  withBed(async ({ put, run, path }) => {
    const file = put('web.yaml', manifest);
    await assert.rejects(
      run({ file, key: put('bad.key', 'MC4CAQAwBQYDK2Vw') }),
      (e) => fails(1, /no private key/)(e) && !String(e).includes('MC4C'),
    );
    await assert.rejects(run({ file, key: path('none.key') }), fails(3, /no such file/));
    await assert.rejects(run({ file: path('none.yaml') }), fails(3, /no such file/));
    await assert.rejects(run({ file: put('broken.yaml', 'a: [') }), fails(1, /broken\.yaml/));
    await assert.rejects(run({ file: put('empty.yaml', '\n') }), fails(1, /no object/));
    const large = JSON.stringify({ kind: 'ConfigMap', metadata: { name: 'c' }, data: { a: 'x'.repeat(50_000) } });
    await assert.rejects(
      run({ file: put('large.json', large), envelope: true, audience: '*', generation: '1' }),
      fails(1, /room for 61440/),
    );
    chmodSync(path('ops.key'), 0o644);
    assert.match((await run({ file })).err, /others may read .*ops\.key/);
  }));
