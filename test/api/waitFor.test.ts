import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyText } from '../../src/api/objects.ts';
import { cycleThrough, gateText, parseGates, waitFor } from '../../src/api/waitFor.ts';
import { decode, only, paths, rawPod } from './objects.ts';

const forKey = 'podsched.dev/wait-for';
const path = `metadata.annotations[${forKey}]`;
const annotated = (annotations: Record<string, string>) => decode(rawPod({}, {}, { annotations }));

const lists: readonly (readonly [string, readonly string[]])[] = [
  ['', []],
  ['  \n', []],
  ['mount:/mnt/ssd', ['mount:/mnt/ssd']],
  ['mount:/mnt//ssd/./', ['mount:/mnt/ssd']],
  ['mount:/mnt/my disk=1', ['mount:/mnt/my disk=1']],
  ['time-sync,network', ['time-sync', 'network']],
  [
    'pod/default/db=Ready, mount:/mnt/ssd, device:camera, time-sync, network',
    ['pod/default/db=Ready', 'mount:/mnt/ssd', 'device:camera', 'time-sync', 'network'],
  ],
  ['pod/a-b/web.1=Ready,\n  pod/a-b/web.1=Ready', ['pod/a-b/web.1=Ready']],
];
for (const [text, gates] of lists) {
  test(`${JSON.stringify(text)} is ${gates.length} gates`, () => {
    assert.deepEqual(parseGates(text), { gates: parseGates(text).gates, mistakes: [] });
    assert.deepEqual(parseGates(text).gates.map(gateText), gates);
  });
}

const wrong: readonly (readonly [string, string, string?])[] = [
  ['mount:/a,', 'nothing between two commas'],
  ['mounts:/mnt/ssd', 'mounts:/mnt/ssd', 'mount:/mnt/ssd'],
  ['/mnt/ssd', '/mnt/ssd', 'mount:/mnt/ssd'],
  ['mount:mnt/ssd', 'mount:mnt/ssd', 'mount:/mnt/ssd'],
  ['mount/mnt/ssd', 'mount/mnt/ssd', 'mount:/mnt/ssd'],
  ['mount:/mnt/../etc', 'mount:/mnt/../etc'],
  ['mount:/', 'mount:/'],
  ['mount:', 'mount:'],
  ['mount', 'mount'],
  ['timesync', 'timesync', 'time-sync'],
  ['Network', 'Network', 'network'],
  ['network=up', 'network=up', 'network'],
  ['pods/default/db=Ready', 'pods/default/db=Ready', 'pod/default/db=Ready'],
  ['pod/db=Ready', 'pod/db=Ready', 'pod/default/db=Ready'],
  ['pod:default/db=Ready', 'pod:default/db=Ready', 'pod/default/db=Ready'],
  ['pod/default/db', 'pod/default/db', 'pod/default/db=Ready'],
  ['pod/default/db=ready', 'pod/default/db=ready', 'pod/default/db=Ready'],
  ['pod/default/db=Running', 'pod/default/db=Running', 'pod/default/db=Ready'],
  ['pod/Default/db=Ready', 'pod/Default/db=Ready'],
  ['pod/a/b/c=Ready', 'pod/a/b/c=Ready'],
  ['pod/=Ready', 'pod/=Ready'],
  ['device:', 'device:'],
  ['device:a/b', 'device:a/b'],
  ['constructor', 'constructor'],
  ['__proto__', '__proto__'],
];
for (const [text, got, nearest] of wrong) {
  test(`${JSON.stringify(text)} refuses the pod${nearest === undefined ? '' : ` and asks for ${nearest}`}`, () => {
    const problem = only(annotated({ [forKey]: text }), path);
    assert.ok(problem.got.includes(got), problem.got);
    assert.equal(problem.nearest, nearest);
  });
}

test('what was meant is itself a gate', () => {
  for (const [, , nearest] of wrong) if (nearest !== undefined) assert.deepEqual(parseGates(nearest).mistakes, [], nearest);
});

test('each wrong entry is told, a right one beside them is not, and a list without end is one mistake', () => {
  assert.deepEqual(paths(annotated({ [forKey]: 'net, time-sync, disk:/x' }).problems), [path, path]);
  only(annotated({ [forKey]: Array(1000).fill('x').join(',') }), path);
});

test('a pod that waits for itself is refused, of another namespace it is another pod', () => {
  const own = rawPod({}, {}, { name: 'web', annotations: { [forKey]: 'pod/default/web=Ready' } });
  assert.equal(only(decode(own), path).expected, 'other pods than this one');
  assert.deepEqual(paths(decode(rawPod({}, {}, { name: 'web', annotations: { [forKey]: 'pod/other/web=Ready' } })).problems), []);
});

test('a time-out is a duration over 0', () => {
  const timeout = 'podsched.dev/wait-timeout';
  for (const text of ['2', '0s', '', '-1m', 'soon', '200h']) only(annotated({ [timeout]: text }), `metadata.annotations[${timeout}]`);
  const of = (annotations: Record<string, string>) => waitFor({ metadata: { name: 'web', annotations } });
  for (const [text, ms] of [
    ['2m', 120_000],
    ['1m30s', 90_000],
    ['500ms', 500],
  ] as const) {
    assert.deepEqual(paths(annotated({ [timeout]: text }).problems), []);
    assert.deepEqual(of({ [forKey]: 'network', [timeout]: text }), { gates: [{ kind: 'network' }], timeoutMs: ms });
  }
  assert.deepEqual(of({}), { gates: [] });
});

test('a cycle is found with its way, and a pod that only leads to one is in none', () => {
  const graph: Record<string, readonly string[]> = {
    a: ['b', 'x'],
    b: ['c'],
    c: ['a'],
    x: [],
    outside: ['a'],
    self: ['self'],
    long: ['gone'],
  };
  const way = (start: string) => cycleThrough(start as KeyText, (key) => (Object.hasOwn(graph, key) ? graph[key] : []) as KeyText[]);
  assert.deepEqual(way('a'), ['a', 'b', 'c']);
  assert.deepEqual(way('c'), ['c', 'a', 'b']);
  assert.deepEqual(way('self'), ['self']);
  for (const start of ['x', 'outside', 'long', 'gone']) assert.equal(way(start), undefined, start);
});
