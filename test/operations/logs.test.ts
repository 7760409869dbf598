/** Logs on a real file system. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type LogStreamOptions, openLogStream } from '../../src/operations/logFollow.ts';
import type { LogRequest } from '../../src/operations/logRequest.ts';
import { openLogs } from '../../src/operations/logs.ts';
import { systemClock } from '../../src/world/clock.ts';
import { cs, running, told } from './view.ts';

const at = '2026-01-01T00:00:00Z';
const line = (text: string, tag = 'F'): string => `${at} stdout ${tag} ${text}\n`;

async function inFolder(work: (path: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-logs-'));
  try {
    await work(join(dir, '0.log'));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const stream = async (path: string, o: Partial<LogStreamOptions> = {}) => {
  const made = await openLogStream({
    path,
    follow: false,
    timestamps: false,
    running: () => true,
    clock: systemClock,
    signal: new AbortController().signal,
    ...o,
  });
  assert.ok(made);
  return made;
};
const read = async (path: string, o: Partial<LogStreamOptions> = {}): Promise<string> => {
  let text = '';
  for await (const chunk of await stream(path, o)) text += chunk.toString('latin1');
  return text;
};

/** A follower whose text can be waited for. */
async function follower(path: string, o: Partial<LogStreamOptions> = {}) {
  let text = '';
  let alive = true;
  const chunks = await stream(path, { follow: true, running: () => alive, ...o });
  const ended = (async () => {
    for await (const chunk of chunks) text += chunk.toString();
    return text;
  })();
  return {
    ended,
    die: () => {
      alive = false;
    },
    async until(wanted: string): Promise<void> {
      for (const end = performance.now() + 30_000; text !== wanted; await systemClock.sleep(5))
        assert.ok(performance.now() < end, `wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(text)}`);
    },
  };
}

test('a log is read to its end, an unfinished last line included, and what is no line is left out', () =>
  inFolder(async (path) => {
    writeFileSync(path, `${line('one')}garbage\n${line('tw', 'P')}${line('o')}${line('three').trimEnd()}`);
    assert.equal(await read(path), 'one\ntwo\nthree');
    writeFileSync(path, `${line('one')}2026-01-01T00:0`);
    assert.equal(await read(path), 'one\n');
    writeFileSync(path, '');
    assert.equal(await read(path), '');
  }));

test('a tail counts lines as they were written, whatever lies between', () =>
  inFolder(async (path) => {
    writeFileSync(path, `${line('1')}${line('2a', 'P')}${line('2b', 'P')}${line('2c')}garbage\n${line('3')}${line('4a', 'P')}`);
    for (const [tail, wanted] of [
      [0, ''],
      [1, '4a'],
      [2, '3\n4a'],
      [3, '2a2b2c\n3\n4a'],
      [4, '1\n2a2b2c\n3\n4a'],
      [99, '1\n2a2b2c\n3\n4a'],
    ] as const)
      assert.equal(await read(path, { tail }), wanted, String(tail));
  }));

test('a tail is right wherever its lines fall in the blocks that are read', () =>
  inFolder(async (path) => {
    const texts = Array.from({ length: 4000 }, (_, i) => `${i} ${'x'.repeat((i * 37) % 211)}`);
    writeFileSync(path, texts.map((t) => line(t)).join(''));
    for (const tail of [1, 2, 399, 400, 401, 777, 1500, 3999, 4000, 4001])
      assert.equal(
        await read(path, { tail }),
        texts
          .slice(-tail)
          .map((t) => `${t}\n`)
          .join(''),
        String(tail),
      );
    assert.equal(await read(path), texts.map((t) => `${t}\n`).join(''));
    assert.equal((await read(path, { limitBytes: 100_000 })).length, 100_000);
  }));

test('a long line in many parts is one line of the tail', () =>
  inFolder(async (path) => {
    const parts = Array.from({ length: 20 }, (_, i) => String.fromCharCode(97 + i).repeat(16384));
    writeFileSync(path, `${line('before')}${parts.map((p) => line(p, 'P')).join('')}${line('')}${line('after')}`);
    assert.equal(await read(path, { tail: 1 }), 'after\n');
    assert.equal(await read(path, { tail: 2 }), `${parts.join('')}\nafter\n`);
    assert.equal(await read(path, { tail: 3 }), `before\n${parts.join('')}\nafter\n`);
  }));

