/** Which images must be here before a pod is touched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Asker, neededImages, ownImages, type Standing } from '../../src/updates/needed.ts';
import { podOf } from './builders.ts';

const names = (list: readonly Asker[]): string[] => list.map((a) => `${a.name}=${a.image}${a.imagePullPolicy === 'Always' ? '!' : ''}`);

const one = podOf(['{name: a, image: "i:1"}', '{name: b, image: "j:1"}']);
const imageOfB = podOf(['{name: a, image: "i:1"}', '{name: b, image: "j:2"}']);
const envOfA = podOf(['{name: a, image: "i:1", env: [{name: X, value: word}]}', '{name: b, image: "j:1"}']);
const all = podOf(['{name: a, image: "i:1"}', '{name: b, image: "i:1", imagePullPolicy: Always}'], {
  lines: ['initContainers: [{name: init, image: "k:1"}]', 'volumes: [{name: model, image: {reference: "m:1"}}]'],
});

const rows: readonly (readonly [string, { after: typeof one; effect: 'update' | 'replace'; standing?: Standing }, readonly string[]])[] = [
  ['an image in place: of that container', { after: imageOfB, effect: 'update' }, ['b=j:2']],
  ['an environment: of that container, though its image is the same', { after: envOfA, effect: 'update' }, ['a=i:1']],
  [
    'in place while nothing runs: of all that would be started',
    { after: imageOfB, effect: 'update', standing: 'down' },
    ['a=i:1', 'b=j:2'],
  ],
  ['a new pod: of all', { after: imageOfB, effect: 'replace' }, ['a=i:1', 'b=j:2']],
  [
    'a new pod: init containers and volumes too; the same image in another policy again',
    { after: all, effect: 'replace' },
    ['init=k:1', 'a=i:1', 'b=i:1!', 'model=m:1'],
  ],
];
for (const [what, { after, effect, standing = 'runs' }, expected] of rows) {
  test(`needed for an edit of ${what}`, () => assert.deepEqual(names(neededImages({ before: one, after, effect }, standing)), expected));
}

test('its own images are all that it needs to run', () => {
  assert.deepEqual(names(ownImages(all.pod)), ['init=k:1', 'a=i:1', 'b=i:1!', 'model=m:1']);
});
