import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Secret } from '../../src/api/v1.ts';
import { CommandError } from '../../src/cli/exitCodes.ts';
import { type SealOptions, seal } from '../../src/cli/seal.ts';
import { parseDocuments } from '../../src/config/yaml.ts';
import { ownSealingKey, type SealingKey, unsealSecret } from '../../src/policy/seal.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';

interface Bed {
  readonly node: SealingKey;
  put(name: string, text: string): string;
  run(o: Partial<SealOptions>, stdin?: string): Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
}

async function withBed(work: (bed: Bed) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-seal-'));
  const node = await ownSealingKey(new MemoryStore(), silentLog);
  try {
    await work({
      node,
      put: (name, text) => {
        writeFileSync(join(dir, name), text);
        return join(dir, name);
      },
      run: async (o, stdin = '') => {
        let [out, err] = ['', ''];
        const code = await seal(
          { file: '-', ...o },
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

const secret = `apiVersion: v1
kind: Secret
metadata:
  name: db
  annotations:
    podsched.dev/generation: "4"
    podsched.dev/audience: pi-07
    kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"password":"hunter2"}}'
stringData: {password: hunter2}
`;
const fails = (code: number, text: RegExp) => (e: unknown) =>
  e instanceof CommandError && e.code === code && text.test(e.message) && !e.message.includes('hunter2');

const open = (text: string, node: SealingKey): Secret => {
  const [document] = parseDocuments(text).documents;
  const opened = unsealSecret(document?.value as Secret, node);
  assert.ok(opened.ok);
  return opened.secret;
};

test('a Secret is sealed to the key of a node: it opens there, and nothing of it is said', () =>
  withBed(async ({ run, node }) => {
    const { code, out, err } = await run({ recipient: node.publicKey }, secret);
    assert.equal(code, 0);
    assert.equal(err, '');
    assert.ok(!out.includes('hunter2') && !out.includes('last-applied'));
    const opened = open(out, node);
    assert.equal(Buffer.from(opened.data?.password ?? '', 'base64').toString(), 'hunter2');
    assert.deepEqual(opened.metadata, {
      name: 'db',
      namespace: 'default',
      annotations: { 'podsched.dev/generation': '4', 'podsched.dev/audience': 'pi-07' },
    });
  }));

test('the key is found in what the node tells of itself, alone or in a list', () =>
  withBed(async ({ run, node, put }) => {
    const info = { kind: 'Node', metadata: { name: 'pi-07', annotations: { 'podsched.dev/sealing-key': node.publicKey } } };
    const one = put('info.json', JSON.stringify(info));
    const list = put('list.json', JSON.stringify({ kind: 'List', items: [info] }));
    for (const file of [one, list]) assert.ok(open((await run({ info: file }, secret)).out, node));
    await assert.rejects(run({ info: put('two.json', JSON.stringify({ items: [info, info] })) }, secret), fails(1, /2 nodes/));
    await assert.rejects(run({ info: put('none.json', '{}') }, secret), fails(1, /no annotation podsched\.dev\/sealing-key/));
  }));

test('a file is written where that is asked for', () =>
  withBed(async ({ run, node, put }) => {
    const output = put('out.yaml', '');
    const { out } = await run({ file: put('db.yaml', secret), recipient: node.publicKey, output });
    assert.match(out, /db\.yaml: sealed in .*out\.yaml/);
    assert.ok(open(readFileSync(output, 'utf8'), node));
  }));

test('several Secrets are sealed each by itself', () =>
  withBed(async ({ run, node }) => {
    const { out } = await run({ recipient: node.publicKey }, `${secret}---\n${secret.replace('name: db', 'name: db2\n  namespace: apps')}`);
    const { documents } = parseDocuments(out);
    assert.deepEqual(
      documents.map(({ value }) => {
        const opened = unsealSecret(value as Secret, node);
        return opened.ok && `${opened.secret.metadata.namespace}/${opened.secret.metadata.name}`;
      }),
      ['default/db', 'apps/db2'],
    );
  }));

const refused: readonly (readonly [string, Partial<SealOptions>, string, number, RegExp])[] = [
  ['no recipient', {}, secret, 2, /either --recipient KEY or --info FILE/],
  ['a recipient that is none', { recipient: 'hello' }, secret, 2, /32 bytes in base64/],
  ['another kind', {}, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n', 1, /no Secret/],
  [
    'a value that the node would fill in',
    {},
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of manifests, not a template
    secret.replace('password: hunter2', 'password: "${NODE.name}-hunter2"'),
    1,
    /cannot be filled in/,
  ],
  ['a field that is misspelt', {}, secret.replace('\nstringData', '\nstringdata'), 1, /stringData/],
  ['a value that is no text', {}, secret.replace('password: hunter2', 'password: [hunter2]'), 1, /stringData/],
  ['broken YAML', {}, 'kind: Secret\nstringData: {password: hunter2', 1, /stdin|-:/],
  ['nothing', {}, '', 1, /no object/],
];
for (const [what, o, text, code, message] of refused)
  test(`${what} is refused, and no value is repeated`, () =>
    withBed(async ({ run, node }) => {
      const options = what === 'no recipient' ? o : { recipient: node.publicKey, ...o };
      await assert.rejects(run(options, text), fails(code, message));
    }));

test('what is sealed is not sealed twice', () =>
  withBed(async ({ run, node }) => {
    const { out } = await run({ recipient: node.publicKey }, secret);
    await assert.rejects(run({ recipient: node.publicKey }, out), fails(1, /sealed already/));
  }));
