import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  nextLookMs,
  oldestToRemove,
  packable,
  parseLogName,
  planTidy,
  rotatedName,
  type TidyInputs,
} from '../../src/kuberuntime/logPlan.ts';

const t1 = '20260101-000001';
const t2 = '20260101-000002';
const t3 = '20260101-000003';
const t4 = '20260101-000004';
const files = (seen: Readonly<Record<string, number>>) => Object.entries(seen).map(([name, size]) => ({ name, size }));

test('names of logs are told from other files', () => {
  for (const [name, wanted] of [
    ['0.log', 'current 0  0.log'],
    [`12.log.${t1}`, `plain 12 ${t1} 12.log.${t1}`],
    [`12.log.${t1}-007`, `plain 12 ${t1}-007 12.log.${t1}-007`],
    [`12.log.${t1}.gz`, `packed 12 ${t1} 12.log.${t1}`],
    [`12.log.${t1}.tmp`, `temporary 12 ${t1} 12.log.${t1}`],
    [`12.log.${t1}.gz.tmp`, `temporary 12 ${t1} 12.log.${t1}`],
    ['3.log.old', 'plain 3  3.log.old'],
    ['01.log', undefined],
    ['x.log', undefined],
    ['1.logs', undefined],
    ['1.log.', undefined],
    ['.podsched', undefined],
    ['99999999999999999999.log', undefined],
  ] as const) {
    const p = parseLogName(name);
    assert.equal(p && `${p.kind} ${p.attempt} ${p.stamp} ${p.base}`, wanted, name);
  }
});

interface Row {
  readonly what: string;
  readonly files: Readonly<Record<string, number>>;
  readonly o?: Partial<Omit<TidyInputs, 'files' | 'live'>> & { readonly live?: readonly string[] };
  readonly remove?: readonly string[];
  readonly cut?: string;
  readonly left: number;
}

// cap: 3 × 100
const rows: readonly Row[] = [
  { what: 'under the cap nothing goes', files: { '0.log': 90, [`0.log.${t1}`]: 100, [`0.log.${t2}`]: 100 }, left: 290 },
  {
    what: 'over the cap the oldest part goes',
    files: { '0.log': 90, [`0.log.${t2}`]: 105, [`0.log.${t1}`]: 110 },
    remove: [`0.log.${t1}`],
    left: 195,
  },
  {
    what: 'more files than wanted go, however small they are',
    files: { '0.log': 1, [`0.log.${t1}.gz`]: 1, [`0.log.${t2}`]: 1, [`0.log.${t3}`]: 1, [`0.log.${t4}`]: 1 },
    remove: [`0.log.${t1}.gz`, `0.log.${t2}`],
    left: 3,
  },
  {
    what: 'attempts count together: a crash loop that writes 80 each time keeps three of them',
    files: { '4.log': 80, '5.log': 80, '6.log': 80, '7.log': 80 },
    o: { live: ['7.log'] },
    remove: ['4.log'],
    left: 240,
  },
  { what: 'attempts are numbers, not texts', files: { '9.log': 200, '10.log': 150 }, o: { live: [] }, remove: ['9.log'], left: 150 },
  {
    what: 'the parts of an older attempt go before its log, and both before the newer one’s',
    files: { [`1.log.${t4}`]: 100, '1.log': 100, [`2.log.${t1}`]: 100, '2.log': 90 },
    o: { live: ['2.log'] },
    remove: [`1.log.${t4}`],
    left: 290,
  },
  {
    what: 'the newest attempt’s log is never removed, but cut when nobody writes it',
    files: { '3.log': 900 },
    o: { live: [] },
    cut: '3.log',
    left: 100,
  },
  { what: 'what is written is not cut', files: { '3.log': 900 }, left: 900, o: { live: ['3.log'] } },
  {
    what: 'of a burst in one part the end is kept',
    files: { '0.log': 0, [`0.log.${t1}`]: 100, [`0.log.${t2}`]: 5000 },
    remove: [`0.log.${t1}`],
    cut: `0.log.${t2}`,
    left: 100,
  },
  {
    what: 'a part that is a little too large goes whole: cutting would write it anew',
    files: { '0.log': 195, [`0.log.${t1}`]: 110 },
    remove: [`0.log.${t1}`],
    left: 195,
  },
  { what: 'a packed part cannot be cut', files: { '0.log': 0, [`0.log.${t1}.gz`]: 500 }, remove: [`0.log.${t1}.gz`], left: 0 },
  {
    what: 'what a packing left over goes, and the plain file beside a packed one',
    files: { '0.log': 1, [`0.log.${t1}.tmp`]: 5, [`0.log.${t2}`]: 7, [`0.log.${t2}.gz`]: 2, [`0.log.${t3}`]: 3 },
    remove: [`0.log.${t1}.tmp`, `0.log.${t2}`],
    left: 6,
  },
  {
    what: 'a packing under way is left alone and counted',
    files: { '0.log': 1, [`0.log.${t1}`]: 100, [`0.log.${t1}.tmp`]: 50, [`0.log.${t2}`]: 100 },
    o: { packing: `0.log.${t1}` },
    left: 251,
  },
  {
    what: 'when its file goes, so does the packed copy',
    files: { '0.log': 100, [`0.log.${t1}`]: 100, [`0.log.${t1}.tmp`]: 50, [`0.log.${t2}`]: 100 },
    o: { packing: `0.log.${t1}` },
    remove: [`0.log.${t1}`, `0.log.${t1}.tmp`],
    left: 200,
  },
  { what: 'other files are neither counted nor removed', files: { '0.log': 1, notes: 5000 }, left: 1 },
  {
    what: 'a part with a name of another form is the oldest of its attempt',
    files: { '0.log': 100, '0.log.1': 100, [`0.log.${t1}`]: 101 },
    remove: ['0.log.1'],
    left: 201,
  },
];

