/** What pods get of security, environment and DNS: the pure decisions, and the start of containers that need the sandbox's address. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { EnvVar, PodSpec } from '../../src/api/v1.ts';
import type { ContainerConfig, SandboxConfig } from '../../src/container/runtime.ts';
import { type DnsSettings, podDns } from '../../src/kuberuntime/dns.ts';
import { environment, type NodeFacts, valueFrom } from '../../src/kuberuntime/environment.ts';
import { hostname } from '../../src/kuberuntime/names.ts';
import { containerSecurity, sandboxSecurity } from '../../src/kuberuntime/security.ts';
import { container, desiredPod, House } from './house.ts';

test('the container’s word goes before the pod’s, each field by itself', () => {
  const { pod } = desiredPod({
    securityContext: {
      seccompProfile: { type: 'RuntimeDefault' },
      appArmorProfile: { type: 'Localhost', localhostProfile: 'web' },
      seLinuxOptions: { level: 's0' },
      fsGroup: 2000,
      supplementalGroups: [44],
    },
  });
  const of = (securityContext: object, o = {}) =>
    containerSecurity(pod, container('c', { securityContext }), { seccompFolder: '/s', ...o });
  const label = { user: '', role: '', type: '', level: 's0' };
  const groups = { supplementalGroups: [2000, 44] };
  const appArmor = { type: 'Localhost', localhostRef: 'web' };
  assert.deepEqual(of({}), { seccomp: { type: 'RuntimeDefault' }, appArmor, seLinux: label, ...groups });
  assert.deepEqual(
    of({ seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' }, appArmorProfile: { type: 'Unconfined' }, capabilities: {} }),
    {
      seccomp: { type: 'Localhost', localhostRef: '/s/a/b.json' },
      appArmor: { type: 'Unconfined' },
      seLinux: label,
      capabilities: { add: [], drop: [] },
      ...groups,
    },
  );
});

test('AppArmor: the container’s field, then the annotation of old times, then the pod’s field', () => {
  const key = 'container.apparmor.security.beta.kubernetes.io/c';
  const of = (value: string, own: object = {}) => {
    const securityContext = { appArmorProfile: { type: 'RuntimeDefault' as const } };
    const { pod } = desiredPod({ securityContext }, { metadata: { annotations: { [key]: value } } });
    return containerSecurity(pod, container('c', { securityContext: own }), {}).appArmor;
  };
  assert.deepEqual(of('localhost/mine'), { type: 'Localhost', localhostRef: 'mine' });
  assert.deepEqual(of('unconfined'), { type: 'Unconfined' });
  assert.deepEqual(of('unconfined', { appArmorProfile: { type: 'Localhost', localhostProfile: 'own' } }), {
    type: 'Localhost',
    localhostRef: 'own',
  });
  assert.deepEqual(of('nonsense'), { type: 'RuntimeDefault' });
});

test('who says nothing is unconfined, or by the node’s setting has the runtime’s profile; escalation is only forbidden in words', () => {
  const { pod } = desiredPod({});
  const of = (securityContext: object, seccompDefault = false) =>
    containerSecurity(pod, container('c', { securityContext }), { seccompDefault });
  assert.deepEqual(of({}), { seccomp: { type: 'Unconfined' } });
  assert.deepEqual(of({}, true), { seccomp: { type: 'RuntimeDefault' } });
  assert.deepEqual(of({ seccompProfile: { type: 'Unconfined' } }, true), { seccomp: { type: 'Unconfined' } });
  assert.equal(of({ allowPrivilegeEscalation: true }).noNewPrivileges, undefined);
  assert.equal(of({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true }).noNewPrivileges, true);
  assert.deepEqual(sandboxSecurity(pod), {});
});

const dnsOf = (spec: Partial<PodSpec>, o: Partial<DnsSettings> = {}) =>
  podDns(desiredPod(spec).pod, { hostDns: { servers: ['192.0.2.1'], searches: ['lan'], options: ['rotate'] }, ...o });
const cluster = { clusterDns: ['10.0.0.10'], clusterDomain: 'cluster.local.' };
const ofHost = { servers: ['192.0.2.1'], searches: ['lan'], options: ['rotate'] };
const ofCluster = {
  servers: ['10.0.0.10'],
  searches: ['default.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'lan'],
  options: ['ndots:5'],
};

test('name servers are the cluster’s where there is one and the policy wants it, else the host’s', () => {
  assert.deepEqual(dnsOf({}).dns, ofHost);
  assert.deepEqual(dnsOf({}, cluster).dns, ofCluster);
  assert.deepEqual(dnsOf({ dnsPolicy: 'Default' }, cluster).dns, ofHost);
  assert.deepEqual(dnsOf({ dnsPolicy: 'ClusterFirst', hostNetwork: true }, cluster).dns, ofHost);
  assert.deepEqual(dnsOf({ dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true }, cluster).dns, ofCluster);
  assert.deepEqual(dnsOf({ dnsPolicy: 'None', dnsConfig: { nameservers: ['::1'] } }, cluster).dns, {
    servers: ['::1'],
    searches: [],
    options: [],
  });
  assert.deepEqual(dnsOf({}, { clusterDns: ['10.0.0.10'] }).dns, { servers: ['10.0.0.10'], searches: ['lan'], options: ['ndots:5'] });
});

test('dnsConfig comes behind: nothing twice, a later option wins, and what no resolver reads is left out with a word', () => {
  const dnsConfig = {
    nameservers: ['10.0.0.10', '192.0.2.2', '192.0.2.3', '192.0.2.4'],
    searches: ['lan', 'x.lan'],
    options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
  };
  const { dns, cut } = dnsOf({ dnsConfig }, cluster);
  assert.deepEqual(dns, {
    servers: ['10.0.0.10', '192.0.2.2', '192.0.2.3'],
    searches: [...ofCluster.searches, 'x.lan'],
    options: ['ndots:2', 'edns0'],
  });
  assert.deepEqual(cut, [
    'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 10.0.0.10 192.0.2.2 192.0.2.3',
  ]);
  const many = Array.from({ length: 32 }, (_, i) => `d${i}`);
  const searches = dnsOf({ dnsConfig: { searches: many } });
  assert.deepEqual(searches.dns.searches, ['lan', ...many.slice(0, 31)]);
  assert.match(searches.cut[0] ?? '', /^Search Line limits were exceeded/);
  const long = Array.from({ length: 20 }, (_, i) => `${'a'.repeat(120)}${i}`);
  assert.ok(dnsOf({ dnsConfig: { searches: long } }).dns.searches.join(' ').length <= 2048);
  assert.deepEqual(dnsOf({ dnsConfig: { searches: ['a'.repeat(254), 'b'] } }).dns.searches, ['lan', 'b']);
});

test('the full host name has subdomain, namespace and domain, and is refused when a kernel would cut it', () => {
  const full = (spec: Partial<PodSpec>, domain?: string) => hostname(desiredPod({ setHostnameAsFQDN: true, ...spec }).pod, domain);
  assert.equal(full({ subdomain: 'edge' }, 'lab.example'), 'web.edge.default.svc.lab.example');
  assert.equal(full({ subdomain: 'edge' }), 'web.edge.default.svc');
  assert.equal(full({}, 'lab.example'), 'web');
  assert.equal(full({ subdomain: 'edge', setHostnameAsFQDN: false }, 'lab.example'), 'web');
  assert.throws(() => full({ subdomain: 'edge' }, 'a'.repeat(60)), /is too long \(64 characters is the max, 81 characters requested\)/);
});

const node: NodeFacts = {
  nodeName: 'pi',
  hostIps: ['192.0.2.7', 'fd00::7'],
  podIps: ['10.1.0.2', 'fd01::2'],
  nodeMemoryBytes: 8_000_000_000,
  nodeCpus: 4,
  nodeStorageBytes: 32_000_000_000,
};
const field = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const resource = (name: string, of: string, divisor?: string, containerName?: string): EnvVar => ({
  name,
  valueFrom: { resourceFieldRef: { resource: of, ...(divisor && { divisor }), ...(containerName && { containerName }) } },
});

test('values come from the pod, the node and the resources, in the order of env', () => {
  const c = container('c', { resources: { limits: { memory: '64Mi', cpu: 0 }, requests: { cpu: '150m' } } });
  const metadata = { labels: { app: '$(N)' }, annotations: { 'a/b': 'two words' } };
  const { pod } = desiredPod({ containers: [c, container('side', { resources: { limits: { cpu: '2' } } })] }, { metadata });
  const table: [EnvVar, string][] = [
    [field('N', 'metadata.name'), 'web'],
    [field('NS', 'metadata.namespace'), 'default'],
    [field('UID', 'metadata.uid'), 'uid-1'],
    [field('L', "metadata.labels['app']"), '$(N)'],
    [field('A', "metadata.annotations['a/b']"), 'two words'],
    [field('NONE', "metadata.labels['constructor']"), ''],
    [field('NODE', 'spec.nodeName'), 'pi'],
    [field('SA', 'spec.serviceAccountName'), ''],
    [field('HOST', 'status.hostIP'), '192.0.2.7'],
    [field('HOSTS', 'status.hostIPs'), '192.0.2.7,fd00::7'],
    [field('IP', 'status.podIP'), '10.1.0.2'],
    [field('IPS', 'status.podIPs'), '10.1.0.2,fd01::2'],
    [resource('MEM', 'limits.memory', '1Mi'), '64'],
    [resource('MEM_R', 'requests.memory', '1M'), '68'],
    [resource('CPU', 'limits.cpu'), '4'],
    [resource('CPU_M', 'requests.cpu', '1m'), '150'],
    [resource('DISK', 'limits.ephemeral-storage', '1G'), '32'],
    [resource('HUGE', 'limits.hugepages-2Mi'), '0'],
    [resource('SIDE', 'limits.cpu', '1m', 'side'), '2000'],
    [resource('SIDE_MEM', 'limits.memory', '', 'side'), '8000000000'],
    [{ name: 'ALL', value: '$(N)-$(L)-$(CPU)-$(LATER)' }, 'web-$(N)-4-$(LATER)'],
    [{ ...field('LATER', 'metadata.name'), value: '' }, 'web'],
  ];
  const env = environment(
    table.map(([v]) => v),
    valueFrom(pod, c, node),
  );
  assert.deepEqual(Object.fromEntries(env), Object.fromEntries(table.map(([v, value]) => [v.name, value])));
  assert.throws(() => environment([field('X', 'status.phase')], valueFrom(pod, c, node)), /unsupported fieldPath/);
  assert.throws(() => environment([resource('X', 'limits.cpu', '', 'gone')], valueFrom(pod, c, node)), /container gone not found/);
});

const created = (house: House): ContainerConfig | undefined =>
  house.runtime.calls.find((c) => c.method === 'createContainer')?.args[1] as ContainerConfig | undefined;

test('a container whose environment has the pod’s address starts with it; a new sandbox is asked once, a known one never', async () => {
  const house = new House();
  const pod = desiredPod({ containers: [container('c', { env: [field('IP', 'status.podIP')] })] });
  await house.sync(pod);
  const [sandbox] = [...house.runtime.sandboxes.values()];
  assert.deepEqual(created(house)?.envs, [{ key: 'IP', value: sandbox?.ip }]);
  assert.equal(house.runtime.calls.filter((c) => c.method === 'sandboxStatus').length, 1);
  house.runtime.exit(house.id('c'), 1);
  const before = await house.inspect(pod);
  house.runtime.calls.length = 0;
  await house.drive(house.kube.syncPod(pod, before, new AbortController().signal));
  assert.deepEqual(created(house)?.envs, [{ key: 'IP', value: sandbox?.ip }]);
  assert.equal(house.runtime.calls.filter((c) => c.method === 'sandboxStatus').length, 0);
});

test('what cannot be told of the environment is a CreateContainerConfigError, and no container is made', async () => {
  const house = new House();
  const { results } = await house.sync(desiredPod({ containers: [container('c', { env: [field('X', 'status.phase')] })] }));
  assert.equal(results.at(-1)?.error?.reason, 'CreateContainerConfigError');
  assert.equal(created(house), undefined);
});

test('a container that must not be root waits with the words of the kubelet', async () => {
  const file = new URL('../conformance/kubelet-1.32/recorded/035-run-as-nonroot-rejected.json', import.meta.url);
  const recorded = JSON.parse(readFileSync(file, 'utf8').replaceAll('nonroot-<node>', 'web').replaceAll('<uid>', 'uid-1')) as {
    status: { containerStatuses: { state: { waiting: { reason: string; message: string } } }[] };
  };
  const house = new House();
  const { results } = await house.sync(desiredPod({ containers: [container('c', { securityContext: { runAsNonRoot: true } })] }));
  assert.deepEqual(results.at(-1)?.error, recorded.status.containerStatuses[0]?.state.waiting);
  assert.ok(house.events.includes(`c Warning Failed: Error: ${results.at(-1)?.error?.message}`));
  assert.equal(created(house), undefined);
});

test('name servers that had to be left out are told when the sandbox is made', async () => {
  const house = new House();
  await house.sync(desiredPod({ dnsConfig: { nameservers: ['192.0.2.2', '192.0.2.3', '192.0.2.4'] } }));
  assert.match(house.events[0] ?? '', /^- Warning DNSConfigForming: Nameserver limits were exceeded/);
});

test('users, groups and sysctls reach the sandbox; a full host name that is too long is told as the sandbox’s failure', async () => {
  const house = new House();
  const sysctls = [{ name: 'net/ipv4/ping_group_range', value: '0 65535' }];
  await house.sync(desiredPod({ securityContext: { runAsUser: 0, runAsGroup: 3000, supplementalGroups: [44], sysctls } }));
  const sent = house.runtime.calls.find((c) => c.method === 'runSandbox')?.args[0] as SandboxConfig;
  assert.deepEqual([sent.runAsUser, sent.runAsGroup, sent.supplementalGroups], [0, 3000, [44]]);
  assert.deepEqual(sent.sysctls, { 'net.ipv4.ping_group_range': '0 65535' });
  const long = { hostname: 'a'.repeat(60), subdomain: 'edge', setHostnameAsFQDN: true };
  const { results } = await new House().sync(desiredPod(long));
  assert.equal(results.at(-1)?.error?.reason, 'CreatePodSandboxError');
  assert.match(results.at(-1)?.error?.message ?? '', /^failed to construct FQDN/);
});
