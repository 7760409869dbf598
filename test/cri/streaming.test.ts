import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import type { StreamOptions } from '../../src/container/runtime.ts';
import { FrameReader, openStream } from '../../src/cri/spdy.ts';
import { type ExecSession, openSession, streamTarget, upgradeHeaders } from '../../src/cri/streaming.ts';
import { exited, type FakeProcess, failed, startFakeStreaming, success } from '../fakes/fakeStreaming.ts';
import { until } from '../until.ts';

const plain: StreamOptions = { stdin: false, stdout: true, stderr: true, tty: false };
const piped: StreamOptions = { ...plain, stdin: true };
const terminal: StreamOptions = { stdin: true, stdout: true, stderr: false, tty: true };

async function session(
  o: StreamOptions,
  run: (p: FakeProcess) => void | Promise<void>,
  work: (s: ExecSession, p: () => FakeProcess) => Promise<void>,
) {
  const server = await startFakeStreaming(run);
  try {
    const query = new URLSearchParams(Object.entries(o).map(([name, value]): [string, string] => [name, String(value)]));
    const opened = await new Promise<ExecSession>((resolve, reject) => {
      const asked = request({
        host: '127.0.0.1',
        port: server.port,
        path: `/exec/x?${query}`,
        method: 'POST',
        headers: upgradeHeaders,
        agent: false,
      });
      asked.on('upgrade', (_, socket, head) => resolve(openSession(socket, head, o)));
      asked.on('error', reject);
      asked.end();
    });
    await work(opened, () => {
      const [first] = server.sessions;
      assert.ok(first);
      return first;
    });
  } finally {
    await server.close();
  }
}

async function textOf(s: ExecSession): Promise<{ stdout: string; stderr: string }> {
  const said = { stdout: '', stderr: '' };
  for await (const { stream, data } of s.output) said[stream] += Buffer.from(data).toString();
  return said;
}

test('just the streams that are wanted are opened, the error stream first', async () => {
  for (const [o, streams] of [
    [plain, ['error', 'stdout', 'stderr']],
    [piped, ['error', 'stdin', 'stdout', 'stderr']],
    [terminal, ['error', 'stdin', 'stdout', 'resize']],
  ] as const) {
    await session(
      o,
      (p) => p.end(success),
      async (s, p) => {
        assert.equal(await s.done, 0);
        assert.deepEqual(p().streams, streams);
        assert.equal(p().headers['x-stream-protocol-version'], 'v4.channel.k8s.io');
      },
    );
  }
});

test('outputs come apart, and the status is the exit code or the reason', async () => {
  for (const [status, code, message] of [
    [success, 0, undefined],
    [undefined, 0, undefined],
    [exited(7), 7, undefined],
    [failed('no such file'), undefined, /^no such file$/],
    [{ status: 'Failure', reason: 'NonZeroExitCode', message: 'odd' }, undefined, /^odd$/],
  ] as const) {
    await session(
      plain,
      (p) => {
        void p.write('stdout', 'out');
        void p.write('stderr', 'err');
        void p.write('stdout', 'more');
        p.end(status);
      },
      async (s) => {
        assert.deepEqual(await textOf(s), { stdout: 'outmore', stderr: 'err' });
        if (code !== undefined) assert.equal(await s.done, code);
        else await assert.rejects(s.done, { message });
      },
    );
  }
});

test('input goes in whole, in order, and ends', () =>
  session(
    piped,
    (p) => void p.stdinEnded.then(() => p.end(success)),
    async (s, p) => {
      await s.write(Buffer.alloc(40_000, 'a'));
      await s.write(Buffer.from('b'));
      s.closeStdin();
      await s.write(Buffer.from('too late'));
      await s.done;
      assert.equal(p().stdin(), `${'a'.repeat(40_000)}b`);
    },
  ));

test('an end that comes while the last piece still waits for room cuts nothing off', () =>
  session(
    piped,
    (p) => void p.stdinEnded.then(() => p.end(success)),
    async (s, p) => {
      const last = s.write(Buffer.alloc(30_000_000, 'a'));
      s.closeStdin();
      await Promise.all([last, s.done]);
      assert.equal(p().stdin().length, 30_000_000);
    },
  ));

