import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hugepages } from '../../src/node/hugepages.ts';
import { nodeLabels } from '../../src/node/labels.ts';

test('a node has the usual three labels, and those of the configuration beside or over them', () => {
  const usual = { 'kubernetes.io/hostname': 'pi-07', 'kubernetes.io/arch': 'arm64', 'kubernetes.io/os': 'linux' };
  const of = (configured: Record<string, string>) => nodeLabels({ name: 'pi-07', os: 'linux', arch: 'arm64', configured });
  assert.deepEqual(of({}), usual);
  assert.deepEqual(of({ site: 'attic' }), { ...usual, site: 'attic' });
  assert.equal(of({ 'kubernetes.io/hostname': 'shelf' })['kubernetes.io/hostname'], 'shelf');
});

test('huge pages are told in bytes under Kubernetes’ names; sizes without pages are left out', () => {
  const sys = mkdtempSync(join(tmpdir(), 'sys-'));
  assert.deepEqual(hugepages(sys), {});
  for (const [name, pages] of [
    ['hugepages-2048kB', '8\n'],
    ['hugepages-1048576kB', '1\n'],
    ['hugepages-64kB', '16\n'],
    ['hugepages-32768kB', '0\n'],
  ] as const) {
    mkdirSync(join(sys, 'kernel/mm/hugepages', name), { recursive: true });
    writeFileSync(join(sys, 'kernel/mm/hugepages', name, 'nr_hugepages'), pages);
  }
  assert.deepEqual(hugepages(sys), { 'hugepages-2Mi': 16 * 2 ** 20, 'hugepages-1Gi': 2 ** 30, 'hugepages-64Ki': 2 ** 20 });
});
