import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { type RemoteOptions, remoteSettings } from '../../src/cli/remoteOptions.ts';

const dir = mkdtempSync(join(tmpdir(), 'podsched-options-'));
after(() => rmSync(dir, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
};
const server = 'mqtts://broker.example';

test('options go before the environment, which has the names of the agent', async () => {
  const env = { PODSCHED_MQTT_SERVERS: 'mqtts://a,mqtts://b', PODSCHED_MQTT_USERNAME: 'ops-1', PODSCHED_MQTT_PREFIX: 'fleet' };
  const { servers, prefix, username, requester } = await remoteSettings({}, env);
  assert.deepEqual(
    { servers, prefix, username, requester },
    { servers: ['mqtts://a', 'mqtts://b'], prefix: 'fleet', username: 'ops-1', requester: 'ops-1' },
  );
  assert.deepEqual((await remoteSettings({ server }, env)).servers, [server]);
});

test('the password is the text of its file, without the newline at its end', async () => {
  const passwordFile = file('password', 'se cret\n');
  const { password } = await remoteSettings({ server, username: 'ops', passwordFile }, {});
  assert.equal(Buffer.from(password ?? '').toString(), 'se cret');
});

test('who asks: as told, as the user is called, as the certificate says, else by chance', async () => {
  const requester = async (o: RemoteOptions): Promise<string> => (await remoteSettings({ server, ...o }, {})).requester;
  assert.equal(await requester({ requester: 'me-1', username: 'ops' }), 'me-1');
  assert.equal(await requester({ username: 'ops' }), 'ops');
  assert.match(await requester({ username: 'Ops@Example' }), /^cli-[0-9a-f]{12}$/);
  assert.notEqual(await requester({}), await requester({}));
  const [keyFile, certFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ed25519', '-nodes', '-keyout', keyFile, '-out', certFile, '-subj', '/O=x/CN=ops-7', '-days', '9'],
    { stdio: 'ignore' },
  );
  assert.equal(await requester({ certFile, keyFile }), 'ops-7');
  await assert.rejects(requester({ requester: 'a/b' }), (e) => e instanceof CommandError && e.code === exitCodes.usage);
});

const wrong: readonly [string, RemoteOptions, RegExp][] = [
  ['no broker', {}, /which broker\? --server/],
  ['a password in the address', { server: 'mqtts://me:secret@host' }, /--server.*an address with a user/],
  ['no address', { server: 'broker' }, /--server/],
  ['not encrypted, beyond loopback', { server: 'mqtt://broker.example' }, /--server.*mqtts:\/\//],
  ['the broker of the agent', { server: 'embedded' }, /embedded is for the agent/],
  ['half of a certificate', { server, certFile: '/c.pem' }, /--key-file/],
  ['a password of nobody', { server, passwordFile: '/p' }, /--username/],
  ['a prefix with a wildcard', { server, prefix: 'a/#' }, /--prefix/],
  ['a file that is not there', { server, caFile: '/nowhere/ca.pem' }, /\/nowhere\/ca\.pem cannot be read/],
];
for (const [name, options, text] of wrong) {
  test(`what is wrong is said in the words of the options: ${name}`, async () => {
    await assert.rejects(remoteSettings(options, {}), (e) => {
      assert.ok(e instanceof CommandError);
      assert.equal(e.code, exitCodes.usage);
      assert.match(e.message, text);
      assert.ok(!e.message.includes('secret'));
      return true;
    });
  });
}

test('mqtt:// beyond loopback is taken when it is asked for by name', async () => {
  assert.deepEqual((await remoteSettings({ server: 'mqtt://192.0.2.1', insecure: true }, {})).servers, ['mqtt://192.0.2.1']);
  assert.deepEqual((await remoteSettings({ server: 'mqtt://127.0.0.1:1883' }, {})).servers, ['mqtt://127.0.0.1:1883']);
});
