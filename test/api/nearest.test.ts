import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearest } from '../../src/api/nearest.ts';

const fields = ['image', 'imagePullPolicy', 'resources', 'livenessProbe', 'restartPolicy', 'env', 'envFrom'];

test('slips of the pen find the word that was meant', () => {
  const table: readonly (readonly [string, string | undefined])[] = [
    ['livenesProbe', 'livenessProbe'],
    ['resource', 'resources'],
    ['image_pull_policy', 'imagePullPolicy'],
    ['ImagePullPolicy', 'imagePullPolicy'],
    ['envfrom', 'envFrom'],
    ['enf', 'env'],
    ['imgae', 'image'],
    ['volumes', undefined],
    ['x', undefined],
    ['', undefined],
    ['__', undefined],
  ];
  for (const [word, meant] of table) assert.equal(nearest(word, fields), meant, word);
});

test('a very long word costs nothing and finds nothing', () => {
  assert.equal(nearest('livenessProbe'.repeat(10_000), fields), undefined);
});

test('among thousands of words few are compared: a manifest that misses thousands of names costs no second', () => {
  const names = Array.from({ length: 20_000 }, (_, i) => `volume-number-${i}`);
  const start = process.cpuUsage();
  for (let i = 0; i < 50; i++) nearest(`volumes-numbers-${i}`, names);
  assert.ok(process.cpuUsage(start).user < 1_000_000, 'it took over a second');
});