test('200 MB cost no memory: the tail is read from the end, and a slow reader gets one block after the other', () =>
  inFolder(async (path) => {
    const file = await open(path, 'w');
    const some = Buffer.from(line('y'.repeat(1000)).repeat(1000));
    for (let written = 0; written < 200e6; written += some.length) await file.write(some);
    await file.write(line('the end'));
    await file.close();
    const before = process.memoryUsage().rss;
    const readSoFar = (): number => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
    const begun = readSoFar();
    assert.equal(await read(path, { tail: 1 }), 'the end\n');
    const bytesRead = readSoFar() - begun;
    assert.ok(bytesRead < 10e6, `${bytesRead} bytes were read for one line`);
    let bytes = 0;
    for await (const chunk of await stream(path)) {
      assert.ok(chunk.length <= 70_000);
      bytes += chunk.length;
    }
    assert.ok(bytes > 190e6);
    // what was taken goes when the collector has its turn, on a busy machine later
    assert.ok(process.memoryUsage().rss - before < 120e6, `${process.memoryUsage().rss - before} more`);
  }));

test('a line without end is no log, and the line after it is read', () =>
  inFolder(async (path) => {
    writeFileSync(path, `${line('a')}${at} stdout F ${'z'.repeat(3 << 20)}\n${line('b')}`);
    assert.equal(await read(path), 'a\nb\n');
  }));

test('who does not follow ends, however fast the container writes', () =>
  inFolder(async (path) => {
    writeFileSync(path, line('a').repeat(5000));
    let chunks = 0;
    for await (const _ of await stream(path)) {
      appendFileSync(path, line('b').repeat(5000));
      assert.ok(chunks++ < 10);
    }
  }));

test('a follower gets what is written, a line when it is whole, and ends when its container has ended and nothing is left', () =>
  inFolder(async (path) => {
    writeFileSync(path, line('old').repeat(3));
    const f = await follower(path, { tail: 1 });
    await f.until('old\n');
    appendFileSync(path, line('new').slice(0, -2));
    await systemClock.sleep(100);
    await f.until('old\n');
    appendFileSync(path, 'w\n');
    await f.until('old\nnew\n');
    appendFileSync(path, `${line('last')}${line('cut').trimEnd()}`);
    f.die();
    assert.equal(await f.ended, 'old\nnew\nlast\ncut');
  }));

test('a follower survives rotations and loses no line, not even one that is written to the old file late', () =>
  inFolder(async (path) => {
    writeFileSync(path, line('0'));
    const f = await follower(path);
    await f.until('0\n');
    let wanted = '0\n';
    for (let i = 1; i <= 4; i++) {
      renameSync(path, `${path}.${i}`);
      appendFileSync(`${path}.${i}`, line(`${i} after the renaming`));
      if (i % 2 === 0) await systemClock.sleep(150);
      writeFileSync(path, line(`${i} in the new file`));
      appendFileSync(`${path}.${i}`, line(`${i} late`));
      wanted += `${i} after the renaming\n${i} late\n${i} in the new file\n`;
      await f.until(wanted);
    }
    f.die();
    assert.equal(await f.ended, wanted);
  }));

test('a follower that is several rotations behind reads every part that is left, in order', () =>
  inFolder(async (path) => {
    writeFileSync(`${path}.20260101-000000`, line('written before it came'));
    writeFileSync(path, line('0'));
    const f = await follower(path);
    await f.until('0\n');
    let wanted = '0\n';
    for (let i = 1; i <= 4; i++) {
      renameSync(path, `${path}.20260101-00000${i}`);
      writeFileSync(path, line(`${i}`));
      wanted += `${i}\n`;
    }
    await f.until(wanted);
    // what is gone or packed was the oldest
    for (let i = 5; i <= 7; i++) {
      renameSync(path, `${path}.20260101-00000${i}`);
      writeFileSync(path, line(`${i}`));
    }
    for (let i = 0; i <= 4; i++) rmSync(`${path}.20260101-00000${i}`);
    renameSync(`${path}.20260101-000005`, `${path}.20260101-000005.gz`);
    await f.until(`${wanted}5\n6\n7\n`);
    f.die();
    assert.equal(await f.ended, `${wanted}5\n6\n7\n`);
  }));

