import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalText } from '../../src/api/canonical.ts';
import { defaultPod } from '../../src/api/defaults.ts';
import {
  canonicalObject,
  containerHash,
  containerHashes,
  hashIn,
  hashScheme,
  podHash,
  podHashes,
  revision,
  workHash,
} from '../../src/api/hash.ts';
import { decode, pod, type Raw, rawPod } from './objects.ts';

const rich = rawPod(
  {
    terminationGracePeriodSeconds: 5,
    hostname: 'gw',
    initContainers: [
      { name: 'setup', image: 'busybox:1', command: ['true'] },
      { name: 'side', image: 'busybox:1', restartPolicy: 'Always' },
    ],
    containers: [
      {
        name: 'web',
        image: 'nginx',
        env: [{ name: 'A', value: 'ü' }, { name: 'B' }],
        ports: [{ containerPort: 80, hostPort: 8080 }],
        resources: { limits: { cpu: '0.5', memory: '64Mi' } },
      },
      { name: 'cron', image: 'busybox:1', securityContext: { privileged: true } },
    ],
  },
  {},
  { namespace: 'lab', labels: { app: 'web' }, annotations: { note: 'x' } },
);

test('scheme 1 is a contract: these texts stand on containers that later releases must recognise', () => {
  assert.deepEqual(podHashes(pod(rawPod())), {
    revision: '058560987c8b',
    podHash: '1:27f5e40ccdcf',
    containerHashes: {
      app: '1:66b7f61b66bd',
    },
    workHash: '1:058560987c8b',
  });
  assert.deepEqual(podHashes(pod(rich)), {
    revision: 'fce00c3213b9',
    podHash: '1:456d7e1c1b6f',
    containerHashes: {
      setup: '1:5275092c2b01',
      side: '1:e08f23807a11',
      web: '1:75f3e2aa4a19',
      cron: '1:5ea80dd0bb96',
    },
    workHash: '1:ab60397cdfdb',
  });
});

test('the canonical object is RFC 8785: sorted keys, no blanks, no defaults, exact quantities', () => {
  const raw = rawPod({ restartPolicy: 'Always' }, { resources: { limits: { memory: '0.5Gi' } } }, { uid: 'mine', namespace: 'default' });
  assert.equal(
    canonicalText(canonicalObject(pod(raw))),
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"image":"busybox:1","name":"app","resources":{"limits":{"memory":"536870912"}}}]}}',
  );
  assert.equal(
    canonicalText({ b: [1, 'ü', null, true], a: 1e21, '\ud83d\ude00': 1, '\ufb33': 2 }),
    '{"a":1e+21,"b":[1,"ü",null,true],"\ud83d\ude00":1,"\ufb33":2}',
  );
});

test('C7: what means the same has the same hashes', () => {
  const same: readonly (readonly [string, Raw, Raw])[] = [
    ['key order', { ...rawPod() }, { spec: rawPod().spec, metadata: { name: 'web' }, kind: 'Pod', apiVersion: 'v1' }],
    ['empty list and absent', rawPod({ volumes: [] }, { args: [], env: [], ports: [] }), rawPod()],
    [
      'empty mapping and absent',
      rawPod({ securityContext: {}, nodeSelector: {} }, { resources: {}, securityContext: {} }, { labels: {} }),
      rawPod(),
    ],
    ['null and absent', rawPod({ hostname: null, tolerations: null }, { command: null }), rawPod()],
    ['empty text and absent', rawPod({ hostname: '' }, { workingDir: '' }), rawPod()],
    [
      'false and absent',
      rawPod({ hostNetwork: false, shareProcessNamespace: false }, { tty: false, securityContext: { privileged: false } }),
      rawPod(),
    ],
    [
      'quantities',
      rawPod({}, { resources: { limits: { cpu: '500m', memory: '64Mi' } } }),
      rawPod({}, { resources: { limits: { cpu: 0.5, memory: '67108864' } } }),
    ],
    [
      'requests that are the limits',
      rawPod({}, { resources: { limits: { cpu: 1 }, requests: { cpu: '1000m' } } }),
      rawPod({}, { resources: { limits: { cpu: 1 } } }),
    ],
    ['default namespace', rawPod({}, {}, { namespace: 'default' }), rawPod()],
    [
      'the API server’s bookkeeping',
      rawPod({}, {}, { uid: 'u', generation: 3, resourceVersion: '7', creationTimestamp: 'now', managedFields: [{}] }),
      rawPod(),
    ],
    ['status', { ...rawPod(), status: { phase: 'Running' } }, rawPod()],
    [
      'defaults written out',
      rawPod(
        {
          restartPolicy: 'Always',
          dnsPolicy: 'ClusterFirst',
          terminationGracePeriodSeconds: 30,
          schedulerName: 'default-scheduler',
          enableServiceLinks: true,
        },
        {
          imagePullPolicy: 'IfNotPresent',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          ports: [{ containerPort: 80, protocol: 'TCP' }],
        },
      ),
      rawPod({}, { ports: [{ containerPort: 80 }] }),
    ],
    ['the pull policy of latest', rawPod({}, { image: 'nginx', imagePullPolicy: 'Always' }), rawPod({}, { image: 'nginx' })],
    [
      'host ports of the host’s network',
      rawPod({ hostNetwork: true }, { ports: [{ containerPort: 80, hostPort: 80 }] }),
      rawPod({ hostNetwork: true }, { ports: [{ containerPort: 80 }] }),
    ],
    ['empty text variables', rawPod({}, { env: [{ name: 'A', value: '' }] }), rawPod({}, { env: [{ name: 'A' }] })],
  ];
  for (const [what, a, b] of same) assert.deepEqual(podHashes(pod(a)), podHashes(pod(b)), what);
});

