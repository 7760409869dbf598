/** Archives on their way into the runtime, with a script that says what ctr says. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Importer, type ImporterDeps } from '../../src/images/importer.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { FakeRuntime } from '../fakes/fakeRuntime.ts';
import { until } from '../until.ts';

interface Room {
  readonly dir: string;
  readonly runtime: FakeRuntime;
  readonly importer: Importer;
  /** A file beside the script. */
  file(name: string, content: Uint8Array | string): string;
  /** What the script was called with, a line for each call. */
  calls(): string[];
  read(): string;
}

/** `script`: what `ctr` does after it noted its arguments; its stdin is the archive. */
function room(t: TestContext, script: string, o: Partial<ImporterDeps> = {}): Room {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-import-'));
  const runtime = new FakeRuntime({ clock: systemClock });
  const ctr = join(dir, 'ctr');
  writeFileSync(ctr, `#!/bin/sh\necho "$*" >>'${dir}/calls'\n${script}\n`);
  chmodSync(ctr, 0o755);
  t.after(() => {
    runtime.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return {
    dir,
    runtime,
    importer: new Importer({
      clock: systemClock,
      log: silentLog,
      socket: '/run/c.sock',
      ctr,
      images: runtime,
      content: runtime,
      node: { os: 'linux', architecture: 'amd64' },
      ...o,
    }),
    file: (name, content) => {
      writeFileSync(join(dir, name), content);
      return join(dir, name);
    },
    calls: () => readFileSync(join(dir, 'calls'), 'utf8').trim().split('\n'),
    read: () => readFileSync(join(dir, 'read'), 'utf8'),
  };
}

const unpacking = (...names: string[]) => names.map((n) => `echo 'unpacking ${n} (sha256:${'a'.repeat(64)})...done'`).join('\n');
/** A script says by a file that it came so far, and goes on when the file is gone; it ends with its folder too. */
const halt = (name: string): string => `: >"$(dirname "$0")/${name}"; while [ -e "$(dirname "$0")/${name}" ]; do sleep 0.02; done`;
const takes = (dir = '"$(dirname "$0")"') => `cat >${dir}/read`;

test('an archive is read by ctr alone, its images are pinned and named', async (t) => {
  const r = room(t, `${takes()}\n${unpacking('localhost/a:1', 'localhost/b:1')}`);
  for (const name of ['localhost/a:1', 'localhost/b:1']) r.runtime.images.set(name, { state: 'present' });
  const result = await r.importer.importFile(r.file('x.tar', 'an archive'));
  assert.deepEqual(result, { ok: true, names: ['localhost/a:1', 'localhost/b:1'], problems: [] });
  assert.deepEqual(r.calls(), ['--address /run/c.sock --namespace k8s.io images import -']);
  assert.equal(r.read(), 'an archive');
  assert.deepEqual(
    r.runtime.calls.filter((c) => c.method === 'labelImage').map((c) => c.args),
    ['localhost/a:1', 'localhost/b:1'].map((name) => [name, { 'io.cri-containerd.pinned': 'pinned' }]),
  );
});

test('a packed archive reaches ctr unpacked, whatever the file is called', async (t) => {
  const r = room(t, `${takes()}\n${unpacking('localhost/busybox:1')}`);
  const result = await r.importer.importFile(r.file('x.tar', gzipSync('an archive')));
  assert.equal(result.ok, true);
  assert.equal(r.read(), 'an archive');
});

test('layers go to the snapshotter of the runtime', async (t) => {
  const r = room(t, unpacking('localhost/busybox:1'), { snapshotter: async () => 'native' });
  await r.importer.importFile(r.file('x.tar', 'x'));
  assert.match(r.calls()[0] ?? '', /import --snapshotter native -$/);
});

test('where ctr says nothing that is known, what is new in the list has come', async (t) => {
  const r = room(t, `echo application/vnd.oci.image; ${halt('runs')}`);
  const done = r.importer.importFile(r.file('x.tar', 'x'));
  await until('ctr runs', () => existsSync(join(r.dir, 'runs')));
  r.runtime.images.set('localhost/new:1', { state: 'present' });
  rmSync(join(r.dir, 'runs'));
  assert.deepEqual(await done, { ok: true, names: ['localhost/new:1'], problems: [] });
});

test('the runtime may know an image a moment after ctr has ended', async (t) => {
  const r = room(t, unpacking('localhost/late:1'));
  const done = r.importer.importFile(r.file('x.tar', 'x'));
  setTimeout(() => r.runtime.images.set('localhost/late:1', { state: 'present' }), 300);
  assert.deepEqual(await done, { ok: true, names: ['localhost/late:1'], problems: [] });
});

test('an image for another platform is told and not pinned; the others of the archive are', async (t) => {
  const r = room(t, unpacking('localhost/arm:1', 'localhost/busybox:1'));
  r.runtime.images.set('localhost/arm:1', { state: 'present', platform: { os: 'linux', architecture: 'arm64' } });
  assert.deepEqual(await r.importer.importFile(r.file('x.tar', 'x')), {
    ok: true,
    names: ['localhost/busybox:1'],
    problems: ['WrongPlatform: image arm64, node amd64 (localhost/arm:1)'],
  });
  assert.deepEqual(
    r.runtime.calls.filter((c) => c.method === 'labelImage').map((c) => c.args[0]),
    ['localhost/busybox:1'],
  );
});

test('an archive with nothing for this node is read once more for all platforms, so that what it is for can be told', async (t) => {
  const r = room(
    t,
    `${takes()}\ncase "$*" in *--all-platforms*) ${unpacking('localhost/arm:1')} ;; *) echo 'ctr: image might be filtered out' >&2; exit 1 ;; esac`,
  );
  r.runtime.images.set('localhost/arm:1', { state: 'present', platform: { os: 'linux', architecture: 'arm64' } });
  assert.deepEqual(await r.importer.importFile(r.file('x.tar', 'an archive')), {
    ok: false,
    message: 'x.tar: WrongPlatform: image arm64, node amd64 (localhost/arm:1)',
  });
  assert.equal(r.calls().length, 2);
  assert.equal(r.read(), 'an archive'); // from its beginning
});

test('what is wrong is told in one line that names the file', async (t) => {
  const table = [
    [
      "echo first >&2; echo 'ctr: archive/tar: invalid tar header' >&2; exit 1",
      /^x\.tar: archive\/tar: invalid tar header \(it is no archive/,
    ],
    ['exit 3', /^x\.tar: \S+\/ctr ended with code 3$/],
    ['kill -9 $$', /^x\.tar: \S+\/ctr was ended by SIGKILL$/],
    ['exit 0', /^x\.tar: no image in it has a name$/],
    [unpacking('import-2026-11-29:latest'), /^x\.tar: an image in it has no name/],
    [unpacking('short:1'), /^x\.tar: the name "short:1" in it is not complete/],
  ] as const;
  for (const [script, message] of table) {
    const r = room(t, script);
    const result = await r.importer.importFile(r.file('x.tar', 'x'));
    assert.ok(!result.ok);
    assert.match(result.message, message);
  }
});

test('a name of a file cannot steer a terminal, and no folder of the machine is in the message', async (t) => {
  const r = room(t, 'exit 3');
  const result = await r.importer.importFile(r.file('\x1b[31mx.tar', ''));
  assert.deepEqual(result, { ok: false, message: ' [31mx.tar: it is empty' });
});

test('a damaged packed file is the news, not what ctr made of its beginning', async (t) => {
  const r = room(t, "cat >/dev/null; echo 'ctr: unexpected EOF' >&2; exit 1");
  const whole = gzipSync(Buffer.alloc(100_000, 'abcdefg hijk'));
  const result = await r.importer.importFile(r.file('x.tar.gz', whole.subarray(0, whole.length - 20)));
  assert.deepEqual(result, { ok: false, message: 'x.tar.gz: unexpected end of file (the file is cut short)' });
});

test('a ctr that reads no further does not leave its unpacker waiting', async (t) => {
  const r = room(t, "exec 0<&-; echo 'ctr: no space left on device' >&2; exit 1");
  const noise = Buffer.from(Array.from({ length: 400_000 }, (_, i) => (i * 7919) % 251));
  const result = await r.importer.importFile(r.file('x.tar.gz', gzipSync(noise)));
  assert.deepEqual(result, { ok: false, message: 'x.tar.gz: no space left on device' });
});

test('what is no regular file, or is refused, is never opened by ctr', async (t) => {
  const r = room(t, 'exit 0');
  for (const [path, o, message] of [
    [r.dir, {}, /it is not a regular file/],
    ['/dev/zero', {}, /it is not a regular file/],
    [join(r.dir, 'none.tar'), {}, /ENOENT/],
    [r.file('x.tar', 'x'), { refuse: () => 'not yours' }, /^x\.tar: not yours$/],
  ] as const) {
    const result = await r.importer.importFile(path, o);
    assert.ok(!result.ok);
    assert.match(result.message, message);
  }
  assert.throws(() => r.calls());
});

test('what is no regular file is not even opened: nothing that an opening sets off happens', async (t) => {
  const r = room(t, 'exit 0');
  const fifo = join(r.dir, 'x.tar');
  execFileSync('mkfifo', [fifo]);
  const writer = spawn('sh', ['-c', `exec 3>'${fifo}'; touch '${r.dir}/opened'`]);
  t.after(() => writer.kill('SIGKILL'));
  await systemClock.sleep(300);
  const result = await r.importer.importFile(fifo);
  assert.deepEqual(result, { ok: false, message: 'x.tar: it is not a regular file' });
  await systemClock.sleep(300);
  assert.ok(!existsSync(join(r.dir, 'opened')), 'its writer waits as before');
});

test('a ctr that is not installed is told as such', async (t) => {
  const r = room(t, '', { ctr: '/no/such/ctr' });
  const result = await r.importer.importFile(r.file('x.tar', 'x'));
  assert.deepEqual(result, { ok: false, message: 'x.tar: the program /no/such/ctr is not installed' });
});

test('an import of which nothing is read any more is ended', async (t) => {
  const stuck = room(t, 'sleep 60', { stalledMs: 300 });
  const began = performance.now();
  assert.deepEqual(await stuck.importer.importFile(stuck.file('x.tar', 'x')), {
    ok: false,
    message: 'x.tar: nothing moved for 0 s, at byte 0 of 1',
  });
  assert.ok(performance.now() - began < 30_000, 'not at the end of the sleep');
});

test('an import that takes long is not ended while it goes on', async (t) => {
  const clock = new FakeClock();
  const steps = [1, 2, 3, 4, 5];
  const script = steps.map((n) => `head -c 1 >/dev/null; ${halt(`read${n}`)}`).join('\n');
  const r = room(t, `${script}\n${unpacking('localhost/busybox:1')}`, { stalledMs: 1000, clock });
  const done = r.importer.importFile(r.file('x.tar', 'x'.repeat(200_000)));
  for (const n of steps) {
    const mark = join(r.dir, `read${n}`);
    await until(`byte ${n} was read`, () => existsSync(mark) && clock.sleeping === 1);
    await clock.advance(1000);
    await until('its place was looked at', () => clock.sleeping === 1);
    rmSync(mark);
  }
  assert.equal((await done).ok, true);
});

test('the padding of a tar that ctr leaves unread is no stall: the layers are being unpacked then', async (t) => {
  const clock = new FakeClock();
  const r = room(t, `head -c 100000 >/dev/null; ${halt('unpacks')}\n${unpacking('localhost/busybox:1')}`, { stalledMs: 300, clock });
  const padded = r.file('x.tar', Buffer.concat([Buffer.alloc(100_000, 1), Buffer.alloc(10_240)]));
  const done = r.importer.importFile(padded);
  await until('all layers were read', () => existsSync(join(r.dir, 'unpacks')) && clock.sleeping === 1);
  for (let i = 0; i < 5; i++) {
    await clock.advance(300);
    await until('its place was looked at', () => clock.sleeping === 1);
  }
  rmSync(join(r.dir, 'unpacks'));
  assert.equal((await done).ok, true);
});

test('one archive after the other', async (t) => {
  const r = room(t, `cd "$(dirname "$0")"\nmkdir busy || exit 9\nsleep 0.2\nrmdir busy\n${unpacking('localhost/busybox:1')}`);
  const results = await Promise.all(['1.tar', '2.tar', '3.tar'].map((name) => r.importer.importFile(r.file(name, 'x'))));
  assert.deepEqual(
    results.map((x) => x.ok),
    [true, true, true],
  );
});

test('an abort ends the import and its processes', async (t) => {
  const r = room(t, `echo $$ >"$(dirname "$0")/pid"; exec sleep 60`);
  const stop = new AbortController();
  const done = r.importer.importFile(r.file('x.tar', 'x'), { signal: stop.signal });
  let pid = 0;
  await until('it runs', () => {
    pid = existsSync(join(r.dir, 'pid')) ? Number(readFileSync(join(r.dir, 'pid'), 'utf8')) : 0;
    return pid > 0;
  });
  stop.abort();
  await assert.rejects(done, { name: 'AbortError' });
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});
