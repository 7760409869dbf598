import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseConfiguration, planReload } from '../../src/cli/choose.ts';
import { loadOptions } from '../../src/options.ts';

const load = (text: string, flags: Record<string, string> = {}) => loadOptions({ flags, env: {}, file: { path: 'podsched.yaml', text } });
const stored = { file: { nodeName: 'good' }, overrides: {} };
const again = [loadOptions({ flags: {}, env: {}, settings: stored.file })];

test('which configuration runs at the start', () => {
  const cases: readonly (readonly [what: string, text: string, hasStored: boolean, use: string, nodeName: string | undefined])[] = [
    ['a good file', 'nodeName: new\n', true, 'new', 'new'],
    ['a good file, the first time', 'nodeName: new\n', false, 'new', 'new'],
    ['an empty file, the first time', '', false, 'new', ''],
    ['an empty file where a good one is stored', '', true, 'lastGood', 'good'],
    ['a file of comments where a good one is stored', '# \n', true, 'lastGood', 'good'],
    ['a file that says it is meant to set nothing', 'kind: PodschedConfiguration\n', true, 'new', ''],
    ['a wrong file where a good one is stored', 'nodeNam: x\n', true, 'lastGood', 'good'],
    ['a wrong file, the first time', 'nodeNam: x\n', false, 'none', undefined],
  ];
  for (const [what, text, hasStored, use, nodeName] of cases) {
    const choice = chooseConfiguration(load(text), hasStored ? stored : undefined, hasStored ? again : []);
    assert.equal(choice.use, use, what);
    assert.equal(choice.use === 'none' ? undefined : choice.config.nodeName, nodeName, what);
    if (choice.use === 'lastGood') {
      assert.deepEqual(
        choice.conditions.map((c) => [c.type, c.status]),
        [['ConfigurationInvalid', 'True']],
        what,
      );
    }
    if (choice.use === 'new') assert.deepEqual(choice.conditions, [], what);
  }
});

test('an empty stored configuration is none: an empty file goes on being a choice', () => {
  const nothing = { file: {}, overrides: { runDir: '/r' } };
  assert.equal(chooseConfiguration(load(''), nothing, []).use, 'new');
});

test('the condition names the first mistake and counts the others', () => {
  const choice = chooseConfiguration(load('nodeNam: x\nmaxPods: no\n'), stored, again);
  assert.ok(choice.use === 'lastGood');
  assert.match(choice.conditions[0]?.message ?? '', /^the last good configuration runs: podsched\.yaml:1:10: nodeNam: .*\(and 1 more\)$/);
});

test('when what is stored does not go with the flags of today, it runs with those of then', () => {
  const wrong = loadOptions({ flags: { 'mqtt.prefix': '+' }, env: {}, settings: stored.file });
  const then = loadOptions({ flags: {}, env: {}, settings: { ...stored.file, 'mqtt.prefix': 'then' } });
  const choice = chooseConfiguration(load('x: 1\n', { 'mqtt.prefix': '+' }), stored, [wrong, then]);
  assert.ok(choice.use === 'lastGood');
  assert.equal(choice.config['mqtt.prefix'], 'then');
});

test('SIGHUP applies what may change while running and names what waits', () => {
  const running = load('nodeName: a\n').config;
  assert.ok(running);
  const good = { file: { nodeName: 'a' }, overrides: {} };
  const plan = planReload(
    running,
    good,
    load('nodeName: b\nnodeLabels: {x: z}\nlogging: {level: debug}\nmaxPods: 5\nmqtt: {keepalive: 10s}\n'),
  );
  assert.ok(plan.ok);
  assert.deepEqual(plan.waiting, ['maxPods', 'nodeName', 'mqtt.keepalive']);
  assert.deepEqual([plan.config.nodeName, plan.config.nodeLabels, plan.config['logging.level']], ['a', { x: 'z' }, 'debug']);
  assert.equal(plan.conditions[0]?.type, 'RestartNeeded');
  assert.equal(plan.keep.file.nodeName, 'b');
  const back = planReload(plan.config, plan.keep, load('nodeName: a\nnodeLabels: {x: z}\nlogging: {level: debug}\n'));
  assert.ok(back.ok && back.waiting.length === 0 && back.conditions.length === 0);
});

test('SIGHUP with a wrong or emptied file changes nothing and says so', () => {
  const running = load('nodeName: a\n').config;
  assert.ok(running);
  const good = { file: { nodeName: 'a' }, overrides: {} };
  for (const text of ['nodeName: a.b\nlogging: {level: debug}\n', '']) {
    const plan = planReload(running, good, load(text));
    assert.equal(plan.ok, false);
    assert.equal(plan.conditions[0]?.type, 'ConfigurationInvalid');
  }
});
