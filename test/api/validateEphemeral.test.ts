import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../src/api/v1.ts';
import { validateEphemeral } from '../../src/api/validateEphemeral.ts';

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    nodeName: 'pi-07',
    volumes: [{ name: 'data', emptyDir: {} }],
    initContainers: [{ name: 'init', image: 'x' }],
    containers: [{ name: 'app', image: 'x' }],
    ephemeralContainers: [{ name: 'old', image: 'x' }],
  },
};
const judge = (raw: unknown) => validateEphemeral(raw, pod);
const problems = (raw: unknown): string[] => {
  const result = judge(raw);
  return result.ok ? [] : result.problems.map((p) => p.path.replace('spec.ephemeralContainers[1]', '@'));
};

test('what kubectl debug sends is taken, with the defaults of any container', () => {
  const result = judge({
    name: 'debugger-abcde',
    image: 'busybox',
    command: ['sh'],
    env: [{ name: 'A', value: 'b' }],
    stdin: true,
    tty: true,
    targetContainerName: 'app',
    resources: {},
    securityContext: { capabilities: { add: ['SYS_PTRACE'] } },
  });
  assert.deepEqual(result, {
    ok: true,
    container: {
      name: 'debugger-abcde',
      image: 'busybox',
      command: ['sh'],
      env: [{ name: 'A', value: 'b' }],
      stdin: true,
      tty: true,
      targetContainerName: 'app',
      securityContext: { capabilities: { add: ['SYS_PTRACE'] } },
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      imagePullPolicy: 'Always',
    },
  });
});

test('each mistake is told by its path among the ephemeral containers of the pod', () => {
  const probe = { exec: { command: ['true'] } };
  for (const [more, paths] of [
    [{ name: 'app' }, ['@.name']],
    [{ name: 'init' }, ['@.name']],
    [{ name: 'old' }, ['@.name']],
    [{ name: 'Bad_Name' }, ['@.name']],
    [{ name: undefined }, ['@.name']],
    [{ image: undefined }, ['@.image']],
    [{ image: ' ' }, ['@.image']],
    [{ targetContainerName: 'init' }, ['@.targetContainerName']],
    [{ targetContainerName: 7 }, ['@.targetContainerName']],
    [{ ports: [{ containerPort: 80 }] }, ['@.ports']],
    [{ livenessProbe: probe }, ['@.livenessProbe']],
    [{ readinessProbe: probe }, ['@.readinessProbe']],
    [{ startupProbe: probe }, ['@.startupProbe']],
    [{ lifecycle: { preStop: probe } }, ['@.lifecycle']],
    [{ resources: { limits: { memory: '64Mi' } } }, ['@.resources']],
    [{ restartPolicy: 'Always' }, ['@.restartPolicy']],
    [{ comand: ['sh'] }, ['@.comand']],
    [{ env: [{ name: 'A=', value: 'secret' }] }, ['@.env[0].name']],
    [{ securityContext: { capabilities: { add: ['NOPE'] } } }, ['@.securityContext.capabilities.add[0]']],
  ] as const)
    assert.deepEqual(problems({ name: 'd', image: 'x', ...more }), paths, JSON.stringify(more));
  for (const raw of [undefined, null, 'x', [], 7]) assert.deepEqual(problems(raw), ['@'], String(raw));
});

test('subPath is refused, as Kubernetes does', () => {
  const mount = { name: 'data', mountPath: '/data', subPath: 'x' };
  assert.ok(problems({ name: 'd', image: 'x', volumeMounts: [mount] }).some((p) => p.startsWith('@.volumeMounts')));
});
