import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deletedBy, type IndexPart, isMissing, type Listed, readIndex, wholeIndex } from '../../src/config/desiredIndex.ts';

const head = { apiVersion: 'podsched.dev/v1', kind: 'DesiredIndex' };
const entry = { kind: 'Pod', ns: 'default', name: 'web', sha256: '0123456789abcdef' };

test('an index is read with its entries and their generations; unknown fields and unknown kinds are passed over', () => {
  const read = readIndex({
    ...head,
    generation: 3,
    extra: 1,
    entries: [
      { ...entry, generation: 7 },
      { ...entry, kind: 'Deployment', more: true },
    ],
  });
  assert.deepEqual(read, {
    ok: true,
    part: {
      generation: 3,
      parts: 1,
      entries: [{ key: { kind: 'Pod', namespace: 'default', name: 'web' }, sha256: entry.sha256, generation: 7 }],
    },
  });
});

// what arrived → the path that is told
const bad: readonly (readonly [claim: string, value: unknown, path: string])[] = [
  ['no object', [], ''],
  ['nothing', null, ''],
  ['another kind', { ...head, kind: 'NodeConfig', generation: 1, entries: [] }, 'kind'],
  ['another version', { ...head, apiVersion: 'podsched.dev/v2', generation: 1, entries: [] }, 'apiVersion'],
  ['no generation', { ...head, entries: [] }, 'generation'],
  ['a falling generation below zero', { ...head, generation: -1, entries: [] }, 'generation'],
  ['a broken number', { ...head, generation: 1.5, entries: [] }, 'generation'],
  ['no entries', { ...head, generation: 1 }, 'entries'],
  ['too many entries', { ...head, generation: 1, entries: Array.from({ length: 1001 }, () => entry) }, 'entries'],
  ['too many parts', { ...head, generation: 1, parts: 101, entries: [] }, 'parts'],
  ['no part at all', { ...head, generation: 1, parts: 0, entries: [] }, 'parts'],
  ['an entry that is a text', { ...head, generation: 1, entries: ['web'] }, 'entries[0]'],
  ['a hash that is none', { ...head, generation: 1, entries: [{ ...entry, sha256: 'ABC' }] }, 'entries[0].sha256'],
  ['a name with a wildcard, which would be asked for', { ...head, generation: 1, entries: [{ ...entry, name: '+' }] }, 'entries[0].name'],
  ['a namespace with a slash', { ...head, generation: 1, entries: [{ ...entry, ns: 'a/b' }] }, 'entries[0].ns'],
  ['a name that goes up', { ...head, generation: 1, entries: [{ ...entry, name: '..' }] }, 'entries[0].name'],
  ['a name that is none', { ...head, generation: 1, entries: [entry, { ...entry, name: 5 }] }, 'entries[1].name'],
  ['an empty namespace', { ...head, generation: 1, entries: [{ ...entry, ns: '' }] }, 'entries[0].ns'],
  ['a generation that is text', { ...head, generation: 1, entries: [{ ...entry, generation: '1' }] }, 'entries[0].generation'],
];
for (const [claim, value, path] of bad) {
  test(`an index is refused as a whole: ${claim}`, () => {
    const read = readIndex(value);
    assert.ok(!read.ok);
    assert.equal(read.problems[0]?.path, path);
  });
}

const listed = (name: string): Listed => ({ key: { kind: 'Pod', namespace: 'default', name }, sha256: entry.sha256 });
const part = (generation: number, parts: number, ...names: string[]): IndexPart => ({ generation, parts, entries: names.map(listed) });

// parts by number → names of the whole, or what is missing
const wholes: readonly (readonly [claim: string, parts: readonly (readonly [number, IndexPart])[], names: string | undefined])[] = [
  ['one part', [[0, part(1, 1, 'a')]], 'a'],
  ['no part', [], undefined],
  [
    'all parts',
    [
      [0, part(2, 2, 'a')],
      [1, part(2, 2, 'b')],
    ],
    'a b',
  ],
  ['a part is not here', [[0, part(2, 2, 'a')]], undefined],
  [
    'a part is of an older generation',
    [
      [0, part(2, 2, 'a')],
      [1, part(1, 2, 'b')],
    ],
    undefined,
  ],
  ['the first is not here', [[1, part(2, 2, 'b')]], undefined],
  [
    'the parts count differently',
    [
      [0, part(2, 2, 'a')],
      [1, part(2, 3, 'b')],
    ],
    undefined,
  ],
  [
    'more parts stand there than it has',
    [
      [0, part(3, 1, 'a')],
      [1, part(2, 2, 'b')],
    ],
    'a',
  ],
];
for (const [claim, parts, names] of wholes) {
  test(`whole index: ${claim}`, () => {
    const whole = wholeIndex(new Map(parts));
    assert.equal(whole?.entries.map((e) => e.key.name).join(' '), names);
  });
}

const topics = ['a', 'b', 'c'].map((topic) => ({ topic }));
// generation, what was followed last, what it lists → what goes
const deletions: readonly (readonly [claim: string, generation: number, followed: number | undefined, lists: string, gone: string])[] = [
  ['the first one', 1, undefined, 'a b', 'c'],
  ['a newer one', 5, 4, 'a', 'b c'],
  ['the same again deletes nothing', 4, 4, 'a', ''],
  ['an older one deletes nothing', 3, 4, '', ''],
  ['one that lists all', 5, 4, 'a b c d', ''],
  ['an empty one', 5, 4, '', 'a b c'],
];
for (const [claim, generation, followed, lists, gone] of deletions) {
  test(`what an index deletes: ${claim}`, () => {
    const index = { generation, topics: new Set(lists.split(' ')) };
    assert.equal(
      deletedBy(index, followed, topics)
        .map((t) => t.topic)
        .join(' '),
      gone,
    );
  });
}

// what is listed, what was received → missing
const missing: readonly (readonly [claim: string, l: Parameters<typeof isMissing>[0], r: Parameters<typeof isMissing>[1], is: boolean])[] =
  [
    ['nothing was received', { sha256: 'x' }, undefined, true],
    ['it was received', { sha256: 'x' }, { hash: 'x' }, false],
    ['another was received', { sha256: 'x' }, { hash: 'y' }, true],
    ['an older one was received', { sha256: 'x', generation: 3 }, { hash: 'y', generation: 2 }, true],
    ['a newer one was received: the index follows', { sha256: 'x', generation: 3 }, { hash: 'y', generation: 4 }, false],
    ['it is to be read again', { sha256: 'x' }, {}, true],
  ];
for (const [claim, l, r, is] of missing) test(`missing: ${claim}`, () => assert.equal(isMissing(l, r), is));
