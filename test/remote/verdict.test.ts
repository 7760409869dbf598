import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultVerbs, verbs } from '../../src/api/verbs.ts';
import { verbSpecs } from '../../src/remote/arguments.ts';
import type { DecodedCommand } from '../../src/remote/decode.ts';
import { judge, type VerdictFacts } from '../../src/remote/verdict.ts';

const facts: VerdictFacts = {
  nodeName: 'pi-07',
  bootId: 'boot-1',
  session: 1000,
  allows: () => true,
  allowsNamespace: () => true,
  distrusts: () => undefined,
  queued: false,
};
const command = (o: Partial<DecodedCommand> = {}): DecodedCommand => ({ apiVersion: 'podsched.dev/v1', kind: 'Command', args: {}, ...o });
const pod = { pod: 'web' };
const byDefault: Partial<VerdictFacts> = { allows: (verb) => defaultVerbs.includes(verb) };

const said = (level: string, c: Partial<DecodedCommand>, f: Partial<VerdictFacts> = {}): string => {
  const verdict = judge(level, command(c), { ...facts, ...f });
  return verdict.run ? 'run' : `${verdict.status} ${verdict.reason}`;
};

test('whether a command is run, and what is said when it is not', () => {
  const exec = { target: pod, args: { command: ['ls'] } };
  const table: readonly (readonly [string, Partial<DecodedCommand>, Partial<VerdictFacts>, string])[] = [
    ['get', {}, {}, 'run'],
    ['get', { session: 1000, bootID: 'boot-1', node: 'pi-07', verb: 'get' }, {}, 'run'],
    ['reboot', {}, {}, 'error UnknownVerb'],
    ['', {}, {}, 'error UnknownVerb'],
    ['__proto__', {}, {}, 'error UnknownVerb'],
    ['constructor', {}, {}, 'error UnknownVerb'],
    ['get', {}, { queued: true }, 'expired Queued'],
    ['restart', { target: pod }, { queued: true, ...byDefault }, 'expired Queued'],
    ['get', { node: 'pi-08' }, {}, 'denied OtherNode'],
    ['get', { verb: 'restart' }, {}, 'denied OtherVerb'],
    ['get', { bootID: 'boot-0' }, {}, 'expired OtherBoot'],
    ['get', { session: 999 }, {}, 'expired OtherSession'],
    ['get', { session: 1000 }, { session: undefined }, 'expired OtherSession'],
    ['restart', { target: pod }, byDefault, 'denied VerbDenied'],
    // a denied verb says nothing of its arguments
    ['exec', { args: { nonsense: 1 } }, byDefault, 'denied VerbDenied'],
    ['exec', exec, { distrusts: () => ({ reason: 'Unsigned', message: '' }) }, 'denied Unsigned'],
    ['restart', { target: pod }, { allowsNamespace: () => false }, 'denied NamespaceDenied'],
    ['restart', { target: { ...pod, namespace: 'kitchen' } }, { allowsNamespace: (ns) => ns === 'kitchen' }, 'run'],
    ['restart', { target: pod }, { allowsNamespace: (ns) => ns === 'kitchen' }, 'denied NamespaceDenied'],
    ['resync', {}, { allowsNamespace: () => false }, 'run'],
    ['restart', {}, {}, 'error TargetRequired'],
    ['restart', { target: { namespace: 'default' } }, {}, 'error TargetRequired'],
    ['restart', { target: pod }, {}, 'run'],
    ['restart', { target: pod, args: { new: 'yes' } }, {}, 'error BadArguments'],
    ['exec', exec, {}, 'run'],
    ['exec', { target: pod }, {}, 'error BadArguments'],
    ['decommission', {}, {}, 'error BadArguments'],
    ['decommission', { args: { confirm: 'pi-08' } }, {}, 'error NotConfirmed'],
    ['decommission', { args: { confirm: 'pi-07' } }, {}, 'run'],
    ['resync', {}, byDefault, 'run'],
    ['resync', { args: { forgetLost: true } }, byDefault, 'denied VerbDenied'],
    ['resync', { args: { forgetLost: true } }, {}, 'run'],
  ];
  for (const [level, c, f, expected] of table) assert.equal(said(level, c, f), expected, `${level} ${JSON.stringify(c)}`);
});

test('who is asked for trust gets the command and the verb of its topic', () => {
  const seen: unknown[] = [];
  said('exec', { target: pod, args: { command: ['ls'] }, id: 'x' }, { distrusts: (c, verb) => void seen.push(c.id, verb) });
  assert.deepEqual(seen, ['x', 'exec']);
});

test('without a target everything that is about one pod is refused, and nothing else', () => {
  for (const verb of verbs) {
    const about = verbSpecs[verb].target === 'pod';
    assert.equal(said(verb, {}) === 'error TargetRequired', about, verb);
  }
});

test('a wrong argument is told with its path, an unknown verb with the nearest', () => {
  const wrong = judge('logs', command({ target: pod, args: { tailLines: '5' } }), facts);
  assert.ok(!wrong.run);
  assert.match(wrong.message, /^args\.tailLines: expected a whole number from 0 to 100000, got "5"$/);
  const near = judge('restrat', command(), facts);
  assert.ok(!near.run);
  assert.match(near.message, /did you mean restart/);
});
