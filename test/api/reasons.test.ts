import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { explainReason, reasonGroups } from '../../src/api/reasons.ts';

const docs = new URL('../../docs/reasons.md', import.meta.url);

function asMarkdown(): string {
  const parts = Object.entries(reasonGroups).map(([title, reasons]) => {
    const rows = Object.entries(reasons).map(([name, { meaning, remedy }]) => `| \`${name}\` | ${meaning} | ${remedy} |`);
    return [`## ${title}`, '', '| reason | what it means | what to do |', '|---|---|---|', ...rows, ''].join('\n');
  });
  return [
    '# Reasons',
    '',
    'What stands as `reason` in `sync` topics, pod statuses and conditions, and what to do about it. `podsched why` prints the remedy.',
    '',
    ...parts,
  ].join('\n');
}

test('docs/reasons.md is the table of src/api/reasons.ts (write it anew with UPDATE_DOCS=1)', () => {
  if (process.env.UPDATE_DOCS === '1') writeFileSync(docs, asMarkdown());
  assert.equal(readFileSync(docs, 'utf8'), asMarkdown());
});

test('no reason stands in two groups, and each has words', () => {
  const names = Object.values(reasonGroups).flatMap((g) => Object.keys(g));
  assert.equal(new Set(names).size, names.length);
  for (const name of names) {
    assert.match(name, /^[A-Z][A-Za-z0-9]+$/);
    const text = explainReason(name);
    assert.ok(text && text.meaning.length > 10 && text.remedy.length > 3, name);
    assert.ok(!`${text.meaning}${text.remedy}`.includes('|'), `${name}: a bar would break the table`);
  }
});

test('every reason that the agent gives has a remedy', () => {
  const root = new URL('../../src/', import.meta.url).pathname;
  const texts = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts') && !f.startsWith('cri/gen/'))
    .map((f) => readFileSync(`${root}${f}`, 'utf8'));
  const given = texts
    .flatMap((text) => [
      ...text.matchAll(/reason: '([A-Z]\w+)'|answer\((?:'\w+'|phase), '([A-Z]\w+)'|reason \?\? '([A-Z]\w+)'|'Warning', '([A-Z]\w+)'/g),
    ])
    .map((m) => m[1] ?? m[2] ?? m[3] ?? m[4] ?? '')
    // why a container is killed: never told as a reason, it is in the text of the event
    .filter((name) => !['Unknown', 'LivenessProbe', 'StartupProbe'].includes(name));
  assert.ok(given.length > 20);
  for (const name of given) assert.ok(explainReason(name), `${name} has no words in src/api/reasons.ts`);
});
