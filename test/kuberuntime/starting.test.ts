/** What a start is given: mounts, the runtime's handler, huge pages; and ephemeral containers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DesiredPod } from '../../src/api/desired.ts';
import type { EphemeralContainer } from '../../src/api/v1.ts';
import { type ContainerConfig, type Mount, RuntimeError } from '../../src/container/runtime.ts';
import { hugepageLimits, hugepageSizes } from '../../src/kuberuntime/hugepages.ts';
import { portsOfAnnotations, preStopOfAnnotations } from '../../src/kuberuntime/marks.ts';
import { container, desiredPod, House } from './house.ts';

const created = (house: House): ContainerConfig[] =>
  house.runtime.calls.filter((c) => c.method === 'createContainer').map((c) => c.args[1] as ContainerConfig);

const debug: EphemeralContainer = { name: 'debug', image: 'localhost/busybox:1' };
const withEphemeral = (pod: DesiredPod, ...ephemeralContainers: EphemeralContainer[]): DesiredPod => ({
  ...pod,
  pod: { ...pod.pod, spec: { ...pod.pod.spec, ephemeralContainers } },
});

test('each container is made with its mounts, asked with its attempt and the pod’s addresses', async () => {
  const house = new House();
  const asked: unknown[][] = [];
  house.mounts = async (name, attempt, ips) => {
    asked.push([name, attempt, ips]);
    return [{ containerPath: `/${name}`, hostPath: '/x', readonly: true }];
  };
  const pod = desiredPod({ containers: [container('a'), container('b')] });
  await house.sync(pod);
  const [sandbox] = [...house.runtime.sandboxes.values()];
  house.runtime.exit(house.id('a'), 1);
  await house.sync(pod);
  assert.deepEqual(asked, [
    ['a', 0, [sandbox?.ip]],
    ['b', 0, [sandbox?.ip]],
    ['a', 1, [sandbox?.ip]],
  ]);
  const mounts = created(house).map((c): readonly Mount[] => c.mounts);
  assert.deepEqual(
    mounts.map((m) => m[0]?.containerPath),
    ['/a', '/b', '/a'],
  );
});

test('what cannot be mounted is a CreateContainerConfigError; the siblings start', async () => {
  const house = new House();
  house.mounts = async (name) => {
    if (name === 'a') throw new Error('volume "data" is not there');
    return [];
  };
  const { results } = await house.sync(desiredPod({ containers: [container('a'), container('b')] }));
  const error = { reason: 'CreateContainerConfigError', message: 'volume "data" is not there' };
  assert.deepEqual(results.find((r) => r.target === 'a')?.error, error);
  assert.ok(house.events.includes('a Warning Failed: Error: volume "data" is not there'));
  assert.deepEqual(house.runtime.running(), ['web/b']);
});

test('a new sandbox that cannot be looked at is told, and nothing starts in it before it can', async () => {
  const house = new House();
  house.runtime.failNext('sandboxStatus', new RuntimeError('unavailable', 'gone'));
  const pod = desiredPod({});
  const { results } = await house.sync(pod);
  assert.equal(results.at(-1)?.error?.reason, 'FailedPodSandBoxStatus');
  assert.ok(house.events.includes('- Warning FailedPodSandBoxStatus: Unable to get pod sandbox status: gone'));
  await house.sync(pod);
  assert.deepEqual(house.deeds(), ['runSandbox sandbox#0', 'createContainer c#0', 'startContainer c#0']);
});

test('in the host’s network nobody is asked for addresses', async () => {
  const house = new House();
  await house.sync(desiredPod({ hostNetwork: true }));
  assert.ok(!house.runtime.calls.some((c) => c.method === 'sandboxStatus'));
});

test('the runtime class is the handler the sandbox is made by', async () => {
  for (const [spec, handler] of [
    [{}, ''],
    [{ runtimeClassName: 'kata' }, 'kata'],
  ] as const) {
    const house = new House();
    await house.sync(desiredPod(spec));
    assert.deepEqual(
      [...house.runtime.sandboxes.values()].map((s) => s.runtimeHandler),
      [handler],
    );
  }
});

test('huge pages: one limit for each size of the machine, 0 without a wish', async () => {
  const house = new House();
  house.hugepageSizes.push('2MB', '1GB');
  const limits = { 'hugepages-2Mi': '4Mi', memory: '64Mi' };
  await house.sync(desiredPod({ containers: [container('a', { resources: { limits } }), container('b')] }));
  assert.deepEqual(
    created(house).map((c) => c.resources.hugepageLimits?.map((h) => [h.pageSize, h.limitBytes])),
    [
      [
        ['2MB', 4 * 2 ** 20],
        ['1GB', 0],
      ],
      [
        ['2MB', 0],
        ['1GB', 0],
      ],
    ],
  );
  const none = new House();
  await none.sync(desiredPod({}));
  assert.equal(created(none)[0]?.resources.hugepageLimits, undefined);
});

test('page sizes are named as cgroups name them', () => {
  assert.deepEqual(hugepageSizes(['hugepages-1048576kB', 'hugepages-2048kB', 'hugepages-64kB', 'other']), ['64KB', '2MB', '1GB']);
  const limits = { 'hugepages-64Ki': '128Ki', 'hugepages-1Gi': 2 ** 31, 'hugepages-32Mi': '32Mi', cpu: '1' };
  assert.deepEqual(hugepageLimits(limits, ['1GB', '64KB', '2MB']), [
    { pageSize: '1GB', limitBytes: 2 ** 31 },
    { pageSize: '64KB', limitBytes: 128 * 1024 },
    { pageSize: '2MB', limitBytes: 0 },
  ]);
});

test('an ephemeral container added to a running pod is started, told, and never restarted', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.settle(pod);
  house.deeds();
  const more = withEphemeral(pod, debug);
  const { results } = await house.sync(more);
  assert.deepEqual(results, [{ action: 'StartContainer', target: 'debug' }]);
  assert.deepEqual(house.deeds(), ['createContainer debug#0', 'startContainer debug#0']);
  assert.ok(house.events.includes('debug Normal Started: Started container debug'));
  house.runtime.exit(house.id('debug'), 1);
  assert.deepEqual((await house.sync(more)).results, []);
  assert.deepEqual(house.deeds(), []);
});

test('an ephemeral container that does not start says why, and the pod goes on', async () => {
  const house = new House();
  const pod = desiredPod({ initContainers: [container('setup')] });
  await house.settle(pod);
  house.image = (name) =>
    name === 'debug'
      ? { ok: false, reason: 'ErrImagePull', message: 'no route' }
      : { ok: true, image: { id: 'localhost/busybox:1', username: '' } };
  const { results } = await house.sync(withEphemeral(pod, debug));
  assert.deepEqual(results.at(-1)?.error, { reason: 'ErrImagePull', message: 'no route' });
  assert.deepEqual(house.runtime.running(), ['web/setup']);
});

test('an ephemeral container looks into the processes of the container it names', async () => {
  const house = new House();
  const pod = desiredPod({});
  await house.settle(pod);
  await house.sync(withEphemeral(pod, { ...debug, targetContainerName: 'c' }));
  assert.deepEqual(created(house).at(-1)?.namespaces, { network: 'POD', ipc: 'POD', pid: 'TARGET', targetId: house.id('c') });
  const other = await house.sync(withEphemeral(pod, { ...debug, name: 'other', targetContainerName: 'nobody' }));
  assert.equal(other.results.at(-1)?.error?.reason, 'CreateContainerConfigError');
});

test('a preStop hook and ports are read back from annotations, whoever wrote them', () => {
  const hook = (text: string) => preStopOfAnnotations({ 'io.kubernetes.container.preStopHandler': text });
  const table: readonly (readonly [text: string, handler: object | undefined])[] = [
    ['{"exec":{"command":["a","\\u003cb"]}}', { exec: { command: ['a', '<b'] } }],
    [
      '{"httpGet":{"path":"/x","port":"http","scheme":"HTTPS","httpHeaders":[{"name":"A","value":"b"},7]}}',
      { httpGet: { port: 'http', path: '/x', scheme: 'HTTPS', httpHeaders: [{ name: 'A', value: 'b' }] } },
    ],
    ['{"sleep":{"seconds":3}}', { sleep: { seconds: 3 } }],
    ['{"tcpSocket":{"port":80}}', { tcpSocket: { port: 80 } }],
    ['{"exec":{"command":[1]}}', undefined],
    ['{"httpGet":{}}', undefined],
    ['{', undefined],
    ['null', undefined],
    ['[]', undefined],
  ];
  for (const [text, handler] of table) assert.deepEqual(hook(text), handler, text);
  assert.equal(preStopOfAnnotations({}), undefined);
  const ports = (text: string) => portsOfAnnotations({ 'io.kubernetes.container.ports': text });
  assert.deepEqual(ports('[{"name":"http","containerPort":80,"protocol":"TCP"},{"containerPort":81},{}]'), [
    { containerPort: 80, name: 'http', protocol: 'TCP' },
    { containerPort: 81 },
  ]);
  const claim = { containerPort: 80, hostPort: 8080, protocol: 'UDP', hostIP: '127.0.0.1' };
  assert.deepEqual(ports(JSON.stringify([claim, { containerPort: 1, protocol: 'x' }])), [claim, { containerPort: 1 }]);
  for (const text of ['{}', 'x', '3']) assert.deepEqual(ports(text), []);
});
