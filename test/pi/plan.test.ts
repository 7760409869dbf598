import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { imageKey } from './image.ts';
import { boots, planned } from './plan.ts';
import { junit, lines, results } from './report.ts';

const suites = (only: readonly string[], installed = false): string[][] => planned(only, installed).map((b) => [...b.suites]);

test('without a word all boots run, each suite once', () => {
  const all = boots.flatMap((b) => b.suites);
  assert.deepEqual(suites([]).flat(), all);
  assert.equal(new Set(all).size, all.length);
});

test('a word chooses suites, and what they need comes with them', () => {
  assert.deepEqual(suites(['devices']), [['install', 'devices']]);
  assert.deepEqual(suites(['devices'], true), [['devices']]);
  assert.deepEqual(suites(['eviction']), [['install', 'eviction']]);
  assert.deepEqual(suites(['reboot']), [['install', 'before-reboot'], ['reboot']]);
  assert.deepEqual(suites(['no-memory']), [['install'], ['no-memory']]);
  assert.deepEqual(suites(['nonsense']), []);
});

test('the limits of all boots together are below what the whole run may take', () => {
  assert.ok(boots.reduce((sum, b) => sum + b.minutes, 0) <= 35);
});

test('every suite of the plan is one that the guest has', () => {
  const main = readFileSync(new URL('guest/main.ts', import.meta.url), 'utf8');
  const files = [...main.matchAll(/from '(\.\/suite\w+\.ts)'/g)].map((m) =>
    readFileSync(new URL(`guest/${m[1]?.slice(2)}`, import.meta.url), 'utf8'),
  );
  const names = files.flatMap((text) => [...text.matchAll(/^(?: {2}name: |.*Suite = \{ name: )'([a-z-]+)'/gm)].map((m) => m[1]));
  assert.deepEqual(names.sort(), boots.flatMap((b) => b.suites).sort());
});

test('another package or another script is another image, another order is not', () => {
  assert.equal(imageKey(['a', 'b'], 'x'), imageKey(['b', 'a'], 'x'));
  assert.notEqual(imageKey(['a', 'b'], 'x'), imageKey(['a', 'c'], 'x'));
  assert.notEqual(imageKey(['a', 'b'], 'x'), imageKey(['a', 'b'], 'y'));
});

const told = [
  { kind: 'begin', suite: 'a' },
  { kind: 'check', suite: 'a', name: 'one', ms: 1500 },
  { kind: 'check', suite: 'a', name: 'two', ms: 10, error: 'x < y\nat z' },
  { kind: 'end', suite: 'a' },
  { kind: 'begin', suite: 'b' },
];
const diary = told.map((line) => `${JSON.stringify(line)}\n`).join('');

test('a line that is still being written is not read', () => {
  assert.equal(lines(`${diary}{"kind":"che`).length, told.length);
  assert.deepEqual(lines(''), []);
});

test('a suite that does not end has failed, whatever its checks say', () => {
  const found = results('first', ['a', 'b', 'c'], lines(diary), 'the boot took too long');
  assert.deepEqual(
    found.map((r) => [r.suite, r.name, r.error !== undefined]),
    [
      ['a', 'one', false],
      ['a', 'two', true],
      ['b', 'the suite ends', true],
      ['c', 'the suite ends', true],
    ],
  );
});

test('the report is XML with counts, and no text of a failure breaks it', () => {
  const xml = junit([
    ...results('first', ['a'], lines(diary), ''),
    { boot: 'again', suite: 'z', name: '"q" & \u0001', ms: 0, error: ']]> <b>' },
  ]);
  assert.match(xml, /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites tests="3" failures="2" time="1\.510">/);
  assert.match(xml, /<failure message="x &lt; y">x &lt; y\nat z<\/failure>/);
  assert.match(xml, /name="&quot;q&quot; &amp; \ufffd"/);
  assert.doesNotMatch(xml.replaceAll(/<\/?[a-z?][^<>]*>/g, ''), /[<>]/);
});
