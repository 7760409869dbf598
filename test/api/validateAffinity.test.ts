/** Placement: what is taken, what is refused by path, what is ignored with a warning. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podHashes } from '../../src/api/hash.ts';
import { decode, paths, pod, type Raw, rawPod, told } from './objects.ts';

const required = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution';
const terms = (...nodeSelectorTerms: readonly unknown[]): Raw =>
  rawPod({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } });
const label = (o: Raw): Raw => terms({ matchExpressions: [{ key: 'site', ...o }] });
const field = (o: Raw): Raw => terms({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['pi'], ...o }] });
const expressions = `${required}.nodeSelectorTerms[0].matchExpressions[0]`;
const fields = `${required}.nodeSelectorTerms[0].matchFields[0]`;

const right: readonly Raw[] = [
  rawPod({ nodeSelector: { 'example.com/disktype': 'nvme', empty: '' } }),
  label({ operator: 'In', values: ['attic', 'cellar'] }),
  label({ operator: 'NotIn', values: ['attic'] }),
  label({ operator: 'Exists' }),
  label({ operator: 'DoesNotExist', values: [] }),
  label({ operator: 'Gt', values: ['3'] }),
  label({ operator: 'Lt', values: ['-3'] }),
  field({}),
  field({ operator: 'NotIn' }),
  terms({}),
  rawPod({ affinity: { nodeAffinity: {}, podAffinity: {}, podAntiAffinity: {} } }),
];
for (const raw of right) {
  test(`taken without a word: ${JSON.stringify((raw.spec as Raw).affinity ?? (raw.spec as Raw).nodeSelector)}`, () => {
    assert.deepEqual([told(decode(raw, true).problems), decode(raw, true).warnings], [[], []]);
  });
}

const wrong: readonly (readonly [raw: Raw, expected: string])[] = [
  [rawPod({ nodeSelector: { 'a b': 'x' } }), 'spec.nodeSelector["a b"]: a key: at most 63'],
  [rawPod({ nodeSelector: { a: 'x y' } }), 'spec.nodeSelector[a]: at most 63'],
  [rawPod({ nodeSelector: { a: 1 } }), 'spec.nodeSelector[a]: a string'],
  [terms(), `${required}.nodeSelectorTerms: at least one term`],
  [
    rawPod({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} } } }),
    `${required}.nodeSelectorTerms: a value`,
  ],
  [label({ operator: 'In' }), `${expressions}.values: at least one`],
  [label({ operator: 'NotIn', values: [] }), `${expressions}.values: at least one`],
  [label({ operator: 'In', values: ['a b'] }), `${expressions}.values[0]: at most 63`],
  [label({ operator: 'Exists', values: ['x'] }), `${expressions}.values: absent`],
  [label({ operator: 'Gt', values: ['1', '2'] }), `${expressions}.values: exactly one`],
  [label({ operator: 'Lt', values: ['many'] }), `${expressions}.values[0]: a whole number`],
  [label({ operator: 'in', values: ['x'] }), `${expressions}.operator: one of In`],
  [label({ key: 'a b', operator: 'Exists' }), `${expressions}.key: a key`],
  [field({ key: 'metadata.uid' }), `${fields}.key: metadata.name`],
  [field({ operator: 'Exists' }), `${fields}.operator: In or NotIn`],
  [field({ values: ['a', 'b'] }), `${fields}.values: exactly one`],
];
for (const [raw, expected] of wrong) {
  test(`refused by path: ${expected}`, () => {
    const problems = told(decode(raw).problems);
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.ok(problems[0]?.startsWith(expected), problems[0]);
  });
}

test('what a scheduler would weigh is ignored with a warning, what it would insist on is refused', () => {
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'db' } } };
  const preferred = [{ weight: 1, podAffinityTerm: term }];
  const { problems, warnings } = decode(
    rawPod({
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } },
          ],
        },
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [term],
          preferredDuringSchedulingIgnoredDuringExecution: preferred,
        },
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [term],
          preferredDuringSchedulingIgnoredDuringExecution: preferred,
        },
      },
    }),
  );
  assert.deepEqual(paths(problems), [
    'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution',
    'spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution',
  ]);
  assert.deepEqual(paths(warnings), [
    'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution',
    'spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution',
    'spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution',
  ]);
});

test('B7: one manifest with what a static pod has little use for: each field has its answer by path', () => {
  const { object, problems, warnings } = decode(
    rawPod({
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] } } },
      serviceAccountName: 'robot',
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      ephemeralContainers: [{ name: 'debug', image: 'busybox' }],
      readinessGates: [{ conditionType: 'example.com/ready' }],
      hostUsers: false,
    }),
  );
  assert.equal(object, undefined);
  assert.deepEqual(paths(problems).sort(), ['spec.ephemeralContainers', 'spec.hostUsers', 'spec.readinessGates']);
  assert.deepEqual(paths(warnings).sort(), ['spec.serviceAccountName', 'spec.topologySpreadConstraints']);
  for (const problem of problems) assert.match(problem.expected, /^absent: ./, 'it says why');
});

test('a change of the place is no change of the sandbox, a container or the work', () => {
  const { revision: _, ...plain } = podHashes(pod(rawPod()));
  for (const raw of [rawPod({ nodeSelector: { site: 'attic' } }), label({ operator: 'Exists' })]) {
    const { revision: __, ...placed } = podHashes(pod(raw));
    assert.deepEqual(placed, plain);
  }
});
