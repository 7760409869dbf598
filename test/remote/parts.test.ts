import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf, chunkBytes, chunkFor, cutAt, pieceOf } from '../../src/remote/chunks.ts';
import { partsOf } from '../../src/remote/parts.ts';
import type { Outcome, ReplyPart } from '../../src/remote/words.ts';

const text = (s: string): Uint8Array => new TextEncoder().encode(s);
async function all(outcome: Outcome, limits?: Parameters<typeof partsOf>[1]): Promise<ReplyPart[]> {
  const parts: ReplyPart[] = [];
  for await (const part of partsOf(outcome, limits)) parts.push(part);
  return parts;
}
const joined = (parts: readonly ReplyPart[], stream?: string): Buffer =>
  Buffer.concat(
    parts
      .filter((p) => p.stream === stream)
      .map((p) => bytesOf({ data: p.data ?? '', ...(p.encoding !== undefined && { encoding: p.encoding }) })),
  );
async function* stream(...chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array, void> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? text(chunk) : chunk;
}

test('letters are never torn, and what is no text is cut where it must be', () => {
  const euros = text('€'.repeat(10));
  for (let limit = 3; limit < 30; limit++) assert.equal(cutAt(euros, limit) % 3, 0);
  const smiles = text('😀'.repeat(5));
  for (let limit = 4; limit < 20; limit++) assert.equal(cutAt(smiles, limit) % 4, 0);
  assert.equal(cutAt(text('abc'), 3), 3);
  assert.equal(cutAt(text('abc'), 2), 2);
  assert.equal(cutAt(new Uint8Array(10).fill(0x80), 5), 5);
});

test('text goes as text, bytes as base64, control characters too when they would grow', () => {
  assert.deepEqual(pieceOf(text('grün\n')), { data: 'grün\n' });
  assert.deepEqual(pieceOf(Uint8Array.from([0xff, 0])), { data: '/wA=', encoding: 'base64' });
  assert.deepEqual(pieceOf(text('\ufeffx')), { data: '\ufeffx' });
  const control = pieceOf(new Uint8Array(chunkBytes).fill(1));
  assert.equal(control.encoding, 'base64');
  assert.deepEqual(Buffer.from(bytesOf(control)), Buffer.alloc(chunkBytes, 1));
});

test('whatever the data, a message stays within what the broker takes', () => {
  for (const largest of [120 * 1024, 64 * 1024, 10_000, 3_000]) {
    const size = chunkFor(largest);
    for (const bytes of [
      new Uint8Array(size).fill(1),
      new Uint8Array(size).fill(0x22),
      new Uint8Array(size).fill(0xff),
      text('€'.repeat(Math.floor(size / 3))),
    ]) {
      assert.ok(JSON.stringify(pieceOf(bytes, size)).length <= largest - 1024 || size === 256, `${largest} ${bytes[0]}`);
    }
  }
  assert.equal(chunkFor(1 << 30), chunkBytes);
  assert.equal(chunkFor(0), 256);
});

test('a refusal is one part; an answer without data is one too', async () => {
  assert.deepEqual(await all({ status: 'denied', reason: 'VerbDenied', message: 'no' }), [
    { status: 'denied', reason: 'VerbDenied', message: 'no' },
  ]);
  assert.deepEqual(await all({ status: 'ok', message: 'held' }), [{ status: 'ok', message: 'held', chunk: { seq: 0, last: true } }]);
});

test('JSON comes whole or not at all', async () => {
  const value = { items: Array.from({ length: 5000 }, (_, i) => `Stück ${i} 😀`) };
  const parts = await all({ status: 'ok', body: { json: value } });
  assert.ok(parts.length > 1);
  assert.deepEqual(JSON.parse(joined(parts).toString()), value);
  assert.deepEqual(
    parts.map((p) => p.chunk),
    parts.map((_, seq) => ({ seq, last: seq === parts.length - 1 })),
  );
  for (const p of parts) assert.ok(Buffer.byteLength(p.data ?? '') <= chunkBytes);
  const [only, ...more] = await all({ status: 'ok', body: { json: 'x'.repeat(2000) } }, { capBytes: 1000 });
  assert.deepEqual([only?.status, only?.reason, more.length], ['tooLarge', 'AnswerTooLarge', 0]);
});

