import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from './process.ts';

const root = new URL('../../', import.meta.url).pathname;
const setup = join(root, 'test/device/setup.sh');

test('the scripts are valid bash', async () => {
  for (const script of [setup, join(root, '.ci/run')]) assert.equal((await run('bash', ['-n', script])).stderr, '', script);
});

test('set-up without a word says what it takes, with exit 2', async () => {
  const { code, stderr } = await run('bash', [setup]);
  assert.equal(code, 2);
  assert.match(stderr, /usage: .*demo\|test\|bench/);
});

test('a Node that is too old is named with what is needed, before anything is installed', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-old-node-'));
  try {
    writeFileSync(join(dir, 'node'), '#!/bin/sh\n[ "$1" = --version ] && echo v18.19.0 && exit 0\nexit 1\n', { mode: 0o755 });
    const { code, stdout, stderr } = await run('bash', [setup, 'test'], { env: { ...process.env, PATH: `${dir}:${process.env.PATH}` } });
    assert.equal(code, 1);
    assert.match(stderr, /v18\.19\.0 is too old: 20\.19 or newer/);
    assert.equal(stdout, '');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test('the continuous integration runs what the README tells a newcomer to type', () => {
  const last = readFileSync(join(root, '.ci/run'), 'utf8').trim().split('\n').at(-1) ?? '';
  assert.equal(last, 'npm test && npm run test:pi');
  const { 1: block = '' } = /^## Two commands$[\s\S]*?^```\n([\s\S]*?)^```$/m.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
  assert.deepEqual(
    block
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/ +#.*/, '')),
    ['npm run demo', last],
  );
});