test('sizes are told to a terminal, and to nothing else', async () => {
  await session(
    terminal,
    (p) => p.onStdin(() => p.end(success)),
    async (s, p) => {
      s.resize({ columns: 80, rows: 24 });
      await s.write(Buffer.from('x'));
      await s.done;
      assert.deepEqual(p().sizes, ['{"Width":80,"Height":24}']);
    },
  );
  await session(
    piped,
    (p) => p.onStdin(() => p.end(success)),
    async (s, p) => {
      s.resize({ columns: 80, rows: 24 });
      await s.write(Buffer.from('x'));
      await s.done;
      assert.deepEqual(p().sizes, []);
    },
  );
});

test('a connection that breaks, or speaks something else, is no end of a command', async () => {
  await session(
    plain,
    (p) => void p.write('stdout', 'half').then(() => p.socket.end()),
    async (s) => {
      assert.equal((await textOf(s)).stdout, 'half');
      await assert.rejects(s.done, { code: 'unavailable', message: /the other side closed it/ });
    },
  );
  await session(
    plain,
    (p) => void p.socket.write('HTTP/1.1 200 OK\r\n\r\nhello there, this is no SPDY'),
    async (s) => assert.rejects(s.done, /the session ended before the command did/),
  );
  await session(
    piped,
    () => {},
    async (s) => {
      s.close();
      await assert.rejects(s.done, /closed here/);
      await s.write(Buffer.from('x'));
      s.closeStdin();
      assert.deepEqual(await textOf(s), { stdout: '', stderr: '' });
    },
  );
});

test('a ping is answered', () =>
  session(
    plain,
    async (p) => {
      p.ping(2);
      await until('the ping is answered', () => p.pongs.length > 0);
      p.end(success);
    },
    async (s, p) => {
      await s.done;
      assert.deepEqual(p().pongs, [2]);
    },
  ));

test('what is written faster than it is read waits at the writer, and all of it arrives', async () => {
  let written = 0;
  const chunk = Buffer.alloc(32_000, 'z');
  await session(
    plain,
    async (p) => {
      for (let i = 0; i < 1000; i++) {
        await p.write('stdout', chunk);
        written += chunk.length;
      }
      p.end(exited(1));
    },
    async (s) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.ok(written < 16_000_000, `${written} bytes were taken with no reader`);
      let read = 0;
      for await (const { data } of s.output) read += data.length;
      assert.deepEqual([read, await s.done], [32_000_000, 1]);
    },
  );
});

test('frames come whole, however they were cut, and an endless one is refused', () => {
  const bytes = Buffer.concat([openStream(1, { streamtype: 'error' }, true), Buffer.from([0, 0, 0, 5, 1, 0, 0, 2, 104, 105])]);
  const reader = new FrameReader();
  const frames = [...bytes].flatMap((byte) => reader.read(Buffer.from([byte])));
  assert.deepEqual(frames, [
    { kind: 'other', type: 1 },
    { kind: 'data', stream: 5, bytes: Buffer.from('hi'), last: true },
  ]);
  assert.throws(() => new FrameReader().read(Buffer.from([0, 0, 0, 1, 0, 0xff, 0xff, 0xff])), /a frame of/);
  assert.throws(() => new FrameReader().read(Buffer.from([0x80, 2, 0, 1, 0, 0, 0, 0])), /not SPDY\/3/);
});

test('only plain http on the loopback, with a port, is followed', () => {
  assert.deepEqual(streamTarget('http://127.0.0.1:43125/exec/aZ-_9'), { host: '127.0.0.1', port: 43125, path: '/exec/aZ-_9' });
  assert.deepEqual(streamTarget('http://[::1]:10010/attach/x?y=1'), { host: '::1', port: 10010, path: '/attach/x?y=1' });
  assert.equal(streamTarget('http://localhost:1/exec/x').host, 'localhost');
  for (const url of [
    '',
    '/exec/x',
    'https://127.0.0.1:1/exec/x',
    'http://10.0.0.1:1/exec/x',
    'http://127.0.0.1.example:1/x',
    'http://127.0.0.1/exec/x',
    'http://user@127.0.0.1:1/exec/x',
    'http://169.254.169.254:80/',
    'unix:///run/x.sock',
  ])
    assert.throws(() => streamTarget(url), /not on the loopback/, url);
});
