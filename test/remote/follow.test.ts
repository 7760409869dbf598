import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogLines } from '../../src/api/messages.ts';
import { bytesOf } from '../../src/remote/chunks.ts';
import { LogFollows } from '../../src/remote/follow.ts';
import { LineBuffer } from '../../src/remote/lineBuffer.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

const of = { namespace: 'default', pod: 'cam', container: 'app' };

/** A log that is written to while it is followed. */
class WrittenLog {
  #waiting: Uint8Array[] = [];
  #wake = (): void => {};
  ended = false;
  closed = false;
  failed: Error | undefined;

  write(text: string): void {
    this.#waiting.push(Buffer.from(text));
    this.#wake();
  }

  end(): void {
    this.ended = true;
    this.#wake();
  }

  async *open(signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    signal.addEventListener('abort', () => this.#wake());
    try {
      while (!signal.aborted) {
        const next = this.#waiting.shift();
        if (next !== undefined) yield next;
        else if (this.failed !== undefined) throw this.failed;
        else if (this.ended) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
    } finally {
      this.closed = true;
    }
  }
}

function bed() {
  const clock = new FakeClock();
  const told: { topic: string; at: number; message: LogLines }[] = [];
  let broken = false;
  const follows = new LogFollows({
    clock,
    log: silentLog,
    nodeName: 'pi-07',
    boot: () => 1,
    seq: () => 1,
    topic: (namespace, pod) => `P/nodes/pi-07/logs/${namespace}/${pod}`,
    publish: async (topic, payload) => {
      if (broken) throw new Error('gone');
      assert.ok(payload.length <= 120 * 1024);
      told.push({ topic, at: clock.monotonic(), message: JSON.parse(payload) as LogLines });
    },
    largestMessage: () => 120 * 1024,
  });
  const log = new WrittenLog();
  let opened = 0;
  const open = async (signal: AbortSignal) => {
    opened++;
    return { ok: true, value: log.open(signal) } as const;
  };
  return {
    clock,
    told,
    follows,
    log,
    open,
    opened: () => opened,
    breakBroker: () => {
      broken = true;
    },
    text: () => Buffer.concat(told.map((t) => bytesOf(t.message))).toString(),
  };
}

test('lines come until the lease ends, and the end says why', async () => {
  const { clock, told, follows, log, open, text } = bed();
  const answer = await follows.follow(of, 'ops', 60, open);
  assert.deepEqual(answer, { ok: true, value: { ...of, topic: 'P/nodes/pi-07/logs/default/cam', leaseSeconds: 60, lease: 'new' } });
  log.write('one\n');
  await clock.advance(0);
  assert.equal(text(), 'one\n'); // a first line waits for nothing
  log.write('two\n');
  await clock.advance(10_000);
  assert.equal(text(), 'one\ntwo\n');
  await clock.advance(50_000);
  log.write('three\n');
  await clock.advance(10_000);
  assert.equal(text(), 'one\ntwo\n');
  assert.deepEqual(
    told.map(({ message: { chunk, reason, container } }) => [chunk.seq, chunk.last, reason, container]),
    [
      [0, false, undefined, 'app'],
      [1, false, undefined, 'app'],
      [2, true, 'LeaseEnded', 'app'],
    ],
  );
  assert.ok(log.closed);
  assert.equal(follows.size, 0);
  assert.equal(clock.sleeping, 0);
});

test('who asks again in time goes on, without a second reading', async () => {
  const { clock, follows, log, open, opened, text } = bed();
  await follows.follow(of, 'ops', 60, open);
  await clock.advance(50_000);
  const again = await follows.follow(of, 'ops', 60, open);
  assert.ok(again.ok && again.value.lease === 'renewed');
  await clock.advance(50_000);
  log.write('still\n');
  await clock.advance(1_000);
  assert.equal(text(), 'still\n');
  assert.equal(opened(), 1);
  await clock.advance(60_000);
  assert.ok(log.closed);
});

test('two share one stream, which lasts as long as the longer lease', async () => {
  const { clock, follows, log, open, opened, text } = bed();
  await follows.follow(of, 'ops', 10, open);
  const joined = await follows.follow(of, 'dash', 100, open);
  assert.ok(joined.ok && joined.value.lease === 'joined');
  assert.equal(opened(), 1);
  await clock.advance(50_000);
  log.write('for dash\n');
  await clock.advance(1_000);
  assert.equal(text(), 'for dash\n');
  await clock.advance(50_000);
  assert.ok(log.closed);
});

test('a lease of no time ends one, and the stream only with the last', async () => {
  const { clock, follows, log, open } = bed();
  await follows.follow(of, 'ops', 60, open);
  await follows.follow(of, 'dash', 60, open);
  await follows.follow(of, 'ops', 0, open);
  await clock.advance(1);
  assert.ok(!log.closed);
  await follows.follow(of, 'dash', 0, open);
  await clock.advance(1);
  assert.ok(log.closed);
  const nothing = await follows.follow(of, 'ops', 0, open);
  assert.ok(nothing.ok && nothing.value.lease === 'ended');
});

test('a container that ends is told to its last line', async () => {
  const { clock, told, follows, log, open, text } = bed();
  await follows.follow(of, 'ops', 600, open);
  for (let i = 0; i < 2000; i++) log.write(`${String(i).padStart(60, '0')}\n`);
  log.end();
  await clock.advance(10_000);
  assert.equal(text().split('\n').length, 2001);
  assert.equal(told.at(-1)?.message.reason, 'ContainerEnded');
  assert.equal(follows.size, 0);
});

test('faster than may be told: the newest lines come, the others are counted, and each piece ends with a line', async () => {
  const { clock, told, follows, log, open } = bed();
  await follows.follow(of, 'ops', 600, open);
  const lines = 20_000;
  for (let i = 0; i < lines; i++) log.write(`${String(i).padStart(99, '0')}\n`);
  log.end();
  await clock.advance(60_000);
  const dropped = told.reduce((sum, t) => sum + (t.message.dropped ?? 0), 0);
  const text = Buffer.concat(told.map((t) => bytesOf(t.message))).toString();
  const came = text.split('\n').filter((l) => l !== '');
  assert.ok(dropped > 10_000);
  assert.equal(came.length + dropped, lines);
  assert.equal(Number(came.at(-1)), lines - 1);
  for (const { message } of told) assert.ok(message.data === '' || message.data.endsWith('\n'));
  for (const [i, { at }] of told.entries()) if (i > 0) assert.ok(at - (told[i - 1]?.at ?? 0) >= 500);
});

test('when the connection ends nothing is told any more, and the file is closed', async () => {
  const { clock, told, follows, log, open } = bed();
  await follows.follow(of, 'ops', 600, open);
  log.write('one\n');
  await clock.advance(1_000);
  follows.disconnected();
  log.write('two\n');
  await clock.advance(10_000);
  assert.equal(told.length, 1);
  assert.ok(log.closed);
  assert.equal(follows.size, 0);
  const again = await follows.follow(of, 'ops', 60, open);
  assert.ok(again.ok && again.value.lease === 'new');
  follows.stop();
  await clock.advance(0);
  assert.equal(clock.sleeping, 0);
});

test('a broker that takes nothing ends the following', async () => {
  const { clock, follows, log, open, breakBroker } = bed();
  await follows.follow(of, 'ops', 600, open);
  breakBroker();
  log.write('one\n');
  await clock.advance(1_000);
  assert.equal(follows.size, 0);
  assert.ok(log.closed);
});

test('a log that cannot be opened leaves no lease, one that breaks says so', async () => {
  const { clock, told, follows, log, open } = bed();
  const missing = await follows.follow(of, 'ops', 60, async () => ({ ok: false, code: 404, message: 'none' }));
  assert.deepEqual(missing, { ok: false, code: 404, message: 'none' });
  await assert.rejects(
    follows.follow(of, 'ops', 60, async () => {
      throw new Error('EIO');
    }),
    /EIO/,
  );
  assert.equal(follows.size, 0);
  await follows.follow(of, 'ops', 60, open);
  log.failed = new Error('EIO');
  log.write('one\n');
  await clock.advance(2_000);
  assert.equal(told.at(-1)?.message.reason, 'LogFailed');
  assert.equal(follows.size, 0);
});

test('eight logs are followed at once, by eight each', async () => {
  const { follows, open } = bed();
  for (let i = 0; i < 8; i++) assert.ok((await follows.follow({ ...of, pod: `cam-${i}` }, 'ops', 60, open)).ok);
  const ninth = await follows.follow({ ...of, pod: 'cam-8' }, 'ops', 60, open);
  assert.ok(!ninth.ok && ninth.code === 429);
  for (let i = 0; i < 7; i++) assert.ok((await follows.follow({ ...of, pod: 'cam-0' }, `ops-${i}`, 60, open)).ok);
  const tooMany = await follows.follow({ ...of, pod: 'cam-0' }, 'one-more', 60, open);
  assert.ok(!tooMany.ok && tooMany.code === 429);
  assert.ok((await follows.follow({ ...of, pod: 'cam-0' }, 'ops', 60, open)).ok);
  follows.stop();
});

test('a line longer than a message is told in pieces, a chunk larger than the heap too', () => {
  const lines = new LineBuffer();
  lines.add(Buffer.alloc(300 * 1024, 0x61));
  let bytes = 0;
  while (lines.size > 0) bytes += bytesOf(lines.take(32 * 1024)).length;
  assert.equal(bytes, 300 * 1024);
});
