import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { diskWrittenBytes } from '../../src/node/diskWrites.ts';
import { board, removeBoards } from './boards.ts';

after(removeBoards);

const stat = (sectors: number): string =>
  `   12340      560  987654     7000    4321      99 ${sectors}     3000        0     2000    10000\n`;

test('the sectors written to real disks, in bytes; what only ends on them is not counted twice', async () => {
  const { roots } = board({
    'sys/block/mmcblk0/stat': stat(1000),
    'sys/block/mmcblk0/device/name': 'SC32G',
    'sys/block/sda/stat': stat(2000),
    'sys/block/sda/device/model': 'SSD',
    'sys/block/zram0/stat': stat(5000),
    'sys/block/loop0/stat': stat(5000),
    'sys/block/dm-0/stat': stat(5000),
  });
  assert.equal(await diskWrittenBytes(roots.sys), 3000 * 512);
});

test('a kernel that does not say: nothing is told, which is not the same as none', async () => {
  assert.equal(await diskWrittenBytes('/nonexistent'), undefined);
  const { roots } = board({ 'sys/block/mmcblk0/stat': 'what', 'sys/block/mmcblk0/device/name': 'SC32G' });
  assert.equal(await diskWrittenBytes(roots.sys), undefined);
});
