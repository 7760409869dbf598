import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLine } from '../../src/container/logLine.ts';
import { fixedTime, LogRenderer, nanosOf, type RenderOptions } from '../../src/operations/criLog.ts';

const at = '2026-01-01T00:00:00.5Z';

for (const [claim, line, wanted] of [
  ['a whole line keeps its newline', `${at} stdout F hello world\n`, ['stdout', false, 'hello world\n']],
  ['a part loses the newline of the file', `${at} stderr P hel\n`, ['stderr', true, 'hel']],
  ['more tags follow after a colon', `${at} stdout P:x:y hel\n`, ['stdout', true, 'hel']],
  ['an empty line is a line', `${at} stdout F \n`, ['stdout', false, '\n']],
  ['a line that was cut off has what is there', `${at} stdout F hel`, ['stdout', false, 'hel']],
  ['a time of a zone with nine places', '2026-01-01T00:00:00.123456789+01:00 stdout F x\n', ['stdout', false, 'x\n']],
  ['content may look like a line', `${at} stdout F ${at} stdout P x\n`, ['stdout', false, `${at} stdout P x\n`]],
  ['no content at all', `${at} stdout F\n`, undefined],
  ['no time', 'hello stdout F x\n', undefined],
  ['a time that is none', '2026-13-41T00:00:00Z stdout F x\n', undefined],
  ['another stream', `${at} stdin F x\n`, undefined],
  ['the JSON of docker', '{"log":"x\\n","stream":"stdout","time":"2026-01-01T00:00:00Z"}\n', undefined],
  ['what a power cut leaves', `${'\0'.repeat(200)}\n`, undefined],
  ['tags without end', `${at} stdout ${'F'.repeat(200)} x\n`, undefined],
  ['nothing', '', undefined],
] as const) {
  test(`a line of a log: ${claim}`, () => {
    const line_ = parseLine(Buffer.from(line));
    assert.deepEqual(line_ && [line_.stream, line_.partial, line_.content.toString()], wanted);
  });
}

test('times are printed with nine places, and compared to the nanosecond', () => {
  assert.equal(fixedTime('2026-01-01T00:00:00Z'), '2026-01-01T00:00:00.000000000Z');
  assert.equal(fixedTime('2026-01-01T00:00:00.12+01:00'), '2026-01-01T00:00:00.120000000+01:00');
  assert.equal(nanosOf('1970-01-01T01:00:01.000000007+01:00'), 1_000_000_007n);
  assert.equal(nanosOf('yesterday'), undefined);
});

const rendered = (o: Partial<RenderOptions>, ...lines: readonly string[]): string => {
  const out = new LogRenderer({ timestamps: false, ...o });
  for (const line of lines) out.add(Buffer.from(`${line}\n`));
  return out.take().toString();
};

test('parts are joined, and only the first of them has a time before it', () => {
  const lines = [`${at} stdout P ab`, `${at} stdout P cd`, `${at} stdout F ef`, `${at} stdout F `, `${at} stdout F gh`];
  assert.equal(rendered({}, ...lines), 'abcdef\n\ngh\n');
  const shown = '2026-01-01T00:00:00.500000000Z';
  assert.equal(rendered({ timestamps: true }, ...lines), `${shown} abcdef\n${shown} \n${shown} gh\n`);
});

test('lines that are none and lines before the time asked for are left out', () => {
  const lines = [
    '2026-01-01T00:00:00.999999999Z stdout F early',
    'garbage',
    '2026-01-01T00:00:01Z stdout F just',
    '2026-01-01T00:00:02Z stdout F late',
  ];
  assert.equal(rendered({ sinceNanos: nanosOf('2026-01-01T00:00:01Z') ?? 0n }, ...lines), 'just\nlate\n');
});

test('the limit is in bytes, times included, and ends in the middle of a line', () => {
  const out = new LogRenderer({ timestamps: false, limitBytes: 4 });
  out.add(Buffer.from(`${at} stdout F abc\n`));
  assert.equal(out.full, true);
  out.add(Buffer.from(`${at} stdout F def\n`));
  assert.equal(out.take().toString(), 'abc\n');
  assert.equal(rendered({ limitBytes: 32, timestamps: true }, `${at} stdout F abc`), '2026-01-01T00:00:00.500000000Z a');
});

test('bytes that are no text pass as they are', () => {
  const out = new LogRenderer({ timestamps: false });
  const bytes = Buffer.from([0xff, 0x00, 0x1b, 0x80, 0x0d]);
  out.add(Buffer.concat([Buffer.from(`${at} stdout F `), bytes, Buffer.from('\n')]));
  assert.deepEqual(out.take(), Buffer.concat([bytes, Buffer.from('\n')]));
});
