import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkConfiguration } from '../../src/api/configurationChecks.ts';

test('the policy static needs CPUs that are kept back, and a list of them has its form', () => {
  const told = (values: Readonly<Record<string, unknown>>) =>
    checkConfiguration(values)
      .filter((p) => /cpuManager|reservedSystemCPUs/.test(p.path))
      .map((p) => `${p.path}: ${p.expected}`);
  const needed = ['cpuManagerPolicy: reservedSystemCPUs beside static, or cpu in systemReserved or kubeReserved'];
  const list = ['reservedSystemCPUs: a list of CPUs such as 0 or 0-1,3'];
  const table: readonly (readonly [Readonly<Record<string, unknown>>, readonly string[]])[] = [
    [{}, []],
    [{ cpuManagerPolicy: 'none' }, []],
    [{ cpuManagerPolicy: 'static' }, needed],
    [{ cpuManagerPolicy: 'static', systemReserved: { cpu: '0' } }, needed],
    [{ cpuManagerPolicy: 'static', systemReserved: { memory: '100Mi' } }, needed],
    [{ cpuManagerPolicy: 'static', systemReserved: { cpu: '100m' } }, []],
    [{ cpuManagerPolicy: 'static', kubeReserved: { cpu: '1' } }, []],
    [{ cpuManagerPolicy: 'static', reservedSystemCPUs: '0' }, []],
    [{ reservedSystemCPUs: '0-1,3' }, []],
    [{ reservedSystemCPUs: '3-1' }, list],
    [{ cpuManagerPolicy: 'static', reservedSystemCPUs: 'all' }, list],
  ];
  for (const [values, problems] of table) assert.deepEqual(told(values), problems, JSON.stringify(values));
});