test('what means something else has another revision', () => {
  const different: readonly (readonly [string, Raw, Raw])[] = [
    ['an empty argument', rawPod({}, { args: [''] }), rawPod()],
    ['an empty label', rawPod({}, {}, { labels: { a: '' } }), rawPod()],
    [
      'a zero request',
      rawPod({}, { resources: { limits: { cpu: 1 }, requests: { cpu: 0 } } }),
      rawPod({}, { resources: { limits: { cpu: 1 } } }),
    ],
    ['the order of variables', rawPod({}, { env: [{ name: 'A' }, { name: 'B' }] }), rawPod({}, { env: [{ name: 'B' }, { name: 'A' }] })],
    ['a pull policy that is not the default', rawPod({}, { imagePullPolicy: 'Always' }), rawPod()],
    ['grace 0', rawPod({ terminationGracePeriodSeconds: 0 }), rawPod()],
    ['user 0', rawPod({}, { securityContext: { runAsUser: 0 } }), rawPod()],
  ];
  for (const [what, a, b] of different) assert.notEqual(revision(pod(a)), revision(pod(b)), what);
});

test('C6: a defaulted container has the hash of the written one, so a new default restarts nothing', () => {
  for (const raw of [rawPod(), rich, rawPod({ hostNetwork: true }, { ports: [{ containerPort: 80 }], image: 'nginx' })]) {
    const written = pod(raw);
    const defaulted = defaultPod(written, 'pi-07');
    assert.deepEqual(containerHashes(defaulted), containerHashes(written));
    const hostNetwork = written.spec.hostNetwork === true;
    for (const c of [...defaulted.spec.containers, ...(defaulted.spec.initContainers ?? [])]) {
      assert.equal(containerHash(c, hostNetwork), containerHashes(written)[c.name]);
    }
  }
});

test('C6: the scheme stands before the hash, and an unknown one is known as unknown', () => {
  const hashes = podHashes(pod(rawPod()));
  assert.equal(hashScheme(hashes.podHash), '1');
  assert.equal(hashScheme('2:0123456789ab'), '2');
  for (const text of ['', 'abc', '1:', ':abc', '1:xyz', '1:ab:cd']) assert.equal(hashScheme(text), undefined, text);
  assert.equal(hashIn('1', hashes, undefined), hashes.podHash);
  assert.equal(hashIn('1', hashes, 'app'), hashes.containerHashes.app);
  assert.equal(hashIn('2', hashes, 'app'), undefined);
  assert.match(hashes.revision, /^[0-9a-f]{12}$/);
  assert.match(hashes.workHash, /^1:[0-9a-f]{12}$/);
});

test('the pod-hash sees the set of containers and never their insides or order', () => {
  const one = { name: 'one', image: 'x:1' };
  const two = { name: 'two', image: 'x:1' };
  const base = podHash(pod(rawPod({ containers: [one, two] })));
  assert.equal(podHash(pod(rawPod({ containers: [two, one] }))), base);
  assert.equal(podHash(pod(rawPod({ containers: [{ ...one, image: 'y:2', env: [{ name: 'A', value: 'b' }] }, two] }))), base);
  assert.notEqual(podHash(pod(rawPod({ containers: [one] }))), base);
  assert.notEqual(podHash(pod(rawPod({ containers: [one, { ...two, name: 'three' }] }))), base);
});

test('the work-hash sees everything but labels, restless fields and order', () => {
  const base = workHash(
    pod(
      rawPod({
        containers: [
          { name: 'a', image: 'x:1' },
          { name: 'b', image: 'x:1' },
        ],
      }),
    ),
  );
  const same = rawPod(
    {
      containers: [
        { name: 'b', image: 'x:1' },
        { name: 'a', image: 'x:1' },
      ],
      terminationGracePeriodSeconds: 1,
      activeDeadlineSeconds: 9,
      priority: 7,
      tolerations: [{ operator: 'Exists' }],
    },
    {},
    { labels: { a: 'b' }, annotations: { c: 'd', 'podsched.dev/crash-backoff': '1s,1m' } },
  );
  assert.equal(workHash(pod(same)), base);
  const edited = rawPod({
    containers: [
      { name: 'a', image: 'x:2' },
      { name: 'b', image: 'x:1' },
    ],
  });
  assert.notEqual(workHash(pod(edited)), base);
  const bandwidth = rawPod(
    {
      containers: [
        { name: 'a', image: 'x:1' },
        { name: 'b', image: 'x:1' },
      ],
    },
    {},
    { annotations: { 'kubernetes.io/egress-bandwidth': '1M' } },
  );
  assert.notEqual(workHash(pod(bandwidth)), base);
});

test('ConfigMaps and Secrets have a revision too', () => {
  const of = (raw: Raw): string => {
    const { object } = decode(raw);
    assert.ok(object);
    return revision(object);
  };
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { a: '1' } };
  assert.equal(of(map), of({ ...map, immutable: false, binaryData: {} }));
  assert.notEqual(of(map), of({ ...map, data: { a: '' } }));
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'c' }, data: { a: 'aGVsbG8=' } };
  assert.equal(of(secret), of({ ...secret, type: 'Opaque', data: { a: 'aGVs\nbG8=\n' } }));
});
