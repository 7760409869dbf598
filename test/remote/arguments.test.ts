import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultVerbs, type Verb, verbs } from '../../src/api/verbs.ts';
import { acts, changes, checkArgs, verbSpecs } from '../../src/remote/arguments.ts';

test('every verb has words, and what it takes by default passes its own check', () => {
  for (const verb of verbs) {
    const { does, args } = verbSpecs[verb];
    assert.ok(does.length > 5, verb);
    for (const [name, spec] of Object.entries(args)) {
      assert.ok(spec.does.length > 3, `${verb} ${name}`);
      if (spec.default !== undefined)
        assert.equal(problemOf(verb, withRequired(verb, { [name]: spec.default })), undefined, `${verb} ${name}`);
    }
  }
});

const withRequired = (verb: Verb, args: Record<string, unknown>): Record<string, unknown> => ({
  ...(verb === 'exec' && { command: ['ls'] }),
  ...(verb === 'decommission' && { confirm: 'x' }),
  ...args,
});

function problemOf(verb: Verb, given: Record<string, unknown>): string | undefined {
  const checked = checkArgs(verb, given);
  return checked.ok ? undefined : `${checked.problem.path}: ${checked.problem.expected}, got ${checked.problem.got}`;
}

test('what is wrong with an argument, by its path', () => {
  const table: readonly (readonly [Verb, Record<string, unknown>, RegExp | undefined])[] = [
    ['get', {}, undefined],
    ['get', { what: 'node', namespace: 'default', name: 'web' }, undefined],
    ['get', { what: null }, undefined],
    ['get', { what: 'secrets' }, /^args\.what: one of pods, .*got "secrets"/],
    ['get', { namespace: 'A' }, /^args\.namespace: /],
    ['get', { name: '../x' }, /^args\.name: /],
    ['get', { waht: 'pods' }, /^args\.waht: one of what, namespace, name/],
    ['get', JSON.parse('{"__proto__":{"what":"node"}}') as Record<string, unknown>, /^args\.__proto__: /],
    ['get', { constructor: 1 }, /^args\.constructor: /],
    ['doctor', { fix: true }, /^args\.fix: no arguments/],
    ['identify', { seconds: 0 }, /from 1 to 300/],
    ['identify', { seconds: 2.5 }, /whole number/],
    ['identify', { seconds: Number.NaN }, /whole number/],
    ['logs', { tailLines: -1 }, /^args\.tailLines/],
    ['logs', { tailLines: 1e9 }, /^args\.tailLines/],
    ['logs', { limitBytes: 10 << 20 }, /from 1 to 1048576/],
    ['logs', { leaseSeconds: 601 }, /from 0 to 600/],
    ['logs', { follow: 'true' }, /^args\.follow: true or false, got "true"/],
    ['logs', { follow: true, previous: true }, /^args\.previous: /],
    ['logs', { sinceSeconds: 5, sinceTime: '2026-01-01T00:00:00Z' }, /^args\.sinceTime: at most one/],
    ['logs', { sinceTime: 'a\nb' }, /^args\.sinceTime/],
    ['exec', {}, /^args\.command: .*got nothing/],
    ['exec', { command: [] }, /^args\.command/],
    ['exec', { command: 'ls -l' }, /^args\.command/],
    ['exec', { command: [''] }, /^args\.command/],
    ['exec', { command: ['ls', 7] }, /got a value that is not shown/],
    ['exec', { command: ['ls', 'a\0b'] }, /^args\.command/],
    ['exec', { command: new Array(129).fill('x') }, /1 to 128/],
    ['exec', { command: ['x'.repeat(40_000)] }, /32768 letters/],
    ['exec', { command: ['ls'], timeoutSeconds: 61 }, /from 1 to 60/],
    ['exec', { command: ['ls'], shell: true }, /^args\.shell/],
    ['images', { do: 'remove' }, /^args\.do/],
    ['images', { do: 'pull' }, /^args\.image: the name of an image, got nothing/],
    ['images', { image: 'x' }, /nothing with do: list/],
    ['images', { do: 'pull', image: 'x', dryRun: true }, /^args\.dryRun/],
    ['images', { do: 'prune', dryRun: true }, undefined],
    ['images', { do: 'pin', image: 'x' }, undefined],
    ['restart', { new: 1 }, /^args\.new/],
  ];
  for (const [verb, given, expected] of table) {
    const problem = problemOf(verb, given);
    if (expected === undefined) assert.equal(problem, undefined, `${verb} ${JSON.stringify(given)}`);
    else assert.match(problem ?? 'nothing', expected, `${verb} ${JSON.stringify(given)}`);
  }
});

test('defaults are filled in, and what has none stays away', () => {
  const checked = checkArgs('logs', { tailLines: 0 });
  assert.ok(checked.ok);
  assert.deepEqual(checked.args, {
    tailLines: 0,
    previous: false,
    timestamps: false,
    limitBytes: 1 << 20,
    follow: false,
    leaseSeconds: 60,
  });
});

test('what is allowed by default changes nothing, but for what policy allows besides', () => {
  for (const verb of defaultVerbs) {
    const checked = checkArgs(verb, {});
    assert.ok(checked.ok, verb);
    assert.equal(changes(verb, checked.args), false, verb);
  }
  assert.equal(changes('resync', { forgetLost: true }), true);
  assert.equal(changes('images', { do: 'prune', dryRun: true }), false);
  assert.equal(changes('images', { do: 'prune', dryRun: false }), true);
  assert.equal(changes('images', { do: 'list' }), false);
});

test('unanswered is run what has an effect', () => {
  const run = (verb: Verb, args: Record<string, boolean> = {}): boolean => acts(verb, args);
  assert.deepEqual(
    [run('get'), run('logs'), run('logs', { follow: true }), run('identify'), run('resync'), run('restart'), run('bundle')],
    [false, false, true, true, true, true, false],
  );
});
