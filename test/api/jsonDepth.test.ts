import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isDeeper } from '../../src/api/jsonDepth.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Of a parsed value: a mapping or a list is a level. */
const levels = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(levels)) : 0;

test('the brackets of a JSON text stand as deep as its value has levels, whatever its texts hold', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, noUnicodeString: false }), (value) => {
      const text = bytes(JSON.stringify(value));
      assert.equal(isDeeper(text, levels(value)), false);
      if (levels(value) > 0) assert.equal(isDeeper(text, levels(value) - 1), true);
    }),
  );
});

test('brackets within texts count for nothing, also behind an escaped quote', () => {
  const cases: readonly (readonly [text: string, deeper: boolean])[] = [
    ['"[[[["', false],
    ['["\\"[[", 1]', false],
    ['["\\\\", [[1]]]', true],
    ['["é\\u005b[", {}]', false],
    ['[[[', true],
    [']]]][[', false],
    ['', false],
  ];
  for (const [text, deeper] of cases) assert.equal(isDeeper(bytes(text), 2), deeper, text);
});
