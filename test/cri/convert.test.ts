import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary, toJson } from '@bufbuild/protobuf';
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerId } from '../../src/container/words.ts';
import * as convert from '../../src/cri/convert.ts';
import * as pb from '../../src/cri/gen/cri_pb.ts';
import { systemdCgroup } from '../../src/cri/runtime.ts';
import * as wire from '../fakes/criMessages.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';

const overTheWire = <D extends DescMessage>(schema: D, m: MessageInitShape<D>) => fromBinary(schema, toBinary(schema, create(schema, m)));

const fullSandbox = sandboxConfig('web', {
  uid: 'u-1' as PodUid,
  attempt: 3,
  dns: { servers: ['10.0.0.1'], searches: ['lan'], options: ['ndots:2'] },
  portMappings: [
    { protocol: 'TCP', containerPort: 80, hostPort: 8080, hostIp: '127.0.0.1' },
    { protocol: 'SCTP', containerPort: 53, hostPort: 0, hostIp: '' },
  ],
  labels: { app: 'web' },
  annotations: { note: 'ä€' },
  cgroupParent: '/kubepods/burstable/podu-1',
  privileged: true,
  namespaces: { network: 'NODE', pid: 'POD', ipc: 'NODE' },
  resources: { cpuShares: 102, cpuPeriod: 100000, cpuQuota: 50000, memoryLimitBytes: 8 * 2 ** 40 },
  sysctls: { 'net.ipv4.ping_group_range': '0 65535' },
  runAsUser: 0,
  runAsGroup: 3000,
  supplementalGroups: [2000, 44],
  seLinux: { user: 'u', role: 'r', type: 't', level: 's0:c1,c2' },
});
const fullContainer = containerConfig(fullSandbox, 'main', {
  attempt: 7,
  args: ['a', ''],
  workingDir: '/srv',
  envs: [{ key: 'A', value: '' }],
  mounts: [{ containerPath: '/data', hostPath: '/mnt/ssd', readonly: true }],
  devices: [{ containerPath: '/dev/i2c-1', hostPath: '/dev/i2c-7', permissions: 'rw' }],
  cdiDevices: ['nvidia.com/gpu=all'],
  stdin: true,
  stdinOnce: true,
  tty: true,
  resources: {
    oomScoreAdj: -997,
    memorySwapLimitBytes: 2 ** 30,
    cpusetCpus: '2-3',
    cpusetMems: '0',
    unified: { 'memory.oom.group': '1', 'memory.swap.max': '0' },
  },
  privileged: true,
  namespaces: { network: 'POD', pid: 'TARGET', ipc: 'POD', targetId: 'abc' as ContainerId },
  runAsUser: 0,
  runAsGroup: 0,
  maskedPaths: ['/proc/kcore'],
  readonlyPaths: ['/proc/sys'],
  appArmor: { type: 'Localhost', localhostRef: 'web' },
  seLinux: { user: '', role: '', type: '', level: 's0' },
  capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
  supplementalGroups: [2000],
  readonlyRootFilesystem: true,
  noNewPrivileges: true,
});

test('every field of a sandbox and of a container reaches the runtime', () => {
  assert.deepEqual(wire.sandboxConfig(overTheWire(pb.PodSandboxConfigSchema, convert.sandboxConfigMessage(fullSandbox))), fullSandbox);
  assert.deepEqual(
    wire.containerConfig(overTheWire(pb.ContainerConfigSchema, convert.containerConfigMessage(fullContainer))),
    fullContainer,
  );
});

test('a mount is of a path or of an image', () => {
  const mounts = [
    { containerPath: '/files', hostPath: '', readonly: true, image: 'sha256:abc' },
    { containerPath: '/data', hostPath: '/mnt/ssd', readonly: false },
  ];
  const sent = overTheWire(pb.ContainerConfigSchema, convert.containerConfigMessage(containerConfig(fullSandbox, 'c', { mounts })));
  assert.deepEqual(
    sent.mounts.map((m) => [m.hostPath, m.image?.image]),
    [
      ['', 'sha256:abc'],
      ['/mnt/ssd', undefined],
    ],
  );
});

test('user 0 is sent, no user is not: the image decides then', () => {
  const of = (o: object) => convert.containerConfigMessage({ ...containerConfig(fullSandbox, 'c'), ...o }).linux?.securityContext;
  assert.deepEqual(of({ runAsUser: 0 })?.runAsUser, { value: 0n });
  assert.equal(of({})?.runAsUser, undefined);
  assert.equal(of({ runAsUserName: 'web' })?.runAsUsername, 'web');
});

