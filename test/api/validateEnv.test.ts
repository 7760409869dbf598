import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, only, pod, type Raw, rawPod } from './objects.ts';

const env = (valueFrom: Raw, more: Raw = {}) => rawPod({}, { env: [{ name: 'A', valueFrom, ...more }] });
const field = (fieldPath: string) => env({ fieldRef: { fieldPath } });
const resource = (more: Raw) => env({ resourceFieldRef: { resource: 'limits.cpu', ...more } });
const at = 'spec.containers[0].env[0].valueFrom';

test('fieldRef knows its paths, and names the nearest', () => {
  const good = ['metadata.name', 'metadata.namespace', 'metadata.uid', 'spec.nodeName', 'spec.serviceAccountName'];
  const addresses = ['status.hostIP', 'status.hostIPs', 'status.podIP', 'status.podIPs'];
  for (const path of [...good, ...addresses, "metadata.labels['a.b/C']", "metadata.annotations['Example.com/x']"]) pod(field(path));
  for (const [path, nearest] of [
    ['metadata.nam', 'metadata.name'],
    ['status.podIp', 'status.podIP'],
    ['metadata.labels.app', "metadata.labels['app']"],
    ['metadata.labels[app]', "metadata.labels['app']"],
    ['metadata.annotations["a/b"]', "metadata.annotations['a/b']"],
    ['metadata.labels', undefined],
    ["metadata.labels['a b']", undefined],
    ['spec.restartPolicy', undefined],
    ['', undefined],
  ] as const)
    assert.equal(only(decode(field(path)), `${at}.fieldRef.fieldPath`).nearest, nearest, path);
  only(decode(env({ fieldRef: { fieldPath: 'metadata.name', apiVersion: 'v2' } })), `${at}.fieldRef.apiVersion`);
});

test('resourceFieldRef knows its resources, their divisors, and the containers of the pod', () => {
  for (const name of ['limits.memory', 'requests.ephemeral-storage', 'limits.hugepages-2Mi']) pod(resource({ resource: name }));
  assert.equal(only(decode(resource({ resource: 'limit.cpu' })), `${at}.resourceFieldRef.resource`).nearest, 'limits.cpu');
  for (const divisor of ['1', '1m', 0]) pod(resource({ divisor }));
  only(decode(resource({ divisor: '1Mi' })), `${at}.resourceFieldRef.divisor`);
  only(decode(resource({ resource: 'limits.memory', divisor: '1m' })), `${at}.resourceFieldRef.divisor`);
  for (const divisor of ['1Mi', '1G', '1000', '1Ei']) pod(resource({ resource: 'requests.memory', divisor }));
  pod(resource({ containerName: 'app' }));
  assert.equal(only(decode(resource({ containerName: 'ap' })), `${at}.resourceFieldRef.containerName`).nearest, 'app');
});

test('a variable has one source, and no value beside it', () => {
  only(decode(env({})), at);
  const one = { fieldRef: { fieldPath: 'metadata.name' } };
  only(decode(env({ ...one, resourceFieldRef: { resource: 'limits.cpu' } })), at);
  only(decode(env(one, { value: 'x' })), at);
  pod(env(one, { value: '' }));
});

test('references to ConfigMaps and Secrets have a name and a key that such objects can have', () => {
  for (const ref of ['configMapKeyRef', 'secretKeyRef']) {
    const of = (o: Raw) => env({ [ref]: o });
    for (const optional of [undefined, true, false])
      pod(of({ name: 'site.conf', key: 'a.b-c_D', ...(optional !== undefined && { optional }) }));
    only(decode(of({ key: 'k' })), `${at}.${ref}.name`);
    only(decode(of({ name: '', key: 'k' })), `${at}.${ref}.name`);
    only(decode(of({ name: 'Site', key: 'k' })), `${at}.${ref}.name`);
    only(decode(of({ name: '../x', key: 'k' })), `${at}.${ref}.name`);
    only(decode(of({ name: 'site' })), `${at}.${ref}.key`);
    only(decode(of({ name: 'site', key: '' })), `${at}.${ref}.key`);
    only(decode(of({ name: 'site', key: '..' })), `${at}.${ref}.key`);
    only(decode(of({ name: 'site', key: 'a/b' })), `${at}.${ref}.key`);
    only(decode(env({ [ref]: { name: 'a', key: 'k' }, fieldRef: { fieldPath: 'metadata.name' } })), at);
    only(decode(env({ [ref]: { name: 'a', key: 'k' } }, { value: 'x' })), at);
    const { warnings } = decode(of({ name: 'site', key: 'k', optionl: true }));
    assert.deepEqual(
      warnings.map((w) => w.nearest),
      ['optional'],
    );
  }
});

