import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hostSockets, parseSockets, socketHolder } from '../../src/admission/hostSockets.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const line = (local: string, state: string, remote = '00000000:0000'): string =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0\n`;

test('listening TCP sockets are taken, connections are not', () => {
  const text = `${head}${line('00000000:0016', '0A')}${line('0100007F:1F90', '0A')}${line('0702A8C0:0016', '01', '0102A8C0:C350')}`;
  assert.deepEqual(parseSockets(text, 'TCP'), [
    { protocol: 'TCP', port: 22, ip: '0.0.0.0', inode: '12345' },
    { protocol: 'TCP', port: 8080, ip: '127.0.0.1', inode: '12345' },
  ]);
});

test('bound UDP sockets are taken, those with a peer are not', () => {
  const text = `${head}${line('3500007F:0035', '07')}${line('0702A8C0:C001', '01', '08080808:0035')}`;
  assert.deepEqual(parseSockets(text, 'UDP'), [{ protocol: 'UDP', port: 53, ip: '127.0.0.53', inode: '12345' }]);
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
    { protocol: 'TCP', port: 22, ip: '0.0.0.0', inode: '12345' },
    { protocol: 'UDP', port: 5353, ip: '::', inode: '12345' },
  ]);
});

/** A /proc with these processes: what their open files are, or undefined where nobody may look. */
function fakeProc(processes: Readonly<Record<string, { readonly name?: string; readonly files?: readonly string[] }>>): string {
  const root = mkdtempSync(join(tmpdir(), 'proc-'));
  for (const [pid, { name, files }] of Object.entries(processes)) {
    mkdirSync(join(root, pid));
    if (name !== undefined) writeFileSync(join(root, pid, 'comm'), `${name}\n`);
    if (files === undefined) continue;
    mkdirSync(join(root, pid, 'fd'));
    files.forEach((target, fd) => {
      symlinkSync(target, join(root, pid, 'fd', `${fd}`));
    });
  }
  return root;
}

const socket = 'socket:[12345]';
const holders: readonly (readonly [what: string, processes: Parameters<typeof fakeProc>[0], expected: string | undefined])[] = [
  ['its process', { 9: { name: 'cron', files: ['/dev/null'] }, 812: { name: 'sshd', files: ['/dev/null', socket] } }, 'sshd (pid 812)'],
  ['nobody has it', { 812: { name: 'sshd', files: ['socket:[123456]', 'socket:[1234]'] } }, undefined],
  ['no processes', {}, undefined],
  ['a process that is gone, or not ours to see', { 7: { name: 'gone' }, 812: { name: 'sshd', files: [socket] } }, 'sshd (pid 812)'],
  ['the oldest of several', { 1000: { name: 'child', files: [socket] }, 90: { name: 'nginx', files: [socket] } }, 'nginx (pid 90)'],
  ['whom systemd gave it', { 1: { name: 'systemd', files: [socket] }, 812: { name: 'sshd', files: [socket] } }, 'sshd (pid 812)'],
  ['systemd, which waits for a caller', { 1: { name: 'systemd', files: [socket] } }, 'systemd (pid 1)'],
  ['what is no process', { self: { name: 'x', files: [socket] }, '0x1': { name: 'x', files: [socket] } }, undefined],
  ['a process without a name', { 5: { files: [socket] } }, 'a process (pid 5)'],
  ['a name that would steer a terminal', { 5: { name: 'a\u001b[2J\nb', files: [socket] } }, 'a [2J b (pid 5)'],
];
for (const [what, processes, expected] of holders) {
  test(`who has a socket: ${what}`, () => {
    assert.equal(socketHolder(fakeProc(processes), { protocol: 'TCP', port: 22, ip: '', inode: '12345' }), expected);
  });
}

test('a socket without a number is searched for nowhere, and no socket without an end', () => {
  const proc = fakeProc({ 5: { name: 'flood', files: ['/a', '/b', '/c'] }, 812: { name: 'sshd', files: [socket] } });
  const ssh = { protocol: 'TCP', port: 22, ip: '0.0.0.0' } as const;
  assert.equal(socketHolder(proc, ssh), undefined);
  assert.equal(socketHolder(proc, { ...ssh, inode: '12345' }, 3), undefined);
  assert.equal(socketHolder(proc, { ...ssh, inode: '12345' }, 4), 'sshd (pid 812)');
  assert.equal(socketHolder('/nowhere', { ...ssh, inode: '12345' }), undefined);
});

test('this very process is found by the port on which it listens', async (t) => {
  const server = createServer();
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const mine = hostSockets('/proc').find((s) => typeof address === 'object' && s.protocol === 'TCP' && s.port === address?.port);
  assert.ok(mine);
  assert.match(socketHolder('/proc', mine) ?? '', new RegExp(`^\\S+ \\(pid ${process.pid}\\)$`));
});

test('the machine’s own tables can be read', () => {
  for (const { port } of hostSockets('/proc')) assert.ok(port > 0 && port < 65_536);
});
