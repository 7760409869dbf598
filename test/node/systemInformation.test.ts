import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { machineParts } from '../../src/node/systemInformation.ts';

test('whoever asks is told what the machine is made of, in letters that no terminal takes for commands', async () => {
  const { system, processor, disks } = await machineParts();
  assert.match(processor, /[0-9]+ cores?/);
  for (const text of [system, processor, ...disks.flatMap((d) => [d.device, d.name, d.kind])]) assert.match(text, /^[\x20-\x7e]{0,210}$/);
  assert.ok(disks.every((d) => Number.isFinite(d.bytes)));
});

test('the package is loaded at the question and nowhere else', () => {
  const root = new URL('../../src/', import.meta.url).pathname;
  const naming = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts') && !f.startsWith('cgroup-ts/'))
    .flatMap((f) =>
      [...readFileSync(`${root}${f}`, 'utf8').matchAll(/^.*'systeminformation'.*$/gm)].map(([line]) => `${f}: ${line.trim()}`),
    );
  assert.deepEqual(naming, ["node/systemInformation.ts: const si = await import('systeminformation');"]);
});
