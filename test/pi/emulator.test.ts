import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Booted, emulatorFailed, ending, spoilt } from './emulator.ts';

const ends: readonly (readonly [exit: Booted['exit'], begun: boolean, how: Booted['how']])[] = [
  [0, true, 'off'],
  [1, true, 'crashed'],
  ['SIGSEGV', true, 'crashed'],
  ['SIGKILL', true, 'crashed'],
  [0, false, 'silent'],
  [127, false, 'silent'],
  ['SIGABRT', false, 'silent'],
];

for (const [exit, begun, how] of ends)
  test(`an emulator that ends by itself with ${exit} ${begun ? 'after' : 'before'} the guest began is ${how}`, () => {
    assert.equal(ending(exit, begun), how);
  });

const held = undefined;
const boots: readonly (readonly [how: Booted['how'], errors: readonly (string | undefined)[], again: boolean])[] = [
  ['silent', [], true],
  ['crashed', [], true],
  ['crashed', [held, held], true],
  ['crashed', [held, '1 !== 2', held], false],
  ['crashed', [''], false],
  ['off', [held], false],
  ['cut', [held], false],
  ['timeout', [], false],
  ['timeout', [held], false],
];

for (const [how, errors, again] of boots) {
  const failed = errors.filter((e) => e !== held).length;
  test(`a boot that is ${how} with ${errors.length} checks, ${failed} of them failed, is ${again ? '' : 'not '}repeated`, () => {
    assert.equal(spoilt(how, errors), again);
  });
}

test('what follows is judged unless the emulator failed', () => {
  const all = ['off', 'cut', 'timeout', 'silent', 'crashed'] as const;
  assert.deepEqual(all.filter(emulatorFailed), ['silent', 'crashed']);
});
