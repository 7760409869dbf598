import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocuments, toYaml } from '../../src/config/yaml.ts';
import { cpuMs } from '../until.ts';

const one = (text: string): unknown => {
  const { documents, problems } = parseDocuments(text);
  assert.deepEqual(problems, [], text);
  assert.equal(documents.length, 1, text);
  return documents[0]?.value;
};
const refused = (text: string): { path: string; expected: string; got: string; line?: number; column?: number } => {
  const { documents, problems } = parseDocuments(text);
  assert.equal(documents.length, 0, text);
  const [first] = problems;
  assert.ok(first, text);
  return first;
};

/** How it is written after `v: `, and what Kubernetes reads. */
const spellings: readonly (readonly [string, unknown])[] = [
  // modes (field case B1) and other octals
  ['0644', 420],
  ['0o644', 420],
  ['0O17', 15],
  ['-0644', -420],
  ['00', 0],
  ['644', 644],
  ['08', 8],
  ['0999', 999],
  ['0_7', 7],
  ['0o8', '0o8'],
  // other bases, signs, underscores
  ['0x1F', 31],
  ['0X1f', 31],
  ['-0x1F', -31],
  ['0x', '0x'],
  ['0b11', 3],
  ['-0b11', -3],
  ['0b12', '0b12'],
  ['1_000', 1000],
  ['_1000', '_1000'],
  ['+1', 1],
  ['-0', 0],
  ['-', [null]],
  ['+', '+'],
  // floats
  ['1e3', 1000],
  ['1E3', 1000],
  ['1e-3', 0.001],
  ['1e', '1e'],
  ['.5', 0.5],
  ['5.', 5],
  ['+.5', 0.5],
  ['1.10', 1.1],
  ['1_000.5', 1000.5],
  ['1e400', '1e400'],
  ['18446744073709551616', 2 ** 64],
  ['1.2.3', '1.2.3'],
  // no base 60, no dates
  ['12:30', '12:30'],
  ['12:30:45', '12:30:45'],
  ['190:20:30.15', '190:20:30.15'],
  ['2024-01-01', '2024-01-01'],
  ['2024-01-01T12:30:00Z', '2024-01-01T12:30:00Z'],
  ['2024-1-1 1:2:3', '2024-1-1 1:2:3'],
  // booleans in their capitalisations
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON', 'true', 'True', 'TRUE'].map((w) => [w, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF', 'false', 'False', 'FALSE'].map((w) => [w, false] as const),
  ['yEs', 'yEs'],
  ['tRUE', 'tRUE'],
  ['yes please', 'yes please'],
  // null
  ['~', null],
  ['null', null],
  ['Null', null],
  ['NULL', null],
  ['', null],
  ['nULL', 'nULL'],
  // quotes and tags
  ['"0644"', '0644'],
  ["'yes'", 'yes'],
  ['"~"', '~'],
  ['""', ''],
  ['!!str 0644', '0644'],
  ['!!str', ''],
  ['! 5', '5'],
  ['!!int "5"', 5],
  ['!!float 1', 1],
  ['!!bool yes', true],
  ['!!binary aGFsbG8=', 'hallo'],
  ['!mine 5', '5'],
  ['"\\x41\\u263a\\n"', 'A☺\n'],
  // more than one line
  ['|\n  08\n  yes\n', '08\nyes\n'],
  ['|-\n  08\n', '08'],
  ['>\n  a\n  b\n', 'a b\n'],
  ['12\n  30', '12 30'],
  ['"a\n  b"', 'a b'],
  // signs that mean nothing here
  ['=', '='],
  ['10m', '10m'],
  ['64Mi', '64Mi'],
  ['1,000', '1,000'],
  ['a#b', 'a#b'],
  ['5 # five', 5],
];

test('the table of spellings has at least 60, none twice', () => {
  assert.ok(spellings.length >= 60);
  assert.equal(new Set(spellings.map(([s]) => s)).size, spellings.length);
});
for (const [written, meaning] of spellings) {
  test(`spelling ${JSON.stringify(written)} means ${JSON.stringify(meaning)}`, () => {
    const text = written === '-' ? 'v:\n-' : `v: ${written}`;
    assert.deepEqual(one(`${text}\n`), { v: meaning });
    if (!written.includes('\n') && written !== '-' && !written.includes(','))
      assert.deepEqual(one(`{v: ${written}\n}`), { v: meaning }, 'the same inside braces');
  });
}