test('a file emptied in place is read from its start, and one whose folder goes ends with its container', () =>
  inFolder(async (path) => {
    writeFileSync(path, line('before').repeat(5));
    const f = await follower(path);
    await f.until('before\n'.repeat(5));
    truncateSync(path, 0);
    await systemClock.sleep(1200);
    appendFileSync(path, line('anew'));
    await f.until(`${'before\n'.repeat(5)}anew\n`);
    rmSync(join(path, '..'), { recursive: true });
    f.die();
    await f.ended;
  }));

test('a limit ends a follower too, and so does the signal, and an end by the reader', () =>
  inFolder(async (path) => {
    writeFileSync(path, line('abcdef'));
    assert.equal(await read(path, { follow: true, limitBytes: 3 }), 'abc');
    const stop = new AbortController();
    const f = await follower(path, { signal: stop.signal });
    await f.until('abcdef\n');
    stop.abort();
    await f.ended;
    for await (const _ of await stream(path, { follow: true })) break;
  }));

test('a file that is away for the moment of its rotation is waited for; one that is not there is told', () =>
  inFolder(async (path) => {
    setTimeout(() => writeFileSync(path, line('here')), 150);
    assert.equal(await read(path), 'here\n');
    const o = { follow: false, timestamps: false, clock: systemClock, signal: new AbortController().signal };
    assert.equal(await openLogStream({ ...o, path: `${path}.no`, running: () => false }), undefined);
    await assert.rejects(openLogStream({ ...o, path: join(path, '..'), running: () => false }), /no regular file/);
  }));

test('from the told pod to its file: what is not there is 404, what cannot be yet is 400, in words', () =>
  inFolder(async (path) => {
    writeFileSync(path, `${line('long ago')}${new Date(Date.now() - 1000).toISOString()} stdout F just now\n`);
    const pods = [told('web', { status: { containerStatuses: [cs('app', { state: running, containerID: 'containerd://abc' })] } })];
    const ask = async (o: Partial<LogRequest> = {}, ids: Readonly<Record<string, string>> = { abc: path }): Promise<string> => {
      const request = { namespace: 'default', pod: 'web', container: 'app', follow: false, previous: false, timestamps: false, ...o };
      const answer = await openLogs(request, new AbortController().signal, {
        clock: systemClock,
        pods: () => pods,
        logPath: async (id) => ids[id],
      });
      if (!answer.ok) return `${answer.code} ${answer.message}`;
      let text = '';
      for await (const chunk of answer.value) text += Buffer.from(chunk).toString();
      return text;
    };
    assert.equal(await ask(), 'long ago\njust now\n');
    assert.equal(await ask({ sinceSeconds: 60 }), 'just now\n');
    assert.equal(await ask({ pod: 'wob' }), '404 pod "wob" not found in namespace "default"');
    assert.match(await ask({ container: 'x' }), /^404 container x is not valid for pod web/);
    assert.match(await ask({ previous: true }), /^400 previous terminated container "app"/);
    assert.match(await ask({}, {}), /^404 .* its log was removed$/);
    assert.match(await ask({}, { abc: `${path}.no` }), /^404 .* has no log file$/);
  }));

test('what a container with the host’s log folder put in place of a log is not read: no link is followed, no pipe waited for', () =>
  inFolder(async (path) => {
    writeFileSync(`${path}.secret`, line('of the host'));
    symlinkSync(`${path}.secret`, path);
    await assert.rejects(stream(path), /ELOOP/);
    rmSync(path);
    execFileSync('mkfifo', [path]);
    const stop = new AbortController();
    const late = systemClock.sleep(20_000, stop.signal).then(
      () => 'waits',
      () => '',
    );
    const opened = stream(path).then(
      () => 'opened',
      (e: Error) => e.message,
    );
    const outcome = await Promise.race([opened, late]);
    stop.abort();
    if (outcome === 'waits') writeFileSync(path, ''); // lets the reader go
    assert.match(String(outcome), /is no regular file/);
  }));
