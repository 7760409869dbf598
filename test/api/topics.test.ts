import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  commandTopic,
  defaultPrefix,
  desiredTopic,
  escapeFileName,
  homeAssistantTopic,
  indexTopic,
  isTopicPrefix,
  nodeTopics,
  parseTopic,
  rolloutTopic,
  type Topic,
  unescapeFileName,
} from '../../src/api/topics.ts';

const P = defaultPrefix;
const t = nodeTopics(P, 'pi-07');
const pod = { kind: 'Pod', namespace: 'default', name: 'web' } as const;

const table: readonly (readonly [string, string, Topic | undefined])[] = [
  [t.online, 'podsched/v1/nodes/pi-07/online', { of: 'online', node: 'pi-07' }],
  [t.duplicate('ab12'), 'podsched/v1/nodes/pi-07/duplicates/ab12', { of: 'duplicate', node: 'pi-07', machine: 'ab12' }],
  [t.marker, 'podsched/v1/nodes/pi-07/_marker', { of: 'marker', node: 'pi-07' }],
  [t.info, 'podsched/v1/nodes/pi-07/info', { of: 'info', node: 'pi-07' }],
  [t.summary, 'podsched/v1/nodes/pi-07/summary', { of: 'summary', node: 'pi-07' }],
  [t.metrics, 'podsched/v1/nodes/pi-07/metrics', { of: 'metrics', node: 'pi-07' }],
  [
    t.pod('default', 'my.web'),
    'podsched/v1/nodes/pi-07/pods/default/my~web',
    { of: 'pod', node: 'pi-07', namespace: 'default', name: 'my.web' },
  ],
  [t.sync(pod), 'podsched/v1/nodes/pi-07/sync/default/web', { of: 'sync', node: 'pi-07', ...pod }],
  [
    t.sync({ kind: 'ConfigMap', namespace: 'lab', name: 'app.conf' }),
    'podsched/v1/nodes/pi-07/sync/lab/configmap:app~conf',
    { of: 'sync', node: 'pi-07', kind: 'ConfigMap', namespace: 'lab', name: 'app.conf' },
  ],
  [
    t.sync({ kind: 'Secret', namespace: 'lab', name: 'tls' }),
    'podsched/v1/nodes/pi-07/sync/lab/secret:tls',
    { of: 'sync', node: 'pi-07', kind: 'Secret', namespace: 'lab', name: 'tls' },
  ],
  [t.file('Web 1.yaml'), 'podsched/v1/nodes/pi-07/sync/_files/~57eb~201~2eyaml', { of: 'file', node: 'pi-07', file: 'Web 1.yaml' }],
  [t.events('default'), 'podsched/v1/nodes/pi-07/events/default', { of: 'events', node: 'pi-07', namespace: 'default' }],
  [t.logs('default', 'web'), 'podsched/v1/nodes/pi-07/logs/default/web', { of: 'logs', node: 'pi-07', namespace: 'default', name: 'web' }],
  [t.config, 'podsched/v1/desired/nodes/pi-07/_config', { of: 'config', node: 'pi-07' }],
  [t.reply('ops-1'), 'podsched/v1/reply/ops-1/pi-07', { of: 'reply', requester: 'ops-1', node: 'pi-07' }],
  [
    desiredTopic(P, { node: 'pi-07' }, pod),
    'podsched/v1/desired/nodes/pi-07/default/web',
    { of: 'desired', scope: { node: 'pi-07' }, ...pod },
  ],
  [
    desiredTopic(P, { group: 'attic' }, pod),
    'podsched/v1/desired/groups/attic/default/web',
    { of: 'desired', scope: { group: 'attic' }, ...pod },
  ],
  [desiredTopic(P, 'all', pod), 'podsched/v1/desired/all/default/web', { of: 'desired', scope: 'all', ...pod }],
  [indexTopic(P, { node: 'pi-07' }), 'podsched/v1/desired/nodes/pi-07/_index', { of: 'index', scope: { node: 'pi-07' }, part: 0 }],
  [indexTopic(P, { group: 'attic' }, 2), 'podsched/v1/desired/groups/attic/_index/2', { of: 'index', scope: { group: 'attic' }, part: 2 }],
  [indexTopic(P, 'all', 1), 'podsched/v1/desired/all/_index/1', { of: 'index', scope: 'all', part: 1 }],
  [rolloutTopic(P, 'r1'), 'podsched/v1/rollouts/r1', { of: 'rollout', id: 'r1' }],
  [commandTopic(P, 'pi-07', 'restart'), 'podsched/v1/cmd/pi-07/restart', { of: 'command', node: 'pi-07', verb: 'restart' }],
  [homeAssistantTopic('homeassistant', 'pi-07'), 'homeassistant/device/pi-07/config', undefined],
];

test('every topic of the contract is written as the contract says, and read back', () => {
  for (const [built, expected, parsed] of table) {
    assert.equal(built, expected);
    assert.deepEqual(parseTopic(P, built), parsed, built);
  }
});

test('no topic has more than six slashes or a dot, even with the longest prefix', () => {
  for (const [built] of table) {
    assert.ok(built.split('/').length <= 7, built);
    assert.ok(!built.includes('.'), built);
  }
});

test('what the contract does not know is not understood', () => {
  for (const topic of [
    'other/v1/nodes/pi-07/online',
    'podsched/v1/nodes/pi-07',
    'podsched/v1/nodes/pi-07/online/x',
    'podsched/v1/nodes/pi-07/pods/default/web/c',
    'podsched/v1/nodes/pi-07/sync/default/service:web',
    'podsched/v1/nodes/pi-07/sync/default/configmap:',
    'podsched/v1/nodes/pi-07/sync/_other/web',
    'podsched/v1/nodes/pi-07/sync/_files/WEB',
    'podsched/v1/nodes/pi-07/sync/_files/~ff',
    'podsched/v1/nodes//pods/default/web',
    'podsched/v1/desired/nodes/pi-07',
    'podsched/v1/desired/groups/attic/_config',
    'podsched/v1/desired/all/_index/0',
    'podsched/v1/desired/all/_secret/web',
    'podsched/v1/elsewhere/x',
  ]) {
    assert.equal(parseTopic(P, topic), undefined, topic);
  }
});

test('any file name survives its escaping', () => {
  for (const name of ['web.yaml', 'ÄÖ 1.yml', '~x.json', '日本.yaml', '_files', '/']) {
    const level = escapeFileName(name);
    assert.match(level, /^[a-z0-9~-]+$/);
    assert.equal(unescapeFileName(level), name);
  }
});

test('the filters over desired state follow the order of precedence', () => {
  assert.deepEqual(t.desiredFilters(['attic', 'cams']), [
    'podsched/v1/desired/nodes/pi-07/#',
    'podsched/v1/desired/groups/attic/#',
    'podsched/v1/desired/groups/cams/#',
    'podsched/v1/desired/all/#',
  ]);
});

test('a prefix has one or two levels and no wildcard', () => {
  for (const good of ['podsched/v1', 'home', 'a/b']) assert.ok(isTopicPrefix(good), good);
  for (const bad of ['', '/', 'a/', '/a', 'a/b/c', 'a/+', '#', '$SYS', '$share/x', 'a//b']) assert.ok(!isTopicPrefix(bad), bad);
});