test('seccomp and AppArmor profiles are sent by type and name, AppArmor in its older spelling too', () => {
  const of = (o: object) => convert.containerConfigMessage({ ...containerConfig(fullSandbox, 'c'), ...o }).linux?.securityContext;
  const localhost = of({ seccomp: { type: 'Localhost', localhostRef: '/x/y.json' } })?.seccomp;
  assert.deepEqual(localhost, { profileType: pb.SecurityProfile_ProfileType.Localhost, localhostRef: '/x/y.json' });
  assert.equal(of({})?.apparmor, undefined);
  for (const [appArmor, text] of [
    [{ type: 'RuntimeDefault' }, 'runtime/default'],
    [{ type: 'Unconfined' }, 'unconfined'],
    [{ type: 'Localhost', localhostRef: 'web' }, 'localhost/web'],
  ] as const)
    assert.equal(of({ appArmor })?.apparmorProfile, text);
});

test('an update carries what is given, and 0 or nothing for what is not', () => {
  const sent = overTheWire(pb.UpdateContainerResourcesRequestSchema, {
    containerId: 'c',
    linux: convert.resourcesMessage({ cpusetCpus: '0-1' }),
  });
  assert.deepEqual(wire.resources(sent.linux), { cpusetCpus: '0-1' });
});

// recorded: what kubelet 1.32 sent for a minimal pod
test('a minimal pod is sent with the security context that the kubelet sends', () => {
  const sandbox = sandboxConfig('minimal', { resources: { cpuPeriod: 100000, cpuShares: 2 }, cgroupParent: '/kubepods/besteffort/podx' });
  assert.deepEqual(toJson(pb.PodSandboxConfigSchema, overTheWire(pb.PodSandboxConfigSchema, convert.sandboxConfigMessage(sandbox)), json), {
    metadata: { name: 'minimal', uid: 'uid-minimal', namespace: 'default' },
    hostname: 'minimal',
    log_directory: '/var/log/pods/default_minimal_uid-minimal',
    dns_config: {},
    labels: { ...sandbox.labels },
    linux: {
      cgroup_parent: '/kubepods/besteffort/podx',
      security_context: { namespace_options: { pid: 'CONTAINER' }, seccomp: {} },
      overhead: {},
      resources: { cpu_period: '100000', cpu_shares: '2' },
    },
  });
  const container = containerConfig(sandbox, 'c', { runAsUser: 0, resources: { cpuPeriod: 100000, cpuShares: 2, oomScoreAdj: 1000 } });
  const sent = overTheWire(pb.ContainerConfigSchema, convert.containerConfigMessage(container));
  assert.deepEqual(toJson(pb.LinuxContainerConfigSchema, sent.linux ?? create(pb.LinuxContainerConfigSchema), json), {
    resources: { cpu_period: '100000', cpu_shares: '2', oom_score_adj: '1000' },
    security_context: { namespace_options: { pid: 'CONTAINER' }, run_as_user: {}, seccomp: { profile_type: 'Unconfined' } },
  });
});
const json = { useProtoFieldName: true } as const;

test('nanoseconds become whole milliseconds without losing a digit on the way', () => {
  assert.equal(convert.wallTime(1795960757153999999n), 1795960757153);
  assert.equal(convert.wallTime(0n), 0);
});

test('what was never started or has not ended has no such time', () => {
  const status = create(pb.ContainerStatusSchema, { id: 'c', createdAt: 5_000_000n });
  const word = convert.containerStatusWord(status, 's' as never);
  assert.equal('startedAt' in word || 'finishedAt' in word, false);
  assert.equal(word.createdAt, 5);
});

test('a state of a later CRI is unknown, never running', () => {
  assert.equal(convert.containerState(9 as pb.ContainerState), 'unknown');
  assert.equal(convert.containerState(undefined), 'unknown');
});

test('no network block is absent, an empty one is empty', () => {
  const word = (network?: object) =>
    convert.sandboxStatusWord(create(pb.PodSandboxStatusSchema, { id: 's', ...(network ? { network } : {}) })).network;
  assert.equal(word(), undefined);
  assert.deepEqual(word({}), { ip: '', additionalIps: [] });
  assert.deepEqual(word({ ip: '10.0.0.2', additionalIps: [{ ip: 'fd00::2' }] }), { ip: '10.0.0.2', additionalIps: ['fd00::2'] });
});

test('the image of a record is the text of the manifest where the runtime kept it', () => {
  const word = (image: object) => convert.containerWord(create(pb.ContainerSchema, { id: 'c', image })).image;
  assert.equal(word({ image: 'sha256:1', userSpecifiedImage: 'busybox:1' }), 'busybox:1');
  assert.equal(word({ image: 'sha256:1' }), 'sha256:1');
});

test('the driver is read from what containerd shows of its configuration, and never guessed', () => {
  const of = (options: object | null) => JSON.stringify({ containerd: { defaultRuntimeName: 'runc', runtimes: { runc: { options } } } });
  const table: [string | undefined, boolean | undefined][] = [
    [of({ SystemdCgroup: true }), true],
    [of({ SystemdCgroup: false }), false],
    [of(null), false],
    [JSON.stringify({ containerd: { defaultRuntimeName: 'crun', runtimes: {} } }), undefined],
    ['{}', undefined],
    ['null', undefined],
    ['not json', undefined],
    [undefined, undefined],
  ];
  for (const [config, expected] of table) assert.equal(systemdCgroup(config), expected, config);
});
