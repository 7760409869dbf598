/** Which pods a pressure of the node keeps out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pressureRefusal } from '../../src/admission/pressure.ts';
import type { PodSpec, Toleration } from '../../src/api/v1.ts';
import { asking, pod } from './build.ts';

const tolerating = (toleration: Toleration): Partial<PodSpec> => ({ tolerations: [toleration] });
const memory = ['MemoryPressure'];
const taint = 'node.kubernetes.io/memory-pressure';
const out = (...pressures: string[]): string => `The node had condition: [${pressures.join(' ')}]. `;
const guaranteed: Partial<PodSpec> = {
  containers: [{ name: 'app', image: 'x', resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } } }],
};

const table: readonly (readonly [what: string, spec: Partial<PodSpec>, pressures: readonly string[], expected: string | undefined])[] = [
  ['no pressure', {}, [], undefined],
  ['memory, and it asked for none', {}, memory, out('MemoryPressure')],
  ['memory, and it asked for some', asking({ memory: '1Mi' }), memory, undefined],
  ['memory, and it asked for CPU only', asking({ cpu: '1' }), memory, undefined],
  ['memory, and it has its limits as requests', guaranteed, memory, undefined],
  ['the disk, whatever it asked for', guaranteed, ['DiskPressure'], out('DiskPressure')],
  ['processes', asking({ memory: '1Mi' }), ['PIDPressure'], out('PIDPressure')],
  [
    'memory and the disk, and it asked for memory',
    asking({ memory: '1Mi' }),
    [...memory, 'DiskPressure'],
    out('MemoryPressure', 'DiskPressure'),
  ],
  ['memory, and it tolerates it', tolerating({ key: taint, operator: 'Exists', effect: 'NoSchedule' }), memory, undefined],
  ['memory, and it tolerates it without saying how much', tolerating({ key: taint, operator: 'Exists' }), memory, undefined],
  ['memory, and it tolerates all', tolerating({ operator: 'Exists' }), memory, undefined],
  ['memory, and it tolerates the empty value', tolerating({ key: taint, value: '' }), memory, undefined],
  ['memory, and it tolerates another value', tolerating({ key: taint, value: 'yes' }), memory, out('MemoryPressure')],
  ['memory, and what every pod here tolerates', tolerating({ operator: 'Exists', effect: 'NoExecute' }), memory, out('MemoryPressure')],
  ['memory, and it tolerates something else', tolerating({ key: 'a', operator: 'Exists' }), memory, out('MemoryPressure')],
  ['the disk, and it tolerates all', tolerating({ operator: 'Exists' }), ['DiskPressure'], out('DiskPressure')],
  ['everything, and it is critical', { priorityClassName: 'system-node-critical' }, [...memory, 'DiskPressure', 'PIDPressure'], undefined],
  ['the disk, and it is critical by its number', { priority: 2_000_000_000 }, ['DiskPressure'], undefined],
  ['the disk, and it nearly is', { priority: 1_999_999_999 }, ['DiskPressure'], out('DiskPressure')],
];

for (const [what, spec, pressures, expected] of table) {
  test(`pressure: ${what}`, () => {
    assert.equal(pressureRefusal(pod('a', spec).pod, pressures), expected);
  });
}