for (const written of ['.nan', '.NaN', '.inf', '-.Inf', '+.INF', '!!int abc', '!!bool 5', '!!null x', '!!int 1.5']) {
  test(`spelling ${written} is refused, as JSON has no such value`, () => {
    const problem = refused(`a: 1\nv: ${written}\n`);
    assert.equal(problem.path, 'v');
    assert.equal(problem.line, 2);
  });
}

test('keys are texts: numbers and booleans become what Kubernetes makes of them, null and lists are refused', () => {
  assert.deepEqual(one('1: a\n0x10: b\non: d\n"yes": e\n1.5: f\n'), { 1: 'a', 16: 'b', true: 'd', yes: 'e', 1.5: 'f' });
  assert.equal(refused('~: a\n').got, 'null');
  assert.equal(refused('? [a]\n: b\n').got, 'a list');
  assert.equal(refused('on: a\ntrue: b\n').got, 'twice: line 1 and line 2');
});

test('a duplicate key is refused with both lines', () => {
  const problem = refused('spec:\n  containers:\n  - name: a\n    env: []\n    image: x\n    env: []\n');
  assert.deepEqual(problem, {
    path: 'spec.containers[0].env',
    expected: 'each key once',
    got: 'twice: line 4 and line 6',
    line: 6,
    column: 5,
  });
});

test('merge keys: the own key wins wherever it stands, of several maps the earlier, and nothing counts as a duplicate', () => {
  const text = 'a: &a {x: 1, w: 1}\nb: &b {w: 2, z: 2}\nc:\n  w: 9\n  <<: [*a, *b]\nd:\n  <<: *b\n  z: 9\n"<<": text\n';
  assert.deepEqual(one(text), { a: { x: 1, w: 1 }, b: { w: 2, z: 2 }, c: { x: 1, w: 9, z: 2 }, d: { w: 2, z: 9 }, '<<': 'text' });
  assert.match(refused('a: &a 5\nb:\n  <<: *a\n').expected, /to merge/);
});

test('anchors: a later one of the same name counts from there on; unknown and endless ones are refused', () => {
  assert.deepEqual(one('a: &x 1\nb: *x\nc: &x 2\nd: *x\n'), { a: 1, b: 1, c: 2, d: 2 });
  assert.equal(refused('a: *x\nb: &x 1\n').got, 'an alias that has none');
  assert.match(refused('a: &x [*x]\n').got, /contains itself/);
  assert.deepEqual(one('&k key: 1\nb: *k\n'), { key: 1, b: 'key' });
});

test('what may be a password without its quotes is not repeated', () => {
  for (const text of ['*canary', '!!int canary', '!!bool canary', '9e9999', '!canary', '@canary', '&canary', '%canary'])
    assert.doesNotMatch(JSON.stringify(parseDocuments(`stringData:\n  key: ${text}\n`).problems), /canary|9999/, text);
});

test('an alias bomb is refused, quickly', () => {
  let text = 'a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n';
  for (let i = 1; i < 9; i++) text += `a${i}: &a${i} [${Array.from({ length: 9 }, () => `*a${i - 1}`).join(', ')}]\n`;
  const ms = cpuMs(() => assert.match(refused(text).expected, /at most 1 MiB/));
  assert.ok(ms < 1500, `${ms} ms`);
  const long = `a: &a ${'x'.repeat(100_000)}\nb: [${Array.from({ length: 20 }, () => '*a').join(', ')}]\n`;
  assert.match(refused(long).expected, /at most 1 MiB/);
});

