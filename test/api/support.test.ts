import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsOf } from '../../src/api/fields.ts';
import { supportOf } from '../../src/api/support.ts';
import { decode, only, paths, pod, rawPod } from './objects.ts';

const notYet = /^absent: not supported yet by this version$/;

test('what this version does not carry to the runtime refuses the pod by path', () => {
  const podFields: Record<string, unknown> = {
    ephemeralContainers: [{ name: 'd', image: 'x' }],
    readinessGates: [{ conditionType: 'x' }],
    overhead: { memory: '10Mi' },
    hostUsers: false,
    schedulingGates: [{ name: 'g' }],
    resourceClaims: [{ name: 'c' }],
    resources: { limits: { cpu: '1' } },
  };
  for (const [field, value] of Object.entries(podFields))
    assert.match(only(decode(rawPod({ [field]: value })), `spec.${field}`).expected, notYet);
  const securityContext: Record<string, unknown> = {
    supplementalGroupsPolicy: 'Strict',
    seLinuxChangePolicy: 'Recursive',
    windowsOptions: { hostProcess: false },
  };
  for (const [field, value] of Object.entries(securityContext)) {
    assert.match(only(decode(rawPod({ securityContext: { [field]: value } })), `spec.securityContext.${field}`).expected, notYet);
  }
});

test('the same for containers, app and init', () => {
  const containerFields: Record<string, unknown> = {
    volumeDevices: [{ name: 'v', devicePath: '/dev/v' }],
  };
  const securityContext: Record<string, unknown> = {
    windowsOptions: { hostProcess: false },
  };
  for (const list of ['containers', 'initContainers'] as const) {
    const raw = (extra: object) => {
      const one = { name: 'one', image: 'x:1', ...extra };
      return list === 'containers' ? rawPod({ containers: [one] }) : rawPod({ initContainers: [one] });
    };
    const at = `spec.${list}[0]`;
    for (const [field, value] of Object.entries(containerFields))
      assert.match(only(decode(raw({ [field]: value })), `${at}.${field}`).expected, notYet);
    for (const [field, value] of Object.entries(securityContext)) {
      assert.match(only(decode(raw({ securityContext: { [field]: value } })), `${at}.securityContext.${field}`).expected, notYet);
    }
    only(decode(raw({ resources: { claims: [{ name: 'c' }] } })), `${at}.resources.claims`);
    for (const name of ['nvidia.com/gpu', 'podsched.dev/gpio', 'pods']) {
      only(decode(raw({ resources: { limits: { [name]: 1 } } })), `${at}.resources.limits[${name}]`);
    }
  }
});

test('some values of a supported field are not carried yet', () => {
  const table: readonly (readonly [unknown, string])[] = [[rawPod({ os: { name: 'windows' } }), 'spec.os.name']];
  for (const [raw, path] of table) only(decode(raw), path);
  pod(rawPod({ imagePullSecrets: [{ name: 's' }] }));
  for (const dnsPolicy of ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default']) pod(rawPod({ dnsPolicy, os: { name: 'linux' } }));
});

test('restart-on-change is asked for with true, and nothing else', () => {
  const asked = (value: string) => rawPod({}, {}, { annotations: { 'podsched.dev/restart-on-change': value } });
  for (const value of ['true', 'false', '']) pod(asked(value));
  for (const value of ['yes', 'True', '1']) only(decode(asked(value)), 'metadata.annotations[podsched.dev/restart-on-change]');
});

test('memory-oom-group is true or false', () => {
  const asked = (value: string) => rawPod({}, {}, { annotations: { 'podsched.dev/memory-oom-group': value } });
  for (const value of ['true', 'false']) pod(asked(value));
  for (const value of ['yes', 'False', '1']) only(decode(asked(value)), 'metadata.annotations[podsched.dev/memory-oom-group]');
});

test('annotations that would be silently without effect refuse the pod', () => {
  const names = ['rollback', 'hold', 'wait-for', 'wait-timeout', 'state', 'truncated', 'pod-hash', 'config-hash'];
  for (const name of names)
    only(decode(rawPod({}, {}, { annotations: { [`podsched.dev/${name}`]: 'x' } })), `metadata.annotations[podsched.dev/${name}]`);
  pod(
    rawPod(
      {},
      {},
      { annotations: { 'podsched.dev/crash-backoff': '1s,1m', 'kubernetes.io/ingress-bandwidth': '1M', 'example.com/x': 'y' } },
    ),
  );
});

test('what a single node has no use for is ignored with a warning', () => {
  const raw = rawPod(
    {
      schedulerName: 'mine',
      enableServiceLinks: null,
      serviceAccountName: 'robot',
      automountServiceAccountToken: true,
      tolerations: [{ operator: 'Exists' }],
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'k', whenUnsatisfiable: 'DoNotSchedule' }],
      preemptionPolicy: 'Never',
      nodeName: 'elsewhere',
    },
    { resources: { limits: { 'ephemeral-storage': '1Gi' } }, resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }] },
    {
      uid: 'mine',
      ownerReferences: [{ kind: 'x' }],
      finalizers: ['f'],
      creationTimestamp: '2024-01-01T00:00:00Z',
      annotations: { 'kubernetes.io/config.source': 'file' },
    },
  );
  const { problems, warnings } = decode(raw, true);
  assert.deepEqual(problems, []);
  assert.deepEqual(paths(warnings), [
    'metadata.uid',
    'metadata.ownerReferences',
    'metadata.finalizers',
    'metadata.creationTimestamp',
    'metadata.annotations[kubernetes.io/config.source]',
    'spec.containers[0].resizePolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.automountServiceAccountToken',
    'spec.tolerations',
    'spec.topologySpreadConstraints',
    'spec.preemptionPolicy',
    'spec.nodeName',
  ]);
});

