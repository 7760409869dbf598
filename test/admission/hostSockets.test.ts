import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hostSockets, parseSockets } from '../../src/admission/hostSockets.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const line = (local: string, state: string, remote = '00000000:0000'): string =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0\n`;

test('listening TCP sockets are taken, connections are not', () => {
  const text = `${head}${line('00000000:0016', '0A')}${line('0100007F:1F90', '0A')}${line('0702A8C0:0016', '01', '0102A8C0:C350')}`;
  assert.deepEqual(parseSockets(text, 'TCP'), [
    { protocol: 'TCP', port: 22, ip: '0.0.0.0' },
    { protocol: 'TCP', port: 8080, ip: '127.0.0.1' },
  ]);
});

test('bound UDP sockets are taken, those with a peer are not', () => {
  const text = `${head}${line('3500007F:0035', '07')}${line('0702A8C0:C001', '01', '08080808:0035')}`;
  assert.deepEqual(parseSockets(text, 'UDP'), [{ protocol: 'UDP', port: 53, ip: '127.0.0.53' }]);
});

test('IPv6 addresses are read word by word; IPv4 inside IPv6 is IPv4', () => {
  const of = (address: string): string | undefined => parseSockets(line(`${address}:0050`, '0A'), 'TCP')[0]?.ip;
  assert.equal(of('00000000000000000000000000000000'), '::');
  assert.equal(of('00000000000000000000000001000000'), '::1');
  assert.equal(of('B80D0120000000000000000001000000'), '2001:db8::1');
  assert.equal(of('000080FE00000000FF005450B6AD1DFE'), 'fe80::5054:ff:fe1d:adb6');
  assert.equal(of('0000000000000000FFFF00000702A8C0'), '192.168.2.7');
});

test('what is no socket is nothing, whatever the text', () => {
  for (const text of ['', head, 'garbage', '0: XYZ:0016 0:0 0A', '0: 0000:0016 00000000:0000 0A', `${'x'.repeat(100_000)}\n`])
    assert.deepEqual(parseSockets(text, 'TCP'), []);
});

test('the four tables are read; one that is not there holds nothing', () => {
  const proc = mkdtempSync(join(tmpdir(), 'proc-'));
  assert.deepEqual(hostSockets(proc), []);
  mkdirSync(join(proc, 'net'));
  writeFileSync(join(proc, 'net/tcp'), head + line('00000000:0016', '0A'));
  writeFileSync(join(proc, 'net/udp6'), head + line('00000000000000000000000000000000:14E9', '07'));
  assert.deepEqual(hostSockets(proc), [
    { protocol: 'TCP', port: 22, ip: '0.0.0.0' },
    { protocol: 'UDP', port: 5353, ip: '::' },
  ]);
});

test('the machine’s own tables can be read', () => {
  for (const { port } of hostSockets('/proc')) assert.ok(port > 0 && port < 65_536);
});
