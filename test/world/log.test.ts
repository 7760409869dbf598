import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog, describeError, formatLine, type LogOptions } from '../../src/world/log.ts';

function lines(format: LogOptions['format'], level: LogOptions['level'] = 'info') {
  const out: string[] = [];
  return { out, ...createLog({ level, format }, (line) => out.push(line)) };
}

test('an error is told with its causes in one line; what is no error as text', () => {
  const deep = new Error('pod web cannot start', { cause: new Error('no image', { cause: 'offline' }) });
  assert.equal(describeError(deep), 'pod web cannot start: no image: offline');
  assert.equal(describeError(new Error('alone')), 'alone');
  assert.equal(describeError(7), '7');
});

test('a cause that says the same in its own wrapping is not repeated', () => {
  const wrapped = new Error('connection refused', { cause: new Error('14 UNAVAILABLE: connection refused') });
  assert.equal(describeError(wrapped), 'connection refused');
  assert.equal(describeError(new Error('', { cause: new Error('why') })), 'why');
});

test('nothing that others wrote begins a line of its own or speaks to the terminal', () => {
  const json = JSON.stringify({ level: 40, time: 't', file: 'a\u001b[2J\u009b.yaml', reason: 'x\n<0>evil', msg: 'of\nfile' });
  for (const format of ['text', 'journal'] as const) {
    const line = formatLine(json, format);
    assert.equal(line.indexOf('\n'), line.length - 1);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them
    assert.doesNotMatch(line.slice(0, -1), /[\x00-\x1f\x7f-\x9f]/);
  }
});

test('a line of text: time, level, sentence, then the nouns, quoted where they need it', () => {
  const json = '{"level":40,"time":"2026-01-01T10:20:30.456Z","pod":"web","why":"no image","n":3,"msg":"a pod waits"}';
  assert.equal(formatLine(json, 'text'), '10:20:30.456 WARN  a pod waits pod=web why="no image" n=3\n');
  assert.equal(formatLine(json, 'journal'), '<4>a pod waits pod=web why="no image" n=3\n');
});

test('the journal gets its priorities', () => {
  const { out, log } = lines('journal', 'debug');
  log.debug({}, 'd');
  log.info({}, 'i');
  log.warn({}, 'w');
  log.error({}, 'e');
  assert.deepEqual(out, ['<7>d\n', '<6>i\n', '<4>w\n', '<3>e\n']);
});

test('JSON keeps the nouns apart, and a child carries its own', () => {
  const { out, log } = lines('json');
  log.child({ pod: 'web' }).error({ error: new Error('x', { cause: new Error('y') }) }, 'failed');
  const { time, ...line } = JSON.parse(out[0] ?? '') as Record<string, unknown>;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual(line, { level: 50, pod: 'web', error: 'x: y', msg: 'failed' });
});

test('the level can be changed while running', () => {
  const { out, log, setLevel } = lines('text', 'warn');
  log.info({}, 'unheard');
  setLevel('info');
  log.info({}, 'heard');
  assert.equal(out.length, 1);
});