test('an exported pod full of defaults and empty values says nothing', () => {
  const raw = {
    ...rawPod(
      {
        volumes: [],
        affinity: {},
        nodeSelector: {},
        hostAliases: [],
        dnsConfig: {},
        securityContext: {},
        schedulerName: 'default-scheduler',
        enableServiceLinks: true,
        hostUsers: true,
        setHostnameAsFQDN: false,
        subdomain: '',
        priority: 0,
        preemptionPolicy: 'PreemptLowerPriority',
      },
      {
        envFrom: [],
        volumeMounts: null,
        lifecycle: {},
        livenessProbe: null,
        securityContext: { readOnlyRootFilesystem: false, allowPrivilegeEscalation: true, procMount: 'Default' },
      },
      { annotations: { 'podsched.dev/hold': 'false', 'podsched.dev/memory-oom-group': 'true' }, creationTimestamp: null },
    ),
    status: { phase: 'Running' },
  };
  const { problems, warnings } = decode(raw, true);
  assert.deepEqual([problems, warnings], [[], []]);
});

test('security, environment and DNS are taken whole', () => {
  const profiles = { seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' }, appArmorProfile: { type: 'RuntimeDefault' } };
  const ids = { runAsUser: 1000, runAsGroup: 1000, runAsNonRoot: true, seLinuxOptions: { level: 's0' } };
  const one = {
    ...{ ...ids, ...profiles, capabilities: { add: ['NET_ADMIN', 'net_raw'], drop: ['ALL'] }, procMount: 'Default' },
    ...{ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
  };
  const raw = rawPod(
    {
      securityContext: {
        ...ids,
        ...profiles,
        fsGroup: 1,
        supplementalGroups: [4],
        sysctls: [{ name: 'net/ipv4/tcp_rmem', value: '1 2 3' }],
      },
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['192.0.2.53'], searches: ['lan'], options: [{ name: 'ndots', value: '2' }] },
      subdomain: 'edge',
      setHostnameAsFQDN: true,
      initContainers: [{ name: 'i', image: 'x:1', securityContext: one }],
    },
    {
      securityContext: one,
      env: [
        { name: 'A', valueFrom: { fieldRef: { fieldPath: 'status.podIP', apiVersion: 'v1' } } },
        { name: 'B', valueFrom: { resourceFieldRef: { containerName: 'i', resource: 'limits.cpu', divisor: '1m' } } },
      ],
    },
  );
  const { problems, warnings } = decode(raw, true);
  assert.deepEqual([problems, warnings], [[], []]);
});

test('a field nobody listed is refused, never carried by accident', () => {
  for (const [type, place] of [
    ['PodSpec', 'spec'],
    ['Container', 'spec.containers[]'],
    ['PodSecurityContext', 'spec.securityContext'],
  ] as const) {
    const unlisted = [...fieldsOf(type).keys()].filter((f) => supportOf(`${place}.${f}`, 'inside').level === 'refused');
    assert.ok(unlisted.length > 0, type);
  }
  assert.equal(supportOf('spec.fieldOfTomorrow', 'inside').level, 'refused');
  assert.equal(supportOf('spec.containers[].ports[].fieldOfTomorrow', 'supported').level, 'supported');
});