test('a log of ten megabytes with a cap of 100 KB gives 100 KB, says so, and is not read on', async () => {
  let given = 0;
  let closed = false;
  async function* log(): AsyncGenerator<Uint8Array, void> {
    try {
      for (; given < 10 << 20; given += 8192) yield new Uint8Array(8192).fill(0x61);
    } finally {
      closed = true;
    }
  }
  const parts = await all({ status: 'ok', body: { bytes: log(), capBytes: 100_000 } });
  assert.equal(joined(parts).length, 100_000);
  assert.equal(parts.at(-1)?.truncated, 'after 100000 bytes');
  assert.ok(given < 200_000 && closed);
});

test('a log that ends at its cap was not cut', async () => {
  const parts = await all({ status: 'ok', body: { bytes: stream('abc', 'def'), capBytes: 6 } });
  assert.deepEqual(parts, [{ status: 'ok', chunk: { seq: 0, last: true }, data: 'abcdef' }]);
});

test('binary bytes of a log arrive as they were, letters over two reads too', async () => {
  const bytes = Buffer.concat([Buffer.alloc(60_000, 0xfe), Buffer.from('ende\n')]);
  assert.deepEqual(joined(await all({ status: 'ok', body: { bytes: stream(bytes), capBytes: 1 << 20 } })), bytes);
  const euro = text('€');
  const parts = await all({ status: 'ok', body: { bytes: stream(euro.subarray(0, 1), euro.subarray(1)), capBytes: 100 } });
  assert.deepEqual(parts, [{ status: 'ok', chunk: { seq: 0, last: true }, data: '€' }]);
});

test('nothing is read before the part before it was taken', async () => {
  let read = 0;
  async function* log(): AsyncGenerator<Uint8Array, void> {
    for (; read < 100; read++) yield new Uint8Array(chunkBytes).fill(0x61);
  }
  const parts = partsOf({ status: 'ok', body: { bytes: log(), capBytes: 1 << 30 } });
  await parts.next();
  assert.ok(read <= 2, String(read));
  await parts.return();
});

test('a log that breaks off ends with an error behind what was read', async () => {
  async function* log(): AsyncGenerator<Uint8Array, void> {
    yield text('first\n');
    throw new Error('EIO');
  }
  assert.deepEqual(await all({ status: 'ok', body: { bytes: log(), capBytes: 100 } }), [
    { status: 'error', reason: 'ReadFailed', message: 'EIO', chunk: { seq: 0, last: true }, data: 'first\n' },
  ]);
});

test('an empty log has an end as well', async () => {
  assert.deepEqual(await all({ status: 'ok', body: { bytes: stream(), capBytes: 100 } }), [
    { status: 'ok', chunk: { seq: 0, last: true }, data: '' },
  ]);
});

test('both outputs of a program come apart, its exit code with the last', async () => {
  const stdout = text('o'.repeat(chunkBytes + 5));
  const parts = await all({ status: 'ok', exitCode: 3, truncated: 'cut', body: { output: { stdout, stderr: text('e') } } });
  assert.deepEqual(
    parts.map(({ stream, chunk, exitCode }) => [stream, chunk?.seq, chunk?.last, exitCode]),
    [
      ['stdout', 0, false, undefined],
      ['stdout', 1, false, undefined],
      ['stderr', 2, true, 3],
    ],
  );
  assert.equal(joined(parts, 'stdout').length, stdout.length);
  assert.equal(parts.at(-1)?.truncated, 'cut');
  const silent = await all({ status: 'ok', exitCode: 0, body: { output: { stdout: text(''), stderr: text('') } } });
  assert.deepEqual(silent, [{ status: 'ok', exitCode: 0, chunk: { seq: 0, last: true } }]);
});
