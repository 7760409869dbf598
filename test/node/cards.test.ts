import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { cardText, lifeUsed, type StorageCard, wornText } from '../../src/node/cardWear.ts';
import { storageCards } from '../../src/node/storageCards.ts';
import { board, pc, pi4, removeBoards } from './boards.ts';

after(removeBoards);

test('an SD card is told by name and age, and that it says nothing of its wear', async () => {
  const [card, ...more] = await storageCards(board(pi4).roots.sys);
  assert.deepEqual(more, []);
  assert.ok(card);
  assert.equal(cardText(card), 'SD card mmcblk0 SC32G (03/2021), wear not told');
  assert.equal(wornText(card), undefined);
});

test('an eMMC tells how much of its life is used, by the worse of its two kinds of memory; its boot partitions are no cards', async () => {
  const cards = await storageCards(board(pc).roots.sys);
  assert.deepEqual(cards.map(cardText), ['eMMC mmcblk0 DF4064 (07/2019), 20 to 30 % of its life used']);
});

for (const [text, used] of [
  ['0x01 0x01', { from: 0, to: 10 }],
  ['0x0a 0x03', { from: 90, to: 100 }],
  ['0x0b 0x0b', { from: 100, to: 100 }],
  ['0x00 0x00', undefined],
  ['0x00 0x02', { from: 10, to: 20 }],
  ['0xff 0x10', undefined],
  ['', undefined],
  ['full', undefined],
] as const)
  test(`a life time of ${JSON.stringify(text)} is ${used === undefined ? 'not known' : `${used.from} to ${used.to} % used`}`, () => {
    assert.deepEqual(lifeUsed(text), used);
  });

const card: StorageCard = {
  device: 'mmcblk0',
  name: 'DF4064',
  kind: 'MMC',
  manufacturer: '0x45',
  made: '',
  usedPercent: { from: 20, to: 30 },
  spare: 'normal',
};

test('a card is worn when its life or its spare blocks are all but used up', () => {
  assert.equal(wornText(card), undefined);
  assert.equal(wornText({ ...card, usedPercent: { from: 80, to: 90 } }), undefined);
  assert.match(wornText({ ...card, usedPercent: { from: 90, to: 100 } }) ?? '', /mmcblk0 \(DF4064\) says that more than 90 %/);
  assert.match(wornText({ ...card, usedPercent: { from: 100, to: 100 } }) ?? '', /all of its life/);
  assert.match(wornText({ ...card, spare: 'urgent' }) ?? '', /all but used up/);
  assert.match(wornText({ ...card, spare: 'warning' }) ?? '', /four fifths/);
});

test('a card cannot put what it likes into a message', async () => {
  const { roots } = board({
    ...pi4,
    'sys/block/mmcblk0/device/name': '\u001b[31mEVIL\n"},{'.repeat(20),
    'sys/block/mmcblk0/device/life_time': 'x'.repeat(9999),
  });
  const [found] = await storageCards(roots.sys);
  assert.ok(found);
  assert.match(found.name, /^[A-Za-z0-9 ]{1,32}$/);
  assert.equal(found.usedPercent, undefined);
});
