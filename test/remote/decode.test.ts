import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Decoded, decodeCommand, maxCommandBytes } from '../../src/remote/decode.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (text: string): Decoded => decodeCommand(bytes(text));
const decodeObject = (value: object): Decoded => decode(JSON.stringify(value));

test('nothing at all, an empty object and a plain Command are commands', () => {
  const empty = { as: 'command', command: { apiVersion: 'podsched.dev/v1', kind: 'Command', args: {} } };
  assert.deepEqual(decodeCommand(new Uint8Array()), empty);
  assert.deepEqual(decode('{}'), empty);
  assert.deepEqual(decode('{"apiVersion":"podsched.dev/v1","kind":"Command"}'), empty);
  assert.deepEqual(decode('{"id":null,"target":null,"args":null,"replyTo":null,"session":null}'), empty);
});

test('every known field is kept, every unknown one is left out', () => {
  const command = {
    apiVersion: 'podsched.dev/v1',
    kind: 'Command',
    id: 'a-1',
    target: { namespace: 'default', pod: 'cam.v2', container: 'app' },
    args: { tailLines: 5 },
    replyTo: 'podsched/v1/reply/ops/pi-07',
    session: 12,
    bootID: 'boot',
    node: 'pi-07',
    verb: 'logs',
  };
  assert.deepEqual(decodeObject({ ...command, later: 1, target: { ...command.target, more: {} } }), { as: 'command', command });
});

test('what is no command is refused with its place', () => {
  const table: readonly (readonly [payload: string, path: string, expected: RegExp])[] = [
    ['no json', '', /JSON/],
    ['{"a":', '', /JSON/],
    ['[]', '', /JSON/],
    ['null', '', /JSON/],
    ['"restart"', '', /JSON/],
    ['7', '', /JSON/],
    ['{"kind":"Pod"}', 'kind', /Command/],
    ['{"apiVersion":"podsched.dev/v2"}', 'apiVersion', /podsched\.dev\/v1/],
    ['{"id":7}', 'id', /text/],
    ['{"id":""}', 'id', /1 to 128/],
    ['{"id":"a b"}', 'id', /blanks/],
    [`{"id":"${'x'.repeat(129)}"}`, 'id', /128/],
    ['{"id":"a\\u0000"}', 'id', /printable/],
    ['{"replyTo":7}', 'replyTo', /topic/],
    [`{"replyTo":"${'x'.repeat(1025)}"}`, 'replyTo', /topic/],
    ['{"session":"1"}', 'session', /whole number/],
    ['{"session":1.5}', 'session', /whole number/],
    ['{"session":1e300}', 'session', /whole number/],
    ['{"bootID":7}', 'bootID', /text/],
    ['{"node":[]}', 'node', /text/],
    ['{"verb":"reboot"}', 'verb', /verb/],
    ['{"verb":{}}', 'verb', /verb/],
    ['{"args":[]}', 'args', /mapping/],
    ['{"args":"tail"}', 'args', /mapping/],
    ['{"target":"web"}', 'target', /mapping/],
    ['{"target":{"pod":7}}', 'target.pod', /text/],
    ['{"target":{"pod":"../etc"}}', 'target.pod', /a-z/],
    ['{"target":{"pod":".."}}', 'target.pod', /a-z/],
    ['{"target":{"pod":""}}', 'target.pod', /a-z/],
    [`{"target":{"pod":"${'x'.repeat(254)}"}}`, 'target.pod', /253/],
    ['{"target":{"namespace":"Kube.System"}}', 'target.namespace', /a-z/],
    ['{"target":{"container":"a/b"}}', 'target.container', /a-z/],
  ];
  for (const [payload, path, expected] of table) {
    const decoded = decode(payload);
    assert.equal(decoded.as, 'refused', payload);
    if (decoded.as !== 'refused') continue;
    assert.equal(decoded.problem.path, path, payload);
    assert.match(decoded.problem.expected, expected, payload);
    assert.ok(decoded.problem.got.length < 100, payload);
  }
});

test('a refusal still knows whom to answer', () => {
  const decoded = decodeObject({ id: 'x1', replyTo: 'podsched/v1/reply/ops/pi-07', target: 7 });
  assert.deepEqual(
    { ...decoded, problem: undefined },
    { as: 'refused', id: 'x1', replyTo: 'podsched/v1/reply/ops/pi-07', problem: undefined },
  );
});

test('bytes that are no UTF-8 are refused', () => {
  for (const hostile of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0x7b, 0x22, 0x80, 0x22, 0x3a, 0x31, 0x7d]]) {
    const decoded = decodeCommand(Uint8Array.from(hostile));
    assert.equal(decoded.as, 'refused');
    if (decoded.as === 'refused') assert.equal(decoded.problem.got, 'bytes that are no UTF-8');
  }
});

test('64 KiB are read and not one byte more; ten megabytes are not looked at', () => {
  const blank = (length: number): string => `{}${' '.repeat(length - 2)}`;
  assert.equal(decode(blank(maxCommandBytes)).as, 'command');
  assert.equal(decode(blank(maxCommandBytes + 1)).as, 'tooLarge');
  assert.equal(decodeCommand(new Uint8Array(10 << 20)).as, 'tooLarge');
});

test('what nests deep is refused before it is parsed; brackets in a text do not nest', () => {
  const nested = (depth: number): string => `{"args":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  const deep = decode(nested(30_000));
  assert.equal(deep.as, 'refused');
  if (deep.as === 'refused') assert.match(deep.problem.expected, /levels/);
  assert.equal(decode(`{"args":{"a":${'['.repeat(14)}1${']'.repeat(14)}}}`).as, 'command');
  assert.equal(decode(`{"args":{"a":${'['.repeat(15)}1${']'.repeat(15)}}}`).as, 'refused');
  assert.equal(decode(JSON.stringify({ args: { text: '[{'.repeat(1000), quoted: '"[\\"[' } })).as, 'command');
});

test('keys that reach for a prototype change nothing', () => {
  const decoded = decode('{"__proto__":{"id":"evil","verb":"exec"},"args":{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}}');
  assert.equal(decoded.as, 'command');
  if (decoded.as !== 'command') return;
  assert.equal(decoded.command.id, undefined);
  assert.equal(decoded.command.verb, undefined);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  assert.equal(decode('{"__proto__":null}').as, 'command');
  assert.equal(decode('{"target":{"__proto__":{"pod":"web"}}}').as, 'command');
  const target = decode('{"target":{"__proto__":{"pod":"web"}}}');
  if (target.as === 'command') assert.equal(target.command.target?.pod, undefined);
});

test('an envelope is seen as one, whatever is in it', () => {
  assert.equal(decodeObject({ payloadType: 'x', payload: '', signatures: [] }).as, 'envelope');
  assert.equal(decodeObject({ payloadType: 'x', payload: 7, signatures: [] }).as, 'command');
});
