import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeObject } from '../../src/api/decode.ts';
import { fieldsOf, type Shape } from '../../src/api/fields.ts';
import type { ApiObject, Problem } from '../../src/api/objects.ts';
import { problemText } from '../../src/api/problems.ts';
import type { Pod } from '../../src/api/v1.ts';
import { defaultVerbs, verbs } from '../../src/api/verbs.ts';
import { fullName } from '../../src/images/fullName.ts';
import { allowsNamespace, allowsVerb, judgeObject, mayRead, readPolicy } from '../../src/policy/policy.ts';
import { privilegeTable } from '../../src/policy/privileges.ts';
import { repositoryOf } from '../../src/policy/registries.ts';

type Raw = Readonly<Record<string, unknown>>;

const podOf = (spec: Raw, metadata: Raw = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', ...metadata },
    spec: { containers: [{ name: 'app', image: 'busybox:1' }], ...spec },
  }) as unknown as Pod;
const withContainer = (container: Raw): Pod => podOf({ containers: [{ name: 'app', image: 'busybox:1', ...container }] });
const withContext = (securityContext: Raw): Pod => withContainer({ securityContext });

const judge = (object: ApiObject, policy: unknown = {}): readonly Problem[] => judgeObject(object, readPolicy(policy, 'mqtt'));
const paths = (object: ApiObject, policy: unknown = {}): readonly string[] =>
  judge(object, policy)
    .map((p) => p.path)
    .sort();

test('a plain pod asks for nothing special', () => {
  const pod = podOf(
    {
      containers: [
        {
          name: 'app',
          image: 'nginx:1',
          ports: [{ containerPort: 80, hostPort: 0 }],
          env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
          resources: { limits: { cpu: '1', memory: '64Mi', 'hugepages-2Mi': '4Mi' }, requests: { 'ephemeral-storage': '1Gi' } },
          volumeMounts: [{ name: 'tmp', mountPath: '/tmp', subPath: 'x', mountPropagation: 'HostToContainer' }],
          livenessProbe: { httpGet: { port: 80, path: '/' } },
          lifecycle: { preStop: { sleep: { seconds: 1 } } },
          securityContext: {
            privileged: false,
            runAsUser: 0,
            allowPrivilegeEscalation: true,
            procMount: 'Default',
            capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE', 'CHOWN'] },
            seccompProfile: { type: 'RuntimeDefault' },
            appArmorProfile: { type: 'RuntimeDefault' },
            seLinuxOptions: {},
          },
        },
      ],
      volumes: [
        { name: 'tmp', emptyDir: { medium: 'Memory' } },
        { name: 'c', configMap: { name: 'c' } },
        { name: 'p', projected: { sources: [{ secret: { name: 's' } }] } },
      ],
      hostNetwork: false,
      hostUsers: true,
      shareProcessNamespace: true,
      runtimeClassName: 'kata',
      priority: 1_000_000,
      securityContext: {
        fsGroup: 1000,
        sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }],
        seccompProfile: { type: 'Localhost', localhostProfile: 'p.json' },
      },
    },
    {
      annotations: { 'podsched.dev/wait-for': 'network', 'kubernetes.io/ingress-bandwidth': '1M', 'example.com/team': 'a' },
      labels: { app: 'x' },
    },
  );
  assert.deepEqual(judge(pod), []);
});

