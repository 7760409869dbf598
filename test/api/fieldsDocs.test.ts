import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Decoded, decodeObject, kinds } from '../../src/api/decode.ts';
import { fieldsOf } from '../../src/api/fields.ts';
import { supportTable } from '../../src/api/support.ts';
import { fieldsPage } from './fieldPages.ts';
import { answered, Prober, taken, valueAt } from './fieldProbe.ts';
import { beyondList, type FieldRow, fieldRows, pathOf, wordsOf } from './fieldRows.ts';

const docs = new URL('../../docs/fields.md', import.meta.url);
const rows = fieldRows();
const prober = new Prober(rows);

/** Rows that no small object made from the types can show, each with the reason. Kept tiny. */
const notGenerated: ReadonlyMap<string, string> = new Map([]);
const tried = rows.filter((row) => !notGenerated.has(row.place));

const said = (d: Decoded): string => JSON.stringify({ problems: d.problems, warnings: d.warnings });
/** What the plainest object is told, for the message of a failed test. */
const plainly = (row: FieldRow): string => {
  const raw = prober.plain(row, prober.valuesOf(row)[0]);
  return `${row.kind} ${row.place}: ${row.verdict.status} ${row.verdict.reason}\n${JSON.stringify(raw)}\n${said(decodeObject(raw, { strict: true }))}`;
};
const none = (list: readonly string[]): void => assert.equal(list.join('\n\n'), '');

test('docs/fields.md is what the field table and the support table say (write it anew with UPDATE_DOCS=1)', () => {
  const page = fieldsPage(rows);
  if (process.env.UPDATE_DOCS === '1') writeFileSync(docs, page);
  assert.ok(readFileSync(docs, 'utf8') === page, 'docs/fields.md is not what the tables say; UPDATE_DOCS=1 writes it');
});

test('every field of every type and every row of the support table is published', () => {
  const page = readFileSync(docs, 'utf8');
  const places = new Set(rows.map((r) => r.place));
  for (const place of supportTable.keys()) assert.ok(place === '' || place.endsWith('[]') || places.has(place), `${place} is in no row`);
  const types = new Set(rows.map((r) => r.owner));
  for (const type of types) {
    assert.ok(page.includes(`\n### ${type}\n`), `${type} has no section`);
    const section = page.split(`\n### ${type}\n`)[1]?.split('\n##')[0] ?? '';
    for (const name of fieldsOf(type).keys()) assert.match(section, new RegExp(`^\\| \`[^\`]*\\b${name}\``, 'm'), `${type}.${name}`);
  }
  assert.ok(types.size > 100 && rows.length > 1000);
  assert.ok(notGenerated.size <= 3);
});

test('each field set in a small object is judged as its row says', () => {
  const wrong: string[] = [];
  for (const row of tried) {
    const values = prober.valuesOf(row);
    if (values.length > 0 && prober.find(row, answered(row), values) === undefined) wrong.push(plainly(row));
  }
  none(wrong);
});

test('values that are called the same as absence are taken without a word', () => {
  const wrong: string[] = [];
  for (const row of tried) {
    if (row.verdict.by !== row.place || row.verdict.status === 'supported') continue;
    const values = (row.row.harmless ?? []).map((v) => (v === '{}' ? {} : v));
    for (const value of values) {
      const silent = (d: Decoded): boolean => d.object !== undefined && d.warnings.length === 0;
      if (prober.find(row, silent, [value]) === undefined) wrong.push(`${row.place}: ${JSON.stringify(value)} is not taken silently`);
    }
  }
  none(wrong);
});

test('the words of a supported field are taken, and no others', () => {
  const wrong: string[] = [];
  for (const row of tried) {
    if (row.verdict.status !== 'supported') continue;
    const all = row.shape.kind === 'enum' ? row.shape.values.filter((v) => v !== '') : [];
    const right = wordsOf(row) ?? [];
    const more = beyondList.get(`${row.owner}.${row.name}`)?.example;
    for (const value of [...right, ...(more === undefined ? [] : [more])])
      if (prober.find(row, taken(row), [value]) === undefined) wrong.push(`${row.place}: ${value} is not taken`);
    if (right.length === 0) continue;
    const others = [...all.filter((v) => !right.includes(v)), 'NoSuchWord'];
    for (const value of others) if (!refusedAt(row, value)) wrong.push(`${row.place}: ${value} is taken`);
  }
  none(wrong);
});

test('a supported field takes its own type only, and is missed where it is required', () => {
  const wrong: string[] = [];
  for (const row of tried) {
    if (row.verdict.status !== 'supported') continue;
    const another = ['struct', 'map', 'list'].includes(row.shape.kind) ? 'text' : {};
    if (row.shape.kind !== 'any' && !refusedAt(row, another)) wrong.push(`${row.place} takes ${JSON.stringify(another)}`);
    if (row.required && !refusedAt(row, undefined)) wrong.push(`${row.place} is not required`);
  }
  none(wrong);
});

test('the probes see a table that is wrong', () => {
  const of = (place: string): FieldRow => rows.find((r) => r.place === place) ?? assert.fail(place);
  const image = of('spec.containers[].image');
  const nodeName = of('spec.nodeName');
  const volumes = of('spec.ephemeralContainers');
  const claims: readonly (readonly [FieldRow, FieldRow['verdict']['status']])[] = [
    [image, 'refused'],
    [image, 'ignored'],
    [nodeName, 'supported'],
    [nodeName, 'refused'],
    [volumes, 'supported'],
    [volumes, 'ignored'],
  ];
  for (const [row, status] of claims) {
    const lie: FieldRow = { ...row, verdict: { ...row.verdict, status } };
    assert.equal(prober.find(lie, answered(lie)), undefined, `${row.place} passes for ${status}`);
  }
  const found = prober.find(image, answered(image));
  assert.equal(valueAt(found?.raw, image.place), 'x:1');
  assert.deepEqual(kinds, ['Pod', 'ConfigMap', 'Secret']);
});

function refusedAt(row: FieldRow, value: unknown): boolean {
  const { problems } = decodeObject(prober.plain(row, value), { strict: true });
  return problems.some((p) => p.path === pathOf(row.place));
}
