/** D9: who holds a port of the host, among manifests and with the host itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressKey, type HostSocket, portClaims, portConflicts } from '../../src/admission/hostPorts.ts';
import { defaultPod } from '../../src/api/defaults.ts';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { PodSpec } from '../../src/api/v1.ts';
import { claiming, pod } from './build.ts';

const tcp = (port: number, ip = '0.0.0.0'): HostSocket => ({ protocol: 'TCP', port, ip });
const udp = (port: number, ip = '0.0.0.0'): HostSocket => ({ protocol: 'UDP', port, ip });
const told = (wanted: DesiredPod, holders: readonly DesiredPod[], host: readonly HostSocket[] = [], ending = false): string[] =>
  portConflicts(
    wanted.pod,
    holders.map((p) => ({ pod: p, ending })),
    host,
  ).map(({ claim, holder }) => `${claim.port}/${claim.protocol} ${holder}`);
const onHost = (name: string, spec: Partial<PodSpec>): DesiredPod => {
  const made = pod(name, { ...spec, hostNetwork: true });
  return { ...made, pod: defaultPod(made.pod, 'pi-07') };
};
const web = pod('web', claiming({ hostPort: 8080 }));
const process = (at: string): string => `a process of the host, which listens on ${at}`;

const table: readonly (readonly [what: string, got: string[], expected: string[]])[] = [
  ['two manifests with 8080', told(pod('b', claiming({ hostPort: 8080 })), [web]), ['8080/TCP pod default/web']],
  ['other numbers', told(pod('b', claiming({ hostPort: 8081 })), [web]), []],
  ['UDP and TCP on one number', told(pod('b', claiming({ hostPort: 8080, protocol: 'UDP' })), [web]), []],
  ['a port without hostPort', told(pod('b', claiming({ hostPort: 0, containerPort: 8080 })), [web]), []],
  [
    'different addresses',
    told(pod('b', claiming({ hostPort: 80, hostIP: '192.0.2.2' })), [pod('a', claiming({ hostPort: 80, hostIP: '192.0.2.1' }))]),
    [],
  ],
  [
    'an address beside all addresses',
    told(pod('b', claiming({ hostPort: 8080, hostIP: '192.0.2.1' })), [web]),
    ['8080/TCP pod default/web'],
  ],
  [
    '0.0.0.0 is all addresses',
    told(pod('b', claiming({ hostPort: 80, hostIP: '0.0.0.0' })), [pod('a', claiming({ hostPort: 80, hostIP: '127.0.0.1' }))]),
    ['80/TCP pod default/a'],
  ],
  [
    ':: is all addresses',
    told(pod('b', claiming({ hostPort: 80, hostIP: '::' })), [pod('a', claiming({ hostPort: 80, hostIP: '192.0.2.1' }))]),
    ['80/TCP pod default/a'],
  ],
  [
    'one IPv6 address in two spellings',
    told(pod('b', claiming({ hostPort: 80, hostIP: '2001:DB8::1' })), [pod('a', claiming({ hostPort: 80, hostIP: '2001:db8:0:0::1' }))]),
    ['80/TCP pod default/a'],
  ],
  [
    'two IPv6 addresses',
    told(pod('b', claiming({ hostPort: 80, hostIP: '::1' })), [pod('a', claiming({ hostPort: 80, hostIP: '2001:db8::1' }))]),
    [],
  ],
  [
    'a pod on the host’s network claims what it listens on',
    told(onHost('b', { containers: [{ name: 'c', image: 'x', ports: [{ containerPort: 8080 }] }] }), [web]),
    ['8080/TCP pod default/web'],
  ],
  [
    'a pod of its own network claims nothing by a containerPort',
    told(pod('b', { containers: [{ name: 'c', image: 'x', ports: [{ containerPort: 8080 }] }] }), [web]),
    [],
  ],
  [
    'hostNetwork and sshd’s port',
    told(onHost('b', { containers: [{ name: 'c', image: 'x', ports: [{ containerPort: 22 }] }] }), [], [tcp(22)]),
    [`22/TCP ${process('0.0.0.0:22')}`],
  ],
  [
    'hostPort and sshd’s port, heard on IPv6',
    told(pod('b', claiming({ hostPort: 22 })), [], [tcp(22, '::')]),
    [`22/TCP ${process('[::]:22')}`],
  ],
  [
    'a resolver on one address',
    told(pod('b', claiming({ hostPort: 53, protocol: 'UDP' })), [], [udp(53, '127.0.0.53')]),
    [`53/UDP ${process('127.0.0.53:53')}`],
  ],
  [
    'beside a resolver on another address',
    told(pod('b', claiming({ hostPort: 53, hostIP: '192.0.2.1' })), [], [tcp(53, '127.0.0.53')]),
    [],
  ],
  ['the host’s UDP is not TCP', told(pod('b', claiming({ hostPort: 53 })), [], [udp(53)]), []],
  ['a pod before its own process', told(pod('b', claiming({ hostPort: 8080 })), [web], [tcp(8080)]), ['8080/TCP pod default/web']],
  [
    'a holder that is ending',
    told(pod('other/web', claiming({ hostPort: 8080 })), [web], [], true),
    ['8080/TCP pod default/web, which is ending'],
  ],
  [
    'every port that is not free',
    told(pod('b', claiming({ hostPort: 8080 }, { hostPort: 22 }, { hostPort: 9 })), [web], [tcp(22)]),
    ['8080/TCP pod default/web', `22/TCP ${process('0.0.0.0:22')}`],
  ],
];

for (const [what, got, expected] of table) {
  test(`${what}: ${expected.length === 0 ? 'no conflict' : expected.join('; ')}`, () => {
    assert.deepEqual(got, expected);
  });
}

test('ports of sidecars are claimed, those of plain init containers are not', () => {
  const ports = (hostPort: number) => ({ name: `p${hostPort}`, image: 'x', ports: [{ hostPort, containerPort: 1 }] });
  const { pod: made } = pod('a', { containers: [ports(1)], initContainers: [ports(2), { ...ports(3), restartPolicy: 'Always' }] });
  assert.deepEqual(
    portClaims(made).map((c) => c.port),
    [1, 3],
  );
});

test('a process of the host is named when somebody knows it, and asked for only on a conflict', () => {
  const asked: HostSocket[] = [];
  const conflicts = portConflicts(pod('b', claiming({ hostPort: 22 }, { hostPort: 9 })).pod, [], [tcp(80), tcp(22)], (socket) => {
    asked.push(socket);
    return 'sshd (pid 812)';
  });
  assert.deepEqual([conflicts.map((c) => c.holder), asked], [['sshd (pid 812), which listens on 0.0.0.0:22'], [tcp(22)]]);
});

test('one address has one key', () => {
  for (const all of ['', '0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::ffff:0.0.0.0']) assert.equal(addressKey(all), addressKey(''), all);
  assert.equal(addressKey('::ffff:192.0.2.1'), '192.0.2.1');
  assert.equal(addressKey('::ffff:c000:201'), '192.0.2.1');
  assert.equal(addressKey('FE80::1'), addressKey('fe80:0:0:0:0:0:0:1'));
  assert.notEqual(addressKey('::1'), addressKey('1::'));
});
