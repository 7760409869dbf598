import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerState, PodStatus } from '../../src/api/status.ts';
import { parseLogRequest } from '../../src/operations/logRequest.ts';
import { instanceRuns, pickContainer, runtimeId, selectInstance } from '../../src/operations/logTarget.ts';
import { cs, running, told, waiting } from './view.ts';

const done = (containerID?: string): ContainerState => ({ terminated: { exitCode: 1, ...(containerID !== undefined && { containerID }) } });
const named = 'container "app" in pod "web"';

for (const [claim, state, lastState, previous, wanted] of [
  ['the current one of a running container', running, done('c://old'), false, 'c://now'],
  ['the previous one when asked for', running, done('c://old'), true, 'c://old'],
  ['no previous one', running, {}, true, `previous terminated ${named} not found`],
  ['a previous one without an id', running, done(), true, `previous terminated ${named} not found`],
  ['one that has ended', done('c://end'), done('c://old'), false, 'c://end'],
  ['one that has ended, the one before when asked for', done('c://end'), done('c://old'), true, 'c://old'],
  ['one that ended without an id has the one before', done(), done('c://old'), false, 'c://old'],
  ['one that ended without an id and had none before', done(), {}, false, `${named} is terminated`],
  ['a crash loop has the last that ran', waiting('CrashLoopBackOff'), done('c://old'), false, 'c://old'],
  ['a crash loop whose last one has no id', waiting('CrashLoopBackOff'), done(), false, `${named} is terminated`],
  ['an image that cannot be pulled', waiting('ErrImagePull'), {}, false, `${named} is waiting to start: image can't be pulled`],
  [
    'an image that is pulled again and again',
    waiting('ImagePullBackOff'),
    {},
    false,
    `${named} is waiting to start: trying and failing to pull image`,
  ],
  ['another reason to wait', waiting('PodInitializing'), {}, false, `${named} is waiting to start: PodInitializing`],
  ['nothing known', {}, {}, false, `${named} is not available`],
] as const) {
  test(`which instance: ${claim}`, () => {
    const pod = told('web', { status: { containerStatuses: [cs('app', { state, lastState, containerID: 'c://now' })] } });
    const found = selectInstance(pod, 'app', previous);
    assert.equal(found.ok ? found.value : found.message, wanted);
  });
}

test('statuses are looked up app, init, ephemeral, and a container without one is not available', () => {
  const status = (id: string) => cs('x', { state: running, containerID: id });
  const pod = (s: Partial<PodStatus>) => told('web', { status: { containerStatuses: [cs('app')], ...s } });
  const id = (s: Partial<PodStatus>) => {
    const found = selectInstance(pod(s), 'x', false);
    return found.ok ? found.value : found.message;
  };
  assert.equal(id({ containerStatuses: [status('a')], initContainerStatuses: [status('i')] }), 'a');
  assert.equal(id({ initContainerStatuses: [status('i')], ephemeralContainerStatuses: [status('e')] }), 'i');
  assert.equal(id({ ephemeralContainerStatuses: [status('e')] }), 'e');
  assert.equal(id({}), 'container "x" in pod "web" is not available');
  assert.equal(instanceRuns(pod({ containerStatuses: [status('a')] }), 'x', 'a'), true);
  assert.equal(instanceRuns(pod({ containerStatuses: [status('a')] }), 'x', 'b'), false);
  assert.deepEqual([runtimeId('containerd://abc'), runtimeId('abc')], ['abc', 'abc']);
});

test('a container is the named one, the one of the annotation, the only one; else all are named', () => {
  const one = told('web');
  const annotated = (name: string) =>
    told('web', {
      metadata: { annotations: { 'kubectl.kubernetes.io/default-container': name } },
      spec: { initContainers: [{ name: 'init', image: 'img' }] },
      status: { containerStatuses: [cs('a'), cs('b')] },
    });
  const pick = (...args: Parameters<typeof pickContainer>) => {
    const picked = pickContainer(...args);
    return picked.ok ? picked.value : `${picked.code} ${picked.message}`;
  };
  assert.equal(pick(one, undefined), 'app');
  assert.equal(pick(annotated('b'), undefined), 'b');
  assert.equal(pick(annotated('b'), 'init'), 'init');
  const choose = '400 a container name must be specified for pod web, choose one of: [a b] or one of the init containers: [init]';
  assert.equal(pick(annotated('c'), undefined), choose);
  assert.equal(pick(one, 'ap'), '404 container ap is not valid for pod web, choose one of: [app]');
  // a pod too large to be told has lost its spec
  assert.equal(pick(told('web', { spec: { containers: [] } }), 'app'), 'app');
});

test('a request is read from path and query, and everything wrong in it is named at once', () => {
  const parse = (query: string, path = '/containerLogs/default/web/app') => {
    const asked = parseLogRequest(path, query);
    return asked.ok ? asked.value : asked.message;
  };
  const plain = { namespace: 'default', pod: 'web', container: 'app', follow: false, previous: false, timestamps: false };
  assert.deepEqual(parse(''), plain);
  assert.deepEqual(parse('follow=true&previous=1&timestamps=&tailLines=0&sinceSeconds=5&limitBytes=7'), {
    ...plain,
    follow: true,
    previous: true,
    timestamps: true,
    tailLines: 0,
    sinceSeconds: 5,
    limitBytes: 7,
  });
  assert.deepEqual(parse('sinceTime=1970-01-01T00:00:01Z'), { ...plain, sinceNanos: 1_000_000_000n });
  assert.match(
    String(parse('follow=maybe&tailLines=-1&limitBytes=0')),
    /^tailLines: .*; limitBytes: .*; follow: expected true or false, got "maybe"$/,
  );
  assert.match(String(parse('sinceSeconds=1&sinceTime=1970-01-01T00:00:01Z')), /at most one/);
  assert.match(String(parse('sinceTime=soon')), /sinceTime: expected a time/);
  assert.match(String(parse('tail=1')), /there is no tail; there are .*tailLines/);
  for (const path of ['/containerLogs/', '/containerLogs/a/b', '/containerLogs/a/b/c/d', '/containerLogs/a//c', '/containerLogs/a/b/%zz'])
    assert.match(String(parse('', path)), /is meant$/, path);
});
