import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { countsSwap } from '../../src/cm/countsSwap.ts';

test('swap is counted where a cgroup has a file for it', (t) => {
  const own = '0::/system.slice/podsched.service';
  const table: readonly (readonly [string, Readonly<Record<string, string>>, boolean])[] = [
    ['v1 with it', { 'cg/memory/memory.memsw.limit_in_bytes': '1' }, true],
    ['v1 without', { 'cg/memory/memory.limit_in_bytes': '1' }, false],
    ['nothing there', {}, false],
    ['v2', { 'cg/cgroup.controllers': 'memory', 'proc/self/cgroup': own, 'cg/system.slice/podsched.service/memory.swap.max': 'max' }, true],
    [
      'v2, and we stand in the root',
      { 'cg/cgroup.controllers': 'memory', 'proc/self/cgroup': '0::/', 'cg/init/memory.swap.max': 'max' },
      true,
    ],
    ['v2 without', { 'cg/cgroup.controllers': 'memory', 'proc/self/cgroup': own, 'cg/system.slice/memory.max': 'max' }, false],
    ['v2 that does not say where we are', { 'cg/cgroup.controllers': 'memory' }, false],
  ];
  for (const [name, files, counts] of table) {
    const dir = mkdtempSync(join(tmpdir(), 'podsched-swap-'));
    t.after(() => rmSync(dir, { recursive: true }));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), `${text}\n`);
    }
    assert.equal(countsSwap({ cgroups: join(dir, 'cg'), proc: join(dir, 'proc') }), counts, name);
  }
});