/** What is asked for, where it is told, and the policy that allows it. */
const asked: readonly (readonly [string, Pod, readonly string[], Raw])[] = [
  ['privileged', withContext({ privileged: true }), ['spec.containers[0].securityContext.privileged'], { privileged: true }],
  [
    'privileged in an init container',
    podOf({ initContainers: [{ name: 'i', image: 'a', securityContext: { privileged: true } }] }),
    ['spec.initContainers[0].securityContext.privileged'],
    { privileged: true },
  ],
  [
    'privileged in an ephemeral container',
    podOf({ ephemeralContainers: [{ name: 'e', image: 'a', securityContext: { privileged: true } }] }),
    ['spec.ephemeralContainers[0].securityContext.privileged'],
    { privileged: true },
  ],
  ['hostNetwork', podOf({ hostNetwork: true }), ['spec.hostNetwork'], { hostNetwork: true }],
  ['hostPID', podOf({ hostPID: true }), ['spec.hostPID'], { hostPID: true }],
  ['hostIPC', podOf({ hostIPC: true }), ['spec.hostIPC'], { hostIPC: true }],
  [
    'hostPort',
    withContainer({ ports: [{ containerPort: 80 }, { containerPort: 81, hostPort: 81 }] }),
    ['spec.containers[0].ports[1].hostPort'],
    { hostPorts: true },
  ],
  [
    'hostPort on the host’s network',
    podOf({ hostNetwork: true, containers: [{ name: 'a', image: 'a', ports: [{ containerPort: 80, hostPort: 80 }] }] }),
    ['spec.hostNetwork', 'spec.containers[0].ports[0].hostPort'],
    { hostNetwork: true },
  ],
  [
    'hostPath',
    podOf({ volumes: [{ name: 'd', hostPath: { path: '/data/x' } }] }),
    ['spec.volumes[0].hostPath.path'],
    { hostPath: ['/data'] },
  ],
  [
    'the root as hostPath',
    podOf({ volumes: [{ name: 'd', hostPath: { path: '/' } }] }),
    ['spec.volumes[0].hostPath.path'],
    { hostPath: ['/'] },
  ],
  [
    'a device',
    withContainer({ resources: { limits: { 'devices.podsched.dev/gpio': 1 } } }),
    ['spec.containers[0].resources.limits[devices.podsched.dev/gpio]'],
    { devices: ['gpio'] },
  ],
  [
    'a device by its request',
    withContainer({ resources: { requests: { 'devices.podsched.dev/gpio': '1' } } }),
    ['spec.containers[0].resources.requests[devices.podsched.dev/gpio]'],
    { devices: ['*'] },
  ],
  [
    'a device of CDI',
    podOf({}, { annotations: { 'cdi.k8s.io/cam': 'acme.com/cam=one' } }),
    ['metadata.annotations[cdi.k8s.io/cam]'],
    { devices: ['acme.com/cam'] },
  ],
  [
    'a capability',
    withContext({ capabilities: { add: ['CHOWN', 'NET_ADMIN'] } }),
    ['spec.containers[0].securityContext.capabilities.add[1]'],
    { capabilities: ['cap_net_admin'] },
  ],
  [
    'all capabilities',
    withContext({ capabilities: { add: ['ALL'] } }),
    ['spec.containers[0].securityContext.capabilities.add[0]'],
    { capabilities: ['ALL'] },
  ],
  [
    'an unsafe sysctl',
    podOf({ securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] } }),
    ['spec.securityContext.sysctls[0].name'],
    { sysctls: ['net.core.*'] },
  ],
  [
    'an unsafe sysctl with slashes',
    podOf({ securityContext: { sysctls: [{ name: 'net/core/somaxconn', value: '1' }] } }),
    ['spec.securityContext.sysctls[0].name'],
    { sysctls: ['net.core.somaxconn'] },
  ],
  [
    'no seccomp',
    withContext({ seccompProfile: { type: 'Unconfined' } }),
    ['spec.containers[0].securityContext.seccompProfile.type'],
    { unconfined: true },
  ],
  [
    'no seccomp for the pod',
    podOf({ securityContext: { seccompProfile: { type: 'Unconfined' } } }),
    ['spec.securityContext.seccompProfile.type'],
    { unconfined: true },
  ],
  [
    'no seccomp by an old annotation',
    podOf({}, { annotations: { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined' } }),
    ['metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]'],
    { unconfined: true },
  ],
  [
    'no AppArmor',
    withContext({ appArmorProfile: { type: 'Unconfined' } }),
    ['spec.containers[0].securityContext.appArmorProfile.type'],
    { unconfined: true },
  ],
  [
    'an AppArmor profile of the node',
    withContext({ appArmorProfile: { type: 'Localhost', localhostProfile: 'chrome' } }),
    ['spec.containers[0].securityContext.appArmorProfile.type'],
    { unconfined: true },
  ],
  [
    'no AppArmor by annotation',
    podOf({}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/app': 'unconfined' } }),
    ['metadata.annotations[container.apparmor.security.beta.kubernetes.io/app]'],
    { unconfined: true },
  ],
  [
    'a profile of the node by annotation',
    podOf({}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/app': 'localhost/x' } }),
    ['metadata.annotations[container.apparmor.security.beta.kubernetes.io/app]'],
    { unconfined: true },
  ],
  [
    'a label of SELinux',
    withContext({ seLinuxOptions: { type: 'spc_t' } }),
    ['spec.containers[0].securityContext.seLinuxOptions'],
    { unconfined: true },
  ],
  ['an unmasked /proc', withContext({ procMount: 'Unmasked' }), ['spec.containers[0].securityContext.procMount'], { privileged: true }],
  [
    'mounts that come to the host',
    withContainer({ volumeMounts: [{ name: 'd', mountPath: '/d', mountPropagation: 'Bidirectional' }] }),
    ['spec.containers[0].volumeMounts[0].mountPropagation'],
    { privileged: true },
  ],
  [
    'a probe of another host',
    withContainer({ livenessProbe: { httpGet: { host: '127.0.0.1', port: 80 } } }),
    ['spec.containers[0].livenessProbe.httpGet.host'],
    { hostNetwork: true },
  ],
  [
    'a hook to another host',
    withContainer({ lifecycle: { postStart: { tcpSocket: { host: '10.0.0.1', port: 80 } } } }),
    ['spec.containers[0].lifecycle.postStart.tcpSocket.host'],
    { hostNetwork: true },
  ],
  ['a critical class', podOf({ priorityClassName: 'system-node-critical' }), ['spec.priorityClassName'], { allow: 'all' }],
  ['a critical priority', podOf({ priority: 2_000_000_000 }), ['spec.priority'], { allow: 'all' }],
  [
    'an annotation for the runtime',
    podOf({}, { annotations: { 'io.kubernetes.cri-o.Devices': '/dev/sda' } }),
    ['metadata.annotations[io.kubernetes.cri-o.Devices]'],
    { allow: 'all' },
  ],
  [
    'an annotation for a plugin of the runtime',
    podOf({}, { annotations: { 'devices.nri.io/container.app': '- path: /dev/sda' } }),
    ['metadata.annotations[devices.nri.io/container.app]'],
    { allow: 'all' },
  ],
];
for (const [what, pod, where, policy] of asked) {
  test(`${what}: denied by default, allowed by its key, by allow: all too`, () => {
    assert.deepEqual(paths(pod), [...where].sort());
    assert.deepEqual(judge(pod, policy), []);
    assert.deepEqual(judge(pod, { allow: 'all' }), []);
    for (const key of Object.keys(policy))
      assert.ok(
        judge(pod).some((p) => problemText(p).includes(key)),
        `the problem names ${key}`,
      );
  });
}

test('a key allows itself and nothing else', () => {
  const keys = { privileged: true, hostNetwork: true, hostPID: true, hostIPC: true, hostPorts: true, unconfined: true };
  for (const [what, pod, where, policy] of asked.filter(([, , , p]) => Object.keys(p).every((k) => Object.hasOwn(keys, k)))) {
    const others = Object.fromEntries(Object.entries(keys).filter(([key]) => !Object.hasOwn(policy, key)));
    // seccomp, AppArmor and labels of a privileged container are off anyway; no other key stands for another
    assert.deepEqual(paths(pod, { ...others, ...(what.includes('host’s network') && { hostPorts: false }) }), [...where].sort(), what);
  }
});

test('what a container has by being privileged is not asked for again', () => {
  const pod = podOf(
    {
      containers: [
        {
          name: 'app',
          image: 'a',
          securityContext: { privileged: true, capabilities: { add: ['SYS_ADMIN'] }, seccompProfile: { type: 'Unconfined' } },
        },
        { name: 'other', image: 'a', securityContext: { capabilities: { add: ['SYS_ADMIN'] } } },
      ],
    },
    { annotations: { 'container.apparmor.security.beta.kubernetes.io/app': 'unconfined' } },
  );
  assert.deepEqual(paths(pod, { privileged: true }), ['spec.containers[1].securityContext.capabilities.add[0]']);
  assert.equal(judge(pod).length, 5);
});

const hostPathCases: readonly (readonly [string, readonly string[], boolean])[] = [
  ['/data', ['/data'], true],
  ['/data/', ['/data'], true],
  ['//data/./x', ['/data/'], true],
  ['/database', ['/data'], false],
  ['/', ['/data'], false],
  ['/data/../etc', ['/data'], false],
  ['/data/..', ['/'], false],
  ['/etc', ['/data', '/etc/ssl'], false],
  ['/etc/ssl/certs', ['/data', '/etc/ssl'], true],
  ['data', ['/'], false],
  ['/anything', ['/'], true],
  ['/data', [], false],
];
for (const [path, allowed, fits] of hostPathCases)
  test(`hostPath ${path} is ${fits ? 'below' : 'not below'} ${allowed.join(', ') || 'nothing'}`, () => {
    const pod = podOf({ volumes: [{ name: 'd', hostPath: { path } }] });
    assert.equal(judge(pod, { hostPath: allowed }).length === 0, fits);
  });

const digest = `sha256:${'a'.repeat(64)}`;
const imageCases: readonly (readonly [string, readonly string[], boolean])[] = [
  ['busybox', ['docker.io'], true],
  ['busybox', ['docker.io/library'], true],
  ['busybox', ['index.docker.io/library/'], true],
  ['me/app:1', ['docker.io/library'], false],
  ['me/app:1', ['docker.io/me'], true],
  ['docker.io/me/app', ['docker.io/me/app'], true],
  ['docker.io/me/apple', ['docker.io/me/app'], false],
  ['ghcr.io/me/app:v1', ['ghcr.io/me'], true],
  ['ghcr.io.evil.example/me/app', ['ghcr.io'], false],
  ['GHCR.io/me/app', ['ghcr.io'], true],
  ['registry:5000/a', ['registry:5000'], true],
  ['registry:5001/a', ['registry:5000'], false],
  ['localhost/a', ['docker.io'], false],
  [`ghcr.io/a@${digest}`, ['ghcr.io'], true],
  [`ghcr.io/a:1@${digest}`, ['ghcr.io/a'], true],
  [digest, ['docker.io'], false],
  ['busybox', [], false],
];
for (const [image, registries, fits] of imageCases)
  test(`image ${image.slice(0, 40)} is ${fits ? '' : 'not '}of ${registries.join(', ') || 'no registry'}`, () => {
    assert.equal(judge(withContainer({ image }), { registries }).length === 0, fits);
    assert.deepEqual(
      paths(podOf({ volumes: [{ name: 'v', image: { reference: image } }], containers: [] }), { registries }),
      fits ? [] : ['spec.volumes[0].image.reference'],
    );
  });

test('the names of images are read as those who pull them read them', () => {
  const names = [
    'busybox',
    'busybox:1',
    'me/app',
    'docker.io/a',
    'index.docker.io/a/b:1',
    'ghcr.io/a',
    'localhost/a:2',
    'registry:5000/a/b',
    `a@${digest}`,
    `ghcr.io/a:1@${digest}`,
  ];
  for (const name of names)
    assert.equal(
      fullName(name)
        ?.replace(/[:@][^/]*$/, '')
        .replace(/:[^/:]*$/, (tag) => (/^:\d+$/.test(tag) ? tag : '')),
      repositoryOf(name),
      name,
    );
});

test('an image name that is made to be slow to read is not', () => {
  const image = `${':'.repeat(500_000)}/${'@a'.repeat(200_000)}`;
  assert.equal(judge(withContainer({ image }), { registries: ['docker.io'], digestOnly: true }).length, 2);
});

test('digestOnly takes images that say which bytes they are, volumes of images too', () => {
  const pod = podOf({
    containers: [
      { name: 'a', image: 'a:1' },
      { name: 'b', image: `b:1@${digest}` },
    ],
    volumes: [{ name: 'v', image: { reference: 'c' } }],
  });
  assert.deepEqual(
    new Set(paths(pod, { allow: 'all', digestOnly: true })),
    new Set(['spec.containers[0].image', 'spec.volumes[0].image.reference']),
  );
});

test('of thousands of denials a hundred are told', () => {
  const volumes = Array.from({ length: 2000 }, (_, i) => ({ name: `v${i}`, hostPath: { path: '/' } }));
  assert.equal(judge(podOf({ volumes })).length, 100);
  assert.deepEqual(judge(podOf({ volumes }), { hostPath: ['/'] }), []);
});

test('namespaces bound every kind of object', () => {
  const secret: ApiObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'kube-system' } };
  assert.deepEqual(paths(secret, { namespaces: ['apps'] }), ['metadata.namespace']);
  assert.deepEqual(paths(secret, { namespaces: ['*'] }), []);
  assert.deepEqual(paths(podOf({}), { namespaces: ['default'] }), []);
  assert.deepEqual(paths(podOf({}), { allow: 'all', namespaces: [] }), ['metadata.namespace']);
  assert.ok(!allowsNamespace(readPolicy({ namespaces: ['a'] }, 'mqtt'), 'b'));
});

test('a key beside allow: all narrows it', () => {
  assert.deepEqual(paths(podOf({ hostPID: true, hostIPC: true }), { allow: 'all', hostPID: false }), ['spec.hostPID']);
  assert.deepEqual(paths(podOf({ volumes: [{ name: 'd', hostPath: { path: '/etc' } }] }), { allow: 'all', hostPath: ['/data'] }), [
    'spec.volumes[0].hostPath.path',
  ]);
});

test('allow: all gives no verb and no sight of other sources’ objects', () => {
  const all = readPolicy({ allow: 'all' }, 'mqtt');
  assert.deepEqual(all.verbs, defaultVerbs);
  assert.ok(!allowsVerb(all, 'exec') && !allowsVerb(all, 'restart') && allowsVerb(all, 'logs'));
  assert.ok(!mayRead(all, 'default'));
  assert.deepEqual(readPolicy({ verbs: ['*'] }, 'mqtt').verbs, verbs);
  assert.deepEqual(readPolicy({ verbs: ['exec'] }, 'mqtt').verbs, ['exec']);
  assert.deepEqual(readPolicy({ verbs: [] }, 'mqtt').verbs, []);
  assert.ok(
    mayRead(readPolicy({ mayRead: ['shared'] }, 'mqtt'), 'shared') && !mayRead(readPolicy({ mayRead: ['shared'] }, 'mqtt'), 'default'),
  );
  assert.ok(mayRead(readPolicy({ mayRead: ['*'] }, 'mqtt'), 'anything'));
});

test('what is no policy allows nothing', () => {
  for (const value of [
    undefined,
    null,
    7,
    'all',
    [],
    { allow: 'none', privileged: 'true', hostPath: '/', devices: [7], capabilities: {}, verbs: 'exec', registries: 'x' },
  ]) {
    const policy = readPolicy(value, 'mqtt');
    assert.ok(
      !policy.everything &&
        !policy.privileged &&
        policy.hostPath.length === 0 &&
        policy.devices.length === 0 &&
        !policy.verbs.includes('exec'),
    );
    assert.deepEqual(
      paths(withContext({ privileged: true }), value).filter((p) => !p.endsWith('.image')),
      ['spec.containers[0].securityContext.privileged'],
    );
  }
});

test('every refusal names the key of the source’s own policy', () => {
  const [problem] = judgeObject(podOf({ hostPID: true }), readPolicy({}, 'file'));
  assert.equal(problem && problemText(problem), 'spec.hostPID: policy.file does not allow it (hostPID)');
});

const lines = readFileSync(new URL('../../bundle/pod-fields.tsv', import.meta.url), 'utf8')
  .split('\n')
  .slice(1)
  .filter((line) => line !== '')
  .map((line) => line.split('\t'));
/** A type that stands inline has its fields in the one around it. */
const fieldNames = (type: string): readonly string[] =>
  type === 'TypeMeta'
    ? ['kind', 'apiVersion']
    : lines.filter(([of]) => of === type).flatMap(([, field = '', goType = '']) => (field === '(inline)' ? fieldNames(goType) : [field]));
const table = [...new Set(lines.map(([type = '']) => type))].flatMap((type) => fieldNames(type).map((field) => `${type}.${field}`));

const structOf = (shape: Shape | undefined): string | undefined =>
  shape?.kind === 'struct' ? shape.type : shape?.kind === 'list' ? structOf(shape.of) : undefined;

/** Types that are looked into, and how a pod comes to one. */
function reached(): ReadonlyMap<string, (inner: Raw) => Raw> {
  const found = new Map<string, (inner: Raw) => Raw>([['Pod', (inner) => inner]]);
  for (const [type, wrap] of found) {
    for (const [name, { shape }] of fieldsOf(type)) {
      const inner = structOf(shape);
      if (privilegeTable.get(`${type}.${name}`) !== 'inside' || inner === undefined || found.has(inner)) continue;
      found.set(inner, (value) => wrap({ [name]: shape.kind === 'list' ? [value] : value }));
    }
  }
  return found;
}

test('every field of a Pod is classified: harmless, looked into, judged or denied', () => {
  const types = reached();
  const fields = table.filter((place) => types.has(place.split('.')[0] ?? ''));
  assert.ok(fields.length > 150, `${fields.length} fields`);
  assert.deepEqual(
    fields.filter((place) => !privilegeTable.has(place)),
    [],
    'fields nobody classified',
  );
  assert.deepEqual(
    [...privilegeTable.keys()].filter((place) => !fields.includes(place)),
    [],
    'rows for fields that are not there',
  );
});

/** A value of each judged field that asks for more than a container needs. */
const greedy: Readonly<Record<string, unknown>> = {
  'ObjectMeta.annotations': { 'cdi.k8s.io/x': 'acme.com/cam=one' },
  'PodSpec.hostNetwork': true,
  'PodSpec.hostPID': true,
  'PodSpec.hostIPC': true,
  'PodSpec.priority': 2_000_001_000,
  'PodSpec.priorityClassName': 'system-cluster-critical',
  'HostPathVolumeSource.path': '/etc',
  'ImageVolumeSource.reference': 'evil.example/x',
  'Container.image': 'evil.example/x',
  'EphemeralContainer.image': 'evil.example/x',
  'ContainerPort.hostPort': 80,
  'ResourceRequirements.limits': { 'vendor.com/gpu': '1' },
  'ResourceRequirements.requests': { 'devices.podsched.dev/gpio': '1' },
  'VolumeMount.mountPropagation': 'Bidirectional',
  'HTTPGetAction.host': '127.0.0.1',
  'TCPSocketAction.host': '127.0.0.1',
  'SecurityContext.privileged': true,
  'SecurityContext.procMount': 'Unmasked',
  'SecurityContext.seccompProfile': { type: 'Unconfined' },
  'SecurityContext.appArmorProfile': { type: 'Unconfined' },
  'SecurityContext.seLinuxOptions': { level: 's0:c0.c1023' },
  'Capabilities.add': ['SYS_ADMIN'],
  'PodSecurityContext.sysctls': [{ name: 'net.core.somaxconn', value: '1' }],
  'PodSecurityContext.seccompProfile': { type: 'Unconfined' },
  'PodSecurityContext.appArmorProfile': { type: 'Unconfined' },
  'PodSecurityContext.seLinuxOptions': { user: 'system_u' },
};

test('each judged or denied field denies where nothing is allowed, wherever it stands', () => {
  const types = reached();
  const judged = [...privilegeTable].filter(([, row]) => typeof row === 'function').map(([place]) => place);
  assert.deepEqual(new Set(Object.keys(greedy)), new Set(judged), 'an example for each judged field');
  for (const [place, row] of privilegeTable) {
    if (row === 'harmless' || row === 'inside') continue;
    const [type = '', field = ''] = place.split('.');
    const wrap = types.get(type);
    assert.ok(wrap, place);
    const pod = wrap({ [field]: greedy[place] ?? {} }) as unknown as Pod;
    const complete = { ...pod, metadata: { ...pod.metadata, name: 'x' } };
    const problems = judge({ ...complete, kind: 'Pod', apiVersion: 'v1', spec: pod.spec ?? { containers: [] } } as unknown as Pod, {
      registries: ['docker.io'],
    });
    assert.equal(problems.length, 1, `${place}: ${problems.map((p) => problemText(p)).join('; ')}`);
  }
});

test('a field that nobody classified is denied', () => {
  const pod = podOf({ newDoor: { open: true }, containers: [{ name: 'a', image: 'a', teleport: 1 }] });
  assert.deepEqual(paths(pod), ['spec.containers[0].teleport', 'spec.newDoor']);
  assert.deepEqual(paths(pod, { allow: 'all' }), []);
});

test('a decoded manifest is judged as one that is written here', () => {
  const { object } = decodeObject(
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'w' },
      spec: { hostNetwork: true, containers: [{ name: 'a', image: 'a', ports: [{ containerPort: 80, hostPort: 80 }] }] },
    },
    { strict: true },
  );
  assert.ok(object);
  assert.deepEqual(paths(object), ['spec.containers[0].ports[0].hostPort', 'spec.hostNetwork']);
});
