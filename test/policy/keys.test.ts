import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { KeyFolder, type KeyProblem } from '../../src/policy/keys.ts';
import { rawKey } from '../../src/policy/rawKeys.ts';
import { newSigningKey } from '../../src/policy/signing.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';

interface Bed {
  readonly dir: string;
  readonly store: MemoryStore;
  put(name: string, text: string, mode?: number): void;
  folder(o?: { readonly strict?: boolean; readonly onProblems?: (p: readonly KeyProblem[]) => void }): KeyFolder;
}

async function withFolder(work: (bed: Bed) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'podsched-keys-'));
  const dir = join(root, 'keys.d');
  mkdirSync(dir, { mode: 0o755 });
  const store = new MemoryStore();
  try {
    await work({
      dir,
      store,
      put: (name, text, mode = 0o644) => {
        writeFileSync(join(dir, name), text);
        chmodSync(join(dir, name), mode);
      },
      folder: ({ strict = false, onProblems } = {}) =>
        new KeyFolder({ log: silentLog, dir, store, strict: () => strict, ...(onProblems && { onProblems }) }),
    });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const files = (folder: KeyFolder): readonly string[] => folder.keys().map((k) => k.file);
const messages = (folder: KeyFolder): readonly string[] => folder.problems().map((p) => `${p.file} ${p.message}`);

test('PEM files and JSON with scopes are read, everything else in the folder is not', () =>
  withFolder(async ({ put, folder }) => {
    const [a, b] = [newSigningKey(), newSigningKey()];
    put('a.pub', a.publicKeyPem);
    put(
      'b.json',
      JSON.stringify({
        publicKey: b.publicKeyPem,
        keyid: 'ops',
        namespaces: ['apps'],
        sources: ['mqtt:group/attic', 'file'],
        verbs: ['exec'],
      }),
    );
    put('README.md', 'keys');
    put('.c.pub', a.publicKeyPem);
    put('a.pub~', a.publicKeyPem);
    const keys = folder();
    assert.equal(await keys.read(), true);
    assert.deepEqual(
      keys.keys().map(({ publicKey, ...of }) => of),
      [
        { keyid: a.keyid, file: 'a.pub' },
        { keyid: 'ops', file: 'b.json', namespaces: ['apps'], sources: ['mqtt:group/attic', 'file'], verbs: ['exec'] },
      ],
    );
    assert.deepEqual(messages(keys), []);
    assert.equal(await keys.read(), false);
  }));

test('a raw key in base64 is taken in JSON, as is a PEM text', () =>
  withFolder(async ({ put, folder }) => {
    const { publicKey } = generateKeyPairSync('ed25519');
    put('a.json', JSON.stringify({ publicKey: Buffer.from(rawKey(publicKey)).toString('base64') }));
    const keys = folder();
    await keys.read();
    const [key] = keys.keys();
    assert.ok(key && Buffer.from(rawKey(key.publicKey)).equals(Buffer.from(rawKey(publicKey))));
  }));

const wrongFiles: readonly (readonly [string, string, RegExp])[] = [
  ['x.pub', 'hello', /no public key in PEM/],
  ['x.pub', '', /no public key in PEM/],
  ['x.pub', newSigningKey().privateKeyPem, /private key/],
  [
    'x.pub',
    String(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'pem', type: 'spki' })),
    /of the kind rsa/,
  ],
  ['x.pub', String(generateKeyPairSync('x25519').publicKey.export({ format: 'pem', type: 'spki' })), /of the kind x25519/],
  ['x.json', '{', /no JSON/],
  ['x.json', '[]', /no JSON object/],
  ['x.json', '{}', /no publicKey/],
  [
    'x.json',
    JSON.stringify({ publicKey: newSigningKey().publicKeyPem, namespace: ['apps'] }),
    /unknown field "namespace"; did you mean namespaces/,
  ],
  ['x.json', JSON.stringify({ publicKey: newSigningKey().publicKeyPem, namespaces: 'apps' }), /namespaces: expected a list/],
  ['x.json', JSON.stringify({ publicKey: newSigningKey().publicKeyPem, namespaces: ['apps', 'A b'] }), /namespaces\[1\]/],
  ['x.json', JSON.stringify({ publicKey: newSigningKey().publicKeyPem, sources: ['mqtt:nodes'] }), /sources\[0\]/],
  ['x.json', JSON.stringify({ publicKey: newSigningKey().publicKeyPem, verbs: ['sudo'] }), /verbs\[0\]/],
  ['x.json', JSON.stringify({ publicKey: newSigningKey().publicKeyPem, keyid: 'a,b' }), /keyid/],
  ['x.pub', 'x'.repeat(70_000), /larger than/],
];
for (const [name, text, expected] of wrongFiles)
  test(`${name} ${JSON.stringify(text.slice(0, 24))} gives no key, and its problem (${expected.source}) repeats nothing of it`, () =>
    withFolder(async ({ put, folder }) => {
      const good = newSigningKey();
      put('good.pub', good.publicKeyPem);
      put(name, text);
      const keys = folder();
      await keys.read();
      assert.deepEqual(files(keys), ['good.pub']);
      const [message = ''] = messages(keys);
      assert.match(message, expected);
      assert.ok(message.startsWith(`keys.d/${name} `) && message.length < 200);
      assert.ok(text.length < 30 || !message.includes(text.slice(30, 60)));
    }));

