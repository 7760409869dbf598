import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemText } from '../../src/api/problems.ts';
import { loadOptions } from '../../src/options.ts';
import { type Policy, readPolicy } from '../../src/policy/policy.ts';

const load = (policy: string) =>
  loadOptions({
    flags: {},
    env: {},
    file: { path: 'podsched.yaml', text: `apiVersion: podsched.dev/v1\nkind: PodschedConfiguration\npolicy:\n  mqtt: {${policy}}\n` },
  });
const told = (policy: string): readonly string[] =>
  load(policy).problems.map((p) => problemText(p).replace(/^podsched\.yaml:\d+:\d+: policy\.mqtt\./, ''));
const policyOf = (policy: string): Policy => {
  const { config, problems } = load(policy);
  assert.deepEqual(
    problems.map((p) => problemText(p)),
    [],
  );
  return readPolicy(config?.['policy.mqtt'], 'mqtt');
};

test('every key of the documentation is taken', () => {
  const policy = policyOf(
    'privileged: true, hostNetwork: true, hostPID: true, hostIPC: true, hostPorts: true, hostPath: [/data, /srv/x/], devices: [gpio, acme.com/cam, acme.com/cam=one], ' +
      'capabilities: [NET_ADMIN, cap_sys_time], sysctls: [net.core.somaxconn, "net.ipv4.*"], unconfined: true, registries: [ghcr.io/me, "registry:5000", docker.io], ' +
      'digestOnly: true, maxPods: 30, namespaces: [apps], verbs: [get, exec], mayRead: [shared], requireSignature: true, locked: true',
  );
  assert.deepEqual(policy, {
    source: 'mqtt',
    everything: false,
    privileged: true,
    hostNetwork: true,
    hostPID: true,
    hostIPC: true,
    hostPorts: true,
    hostPath: ['/data', '/srv/x'],
    devices: ['gpio', 'acme.com/cam', 'acme.com/cam=one'],
    capabilities: ['NET_ADMIN', 'SYS_TIME'],
    sysctls: ['net.core.somaxconn', 'net.ipv4.*'],
    unconfined: true,
    registries: ['ghcr.io/me', 'registry:5000', 'docker.io'],
    digestOnly: true,
    maxPods: 30,
    namespaces: ['apps'],
    verbs: ['get', 'exec'],
    mayRead: ['shared'],
    requireSignature: true,
    locked: true,
  });
});

test('the defaults: files may all, MQTT nothing special', () => {
  const { config } = loadOptions({ flags: {}, env: {} });
  const [file, mqtt] = [readPolicy(config?.['policy.file'], 'file'), readPolicy(config?.['policy.mqtt'], 'mqtt')];
  assert.ok(file.everything && file.privileged && file.hostPath.includes('/'));
  assert.ok(!mqtt.everything && !mqtt.privileged && mqtt.hostPath.length === 0 && mqtt.registries === undefined);
});

test('a star stands for all where a list has words of its own', () => {
  const policy = policyOf(
    'devices: ["*"], sysctls: ["*"], verbs: ["*"], mayRead: ["*"], namespaces: ["*"], capabilities: [ALL], hostPath: [/]',
  );
  assert.equal(policy.namespaces, undefined);
  assert.ok(policy.verbs.includes('decommission'));
});

const mistakes: readonly (readonly [string, RegExp])[] = [
  ['hostPort: true', /^hostPort: expected a known key, got unknown key; did you mean hostPorts\?$/],
  ['requireSignatures: true', /did you mean requireSignature\?/],
  ['privileged: "yes"', /^privileged: expected true or false/],
  ['allow: some', /^allow: expected the word all/],
  ['hostPath: /data', /^hostPath: expected a list of strings/],
  ['hostPath: [data]', /^hostPath\[0\]: expected an absolute path/],
  ['hostPath: [/data, /data/../etc]', /^hostPath\[1\]: expected an absolute path/],
  ['devices: [/dev/video0]', /^devices\[0\]: expected a class of devices/],
  ['capabilities: ["NET-ADMIN"]', /^capabilities\[0\]/],
  ['sysctls: [vm.swappiness]', /^sysctls\[0\]/],
  ['registries: ["https://ghcr.io"]', /^registries\[0\]: expected a registry such as ghcr\.io/],
  ['registries: [library/nginx]', /^registries\[0\]/],
  ['registries: ["ghcr.io/me:latest"]', /^registries\[0\]/],
  ['maxPods: -1', /^maxPods: expected a whole number from 0 to 10000/],
  ['maxPods: 10001', /^maxPods/],
  ['maxPods: 1.5', /^maxPods/],
  ['namespaces: [Apps]', /^namespaces\[0\]/],
  ['mayRead: ["a b"]', /^mayRead\[0\]/],
  ['verbs: [exce]', /^verbs\[0\]: .*did you mean exec\?/],
  [`namespaces: [${Array.from({ length: 257 }, (_, i) => `n${i}`).join(', ')}]`, /^namespaces: expected at most 256 items, got 257/],
  [`hostPath: [/${'x'.repeat(600)}]`, /^hostPath\[0\]: expected at most 512 characters/],
];
for (const [policy, expected] of mistakes)
  test(`policy ${policy.slice(0, 60)} is refused by its path`, () => {
    const all = told(policy);
    assert.equal(all.length, 1, all.join('\n'));
    assert.match(all[0] ?? '', expected);
  });

test('all mistakes of both policies are told at once', () => {
  const { problems } = loadOptions({
    flags: {},
    env: {},
    file: { path: 'p', text: 'policy: {file: {verbs: [x], hostPath: [a]}, mqtt: {devices: ["/"], privileged: 1}}\n' },
  });
  assert.deepEqual(
    problems
      .map((p) => p.path)
      .filter((path) => path.startsWith('policy.'))
      .sort(),
    ['policy.file.hostPath[0]', 'policy.file.verbs[0]', 'policy.mqtt.privileged'],
  );
});