const M = 1 << 20;
for (const [name, text] of [
  ['brackets', '['.repeat(M)],
  ['closing brackets', ']'.repeat(M)],
  ['few brackets', '['.repeat(2000)],
  ['dashes', '- '.repeat(M / 2)],
  ['question marks', '? '.repeat(M / 2)],
  ['braces', '{a: '.repeat(M / 4)],
  ['stairs', Array.from({ length: 1400 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
  ['errors', 'a: ]\n'.repeat(M / 5)],
  ['documents', '---\n'.repeat(M / 4)],
  ['directives', '%a\n'.repeat(M / 3)],
  ['anchors', '&a '.repeat(M / 3)],
  ['a list of 500,000', `[${'a,'.repeat(M / 2)}]`],
  ['zeros', '\0'.repeat(M)],
] as const) {
  test(`a file full of ${name} is refused in well under a second`, () => {
    const ms = cpuMs(() => refused(text));
    assert.ok(ms < 1500, `${ms} ms`);
  });
}

test('a long ConfigMap text is no burden', () => {
  const value = one(`data:\n  a: |\n${'    some words\n'.repeat(60_000)}`) as { data: { a: string } };
  assert.equal(value.data.a.length, 60_000 * 11);
});

test('syntax mistakes come with line and column, and a broken document leaves the others whole', () => {
  assert.deepEqual(refused('a:\n\tb: 1\n'), {
    path: '',
    expected: 'spaces as indent',
    got: 'Tabs are not allowed as indentation',
    line: 2,
    column: 1,
  });
  const { documents, broken, problems } = parseDocuments('a: 1\n---\nb: @x\n---\n---\nc: 3\n');
  assert.deepEqual(
    documents.map((d) => [d.index, d.value]),
    [
      [0, { a: 1 }],
      [2, null],
      [3, { c: 3 }],
    ],
  );
  assert.deepEqual(
    broken.map((d) => d.index),
    [1],
  );
  assert.equal(problems[0]?.line, 3);
});

test('an empty text has no document; comments alone neither; empty documents are null', () => {
  for (const text of ['', '\n\n', '# nothing\n']) assert.deepEqual(parseDocuments(text), { documents: [], broken: [], problems: [] });
  assert.deepEqual(
    parseDocuments('---\n---\n').documents.map((d) => d.value),
    [null, null],
  );
});

test('JSON, tabs in JSON, CRLF, a byte-order mark and a %YAML directive are read', () => {
  assert.deepEqual(one('{\n\t"a": 1,\n\t"b": [true, null, "\\u263a\\/\\ud83d\\ude00"]\n}\n'), { a: 1, b: [true, null, '☺/😀'] });
  assert.deepEqual(one('a: yes\r\nb:\r\n- 1\r\n'), { a: true, b: [1] });
  assert.deepEqual(one('\ufeffa: 1\n'), { a: 1 });
  assert.deepEqual(one('%YAML 1.1\n---\na: 12:30\nb: 0o17\n'), { a: '12:30', b: 15 });
});

test('__proto__ is a key like any other', () => {
  const value = one('__proto__: {polluted: 1}\n') as object;
  assert.ok(Object.hasOwn(value, '__proto__'));
  assert.equal((value as { polluted?: number }).polluted, undefined);
});

test('a field path finds its place: scalars at the value, others at the name, what is missing at what holds it', () => {
  const text = [
    'metadata:', // 1
    '  name: web', // 2
    '  labels: {app.kubernetes.io/name: x, "a b": y}', // 3
    '  annotations:', // 4
    '    podsched.dev/hold: "true"', // 5
    'spec: &spec', // 6
    '  containers:', // 7
    '  - &c', // 8
    '    name: a', // 9
    '    image: 5', // 10
    '  - <<: *c', // 11
    '    name: b', // 12
    'again: *spec', // 13
  ].join('\n');
  const [doc] = parseDocuments(text).documents;
  assert.ok(doc);
  const places: readonly (readonly [string, string])[] = [
    ['', '1:1'],
    ['metadata.name', '2:9'],
    ['metadata.labels.app.kubernetes.io/name', '3:36'],
    ['metadata.labels[app.kubernetes.io/name]', '3:36'],
    ['metadata.labels["a b"]', '3:46'],
    ['metadata.annotations[podsched.dev/hold]', '5:24'],
    ['spec.containers', '7:3'],
    ['spec.containers[0].image', '10:12'],
    ['spec.containers[1].name', '12:11'],
    ['spec.containers[1].image', '10:12'],
    ['again.containers[0].name', '9:11'],
    ['spec.containers[1].command', '11:5'],
    ['spec.containers[7].name', '7:3'],
    ['spec.volumes', '6:1'],
  ];
  for (const [path, place] of places) {
    const found = doc.at(path);
    assert.equal(`${found?.line}:${found?.column}`, place, path);
  }
});

test('what toYaml writes is read back as the same, whatever a text looks like', () => {
  const texts = spellings.map(([s]) => s).filter((s) => s !== '');
  const value = {
    texts,
    yes: 1,
    n: [null, true, 1.5, -3, '', ' x ', 'a: b', '- a', '#', '<<', 'multi\nline\n', '☺'],
    '0644': {},
    empty: [],
    nested: [{ a: [{ b: 'off' }] }],
  };
  assert.deepEqual(one(toYaml(value)), value);
  assert.equal(toYaml({ a: 'web', b: undefined, c: 'no' }), 'a: web\nc: "no"\n');
});