test('a key that cannot be understood any more keeps what it said, over a restart of the agent too', () =>
  withFolder(async ({ put, folder }) => {
    const key = newSigningKey();
    put('a.json', JSON.stringify({ publicKey: key.publicKeyPem, namespaces: ['apps'] }));
    const keys = folder();
    await keys.read();
    put('a.json', '{"publi');
    assert.equal(await keys.read(), false);
    assert.deepEqual(files(keys), ['a.json']);
    assert.equal(messages(keys).length, 1);
    const restarted = folder();
    await restarted.read();
    assert.deepEqual(
      restarted.keys().map(({ publicKey, ...of }) => of),
      [{ keyid: key.keyid, file: 'a.json', namespaces: ['apps'] }],
    );
  }));

test('a file that is gone takes its key along, over a restart too', () =>
  withFolder(async ({ dir, put, folder }) => {
    put('a.pub', newSigningKey().publicKeyPem);
    const keys = folder();
    await keys.read();
    rmSync(join(dir, 'a.pub'));
    assert.equal(await keys.read(), true);
    assert.deepEqual(files(keys), []);
    const restarted = folder();
    await restarted.read();
    assert.deepEqual(files(restarted), []);
  }));

test('no folder means no keys; no folder above it means that something is not mounted', () =>
  withFolder(async ({ dir, put, folder }) => {
    put('a.pub', newSigningKey().publicKeyPem);
    const keys = folder();
    await keys.read();
    const above = join(dir, '..');
    renameSync(above, `${above}.away`);
    try {
      assert.equal(await keys.read(), false);
      assert.deepEqual(files(keys), ['a.pub']);
      assert.equal(messages(keys).length, 1);
    } finally {
      renameSync(`${above}.away`, above);
    }
    rmSync(dir, { recursive: true });
    assert.equal(await keys.read(), true);
    assert.deepEqual(files(keys), []);
    assert.deepEqual(messages(keys), []);
  }));

test('what others may write is told, and not taken when strict', () =>
  withFolder(async ({ dir, put, folder }) => {
    put('a.pub', newSigningKey().publicKeyPem, 0o666);
    put('b.pub', newSigningKey().publicKeyPem);
    const lax = folder();
    await lax.read();
    assert.deepEqual(files(lax), ['a.pub', 'b.pub']);
    assert.match(messages(lax).join(), /keys\.d\/a\.pub InsecurePermissions/);
    const strict = folder({ strict: true });
    await strict.read();
    assert.deepEqual(files(strict), ['b.pub']);
    chmodSync(dir, 0o777);
    await strict.read();
    assert.deepEqual(files(strict), []);
    assert.match(messages(strict).join(), /keys\.d InsecurePermissions/);
  }));

test('one key in two files has the room of the first, and a keyid is one key’s', () =>
  withFolder(async ({ put, folder }) => {
    const [key, other] = [newSigningKey(), newSigningKey()];
    put('a.json', JSON.stringify({ publicKey: key.publicKeyPem, namespaces: ['apps'] }));
    put('b.pub', key.publicKeyPem);
    put('c.json', JSON.stringify({ publicKey: other.publicKeyPem, keyid: key.keyid }));
    const keys = folder();
    await keys.read();
    assert.deepEqual(files(keys), ['a.json']);
    assert.deepEqual(
      keys.problems().map((p) => p.file),
      ['keys.d/b.pub', 'keys.d/c.json'],
    );
  }));

test('problems are told when they change, and nothing is stored when nothing changed', () =>
  withFolder(async ({ dir, put, folder, store }) => {
    const told: (readonly KeyProblem[])[] = [];
    const keys = folder({ onProblems: (p) => told.push(p) });
    put('a.pub', newSigningKey().publicKeyPem);
    await keys.read();
    assert.equal(told.length, 0);
    put('b.pub', 'x');
    let writes = 0;
    const { put: write } = store;
    store.put = async (...args) => {
      writes++;
      return write.apply(store, args);
    };
    await keys.read();
    await keys.read();
    assert.equal(told.length, 1);
    assert.equal(writes, 0);
    rmSync(join(dir, 'b.pub'));
    await keys.read();
    assert.deepEqual(told.at(-1), []);
  }));
