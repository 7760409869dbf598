import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Secret } from '../../src/api/v1.ts';
import { matching, readDockerConfig, readPullSecret } from '../../src/images/credentials.ts';
import { type CredentialProblem, CredentialsFolder } from '../../src/images/credentialsFolder.ts';
import { jsonFault } from '../../src/images/credentialsJson.ts';
import { run } from '../device/process.ts';
import { cpuMs, until } from '../until.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const config = (...names: string[]) =>
  JSON.stringify({ auths: Object.fromEntries(names.map((name) => [name, { username: name, password: 'x' }])) });

/** Addresses, an image, and the addresses whose credentials it is shown, in turn. */
const matches: readonly [readonly string[], string, readonly string[]][] = [
  [['r.example'], 'r.example/app:1', ['r.example']],
  [['https://r.example'], 'r.example/app:1', ['https://r.example']],
  [['http://r.example/v2/'], 'r.example/app', ['http://r.example/v2/']],
  [['R.Example'], 'r.example/app', ['R.Example']],
  [['r.example'], 'other.example/app', []],
  [['r.example'], 'r.example:5000/app', []],
  [['r.example:5000'], 'r.example/app', []],
  [['r.example:5000'], 'r.example:5000/app', ['r.example:5000']],
  [['*.example.com'], 'a.example.com/app', ['*.example.com']],
  [['*.example.com'], 'a.b.example.com/app', []],
  [['*.example.com'], 'example.com/app', []],
  [['*.*.example.com'], 'a.b.example.com/app', ['*.*.example.com']],
  [['a*.example.com', 'b*.example.com'], 'abc.example.com/app', ['a*.example.com']],
  [['r?.example.com'], 'r1.example.com/app', ['r?.example.com']],
  [['*b*.example.com'], 'abc.example.com/app', ['*b*.example.com']],
  [['*bc*c.example.com'], 'abc.example.com/app', []],
  [['*.example.com:5000'], 'a.example.com:5000/app', ['*.example.com:5000']],
  [['r.example/team'], 'r.example/team/app', ['r.example/team']],
  [['r.example/team'], 'r.example/other/app', []],
  // as the kubelet compares them: a beginning, not a folder
  [['r.example/te'], 'r.example/team/app', ['r.example/te']],
  [['r.example', 'r.example/team', 'r.example/team/app'], 'r.example/team/app:1', ['r.example/team/app', 'r.example/team', 'r.example']],
  [['r.example/v1/team'], 'r.example/team/app', ['r.example/v1/team']],
  [['https://index.docker.io/v1/'], 'nginx', ['https://index.docker.io/v1/']],
  [['https://index.docker.io/v1/'], 'docker.io/me/app:1', ['https://index.docker.io/v1/']],
  [['https://index.docker.io/v1/'], 'index.docker.io/me/app:1', ['https://index.docker.io/v1/']],
  [['https://index.docker.io/v1/'], 'r.example/app', []],
  [['docker.io/me', 'https://index.docker.io/v1/'], 'me/app', ['docker.io/me']],
  [['docker.io/me', 'https://index.docker.io/v1/'], 'you/app', ['https://index.docker.io/v1/']],
  [['docker.io'], 'nginx', ['docker.io']],
  [['127.0.0.1:5000'], `127.0.0.1:5000/app:1@sha256:${'a'.repeat(64)}`, ['127.0.0.1:5000']],
  [['[::1]:5000'], '[::1]:5000/app', ['[::1]:5000']],
  [['*'], 'localhost/app', ['*']],
  [['*'], 'r.example/app', []],
];

for (const [addresses, image, shown] of matches) {
  test(`credentials: ${addresses.join(', ')} for ${image} → ${shown.join(', ') || 'none'}`, () => {
    const read = readDockerConfig(config(...addresses), 'f');
    assert.deepEqual(read.problems, []);
    assert.deepEqual(
      matching(image, read.credentials).map((c) => c.auth.username),
      shown,
    );
  });
}

test('the same credential under several addresses is shown once', () => {
  const same = { username: 'u', password: 'p' };
  const { credentials } = readDockerConfig(JSON.stringify({ auths: { 'r.example': same, 'r.example/team': same } }), 'f');
  assert.equal(matching('r.example/team/app', credentials).length, 1);
});

test('a wildcard that tries to take long does not', () => {
  const { credentials } = readDockerConfig(config(`${'*a'.repeat(40)}b.example`), 'f');
  assert.ok(cpuMs(() => matching(`${'a'.repeat(60)}.example/app`, credentials)) < 1000);
});

