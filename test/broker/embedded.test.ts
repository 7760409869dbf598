import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket, connect as tcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { MqttBroker } from '../../src/broker/client.ts';
import { startEmbedded } from '../../src/broker/embedded.ts';
import { parsePasswords, passwordFits } from '../../src/broker/passwords.ts';
import { BrokerError, type ConnectOptions } from '../../src/world/broker.ts';
import { silentLog } from '../../src/world/log.ts';

const folder = await mkdtemp(join(tmpdir(), 'podsched-embedded-'));
after(() => rm(folder, { recursive: true }));

const options = (server: string, more: Partial<ConnectOptions> = {}): ConnectOptions => ({
  server,
  protocolVersion: 4,
  clientId: 'c',
  cleanStart: true,
  keepaliveSeconds: 30,
  will: { topic: 'w', payload: 'w', qos: 1, retain: true, delaySeconds: 0, expirySeconds: 60 },
  ...more,
});
const listening = (server: Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));
const nothing = { onMessage: () => {}, onClose: () => {} };
const password = (text: string) => new TextEncoder().encode(text);

test('open on loopback, refused anywhere else without passwords', async () => {
  for (const listen of ['0.0.0.0:0', ':0', '192.0.2.1:1883', '[::]:0', 'example.org:1883']) {
    await assert.rejects(startEmbedded({ listen }, silentLog), /passwordFile/, listen);
  }
  for (const listen of ['127.0.0.1:0', 'localhost:0']) await (await startEmbedded({ listen, passwordFile: '' }, silentLog)).close();
});

test('an address that is none, or is taken, is an error with the address in it', async () => {
  for (const listen of ['', 'x', '127.0.0.1', '127.0.0.1:99999'])
    await assert.rejects(startEmbedded({ listen }, silentLog), /no address:port/);
  const first = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  const listen = first.url.slice('mqtt://'.length);
  await assert.rejects(startEmbedded({ listen }, silentLog), new RegExp(listen));
  await first.close();
});

test('MQTT 5 is refused with CONNACK code 1', async () => {
  const b = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  await assert.rejects(
    new MqttBroker().connect(options(b.url, { protocolVersion: 5 }), nothing),
    (e) => e instanceof BrokerError && e.code === 1,
  );
  await b.close();
});

test('with a password file, who knows no password stays out: the file is read for each client', async () => {
  const passwordFile = join(folder, 'plain');
  await writeFile(passwordFile, '# people\npi-1:s3cret:with:colons\n\nbroken line\n');
  const b = await startEmbedded({ listen: '127.0.0.1:0', passwordFile }, silentLog);
  const attempt = (username?: string, secret?: string) =>
    new MqttBroker().connect(
      options(b.url, { ...(username !== undefined && { username }), ...(secret !== undefined && { password: password(secret) }) }),
      nothing,
    );
  const refused = (e: unknown) => e instanceof BrokerError && e.code === 4;
  await assert.rejects(attempt(), refused);
  await assert.rejects(attempt('pi-1', 'wrong'), refused);
  await assert.rejects(attempt('pi-2', 's3cret:with:colons'), refused);
  await (await attempt('pi-1', 's3cret:with:colons')).end('disconnect');
  await writeFile(passwordFile, 'pi-2:new\n');
  await assert.rejects(attempt('pi-1', 's3cret:with:colons'), refused);
  await (await attempt('pi-2', 'new')).end('disconnect');
  await rm(passwordFile);
  await assert.rejects(attempt('pi-2', 'new'), refused);
  await b.close();
});

test('a password file that is not there ends the start', async () => {
  await assert.rejects(startEmbedded({ listen: '127.0.0.1:0', passwordFile: join(folder, 'none') }, silentLog), /ENOENT/);
});

test('hashes written by mosquitto_passwd fit, both kinds', async () => {
  for (const kind of ['sha512-pbkdf2', 'sha512']) {
    const file = join(folder, kind);
    await promisify(execFile)('mosquitto_passwd', ['-H', kind, '-c', '-b', file, 'pi-1', 'pässword']);
    const { readFile } = await import('node:fs/promises');
    const stored = parsePasswords(await readFile(file, 'utf8')).get('pi-1') ?? '';
    assert.ok(stored.startsWith(kind === 'sha512' ? '$6$' : '$7$'));
    assert.ok(await passwordFits(stored, password('pässword')));
    assert.ok(!(await passwordFits(stored, password('password'))));
  }
});

test('a hash that is damaged fits nothing', async () => {
  for (const stored of ['$7$x$AAAA$AAAA', '$7$101$AAAA$', '$7$0$AAAA$AAAA', '$6$AAAA$', '$7$99999999999$AAAA$AAAA']) {
    assert.ok(!(await passwordFits(stored, password(''))), stored);
  }
});

test('what is no MQTT breaks neither the embedded broker nor the client', async () => {
  const b = await startEmbedded({ listen: '127.0.0.1:0' }, silentLog);
  const port = Number(b.url.split(':').at(-1));
  for (const junk of ['GET / HTTP/1.1\r\n\r\n', '\u0000'.repeat(64), '\u00ff'.repeat(64)]) {
    await new Promise<void>((resolve) => {
      const s = tcp(port, '127.0.0.1', () => s.write(junk, 'latin1', () => s.destroy()));
      s.on('error', () => {});
      s.on('close', () => resolve());
    });
  }
  await (await new MqttBroker().connect(options(b.url), nothing)).end('disconnect');
  await b.close();

  for (const junk of ['HTTP/1.1 400 Bad Request\r\n\r\n', '\u0020\u0002', '\u00f0\u0000', '']) {
    const server = createServer((s) => {
      s.on('error', () => {});
      s.resume();
      s.end(junk, 'latin1');
    });
    const at = await listening(server);
    await assert.rejects(new MqttBroker().connect(options(`mqtt://127.0.0.1:${at}`), nothing), BrokerError, JSON.stringify(junk));
    await new Promise((resolve) => server.close(resolve));
  }
});

test('junk after CONNACK ends the connection, once', async () => {
  let socket: Socket | undefined;
  const server = createServer((s) => {
    socket = s.on('error', () => {});
    s.once('data', () => s.write(Buffer.from([0x20, 0x02, 0x00, 0x00])));
  });
  const at = await listening(server);
  let closed = 0;
  const ended = new Promise<void>((resolve) => {
    const onClose = (): void => {
      closed++;
      setTimeout(resolve, 50);
    };
    void new MqttBroker()
      .connect(options(`mqtt://127.0.0.1:${at}`), { onMessage: () => {}, onClose })
      .then(() => socket?.write(Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])));
  });
  await ended;
  assert.equal(closed, 1);
  await new Promise((resolve) => server.close(resolve));
});

test('an address that cannot be one rejects, and a silent server is left when the attempt is aborted', async () => {
  await assert.rejects(new MqttBroker().connect(options('http://127.0.0.1:1'), nothing), BrokerError);
  await assert.rejects(new MqttBroker().connect(options('no url'), nothing), BrokerError);
  const server = createServer((s) => s.on('error', () => {}).resume());
  const at = await listening(server);
  const attempt = new AbortController();
  setTimeout(() => attempt.abort(new Error('enough')), 50);
  await assert.rejects(new MqttBroker().connect(options(`mqtt://127.0.0.1:${at}`), nothing, attempt.signal), /enough/);
  await new Promise((resolve) => server.close(resolve));
});