test('each envFrom entry has one source and a prefix that can begin a name', () => {
  const from = (...entries: Raw[]) => rawPod({}, { envFrom: entries });
  const place = 'spec.containers[0].envFrom[0]';
  pod(
    from(
      { configMapRef: { name: 'a' } },
      { secretRef: { name: 'b', optional: true }, prefix: 'B_' },
      { prefix: '1 x', secretRef: { name: 'b' } },
    ),
  );
  pod(rawPod({ initContainers: [{ name: 'i', image: 'x:1', envFrom: [{ configMapRef: { name: 'a' } }] }] }));
  only(decode(from({})), place);
  only(decode(from({ prefix: 'A_' })), place);
  only(decode(from({ configMapRef: { name: 'a' }, secretRef: { name: 'b' } })), place);
  only(decode(from({ configMapRef: {} })), `${place}.configMapRef.name`);
  only(decode(from({ secretRef: { name: 'B' } })), `${place}.secretRef.name`);
  only(decode(from({ secretRef: { name: 'b' }, prefix: 'A=' })), `${place}.prefix`);
  only(decode(from({ secretRef: { name: 'b' }, prefix: 'é' })), `${place}.prefix`);
  assert.equal(decode(from({ configmapRef: { name: 'a' } })).warnings[0]?.nearest, 'configMapRef');
});

test('B7: of fields that have no effect here each is named, as a mistake where leaving it out would change what runs', () => {
  const raw = rawPod({
    serviceAccountName: 'robot',
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
    readinessGates: [{ conditionType: 'example.org/ready' }],
    hostUsers: false,
  });
  const { problems, warnings, object } = decode(raw);
  assert.equal(object, undefined);
  assert.deepEqual(problems.map((p) => p.path).sort(), ['spec.hostUsers', 'spec.readinessGates']);
  assert.deepEqual(warnings.map((w) => w.path).sort(), ['spec.serviceAccountName', 'spec.topologySpreadConstraints']);
});

test('names of hosts and DNS have their form and their limits', () => {
  const dns = (dnsConfig: Raw, more: Raw = {}) => rawPod({ dnsConfig, ...more });
  only(decode(rawPod({ subdomain: 'a.b' })), 'spec.subdomain');
  only(decode(rawPod({ dnsPolicy: 'None' })), 'spec.dnsConfig.nameservers');
  only(decode(dns({ searches: ['lan'] }, { dnsPolicy: 'None' })), 'spec.dnsConfig.nameservers');
  only(decode(dns({ nameservers: ['192.0.2.1', 'dns.lan'] })), 'spec.dnsConfig.nameservers[1]');
  only(decode(dns({ nameservers: ['192.0.2.1', '192.0.2.2', '192.0.2.3', '::1'] })), 'spec.dnsConfig.nameservers');
  only(decode(dns({ searches: ['lan', 'Lan'] })), 'spec.dnsConfig.searches[1]');
  only(decode(dns({ searches: Array.from({ length: 33 }, (_, i) => `d${i}`) })), 'spec.dnsConfig.searches');
  const long = Array.from({ length: 17 }, (_, i) => `${'a'.repeat(60)}.${'b'.repeat(60)}.d${i}`);
  only(decode(dns({ searches: long })), 'spec.dnsConfig.searches');
  only(decode(dns({ options: [{ value: '2' }] })), 'spec.dnsConfig.options[0].name');
  pod(dns({ nameservers: ['::1'], searches: ['lan.', 'b.lan'], options: [{ name: 'edns0' }] }, { dnsPolicy: 'None', subdomain: 'edge' }));
});
