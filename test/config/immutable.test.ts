import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText } from '../../src/api/objects.ts';
import { problemText } from '../../src/api/problems.ts';
import { configMap, pod, type Rig, started } from './builders.ts';

const site = 'ConfigMap/default/site' as KeyText;
const text = (value: string, immutable: boolean): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\n${immutable ? 'immutable: true\n' : ''}data:\n  a: ${value}\n`;
const valueNow = (r: Rig): string | undefined => {
  const o = r.config.object(site);
  return o?.kind === 'ConfigMap' ? o.data?.a : undefined;
};
const said = (r: Rig) =>
  r.config
    .view()
    .objects.find((o) => o.key === site)
    ?.sources.map((s) => [s.phase, s.reason, s.message, ...s.problems.map((p) => problemText(p))]);

async function become(r: Rig, files: Readonly<Record<string, string>>): Promise<Rig> {
  r.folder.set(files);
  await r.config.readFolder();
  return r;
}

const mistake = (place: string, path: string, got: string): string =>
  `a.yaml:${place}: ${path}: expected what it was: the object is immutable; remove it and add it again, or add one of another name, got ${got}`;

test('a changed immutable ConfigMap is refused with its place, and the last good goes on, over agent restarts too', async () => {
  const r = await started({ 'a.yaml': text('one', true) });
  await become(r, { 'a.yaml': text('two', true) });
  const refused = [['Refused', 'Invalid', 'what was accepted of it last goes on', mistake('6:6', 'data[a]', 'another value')]];
  assert.deepEqual([valueNow(r), said(r)], ['one', refused]);
  assert.equal(r.events.filter((e) => e.reason === 'Invalid').length, 1);
  assert.match(r.events.at(-1)?.message ?? '', /the object is immutable/);
  await r.config.readFolder();
  assert.equal(r.events.filter((e) => e.reason === 'Invalid').length, 1);
  const again = await r.restart();
  await again.config.readFolder();
  assert.deepEqual([valueNow(again), said(again)], ['one', refused]);
});

test('the word cannot be taken back; written back, all is well', async () => {
  const r = await started({ 'a.yaml': text('one', true) });
  await become(r, { 'a.yaml': text('one', false) });
  assert.deepEqual(said(r)?.[0]?.[3], mistake('1:1', 'immutable', 'nothing'));
  await become(r, { 'a.yaml': text('one', true) });
  assert.deepEqual([valueNow(r), said(r)], ['one', [['Accepted', 'Accepted', '']]]);
});

test('removed and added again it is a new object; so is one of another file', async () => {
  const r = await started({ 'a.yaml': text('one', true) });
  await become(r, {});
  await become(r, { 'a.yaml': text('two', true) });
  assert.deepEqual([valueNow(r), said(r)], ['two', [['Accepted', 'Accepted', '']]]);
  await become(r, { 'b.yaml': text('three', true) });
  assert.deepEqual([valueNow(r), said(r)], ['three', [['Accepted', 'Accepted', '']]]);
});

test('what is immutable from now on may change with that, and what is beside it in the file goes on as it says', async () => {
  const r = await started({ 'a.yaml': text('one', false) });
  await become(r, { 'a.yaml': text('two', true) });
  assert.deepEqual([valueNow(r), said(r)], ['two', [['Accepted', 'Accepted', '']]]);
  await become(r, { 'a.yaml': [text('three', true), configMap('other', 'x'), pod('web')].join('---\n') });
  assert.equal(valueNow(r), 'two');
  const other = r.config.object('ConfigMap/default/other' as KeyText);
  assert.equal(other?.kind === 'ConfigMap' ? other.data?.a : undefined, 'x');
  assert.ok(r.config.object('Pod/default/web' as KeyText));
});

test('labels of an immutable object may change', async () => {
  const r = await started({ 'a.yaml': text('one', true) });
  await become(r, { 'a.yaml': text('one', true).replace('{name: site}', '{name: site, labels: {a: b}}') });
  assert.deepEqual(said(r), [['Accepted', 'Accepted', '']]);
  assert.deepEqual(r.config.object(site)?.metadata.labels, { a: 'b' });
});