test('all forms of docker’s config are read; what cannot be used is named without a value', () => {
  const { credentials, problems } = readDockerConfig(
    JSON.stringify({
      auths: {
        'a.example': { auth: base64('name:pass:word') },
        'b.example': { username: 'name', password: 'pass', auth: 'ignored' },
        'c.example': { identitytoken: 'TOKEN' },
        'd.example': { registrytoken: 'REGTOKEN' },
        'e.example': { auth: base64('00000000-0000:'), identitytoken: 'TOKEN' },
        'f.example': { auth: 'canary!!' },
        'g.example': {},
        'h.example': 'canary',
        '': { auth: base64('a:b') },
        'https://name:canary@i.example': { auth: base64('a:b') },
      },
      credsStore: 'pass',
      credHelpers: { 'x.example': 'ecr-login' },
      HttpHeaders: {},
    }),
    'credentials.d/x.json',
  );
  assert.deepEqual(
    credentials.map((c) => [c.address, c.auth]),
    [
      ['a.example', { username: 'name', password: 'pass:word' }],
      ['b.example', { username: 'name', password: 'pass' }],
      ['c.example', { identityToken: 'TOKEN' }],
      ['d.example', { registryToken: 'REGTOKEN' }],
      ['e.example', { identityToken: 'TOKEN' }],
    ],
  );
  assert.deepEqual(problems, [
    'credsStore: no program is started for credentials; write them under auths',
    'credHelpers: no program is started for credentials; write them under auths',
    'auths[f.example]: auth: is no base64 of name:password',
    'auths[g.example]: has neither auth, username and password, nor a token',
    'auths[h.example]: is no JSON object',
    "auths[]: is no registry's address",
    "auths[…@i.example]: is no registry's address",
  ]);
});

test('what is no docker config says so', () => {
  const problems = (text: string) => readDockerConfig(text, 'f').problems;
  assert.deepEqual(problems('[]'), ['is no JSON object']);
  assert.deepEqual(problems('{}'), ['auths: is missing']);
  assert.deepEqual(problems('{"auths": 1}'), ['auths: is no JSON object']);
  assert.deepEqual(problems(''), ['is no JSON: line 1, column 1']);
  assert.deepEqual(problems('{"auths": {\n  "r.example": {"auth": canary}\n}}'), ['is no JSON: line 2, column 25']);
});

/** A text that is no JSON, and where it stops being one. */
const faults: readonly [string, string][] = [
  ['{', 'line 1, column 2'],
  ['{"a"', 'line 1, column 5'],
  ['{"a":1,}', 'line 1, column 8'],
  ['{"a":1 "b"}', 'line 1, column 8'],
  ['[1,\n 2,,3]', 'line 2, column 4'],
  ["{'a':1}", 'line 1, column 2'],
  ['{"a": tru}', 'line 1, column 7'],
  ['{"a": 01}', 'line 1, column 7'],
  ['{"a": "x\ny"}', 'line 1, column 7'],
  ['{"a": "\\x"}', 'line 1, column 7'],
  ['{"a": [}', 'line 1, column 8'],
  ['{} x', 'line 1, column 4'],
  ['nul', 'line 1, column 1'],
];

for (const [text, place] of faults) {
  test(`broken JSON is placed: ${JSON.stringify(text)} → ${place}`, () => {
    assert.throws(() => JSON.parse(text));
    assert.equal(jsonFault(text), place);
  });
}

test('a deep text is placed without a deep stack', () => {
  assert.equal(jsonFault('['.repeat(200_000)), 'line 1, column 200001');
});

const secret = (o: Partial<Secret>): Secret => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'regcred' }, ...o });

test('pull secrets: both types, data and stringData; another type, or a broken one, says what is wrong', () => {
  const json = config('r.example');
  const type = 'kubernetes.io/dockerconfigjson' as const;
  const good = readPullSecret(secret({ type, data: { '.dockerconfigjson': base64(json) } }));
  assert.deepEqual([good.credentials.length, good.credentials[0]?.from, good.problems], [1, 'Secret regcred', []]);
  assert.equal(readPullSecret(secret({ type, stringData: { '.dockerconfigjson': json } })).credentials.length, 1);
  const older = JSON.stringify({ 'r.example': { auth: base64('a:b') } });
  assert.equal(readPullSecret(secret({ type: 'kubernetes.io/dockercfg', data: { '.dockercfg': base64(older) } })).credentials.length, 1);
  assert.deepEqual(readPullSecret(secret({ data: { '.dockerconfigjson': base64(json) } })).problems, [
    'is of type Opaque, not of kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg',
  ]);
  assert.deepEqual(readPullSecret(secret({ type, data: {} })).problems, ['.dockerconfigjson: is missing']);
  assert.deepEqual(readPullSecret(secret({ type, data: { '.dockerconfigjson': base64('{canary') } })).problems, [
    'is no JSON: line 1, column 2',
  ]);
});

