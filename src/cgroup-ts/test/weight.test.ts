import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxToMilliCpu, milliCpuToMax, milliCpuToShares, quotaToMax, sharesToWeight, weightToShares } from '../weight.ts';

test('the linear conversion gives what runc up to 1.3.1 and the kubelet write', () => {
  // pods of 100m, 500m, 1, 4 CPUs; two CPUs of a node; nothing asked; a value that users of runc 1.3.1 saw
  for (const [shares, weight] of [
    [2, 1],
    [102, 4],
    [153, 6],
    [512, 20],
    [1024, 39],
    [2000, 77],
    [2048, 79],
    [4096, 157],
    [262_144, 10_000],
  ] as const)
    assert.equal(sharesToWeight(shares, 'linear'), weight, `${shares} shares`);
});

test('the quadratic conversion gives what runc from 1.3.2 and crun from 1.23 write', () => {
  for (const [shares, weight] of [
    [2, 1],
    [1024, 100],
    [2000, 170],
    [22_000, 1204],
    [262_144, 10_000],
  ] as const)
    assert.equal(sharesToWeight(shares, 'quadratic'), weight, `${shares} shares`);
});

test('0 shares mean nothing is set, and shares out of range count as the ends', () => {
  for (const generation of ['linear', 'quadratic'] as const) {
    assert.equal(sharesToWeight(0, generation), undefined);
    assert.equal(sharesToWeight(1, generation), 1);
    assert.equal(sharesToWeight(1_000_000, generation), 10_000);
    assert.equal(weightToShares(0, generation), 2);
    assert.equal(weightToShares(20_000, generation), 262_144);
  }
});

test('both conversions stay in range, never fall, and their ways back lead to the same weight or a neighbour', () => {
  for (const generation of ['linear', 'quadratic'] as const) {
    let before = 1;
    for (let shares = 2; shares <= 262_144; shares += 97) {
      const weight = sharesToWeight(shares, generation) ?? Number.NaN;
      assert.ok(Number.isInteger(weight) && weight >= before && weight <= 10_000, `${shares} ${generation}: ${weight}`);
      before = weight;
    }
    for (let weight = 1; weight <= 10_000; weight += 13) {
      const back = sharesToWeight(weightToShares(weight, generation), generation) ?? Number.NaN;
      assert.ok(Math.abs(back - weight) <= 1, `${weight} ${generation}: ${back}`);
    }
  }
  assert.equal(weightToShares(100, 'quadratic'), 1024);
  assert.equal(weightToShares(39, 'linear'), 2 + Math.floor((38 * 262_142) / 9999));
});

test('thousandths of a CPU become shares and quotas', () => {
  for (const [milli, shares] of [
    [0, 2],
    [1, 2],
    [100, 102],
    [500, 512],
    [1000, 1024],
    [300_000, 262_144],
  ] as const)
    assert.equal(milliCpuToShares(milli), shares);
  assert.deepEqual(milliCpuToMax(100), { quota: 10_000, period: 100_000 });
  assert.deepEqual(milliCpuToMax(1), { quota: 1000, period: 100_000 });
  assert.deepEqual(milliCpuToMax(0), { quota: 'max', period: 100_000 });
  assert.deepEqual(milliCpuToMax(2500, 10_000), { quota: 25_000, period: 10_000 });
  assert.equal(maxToMilliCpu({ quota: 10_000, period: 100_000 }), 100);
  assert.equal(maxToMilliCpu({ quota: 'max', period: 100_000 }), undefined);
});

test("v1's quota and period become cpu.max", () => {
  assert.deepEqual(quotaToMax(10_000, 100_000), { quota: 10_000, period: 100_000 });
  assert.deepEqual(quotaToMax(-1, 100_000), { quota: 'max', period: 100_000 });
  assert.deepEqual(quotaToMax(10_000, 0), { quota: 10_000 });
  assert.equal(quotaToMax(0, 0), undefined);
});
