/** What a container said at its end, from files that it wrote itself: nothing in them can be trusted. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PodUid } from '../../src/api/objects.ts';
import { annotations, type ContainerId, type ContainerStatus, labels, type SandboxId } from '../../src/container/words.ts';
import { lastLines, lastWords } from '../../src/kuberuntime/lastWords.ts';
import type { WallTime } from '../../src/world/clock.ts';
import { line } from './logHouse.ts';

interface Setting {
  readonly root: string;
  /** The message file, not made yet. */
  readonly message: string;
  /** The log, not made yet. */
  readonly log: string;
  status(o?: Partial<ContainerStatus>, policy?: string): ContainerStatus;
}

async function inSetting(work: (s: Setting) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'podsched-words-'));
  const folder = join(root, 'pods', 'uid-1', 'containers', 'c');
  mkdirSync(folder, { recursive: true });
  const message = join(folder, '0000000a');
  const log = join(root, '10.log');
  const status: Setting['status'] = (o = {}, policy = 'File') => ({
    id: 'id' as ContainerId,
    sandboxId: 'sandbox' as SandboxId,
    name: 'c',
    attempt: 10,
    image: '',
    imageRef: '',
    state: 'exited',
    createdAt: 0 as WallTime,
    exitCode: 1,
    reason: 'Error',
    message: '',
    logPath: log,
    mounts: [
      { containerPath: '/etc/hosts', hostPath: join(root, 'hosts') },
      { containerPath: '/dev/termination-log', hostPath: message },
    ],
    labels: { [labels.podUid]: 'uid-1' as PodUid },
    annotations: { [annotations.terminationMessagePath]: '/dev/termination-log', [annotations.terminationMessagePolicy]: policy },
    ...o,
  });
  try {
    await work({ root, message, log, status });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

test('the message is what the container wrote, its last 4096 bytes', () =>
  inSetting(async ({ message, status }) => {
    assert.equal(await lastWords(status()), '', 'no file');
    writeFileSync(message, '');
    assert.equal(await lastWords(status()), '');
    writeFileSync(message, 'disk on fire\n');
    assert.equal(await lastWords(status()), 'disk on fire\n');
    writeFileSync(message, `${'a'.repeat(5000)}${'b'.repeat(4096)}`);
    assert.equal(await lastWords(status()), 'b'.repeat(4096));
  }));

test('a file of terabytes, bytes that are no text, and a character cut in two make a valid text', () =>
  inSetting(async ({ message, status }) => {
    writeFileSync(message, '');
    truncateSync(message, 2 ** 40);
    appendFileSync(message, 'last');
    assert.equal(await lastWords(status()), `${'\0'.repeat(4092)}last`);
    writeFileSync(message, Buffer.from([0x66, 0xff, 0xfe, 0x80, 0x67]));
    assert.equal(await lastWords(status()), 'f\ufffd\ufffd\ufffdg');
    writeFileSync(message, `€${'x'.repeat(4095)}`);
    assert.equal(await lastWords(status()), 'x'.repeat(4095));
  }));

test('a link, a pipe and a folder in its place are said, not followed nor waited for', () =>
  inSetting(async ({ root, message, status }) => {
    const secret = join(root, 'secret');
    writeFileSync(secret, 'the secret');
    symlinkSync(secret, message);
    const of = (text: RegExp) => new RegExp(`^Error on reading termination log ${message}: .*${text.source}`);
    assert.match(await lastWords(status()), of(/ELOOP/));
    rmSync(message);
    execFileSync('mkfifo', [message]);
    assert.match(await lastWords(status()), of(/no regular file/));
    rmSync(message);
    mkdirSync(message);
    assert.match(await lastWords(status()), of(/no regular file/));
  }));

test('only the file that was made for the message is read, not what a manifest mounts at its place', () =>
  inSetting(async ({ root, message, status }) => {
    const foreign = join(root, 'shadow');
    writeFileSync(foreign, 'root:secret');
    writeFileSync(message, 'mine');
    const mounts = [{ containerPath: '/dev/termination-log', hostPath: foreign }];
    assert.equal(await lastWords(status({ mounts })), '');
    assert.equal(await lastWords(status({ mounts: [...mounts, { containerPath: '/dev/termination-log', hostPath: message }] })), 'mine');
    assert.equal(await lastWords(status({ mounts: [] })), '');
    assert.equal(await lastWords(status({ labels: { [labels.podUid]: 'uid-2' } })), '', 'of another pod');
    assert.equal(await lastWords(status({ annotations: {} })), '');
  }));

test('with FallbackToLogsOnError the end of the log stands in, for a failure that left no message', () =>
  inSetting(async ({ message, log, status }) => {
    writeFileSync(log, line('boom'));
    const fallback = 'FallbackToLogsOnError';
    assert.equal(await lastWords(status({}, fallback)), 'boom\n', 'no file');
    writeFileSync(message, '');
    assert.equal(await lastWords(status({}, fallback)), 'boom\n', 'an empty file');
    assert.equal(await lastWords(status({ mounts: [] }, fallback)), 'boom\n', 'none mounted');
    for (const o of [{ exitCode: 0 }, { reason: 'ContainerCannotRun' }, { logPath: '' }])
      assert.equal(await lastWords(status(o, fallback)), '', JSON.stringify(o));
    assert.equal(await lastWords(status()), '', 'another policy');
    writeFileSync(message, 'mine');
    assert.equal(await lastWords(status({}, fallback)), 'mine');
    rmSync(message);
    symlinkSync(log, message);
    assert.match(await lastWords(status({}, fallback)), /^Error on reading termination log/);
    rmSync(message);
    rmSync(log);
    assert.equal(await lastWords(status({}, fallback)), '');
    mkdirSync(log);
    assert.match(await lastWords(status({}, fallback)), /^Error on reading termination message from logs: /);
    chmodSync(log, 0o755);
  }));

test('of a log the last 80 lines are taken, at most their last 2048 bytes', () =>
  inSetting(async ({ log, status }) => {
    const all = Array.from({ length: 5000 }, (_, i) => String(i));
    const words = async (texts: readonly string[]) => {
      writeFileSync(log, texts.map((t) => line(t)).join(''));
      return lastWords(status({}, 'FallbackToLogsOnError'));
    };
    assert.equal(
      await words(all),
      all
        .slice(-80)
        .map((t) => `${t}\n`)
        .join(''),
    );
    assert.equal(await words(['x'.repeat(1500), 'y'.repeat(1500)]), `${'x'.repeat(546)}\n${'y'.repeat(1500)}\n`);
    assert.equal(await words(Array.from({ length: 10 }, () => 'z'.repeat(16_000))), `${'z'.repeat(2047)}\n`);
  }));

test('a log that was rotated just before the end goes on from its newest part', () =>
  inSetting(async ({ log, status }) => {
    writeFileSync(log, line('and died'));
    writeFileSync(`${log}.20260101-000001`, line('old'));
    writeFileSync(`${log}.20260101-000002`, `${line('it burnt')}${line('badly')}`);
    const words = () => lastWords(status({}, 'FallbackToLogsOnError'));
    assert.equal(await words(), 'it burnt\nbadly\nand died\n');
    writeFileSync(log, '');
    assert.equal(await words(), 'it burnt\nbadly\n');
    writeFileSync(log, line('z').repeat(100));
    assert.equal(await words(), 'z\n'.repeat(80));
    writeFileSync(log, line('alone'));
    writeFileSync(`${log}.20260101-000003.gz`, 'packed');
    assert.equal(await words(), 'alone\n');
  }));

test('the end of a log: parts of a line are one line, what is no line is none, and a piece of a line begins nothing', () => {
  for (const [what, text, whole, wanted] of [
    ['nothing', '', true, ''],
    ['one', line('a'), true, 'a\n'],
    ['an unfinished last line', `${line('a')}${line('b').trimEnd()}`, true, 'a\nb'],
    ['parts', `${line('a')}${line('b1', 'P')}${line('b2', 'P')}${line('b3')}`, true, 'a\nb1b2b3\n'],
    ['garbage', `garbage\n${line('a')}\n\n${line('b')}x`, true, 'a\nb\n'],
    ['a piece first', `:00Z stdout F cut off\n${line('a')}`, false, 'a\n'],
    ['a whole line first, but nobody knows', `${line('0')}${line('a')}`, false, 'a\n'],
    ['only a piece', 'no end', false, ''],
  ] as const)
    assert.equal(lastLines(Buffer.from(text), whole), wanted, what);
  const parts = Array.from({ length: 100 }, (_, i) => `${line(`${i}-`, 'P')}${line(`${i}`)}`).join('');
  assert.equal(lastLines(Buffer.from(parts), true).split('\n').length - 1, 80);
});

const jemalloc = '<jemalloc>: Unsupported system page size\n';
const hint =
  'the image expects 4 KiB pages and this kernel has 16 KiB: boot with kernel=kernel8.img in config.txt or use an image built for 16 KiB';

// as programs with jemalloc logged it on a Pi 5
const pageSizeLogs: Readonly<Record<string, readonly string[]>> = {
  'a Rust server': [jemalloc, jemalloc, jemalloc, 'memory allocation of 16 bytes failed\n'],
  'a C++ server': [jemalloc, jemalloc, jemalloc, 'terminate called without an active exception\n'],
  'a program that ends at once': [jemalloc],
  'a program that goes on in the same line': [
    '<jemalloc>: Unsupported system page size ../glib/gprintf.c:349: failed to allocate memory\n',
  ],
};

for (const [what, lines] of Object.entries(pageSizeLogs))
  test(`F10: ${what} that was built for other memory pages ends with a hint, on such a kernel only`, () =>
    inSetting(async ({ message, log, status }) => {
      writeFileSync(log, lines.map((text) => line(text.trimEnd())).join(''));
      assert.equal(await lastWords(status(), 16384), hint);
      assert.equal(await lastWords(status(), 65536), hint.replaceAll('16 KiB', '64 KiB'));
      assert.equal(await lastWords(status(), 4096), '');
      assert.equal(await lastWords(status()), '');
      assert.equal(await lastWords(status({ exitCode: 0 }), 16384), '');
      assert.equal(await lastWords(status({}, 'FallbackToLogsOnError'), 16384), `${lines.join('')}${hint}`);
      writeFileSync(message, 'mine\n');
      assert.equal(await lastWords(status(), 16384), `mine\n${hint}`);
    }));

test('on a kernel with large pages other ends are told as they are, and a log that is gone is no error', () =>
  inSetting(async ({ message, log, status }) => {
    assert.equal(await lastWords(status(), 16384), '');
    writeFileSync(log, line('I read of <jemalloc>: Unsupported system page size'));
    assert.equal(await lastWords(status(), 16384), '');
    writeFileSync(message, 'mine\n');
    assert.equal(await lastWords(status(), 16384), 'mine\n');
  }));
