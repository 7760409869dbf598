import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readPageBytes } from '../../src/node/hardware.ts';

const proc = mkdtempSync(join(tmpdir(), 'podsched-proc-'));
mkdirSync(join(proc, 'self'));
after(() => rmSync(proc, { recursive: true }));

/** The auxiliary vector of a process, as the kernel writes it. */
function write(pairs: readonly (readonly [type: number, value: bigint])[], word: 4 | 8): void {
  const bytes = Buffer.alloc(pairs.length * 2 * word);
  for (const [i, [type, value]] of pairs.entries()) {
    const at = 2 * i * word;
    if (word === 8) {
      bytes.writeBigUInt64LE(BigInt(type), at);
      bytes.writeBigUInt64LE(value, at + word);
    } else {
      bytes.writeUInt32LE(type, at);
      bytes.writeUInt32LE(Number(value), at + word);
    }
  }
  writeFileSync(join(proc, 'self/auxv'), bytes);
}

// AT_SYSINFO_EHDR, AT_MINSIGSTKSZ, AT_HWCAP, AT_PAGESZ, AT_CLKTCK, AT_NULL
const vector = (pageBytes: bigint) =>
  [
    [33, 0x7fff_2000n],
    [51, 4720n],
    [16, 0xefff_ffffn],
    [6, pageBytes],
    [17, 100n],
    [0, 0n],
  ] as const;

for (const [what, bytes, word] of [
  ['a Pi 4', 4096, 8],
  ['a Pi 5', 16384, 8],
  ['an arm/v7 board', 4096, 4],
] as const)
  test(`the page size of ${what} is read from what the kernel told the process`, async () => {
    write(vector(BigInt(bytes)), word);
    assert.equal(await readPageBytes({ proc }), bytes);
  });

test('on this machine it is what getconf says', async () => {
  assert.equal(await readPageBytes({ proc: '/proc' }), Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' })));
});

test('a vector without it, a broken one and none at all tell nothing', async () => {
  write([[16, 1n]], 8);
  assert.equal(await readPageBytes({ proc }), undefined);
  write(vector(12345n), 8);
  assert.equal(await readPageBytes({ proc }), undefined);
  writeFileSync(join(proc, 'self/auxv'), 'abc');
  assert.equal(await readPageBytes({ proc }), undefined);
  rmSync(join(proc, 'self/auxv'));
  assert.equal(await readPageBytes({ proc }), undefined);
});
