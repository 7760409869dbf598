/** What the documentation says of the project is so: paths exist, tables agree with the data and with the tests. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type ConfigurationKey, configurationKeys } from '../../src/api/configuration.ts';
import { durationText } from '../../src/api/configurationValue.ts';

const root = new URL('../../', import.meta.url).pathname;
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const documents = ['README.md', ...readdirSync(`${root}docs`).map((f) => `docs/${f}`)].filter((f) => f.endsWith('.md'));
/** Made by the build. */
const built = new Set(['bundle/podsched.cjs']);

/** The cells of every table row of a text, heads and rules left out. */
const rows = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line, i, all) => line.startsWith('|') && !/^\|[\s|:-]+\|$/.test(line) && !/^\|[\s|:-]+\|$/.test(all[i + 1] ?? ''))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/`((?:src|test|docs|manifests|systemd|bundle)\/[\w./-]*)`/g)].map((m) => m[1] ?? '');

test('every path that README and docs name is there', () => {
  let named = 0;
  for (const document of documents) {
    const text = read(document);
    const folder = document.includes('/') ? 'docs/' : '';
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((m) => `${folder}${m[1]}`);
    for (const path of [...pathsIn(text), ...links]) {
      named++;
      assert.ok(built.has(path) || existsSync(`${root}${path}`), `${document} names ${path}`);
    }
  }
  assert.ok(named > 100);
});

test('each row of the pipeline names a file and a test, or says later', () => {
  const table = rows(read('docs/pipeline.md'));
  assert.ok(table.length > 40);
  for (const row of table) {
    const paths = pathsIn(row.join(' '));
    const [does, shown] = row.slice(-2);
    if (/later$/.test(does ?? '')) continue;
    assert.ok(
      paths.some((p) => p.startsWith('src/')),
      `no file: ${row.join(' | ')}`,
    );
    assert.ok(pathsIn(shown ?? '').length > 0, `no test: ${row.join(' | ')}`);
  }
});

test('all 93 field cases stand in the table, once and in order; each is in the tests it names, or says what it waits for', () => {
  const cases = rows(read('docs/testing.md')).filter((row) => /^[A-L]\d+$/.test(row[0] ?? ''));
  const ids = cases.map(([id = '']) => id);
  assert.equal(ids.length, 93);
  const rank = (id: string): number => id.charCodeAt(0) * 100 + Number(id.slice(1));
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => rank(a) - rank(b)),
  );
  for (const [id = '', , held = ''] of cases) {
    const files = pathsIn(held);
    assert.ok(files.length > 0 || /waits for: ./.test(held), id);
    for (const file of files) assert.match(read(file), new RegExp(`\\b${id}\\b`), `${file} does not name ${id}`);
  }
});

test('every case that a test names stands beside that test in the table', () => {
  const held = new Map(rows(read('docs/testing.md')).map(([id = '', , cell = '']) => [id, cell]));
  const tests = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.test.ts'));
  for (const file of tests) {
    for (const [, names = ''] of read(`test/${file}`).matchAll(/\btest\(\s*[`'"](?:field case )?((?:[A-L]\d{1,2}(?:, )?)+): /g)) {
      for (const id of names.split(', '))
        assert.ok(held.get(id)?.includes(`test/${file}`), `${file} holds ${id}, and docs/testing.md does not say so`);
    }
  }
});

function defaultText(key: ConfigurationKey): string {
  const value = key.default;
  if (key.kind === 'durationMs') return durationText(Number(value));
  if (key.kind === 'bytes') return `${Number(value) / 2 ** 20}Mi`;
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([k, v]) => `${k}: ${v}`)
      .join(', ');
  return String(value);
}

const kindTexts: Readonly<Record<ConfigurationKey['kind'], string>> = {
  string: 'text',
  bool: 'true or false',
  int: 'number',
  durationMs: 'duration',
  bytes: 'bytes',
  list: 'list',
  map: 'mapping',
  lists: 'mapping of lists',
  policy: 'policy',
};

test('docs/configuration.md has every key with its default, type, and when it takes effect', () => {
  // the tables of annotations, commands and paths have fewer columns
  const table = rows(read('docs/configuration.md')).filter((row) => row.length === 5);
  const expected = Object.entries(configurationKeys).map(([path, key]) => {
    const value = defaultText(key);
    const effect = key.later === true ? 'not yet' : key.live === true ? 'SIGHUP' : 'start';
    return [`\`${path}\``, value === '' ? 'none' : `\`${value}\``, key.oneOf?.join(', ') ?? kindTexts[key.kind], effect];
  });
  assert.deepEqual(
    table.map((row) => row.slice(0, 4)),
    expected,
  );
  for (const row of table) assert.ok((row[4] ?? '').length > 3, `${row[0]} has no words`);
});