async function withFolder(step: (dir: string, folder: CredentialsFolder, told: CredentialProblem[][], lines: string[]) => Promise<void>) {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-credentials-'));
  const told: CredentialProblem[][] = [];
  const lines: string[] = [];
  const line = (nouns: object, sentence: string) => void lines.push(`${sentence} ${JSON.stringify(nouns)}`);
  const log = { debug: line, info: line, warn: line, error: line, child: () => log };
  try {
    await step(dir, new CredentialsFolder({ log, dir: join(dir, 'credentials.d'), onProblems: (p) => told.push([...p]) }), told, lines);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Many kernels give files the time of their last tick, up to 10 ms old: what is changed within the same one has the same time. */
function ticked(path: string): Promise<void> {
  const now = `${path}.now`;
  return until('the time of files moves on', () => {
    writeFileSync(now, 'x');
    return statSync(now, { bigint: true }).ctimeNs > statSync(path, { bigint: true }).ctimeNs;
  });
}

test('without the folder there are no credentials and nothing is wrong', () =>
  withFolder(async (_dir, folder, told) => {
    assert.deepEqual(await folder.all(), []);
    assert.deepEqual([folder.problems(), told], [[], []]);
  }));

test('each file is read anew when it changed, and what is gone is gone', () =>
  withFolder(async (dir, folder) => {
    const d = join(dir, 'credentials.d');
    mkdirSync(d);
    const put = (name: string, text: string) => writeFileSync(join(d, name), text, { mode: 0o600 });
    put('a.json', config('a.example'));
    put('b.json', config('b.example'));
    put('notes.txt', 'x');
    put('.hidden.json', config('h.example'));
    const names = async () => (await folder.all()).map((c) => `${c.address} of ${c.from}`);
    assert.deepEqual(await names(), ['a.example of credentials.d/a.json', 'b.example of credentials.d/b.json']);
    await ticked(join(d, 'a.json'));
    put('a.json', config('c.example'));
    assert.deepEqual(await names(), ['c.example of credentials.d/a.json', 'b.example of credentials.d/b.json']);
    unlinkSync(join(d, 'b.json'));
    assert.deepEqual(await names(), ['c.example of credentials.d/a.json']);
  }));

test('a broken file is named with its place and without its text, and the others go on', () =>
  withFolder(async (dir, folder, told, lines) => {
    const d = join(dir, 'credentials.d');
    mkdirSync(d);
    writeFileSync(join(d, 'bad.json'), '{"auths": {"r.example": {"password": "canary-1", }}}', { mode: 0o600 });
    writeFileSync(join(d, 'good.json'), config('r.example'), { mode: 0o600 });
    mkdirSync(join(d, 'folder.json'));
    symlinkSync('nowhere', join(d, 'gone.json'));
    assert.equal((await run('mkfifo', [join(d, 'pipe.json')])).code, 0);
    writeFileSync(join(d, 'huge.json'), ' '.repeat((1 << 20) + 1), { mode: 0o600 });
    assert.equal((await folder.all()).length, 1);
    await folder.all();
    assert.equal(told.length, 1, 'said once');
    assert.deepEqual(
      told[0]?.map((p) => `${p.file} ${p.message}`),
      [
        'credentials.d/bad.json is no JSON: line 1, column 50',
        'credentials.d/folder.json is no regular file',
        'credentials.d/gone.json cannot be read (ENOENT)',
        'credentials.d/huge.json is larger than 1048576 bytes',
        'credentials.d/pipe.json is no regular file',
      ],
    );
    assert.ok(!`${JSON.stringify(told)}${lines}`.includes('canary'));
    writeFileSync(join(d, 'bad.json'), config('x.example'), { mode: 0o600 });
    await folder.all();
    assert.equal(told.at(-1)?.length, 4, 'mended is not wrong any more');
  }));

test('a file that others may read is used, and warned of', () =>
  withFolder(async (dir, folder) => {
    const d = join(dir, 'credentials.d');
    mkdirSync(d);
    writeFileSync(join(d, 'a.json'), config('r.example'));
    chmodSync(join(d, 'a.json'), 0o644);
    assert.equal((await folder.all()).length, 1);
    const message = 'InsecurePermissions: others may read it (mode 0644): chmod 600';
    assert.deepEqual(folder.problems(), [{ file: 'credentials.d/a.json', message, insecure: true }]);
    await ticked(join(d, 'a.json'));
    chmodSync(join(d, 'a.json'), 0o600);
    assert.equal(folder.trouble(), `credentials.d/a.json ${message}`);
    await folder.all();
    assert.deepEqual([folder.problems(), folder.trouble()], [[], undefined]);
  }));
