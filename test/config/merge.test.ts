import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject, KeyText, Source } from '../../src/api/objects.ts';
import type { DecodedFile } from '../../src/config/decode.ts';
import { type Entry, isSame, mergeSources, pickWinner } from '../../src/config/merge.ts';

const key = 'ConfigMap/default/a' as KeyText;
const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } } as ApiObject;

/** `a:1 b:2` → candidates of file:a at revision 1 …; `@` before one marks the winner. `mqtt:…` stays as it is. */
const parse = (text: string): { source: Source; revision: string; won: boolean }[] =>
  text
    .split(' ')
    .filter(Boolean)
    .map((word) => {
      const [, at, source, revision] = /^(@?)(.+):(\w+)$/.exec(word) ?? [];
      const full = source?.startsWith('mqtt') ? source : `file:${source}`;
      return { source: full as Source, revision: revision ?? '', won: at === '@' };
    });
const entryOf = (text: string): Map<KeyText, Entry> => {
  const list = parse(text);
  const winner = list.find((c) => c.won)?.source ?? list[0]?.source;
  if (winner === undefined) return new Map();
  const candidates = list.map(({ source, revision }) => ({ source, revision, firstSeen: 'then', object }));
  return new Map([[key, { key, since: 'then', winner, candidates }]]);
};
/** `a:1`: the file says revision 1. `a:`: it says nothing. `a:?`: it is broken and says nothing that can be read. `a:1?`: broken elsewhere. */
const filesOf = (text: string): DecodedFile[] =>
  text
    .split(' ')
    .filter(Boolean)
    .map((word) => {
      const [, name = '', revision = '', broken = ''] = /^(\w+):(\w*)(\??)$/.exec(word) ?? [];
      return {
        name,
        objects: revision === '' ? [] : [{ key, object, revision, warnings: [], index: 0 }],
        problems: [],
        warnings: [],
        refused: [],
        refusedKeys: [],
        whole: broken === '',
        reason: 'Invalid' as const,
      };
    });
const shown = (before: string, files: string): string => {
  const wanted = mergeSources({ before: entryOf(before), files: filesOf(files), now: 'now' })[0];
  return (wanted?.candidates ?? [])
    .map((c) => `${c === wanted?.winner ? '@' : ''}${c.source.replace('file:', '')}:${c.revision}`)
    .join(' ');
};

const table: readonly (readonly [before: string, files: string, after: string, claim: string])[] = [
  ['', '', '', 'nothing is nothing'],
  ['', 'a:1', '@a:1', 'a new object'],
  ['', 'b:1 a:2', '@a:2 b:1', 'cold start: the first file by name'],
  ['@a:1', 'a:1', '@a:1', 'the same'],
  ['@a:1', 'a:2', '@a:2', 'an edit'],
  ['@a:1', '', '', 'the file is absent'],
  ['@a:1', 'a:', '', 'the whole file does not name it any more'],
  ['@a:1', 'a:?', '@a:1', 'a broken file keeps the last good'],
  ['@a:1', 'a:2?', '@a:2', 'broken elsewhere: what is good counts'],
  ['@a:1', 'b:1', '@b:1', 'renamed'],
  ['@a:1', 'b:2', '@b:2', 'renamed and edited'],
  ['@a:1', 'b:?', '', 'a broken file keeps only what was its own'],
  ['@a:1', 'a:1 b:2', '@a:1 b:2', 'a second file is shadowed'],
  ['@b:1', 'a:2 b:1', 'a:2 @b:1', 'the one that runs goes on, whatever the names'],
  ['a:2 @b:1', 'a:2 b:3', 'a:2 @b:3', 'and takes its own edits'],
  ['a:2 @b:1', 'a:2 b:?', 'a:2 @b:1', 'its last good still wins'],
  ['a:2 @b:1', 'a:2', '@a:2', 'the other takes over'],
  ['a:2 @b:1', 'a:? ', '@a:2', 'even from its own last good'],
  ['a:2 @b:1', 'a:2 c:1', 'a:2 @c:1', 'renamed: who says the same comes before who comes first'],
  ['a:2 @b:1', 'a:2 c:1 d:1', 'a:2 @c:1 d:1', 'of two who say the same the first'],
  ['@mqtt:node:1', '', '@mqtt:node:1', 'the folder says nothing of topics'],
  ['@mqtt:node:1', 'a:2', '@a:2 mqtt:node:1', 'a file wins over a topic'],
  ['@a:2 mqtt:node:1', '', '@mqtt:node:1', 'the topic takes over'],
  ['@mqtt:all:1 mqtt:node:2', '', '@mqtt:node:2 mqtt:all:1', 'the node topic wins over all'],
];
for (const [before, files, after, claim] of table) {
  test(`merge: ${claim} (before "${before}", folder "${files}")`, () => assert.equal(shown(before, files), after));
}

test('first-seen times stay with the revision', () => {
  const [same] = mergeSources({ before: entryOf('@a:1'), files: filesOf('a:1'), now: 'now' });
  assert.equal(same?.winner?.firstSeen, 'then');
  const [edited] = mergeSources({ before: entryOf('@a:1'), files: filesOf('a:2'), now: 'now' });
  assert.equal(edited?.winner?.firstSeen, 'now');
});

test('isSame: only what the checkpoint would hold counts', () => {
  const entry = entryOf('@a:1 b:2').get(key);
  const wanted = (before: string, files: string) => mergeSources({ before: entryOf(before), files: filesOf(files), now: 'now' })[0];
  assert.ok(isSame(entry, wanted('@a:1 b:2', 'a:1 b:2') ?? { key, candidates: [] }));
  assert.ok(!isSame(entry, wanted('@a:1 b:2', 'a:1 b:3') ?? { key, candidates: [] }));
  assert.ok(!isSame(entry, wanted('@a:1 b:2', 'a:1') ?? { key, candidates: [] }));
  assert.ok(isSame(undefined, { key, candidates: [] }));
});

test('pickWinner of nobody is nobody', () => assert.equal(pickWinner(undefined, []), undefined));