for (const row of rows)
  test(`the cap: ${row.what}`, () => {
    const { live = ['0.log'], ...o } = row.o ?? {};
    const plan = planTidy({ files: files(row.files), live: new Set(live), maxSizeBytes: 100, maxFiles: 3, ...o });
    assert.deepEqual([...plan.remove], row.remove ?? []);
    assert.deepEqual(plan.cut, row.cut === undefined ? undefined : { name: row.cut, keepBytes: 100 });
    assert.equal(plan.leftBytes, row.left);
  });

test('any files: afterwards the cap holds, and there is nothing left to do', () => {
  let seed = 7;
  const random = (n: number): number => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % n;
  };
  for (let round = 0; round < 2000; round++) {
    const seen: Record<string, number> = {};
    for (let i = random(8); i >= 0; i--) {
      const attempt = random(4);
      const size = random(3) === 0 ? random(1000) : random(120);
      seen[random(2) === 0 ? `${attempt}.log` : `${attempt}.log.20260101-00000${random(9)}${random(2) === 0 ? '.gz' : ''}`] = size;
    }
    const maxFiles = 2 + random(3);
    const plan = planTidy({ files: files(seen), live: new Set(), maxSizeBytes: 100, maxFiles });
    assert.ok(plan.leftBytes <= 100 * maxFiles, JSON.stringify([seen, plan]));
    const left = { ...seen };
    for (const name of plan.remove) delete left[name];
    if (plan.cut) left[plan.cut.name] = plan.cut.keepBytes;
    assert.equal(
      Object.values(left).reduce((a, b) => a + b, 0),
      plan.leftBytes,
    );
    const again = planTidy({ files: files(left), live: new Set(), maxSizeBytes: 100, maxFiles });
    assert.deepEqual(again, { remove: [], leftBytes: plan.leftBytes }, 'once is enough');
  }
});

test('rotated names rise whatever the clock does', () => {
  for (const [stamp, seen, wanted] of [
    [t2, {}, `0.log.${t2}`],
    [t2, { [`0.log.${t1}.gz`]: 1 }, `0.log.${t2}`],
    [t2, { [`0.log.${t2}`]: 1 }, `0.log.${t2}-001`],
    [t2, { [`0.log.${t2}`]: 1, [`0.log.${t2}-001`]: 1 }, `0.log.${t2}-002`],
    [t1, { [`0.log.${t2}-009.gz`]: 1 }, `0.log.${t2}-010`],
    [t3, { [`0.log.${t2}-009`]: 1 }, `0.log.${t3}`],
    [t1, { [`0.log.${t2}-999`]: 1 }, `0.log.${t3}`],
    [t1, { [`1.log.${t4}`]: 1, '0.log.zz': 1 }, `0.log.${t1}`],
  ] as const) {
    const name = rotatedName('0.log', stamp, files(seen));
    assert.equal(name, wanted);
    const before = Object.keys(seen).flatMap((n) => (parseLogName(n)?.attempt === 0 ? (parseLogName(n)?.stamp ?? []) : []));
    assert.ok(before.every((s) => s < (parseLogName(name)?.stamp ?? '')));
  }
});

test('packed is all but the newest part of each attempt', () => {
  const seen = files({
    '0.log': 1,
    [`0.log.${t1}`]: 1,
    [`0.log.${t2}`]: 1,
    [`1.log.${t1}.gz`]: 1,
    [`1.log.${t2}`]: 1,
    [`1.log.${t3}`]: 1,
    '1.log.x': 1,
  });
  assert.deepEqual(packable(seen), [`1.log.${t2}`, `0.log.${t1}`]);
});

test('the first to make room is the oldest that may go', () => {
  const live = new Set(['1.log']);
  assert.equal(oldestToRemove(files({ '1.log': 1, '0.log': 1, [`1.log.${t1}`]: 1 }), live), '0.log');
  assert.equal(oldestToRemove(files({ '1.log': 1, [`1.log.${t1}.gz`]: 1 }), live), `1.log.${t1}.gz`);
  assert.equal(oldestToRemove(files({ '1.log': 1 }), live), undefined);
  assert.equal(oldestToRemove(files({ '1.log': 1 }), new Set()), undefined);
});

test('the next look comes before the log can be full, and a quiet one has none', () => {
  for (const [what, inputs, wanted] of [
    ['the first look', { roomBytes: 1e6, grown: undefined, logs: 1 }, 200],
    ['quiet', { roomBytes: 1e6, grown: { bytes: 0, ms: 1000 }, logs: 1 }, undefined],
    ['slow', { roomBytes: 1e6, grown: { bytes: 100, ms: 1000 }, logs: 1 }, 1000],
    ['slow, among many', { roomBytes: 1e6, grown: { bytes: 100, ms: 1000 }, logs: 50 }, 2500],
    ['slow, among very many', { roomBytes: 1e6, grown: { bytes: 100, ms: 1000 }, logs: 5000 }, 5000],
    ['full in a second', { roomBytes: 1e6, grown: { bytes: 1e6, ms: 1000 }, logs: 50 }, 500],
    ['a flood', { roomBytes: 1e6, grown: { bytes: 1e8, ms: 1000 }, logs: 1 }, 100],
    ['no room', { roomBytes: -5, grown: { bytes: 1, ms: 1000 }, logs: 1 }, 100],
  ] as const)
    assert.equal(nextLookMs(inputs), wanted, what);
});
