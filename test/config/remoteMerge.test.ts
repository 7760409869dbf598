import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject, KeyText, Source } from '../../src/api/objects.ts';
import {
  type Candidate,
  type Entry,
  isSame,
  mergeSources,
  type RemoteCandidate,
  type RemoteChanges,
  ranking,
  visibleTo,
} from '../../src/config/merge.ts';

const key = 'ConfigMap/default/a' as KeyText;
const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } } as ApiObject;
const candidate = (word: string): Candidate => {
  const [, source = '', revision = ''] = /^@?(.+):(\w+)$/.exec(word) ?? [];
  return { source: source as Source, revision, firstSeen: 'then', object };
};
const entry = (text: string): Map<KeyText, Entry> => {
  const words = text.split(' ').filter(Boolean);
  const won = words.find((w) => w.startsWith('@')) ?? words[0];
  if (won === undefined) return new Map();
  return new Map([[key, { key, since: 'then', winner: candidate(won).source, candidates: words.map(candidate) }]]);
};
/** `mqtt:all:2` says revision 2; `mqtt:all:-` says nothing any more. */
const changes = (text: string): RemoteChanges => {
  const of = new Map<Source, RemoteCandidate | undefined>();
  for (const word of text.split(' ').filter(Boolean)) {
    const { source, revision } = candidate(word);
    of.set(source, word.endsWith(':gone') ? undefined : { source, revision, object, hash: `h${revision}` });
  }
  return of.size === 0 ? new Map() : new Map([[key, of]]);
};
const groups = ['attic', 'cams'];
const shown = (before: string, said: string, locked = ''): string => {
  const rank = ranking(groups, (source) => locked !== '' && source.startsWith(locked));
  const [wanted] = mergeSources({ before: entry(before), files: undefined, remote: changes(said), rank, now: 'now' });
  return (wanted?.candidates ?? []).map((c) => `${c === wanted?.winner ? '@' : ''}${c.source}:${c.revision}`).join(' ');
};

const table: readonly (readonly [claim: string, before: string, said: string, after: string, locked?: string])[] = [
  ['a new object', '', 'mqtt:all:1', '@mqtt:all:1'],
  ['an edit', '@mqtt:all:1', 'mqtt:all:2', '@mqtt:all:2'],
  ['it is gone', '@mqtt:all:1', 'mqtt:all:gone', ''],
  ['nothing was said: missing is not deleted', '@mqtt:all:1', '', '@mqtt:all:1'],
  ['the node’s own topic wins over all', '@mqtt:all:1', 'mqtt:node:1', '@mqtt:node:1 mqtt:all:1'],
  ['the node’s own topic wins over a group', '@mqtt:group/cams:1', 'mqtt:node:2', '@mqtt:node:2 mqtt:group/cams:1'],
  ['a group wins over all', '@mqtt:all:1', 'mqtt:group/cams:2', '@mqtt:group/cams:2 mqtt:all:1'],
  ['the first group of the list wins', '@mqtt:group/cams:1', 'mqtt:group/attic:2', '@mqtt:group/attic:2 mqtt:group/cams:1'],
  [
    'a group that is not in the list comes last of the groups',
    '@mqtt:group/attic:1',
    'mqtt:group/zoo:2',
    '@mqtt:group/attic:1 mqtt:group/zoo:2',
  ],
  ['a file wins over all topics', '@file:a:1', 'mqtt:node:2', '@file:a:1 mqtt:node:2'],
  ['what is locked wins over a file', '@file:a:1', 'mqtt:all:2', 'file:a:1 @mqtt:all:2', 'mqtt:'],
  ['a locked file wins as before', '@mqtt:node:1 file:a:2', '', '@file:a:2 mqtt:node:1', 'file:'],
  ['the winner goes: the next one takes over', '@mqtt:node:1 mqtt:all:2', 'mqtt:node:gone', '@mqtt:all:2'],
  ['a weaker one goes: nothing is different', '@mqtt:node:1 mqtt:all:2', 'mqtt:all:gone', '@mqtt:node:1'],
  ['what was never there goes', '@mqtt:node:1', 'mqtt:all:gone', '@mqtt:node:1'],
];
for (const [claim, before, said, after, locked] of table) {
  test(`merge of topics: ${claim}`, () => {
    const sorted = (text: string): string[] => text.split(' ').sort();
    assert.deepEqual(sorted(shown(before, said, locked)), sorted(after));
  });
}

test('the folder was not read: what was accepted of files stays', () => assert.equal(shown('@file:a:1', ''), '@file:a:1'));

test('a last good of a broken file takes part only as long as policy allows it', () => {
  const broken = [{ name: 'a', objects: [], problems: [], warnings: [], refused: [], refusedKeys: [], whole: false, reason: 'Invalid' }];
  const merge = (allowed: boolean) =>
    mergeSources({ before: entry('@file:a:1'), files: broken, now: 'now', allowed: () => allowed })[0]?.candidates.length;
  assert.equal(merge(true), 1);
  assert.equal(merge(false), 0);
});

test('what could not be stored is what topics said last', () => {
  const pending = new Map([[key, { sources: [candidate('mqtt:all:2')] }]]);
  const [wanted] = mergeSources({ before: entry('@mqtt:all:1'), pending, files: undefined, now: 'now' });
  assert.equal(wanted?.winner?.revision, '2');
});

test('a counter or another spelling is worth a write, though nothing restarts', () => {
  const before: Entry = { key, since: 'then', winner: 'mqtt:all', candidates: [{ ...candidate('mqtt:all:1'), hash: 'a', generation: 1 }] };
  const same = (more: Partial<Candidate>) =>
    isSame(before, { key, candidates: before.candidates.map((c) => ({ ...c, ...more })), winner: { ...candidate('mqtt:all:1'), ...more } });
  assert.ok(same({}));
  assert.ok(!same({ generation: 2 }));
  assert.ok(!same({ hash: 'b' }));
  assert.ok(!same({ signed: 'k' }));
});

// candidates, who looks, whether others' may be read → what is seen
const sights: readonly (readonly [claim: string, of: string, source: Source, mayRead: boolean, seen: string | undefined])[] = [
  ['a file sees files', '@file:a:1 mqtt:all:2', 'file:b', false, 'file:a'],
  ['a topic sees topics, though a file wins', '@file:a:1 mqtt:all:2', 'mqtt:node', false, 'mqtt:all'],
  ['of topics the strongest', '@file:a:1 mqtt:node:2 mqtt:all:3', 'mqtt:all', false, 'mqtt:node'],
  ['of groups the first of the list', '@file:a:1 mqtt:group/cams:2 mqtt:group/attic:3', 'mqtt:all', false, 'mqtt:group/attic'],
  ['a topic does not see a file’s', '@file:a:1', 'mqtt:node', false, undefined],
  ['policy lets it', '@file:a:1', 'mqtt:node', true, 'file:a'],
  ['policy lets it, and there is an own one', '@file:a:1 mqtt:all:2', 'mqtt:node', true, 'mqtt:all'],
  ['policy lets a file see a topic’s', '@mqtt:all:2', 'file:a', true, 'mqtt:all'],
];
for (const [claim, of, source, mayRead, seen] of sights) {
  test(`sight: ${claim}`, () => {
    const known = entry(of).get(key);
    assert.ok(known !== undefined);
    assert.equal(visibleTo(known, source, ranking(groups), mayRead)?.source, seen);
  });
}
