import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desiredFilters, placeOf, sourceOfFilter } from '../../src/config/desiredTopics.ts';

const listener = { prefix: 'podsched/v1', nodeName: 'pi', groups: ['attic', 'cams'] };

// topic below the prefix → what it is about
const table: readonly (readonly [topic: string, about: string])[] = [
  ['desired/nodes/pi/default/web', 'mqtt:node Pod/default/web'],
  ['desired/nodes/pi/default/configmap:app', 'mqtt:node ConfigMap/default/app'],
  ['desired/nodes/pi/ns/secret:a~b', 'mqtt:node Secret/ns/a.b'],
  ['desired/groups/cams/default/web', 'mqtt:group/cams Pod/default/web'],
  ['desired/all/default/web', 'mqtt:all Pod/default/web'],
  ['desired/nodes/pi/_index', 'index mqtt:node 0'],
  ['desired/groups/attic/_index/3', 'index mqtt:group/attic 3'],
  ['desired/all/_index', 'index mqtt:all 0'],
  ['desired/all/_index/100', 'wrong'],
  ['desired/nodes/pi/_config', 'config'],
  ['rollouts/r1', 'rollout r1'],
  ['rollouts/R 1', 'wrong'],
  ['desired/nodes/other/default/web', 'foreign'],
  ['desired/nodes/other/_config', 'foreign'],
  ['desired/groups/cellar/default/web', 'foreign'],
  ['desired/groups/cellar/_index', 'foreign'],
  ['nodes/pi/online', 'foreign'],
  ['cmd/pi/restart', 'foreign'],
  ['desired/nodes/pi/default/..', 'wrong'],
  ['desired/nodes/pi/default/~~', 'wrong'],
  ['desired/nodes/pi/../web', 'wrong'],
  ['desired/nodes/pi/default/a.b', 'wrong'],
  ['desired/nodes/pi/default/Web', 'wrong'],
  ['desired/nodes/pi/default/-web', 'wrong'],
  ['desired/nodes/pi/De_fault/web', 'wrong'],
  ['desired/nodes/pi/default/deployment:web', 'wrong'],
  ['desired/nodes/pi/default/configmap:', 'wrong'],
  ['desired/nodes/pi/default/web/more', 'wrong'],
  ['desired/nodes/pi/web', 'wrong'],
  ['desired/nodes/pi/_other', 'wrong'],
  ['desired/nodes/pi/default/_web', 'wrong'],
  [`desired/nodes/pi/default/${'a'.repeat(300)}`, 'wrong'],
  [`desired/nodes/pi/${'n'.repeat(64)}/web`, 'wrong'],
  ['desired/nodes/pi//web', 'wrong'],
  ['desired/all/default/ü', 'wrong'],
];
for (const [topic, about] of table) {
  test(`a topic: ${topic.slice(0, 60)} is ${about}`, () => {
    const place = placeOf(listener, `podsched/v1/${topic}`);
    const shown =
      place.of === 'object'
        ? `${place.source} ${place.text}`
        : place.of === 'index'
          ? `index ${place.source} ${place.part}`
          : place.of === 'rollout'
            ? `rollout ${place.id}`
            : place.of;
    assert.equal(shown, about);
  });
}

test('followed are the node, the rollouts, the groups in their order and all; each filter brings its source', () => {
  const filters = desiredFilters(listener);
  assert.deepEqual(filters, [
    'podsched/v1/desired/nodes/pi/#',
    'podsched/v1/rollouts/+',
    'podsched/v1/desired/groups/attic/#',
    'podsched/v1/desired/groups/cams/#',
    'podsched/v1/desired/all/#',
  ]);
  assert.deepEqual(
    filters.map((f) => sourceOfFilter(listener, f)),
    ['mqtt:node', undefined, 'mqtt:group/attic', 'mqtt:group/cams', 'mqtt:all'],
  );
});
