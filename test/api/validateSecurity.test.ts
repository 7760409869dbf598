import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkConfiguration } from '../../src/api/configurationChecks.ts';
import { decodeObject } from '../../src/api/decode.ts';
import { dottedSysctl } from '../../src/api/sysctls.ts';
import { decode, only, pod, type Raw, rawPod } from './objects.ts';

const ofPod = (securityContext: Raw, spec: Raw = {}) => rawPod({ securityContext, ...spec });
const ofContainer = (securityContext: Raw) => rawPod({}, { securityContext });
const own = 'spec.containers[0].securityContext';

test('ids are from 0 to 2147483647', () => {
  for (const field of ['runAsUser', 'runAsGroup', 'fsGroup']) only(decode(ofPod({ [field]: -1 })), `spec.securityContext.${field}`);
  only(decode(ofPod({ supplementalGroups: [4, 2 ** 31] })), 'spec.securityContext.supplementalGroups[1]');
  only(decode(ofContainer({ runAsUser: -1 })), `${own}.runAsUser`);
  pod(ofPod({ runAsUser: 0, runAsGroup: 0, fsGroup: 2 ** 31 - 1, supplementalGroups: [0] }));
});

test('capabilities are known by name, and a wrong name is told with the right one', () => {
  const add = (name: string) => only(decode(ofContainer({ capabilities: { add: [name] } })), `${own}.capabilities.add[0]`);
  assert.equal(add('CAP_NET_ADMIN').nearest, 'NET_ADMIN');
  assert.equal(add('NET_ADMN').nearest, 'NET_ADMIN');
  assert.equal(add('sudo').nearest, undefined);
  only(decode(ofContainer({ capabilities: { drop: ['KILL', 'EVERYTHING'] } })), `${own}.capabilities.drop[1]`);
  pod(ofContainer({ capabilities: { add: ['SYS_ADMIN', 'net_raw'], drop: ['all'] } }));
});

test('privileged cannot be without escalation, and an unmasked /proc needs users of its own', () => {
  only(decode(ofContainer({ privileged: true, allowPrivilegeEscalation: false })), `${own}.allowPrivilegeEscalation`);
  pod(ofContainer({ privileged: true, allowPrivilegeEscalation: true }));
  only(decode(ofContainer({ procMount: 'Unmasked' })), `${own}.procMount`);
  assert.equal(only(decode(ofContainer({ procMount: 'default' })), `${own}.procMount`).nearest, 'Default');
});

test('profiles: Localhost has a name, and only Localhost', () => {
  for (const [context, at] of [
    [ofPod, 'spec.securityContext'],
    [ofContainer, own],
  ] as const) {
    for (const field of ['seccompProfile', 'appArmorProfile']) {
      only(decode(context({ [field]: { type: 'Localhost' } })), `${at}.${field}.localhostProfile`);
      only(decode(context({ [field]: { type: 'Unconfined', localhostProfile: 'x' } })), `${at}.${field}.localhostProfile`);
      only(decode(context({ [field]: {} })), `${at}.${field}.type`);
      only(decode(context({ [field]: { type: 'Runtimedefault' } })), `${at}.${field}.type`);
    }
    for (const name of ['/etc/x.json', '../x.json', 'a/../../x'])
      only(decode(context({ seccompProfile: { type: 'Localhost', localhostProfile: name } })), `${at}.seccompProfile.localhostProfile`);
    only(decode(context({ appArmorProfile: { type: 'Localhost', localhostProfile: ' x' } })), `${at}.appArmorProfile.localhostProfile`);
    pod(context({ seccompProfile: { type: 'Localhost', localhostProfile: 'a/b..json' } }));
  }
});

test('sysctls: safe ones, those the node allows, none that reach further than the pod', () => {
  const sysctls = (...names: readonly string[]) => ({ sysctls: names.map((name) => ({ name, value: '1' })) });
  const at = (i: number) => `spec.securityContext.sysctls[${i}].name`;
  pod(ofPod(sysctls('net.ipv4.tcp_syncookies', 'kernel/shm_rmid_forced')));
  for (const name of ['net.core.somaxconn', 'vm.swappiness', 'Net.ipv4', 'net..ipv4', '']) only(decode(ofPod(sysctls(name))), at(0));
  assert.equal(only(decode(ofPod(sysctls('net.ipv4.tcp_syncookie'))), at(0)).nearest, 'net.ipv4.tcp_syncookies');
  only(decode(ofPod(sysctls('net.ipv4.tcp_rmem', 'net/ipv4/tcp_rmem'))), at(1));
  only(decode(ofPod(sysctls('net.ipv4.tcp_rmem'), { hostNetwork: true })), at(0));
  only(decode(ofPod(sysctls('kernel.shm_rmid_forced'), { hostIPC: true })), at(0));
  const allowing = (raw: unknown, ...allowedUnsafeSysctls: string[]) => decodeObject(raw, { strict: true, allowedUnsafeSysctls });
  assert.deepEqual(allowing(ofPod(sysctls('net.core.somaxconn', 'kernel.msgmax')), 'net.core.*', 'kernel/msgmax').problems, []);
  only(allowing(ofPod(sysctls('net.core.somaxconn')), 'net.core.somaxcon', 'kernel.msg*'), at(0));
  only(allowing(ofPod(sysctls('vm.swappiness')), 'vm.*'), at(0));
  only(allowing(ofPod(sysctls('net.core.somaxconn'), { hostNetwork: true }), 'net.*'), at(0));
});

test('slashes first mean dots, and the other way round', () => {
  for (const [name, dotted] of [
    ['kernel.shm_rmid_forced', 'kernel.shm_rmid_forced'],
    ['kernel/shm_rmid_forced', 'kernel.shm_rmid_forced'],
    ['net/ipv4/conf/eth0.1/forwarding', 'net.ipv4.conf.eth0/1.forwarding'],
    ['net.ipv4.conf.eth0/1.forwarding', 'net.ipv4.conf.eth0/1.forwarding'],
    ['x', 'x'],
  ] as const)
    assert.equal(dottedSysctl(name), dotted);
});

test('the configuration’s sysctls, name servers and domain have their form', () => {
  const told = (values: Raw) =>
    checkConfiguration(values)
      .map((p) => p.path)
      .filter((p) => /Sysctls|cluster/.test(p));
  assert.deepEqual(told({ allowedUnsafeSysctls: ['net.*', 'kernel.msg*', 'kernel.sem', 'net/core/x', 'net.ipv4.conf.eth0*'] }), []);
  const wrong = ['vm.swappiness', '*', 'net.*.x', 'NET.x', ''];
  assert.deepEqual(
    told({ allowedUnsafeSysctls: wrong }),
    wrong.map((_, i) => `allowedUnsafeSysctls[${i}]`),
  );
  assert.deepEqual(told({ clusterDNS: ['10.0.0.10', 'dns'], clusterDomain: 'Cluster' }), ['clusterDNS[1]', 'clusterDomain']);
  assert.deepEqual(told({ clusterDNS: ['fd00::10'], clusterDomain: 'cluster.local.' }), []);
});
