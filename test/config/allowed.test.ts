import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiObject, KeyText, Source } from '../../src/api/objects.ts';
import { again, denialOf, tooMany, withoutDenied } from '../../src/config/allowed.ts';
import type { Candidate, Entry, Wanted } from '../../src/config/merge.ts';
import type { PolicyPort, SignedWords } from '../../src/config/remoteWords.ts';

const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [] } } as ApiObject;
const candidate = (source: string, revision = '1', more: Partial<Candidate> = {}): Candidate => ({
  source: source as Source,
  revision,
  firstSeen: 'then',
  object,
  ...more,
});
const entry = (more: Partial<Entry> = {}): Entry => ({
  key: 'Pod/default/web' as KeyText,
  since: 'then',
  winner: 'mqtt:all',
  candidates: [candidate('mqtt:all'), candidate('file:a')],
  ...more,
});

// what is denied → candidates, running, good, given up of what is left
const without: readonly (readonly [claim: string, entry: Entry, denied: (c: Candidate) => boolean, left: string | undefined])[] = [
  ['nothing is denied', entry(), () => false, 'mqtt:all file:a'],
  ['one source', entry(), (c) => c.source === 'mqtt:all', 'file:a'],
  ['all of it', entry(), () => true, undefined],
  ['what runs', entry({ running: candidate('mqtt:all', 'old') }), (c) => c.revision === 'old', 'mqtt:all file:a'],
  ['what runs stays', entry({ running: candidate('mqtt:all', 'old') }), (c) => c.source === 'file:a', 'mqtt:all running old'],
  [
    'what would be gone back to',
    entry({ good: candidate('mqtt:all', 'old'), running: candidate('mqtt:all', 'old'), givenUp: { revision: '1', why: '' } }),
    (c) => c.revision === 'old',
    'mqtt:all file:a',
  ],
];
for (const [claim, of, denied, left] of without) {
  test(`an entry without what is denied: ${claim}`, () => {
    const kept = withoutDenied(of, denied)?.entry;
    const shown =
      kept &&
      [
        ...kept.candidates.map((c) => c.source),
        ...(kept.running ? [`running ${kept.running.revision}`] : []),
        ...(kept.good ? [`good ${kept.good.revision}`] : []),
        ...(kept.givenUp ? ['given up'] : []),
      ].join(' ');
    assert.equal(shown, left);
  });
}

const policy: PolicyPort = {
  requiresSignature: (source) => source === 'mqtt:node',
  judge: (_, { source }) => (source === 'mqtt:all' ? [{ path: 'spec', expected: 'nothing', got: 'x' }] : []),
  trust: ({ signed }) => (signed === 'gone' ? { reason: 'KeyUnknown', message: 'no such key' } : undefined),
};
const denials: readonly (readonly [claim: string, c: Candidate, reason: string | undefined])[] = [
  ['allowed', candidate('file:a'), undefined],
  ['denied by policy', candidate('mqtt:all'), 'PolicyDenied'],
  ['not signed where it must be', candidate('mqtt:node'), 'Unsigned'],
  ['signed', candidate('mqtt:node', '1', { signed: 'k' }), undefined],
  ['signed by a key that went', candidate('mqtt:node', '1', { signed: 'gone' }), 'KeyUnknown'],
  ['signed, and denied by policy', candidate('mqtt:all', '1', { signed: 'k' }), 'PolicyDenied'],
];
for (const [claim, c, reason] of denials) test(`denied: ${claim}`, () => assert.equal(denialOf(again(c, 'pi'), policy)?.reason, reason));

test('what was accepted is judged again with the words it came with', () => {
  const said: SignedWords[] = [];
  const port: PolicyPort = {
    trust: (words) => {
      said.push(words);
      return undefined;
    },
  };
  for (const [source, audience] of [
    ['mqtt:node', 'pi'],
    ['mqtt:group/cams', 'group:cams'],
    ['mqtt:all', '*'],
    ['file:a', 'pi'],
  ] as const) {
    denialOf(again(candidate(source, '1', { signed: 'k', generation: 4 }), 'pi'), port);
    assert.equal(said.at(-1)?.audience, audience);
    assert.equal(said.at(-1)?.generation, 4);
  }
});

/** `mqtt:all a 3`: a pod of that source, accepted at 3; without a number it is new. */
const pods = (...words: string[]): { wanted: Wanted[]; entries: Map<KeyText, Entry> } => {
  const entries = new Map<KeyText, Entry>();
  const wanted = words.map((word): Wanted => {
    const [source = '', name = '', since] = word.split(' ');
    const key = `Pod/default/${name}` as KeyText;
    const winner = candidate(source);
    if (since !== undefined) entries.set(key, entry({ key, since, winner: winner.source, candidates: [winner] }));
    return { key, winner, candidates: [winner] };
  });
  return { wanted, entries };
};
const limits: readonly (readonly [
  claim: string,
  pods: readonly string[],
  file: number | undefined,
  mqtt: number | undefined,
  beyond: string,
])[] = [
  ['no limit', ['mqtt:all a', 'file:x b'], undefined, undefined, ''],
  ['as many as may be', ['mqtt:all a', 'mqtt:node b'], undefined, 2, ''],
  ['the newest goes', ['mqtt:all a 3', 'mqtt:node b 1', 'mqtt:all c 2'], undefined, 2, 'a'],
  ['what is new comes last', ['mqtt:all a', 'mqtt:node b 1', 'mqtt:all c 2'], undefined, 2, 'a'],
  ['each kind of source for itself', ['file:x a 1', 'file:x b 2', 'mqtt:all c 1', 'mqtt:all d 2'], 1, 2, 'b'],
  ['none at all', ['mqtt:all a 1'], undefined, 0, 'a'],
];
for (const [claim, words, file, mqtt, beyond] of limits) {
  test(`maxPods: ${claim}`, () => {
    const { wanted, entries } = pods(...words);
    const gone = tooMany(wanted, entries, (of) => (of === 'file' ? file : mqtt));
    assert.equal(gone.map((w) => w.key.slice('Pod/default/'.length)).join(' '), beyond);
  });
}
