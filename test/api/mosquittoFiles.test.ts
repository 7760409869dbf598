/** The files in docs/mosquitto: the access rules are those of the contract, and the script makes certificates that are good for what they say. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { commandTopic, homeAssistantTopic, nodeTopics } from '../../src/api/topics.ts';

const docs = new URL('../../docs/mosquitto/', import.meta.url);
const text = (file: string): string => readFileSync(new URL(file, docs), 'utf8');
const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const rules = text('acl')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.replace(/ +/g, ' '));

test('the pattern rules are the contract’s, letter by letter, and cover what a node does', () => {
  const own = nodeTopics('podsched/v1', '%u');
  assert.deepEqual(
    rules.filter((line) => line.startsWith('pattern ')),
    [
      `pattern write ${own.subtree}`,
      `pattern read ${own.subtree}`,
      'pattern read podsched/v1/desired/nodes/%u/#',
      'pattern read podsched/v1/desired/groups/#',
      'pattern read podsched/v1/desired/all/#',
      `pattern read ${commandTopic('podsched/v1', '%u', '#')}`,
      'pattern read podsched/v1/rollouts/#',
      `pattern write ${own.reply('+')}`,
      `pattern write ${homeAssistantTopic('homeassistant', '%u')}`,
      'pattern read homeassistant/status',
    ],
  );
});

test('a viewer writes nothing, an operator nothing that nodes say, and answers are read by who asked', () => {
  const stanzas = new Map<string, string[]>();
  let user = '';
  for (const line of rules.filter((l) => !l.startsWith('pattern '))) {
    if (line.startsWith('user ')) user = line.slice(5);
    else stanzas.set(user, [...(stanzas.get(user) ?? []), line]);
  }
  const of = (name: string) => stanzas.get(name) ?? [];
  assert.deepEqual(of('viewer-1'), ['topic read podsched/v1/nodes/#']);
  assert.ok(of('ops-1').every((line) => !line.startsWith('topic write podsched/v1/nodes')));
  assert.ok(of('ops-1').includes('topic read podsched/v1/reply/ops-1/#'));
  assert.ok(of('admin-1').includes('topic write podsched/v1/nodes/#'));
  assert.equal(stanzas.has(''), false, 'nothing for who has no name');
  for (const lines of stanzas.values()) for (const line of lines) assert.match(line, /^topic (read|write) \S+$/);
});

test('the broker wants TLS 1.2, a certificate of everybody, and goes by its name', () => {
  const conf = text('mosquitto.conf');
  for (const line of ['allow_anonymous false', 'require_certificate true', 'use_identity_as_username true', 'tls_version tlsv1.2'])
    assert.match(conf, new RegExp(`^${line}$`, 'm'));
  assert.doesNotMatch(conf, /^listener 1883/m);
});

const script = new URL('make-certs.sh', docs).pathname;
const run = (...args: string[]) => spawnSync('sh', [script, ...args], { encoding: 'utf8', input: '' });
const openssl = (cwd: string, ...args: string[]) => spawnSync('openssl', args, { cwd, encoding: 'utf8' });
function folder(): string {
  const dir = join(mkdtempSync(join(tmpdir(), 'podsched-certs-')), 'fleet');
  folders.push(join(dir, '..'));
  return dir;
}
const contents = (dir: string) =>
  Object.fromEntries(
    readdirSync(dir)
      .filter((f) => f !== 'ca.db')
      .map((f) => [f, readFileSync(join(dir, f), 'utf8')]),
  );

test('make-certs.sh: an authority, the broker by all its names, a certificate for each node and person; keys are their owner’s only', () => {
  const dir = folder();
  const made = run(dir, '--server', 'broker.example,192.0.2.1', '--node', 'pi-01', '--node', 'pi-02', '--operator', 'ops-1');
  assert.equal(made.status, 0, made.stderr);
  for (const name of ['ca', 'server', 'pi-01', 'pi-02', 'ops-1'])
    assert.equal(statSync(join(dir, `${name}.key`)).mode & 0o777, 0o600, name);
  for (const [name, purpose] of [
    ['server', 'sslserver'],
    ['pi-01', 'sslclient'],
    ['ops-1', 'sslclient'],
  ] as const) {
    const good = openssl(dir, 'verify', '-CAfile', 'ca.crt', '-crl_check', '-CRLfile', 'crl.pem', '-purpose', purpose, `${name}.crt`);
    assert.equal(good.status, 0, good.stderr);
  }
  assert.notEqual(openssl(dir, 'verify', '-CAfile', 'ca.crt', '-purpose', 'sslserver', 'pi-01.crt').status, 0, 'a node is no broker');
  for (const [flag, name] of [
    ['-verify_hostname', 'broker.example'],
    ['-verify_ip', '192.0.2.1'],
  ] as const)
    assert.equal(openssl(dir, 'verify', '-CAfile', 'ca.crt', flag, name, 'server.crt').status, 0, name);
  assert.match(openssl(dir, 'x509', '-in', 'pi-01.crt', '-noout', '-subject', '-nameopt', 'RFC2253').stdout, /^subject=CN=pi-01$/m);
  assert.match(openssl(dir, 'x509', '-in', 'pi-01.crt', '-noout', '-startdate').stdout, /2020/, 'a Pi without a clock');
});

test('run again it changes nothing; another name of the broker is another certificate with the same key; a broken one is made anew', () => {
  const dir = folder();
  const args = ['--server', 'broker.example', '--node', 'pi-01'];
  run(dir, ...args);
  const before = contents(dir);
  assert.equal(run(dir, ...args).status, 0);
  assert.deepEqual(contents(dir), before);
  assert.equal(run(dir, '--server', 'broker.example,other.example').status, 0);
  const now = contents(dir);
  assert.notEqual(now['server.crt'], before['server.crt']);
  assert.equal(now['server.key'], before['server.key']);
  writeFileSync(join(dir, 'pi-01.crt'), '');
  assert.equal(run(dir, '--node', 'pi-01').status, 0);
  assert.equal(openssl(dir, 'verify', '-CAfile', 'ca.crt', 'pi-01.crt').status, 0);
  assert.equal(contents(dir)['ca.crt'], before['ca.crt']);
});

test('renewed it has the same key; revoked it is refused, and a name that comes again has another key', () => {
  const dir = folder();
  run(dir, '--node', 'pi-01', '--node', 'pi-02');
  const before = contents(dir);
  assert.equal(run(dir, '--renew', 'pi-01').status, 0);
  assert.notEqual(contents(dir)['pi-01.crt'], before['pi-01.crt']);
  assert.equal(contents(dir)['pi-01.key'], before['pi-01.key']);
  const revoked = run(dir, '--revoke', 'pi-02');
  assert.equal(revoked.status, 0, revoked.stderr);
  writeFileSync(join(dir, 'stolen.crt'), before['pi-02.crt'] ?? '');
  const check = (file: string) => openssl(dir, 'verify', '-CAfile', 'ca.crt', '-crl_check', '-CRLfile', 'crl.pem', file).status;
  assert.notEqual(check('stolen.crt'), 0);
  assert.equal(check('pi-01.crt'), 0);
  assert.equal(run(dir, '--node', 'pi-02').status, 0);
  assert.equal(check('pi-02.crt'), 0);
  assert.notEqual(contents(dir)['pi-02.key'], before['pi-02.key']);
});

test('what it cannot do it says, before it makes a file', () => {
  const dir = folder();
  for (const args of [
    [],
    ['--node', 'pi-01'],
    [dir, '--node'],
    [dir, '--node', '../x'],
    [dir, '--node', 'Pi'],
    [dir, '--node', 'a/b'],
    [dir, '--node', '-x'],
    [dir, '--node', 'ca'],
    [dir, '--node', 'server'],
    [dir, '--node', 'x'.repeat(64)],
    [dir, '--server', 'a;b'],
    [dir, '--server', 'a\nextendedKeyUsage = clientAuth'],
    [dir, '--days', '0'],
    [dir, '--days', 'x'],
    [dir, '--frobnicate', 'x'],
  ]) {
    const refused = run(...args);
    assert.equal(refused.status, 2, JSON.stringify(args));
    assert.match(refused.stderr, /^make-certs\.sh: /);
  }
  assert.equal(existsSync(dir), false);
});
