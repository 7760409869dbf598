/** Field case G6, shortened: the cap in real time on a file system of its own: a flood, a disk without room. Needs root (it mounts a tmpfs). */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerId } from '../../src/container/words.ts';
import { isFull, packLog } from '../../src/kuberuntime/logFiles.ts';
import { LogPacker } from '../../src/kuberuntime/logPacker.ts';
import { systemClock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';
import { diskIsStill } from '../until.ts';
import { LogHouse, line, until, wait } from './logHouse.ts';

const skip = process.getuid?.() === 0 ? false : 'mounting needs root';
const MiB = 2 ** 20;

/** A folder on a tmpfs of so many bytes. */
async function onDisk(bytes: number, work: (root: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'podsched-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', root]);
  try {
    await work(root);
  } finally {
    execFileSync('umount', ['-l', root]);
    rmSync(root, { recursive: true });
  }
}

/** Starts a writer of attempt 0 in a process of its own, which writes when it is let, and reopens when it is told. */
async function container(house: LogHouse) {
  const path = join(house.dir, '0.log');
  const child = spawn(process.execPath, [new URL('./logWriter.mjs', import.meta.url).pathname, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let said = '';
  const count = (word: string): number => said.split(word).length - 1;
  child.stdout.on('data', (d) => {
    said += d;
  });
  await until('the writer writes', () => said.includes('ready'));
  house.reopen = async () => {
    const wanted = count('reopened') + 1;
    child.kill('SIGUSR1');
    await until('the writer reopens', () => count('reopened') >= wanted || child.exitCode !== null || child.signalCode !== null);
    if (count('reopened') < wanted) throw new Error('the container is not running');
  };
  house.containers.push({ id: 'id-0' as ContainerId, uid: 'uid-1' as PodUid, name: 'c', logPath: path, running: true });
  const ended = new Promise((resolve) => child.on('close', resolve)); // its last words are read then
  let parts = 0;
  return {
    /** So many bytes, a part every `everyMs` as long as the part before is written: who rotates has as many turns as parts come. */
    async write(bytes: number, part: number, everyMs: number, look: () => void): Promise<void> {
      for (let left = bytes; left > 0; left -= part) {
        child.stdin.write(`${part}\n`);
        parts++;
        await wait(everyMs);
        await until('the writer has written', () => count('wrote') >= parts);
        look();
      }
    },
    /** How often it found no room. */
    refused: () => count('full'),
    async end(): Promise<number> {
      child.kill('SIGTERM');
      await ended;
      return Number(/lines (\d+)/.exec(said)?.[1]);
    },
  };
}

/** Numbers of the lines that are left, from whole lines only; anything else fails. */
function numbers(text: string): number[] {
  const lines = text.split('\n');
  assert.equal(lines.pop(), '', 'the last line has its end');
  return lines.map((l, i) => {
    assert.match(l, /^2026-01-01T00:00:00\.000000000Z stdout F \d+ x+$/, `line ${i} of ${lines.length}`);
    assert.equal(l.length, 3999);
    return Number(l.slice(40, l.indexOf(' x')));
  });
}

/** 20 MB/s, on a machine that keeps up with it. */
const flood = { part: 200_000, everyMs: 10 };

test('a flood of 20 MB/s: the logs stay within the cap and what is written in half a second, and no line is torn', { skip }, () =>
  onDisk(64 * MiB, async (root) => {
    const house = new LogHouse(systemClock, { root: join(root, 'logs'), realWatch: true, maxSizeBytes: () => MiB, maxFiles: () => 3 });
    try {
      house.run();
      const writer = await container(house);
      house.rotation.look();
      let most = 0;
      await writer.write(60e6, flood.part, flood.everyMs, () => {
        most = Math.max(most, house.total());
      });
      const lines = await writer.end();
      house.containers.length = 0;
      house.rotation.look();
      assert.ok(most <= 3 * MiB + 10e6, `${most} bytes`);
      await wait(100);
      await diskIsStill();
      const left = numbers(house.text());
      assert.deepEqual(
        left,
        left.map((_, i) => lines - left.length + i),
        'what is left is the newest, in order, without gaps',
      );
      assert.equal(Object.keys(house.files()).filter((n) => /gz|tmp/.test(n)).length, 0, 'a flood is not packed');
    } finally {
      await house.stop();
    }
  }),
);

test('silence, then a flood: it is found at its first write', { skip }, () =>
  onDisk(64 * MiB, async (root) => {
    const house = new LogHouse(systemClock, { root: join(root, 'logs'), realWatch: true, maxSizeBytes: () => MiB, maxFiles: () => 2 });
    try {
      house.run();
      const writer = await container(house);
      house.rotation.look();
      await wait(1500);
      let most = 0;
      await writer.write(28e6, flood.part, flood.everyMs, () => {
        most = Math.max(most, house.total());
      });
      await writer.end();
      assert.ok(most > MiB && most <= 2 * MiB + 10e6, `${most} bytes, ${house.reopened.length} rotations`);
    } finally {
      await house.stop();
    }
  }),
);

test('a disk smaller than the cap: rotated logs go, and the newest lines are written on', { skip }, () =>
  onDisk(4 * MiB, async (root) => {
    writeFileSync(join(root, 'others'), Buffer.alloc(2 * MiB));
    const house = new LogHouse(systemClock, { root: join(root, 'logs'), realWatch: true, maxSizeBytes: () => MiB, maxFiles: () => 3 });
    try {
      house.run();
      const writer = await container(house);
      house.rotation.look();
      let full = 0;
      // 2 MB/s; room for less than a few lines is none
      await writer.write(12e6, 40_000, 20, () => {
        const { bfree, bsize } = statfsSync(root);
        if (bfree * bsize < 65_536) full++;
      });
      const lines = await writer.end();
      house.containers.length = 0;
      house.rotation.look();
      await wait(100);
      await diskIsStill();
      assert.ok(full + writer.refused() > 0, 'the disk was full at times');
      const left = numbers(house.text().replace(/[^\n]*$/, ''));
      assert.ok(lines > 1500);
      assert.ok((left.at(-1) ?? 0) > lines - 750, `the newest lines are there: ${left.at(-1)} of ${lines}`);
      assert.equal(house.files()['0.log'] === undefined, false);
      assert.equal(statfsSync(root).bfree >= 0 && existsSync(join(root, 'others')), true);
      assert.equal(readFileSync(join(root, 'others')).length, 2 * MiB);
    } finally {
      await house.stop();
    }
  }),
);

test('without room for a packed copy the file stays as it is, nothing lies beside it, and the caller is told', { skip }, () =>
  onDisk(2 * MiB, async (root) => {
    const path = join(root, '0.log.20260101-000000');
    // what cannot be packed well
    const noise = Array.from({ length: 4000 }, () => line(Math.random().toString(36).repeat(8))).join('');
    writeFileSync(path, noise);
    writeFileSync(join(root, 'others'), Buffer.alloc(statfsSync(root).bfree * 4096));
    assert.equal(await isFull(root), true);
    const ended: string[] = [];
    const packer = new LogPacker({ clock: systemClock, log: silentLog, mayGrow: () => true, ended: (_, how) => void ended.push(how) });
    packer.queue(root, ['0.log.20260101-000000']);
    await until('the packing ends', () => ended.length > 0);
    assert.deepEqual(ended, ['noRoom']);
    assert.equal(readFileSync(path, 'utf8'), noise);
    assert.equal(existsSync(`${path}.tmp`) || existsSync(`${path}.gz`), false);
    rmSync(join(root, 'others'));
    assert.equal(await isFull(root), false);
    packer.queue(root, ['0.log.20260101-000000']);
    await until('the packing ends', () => ended.length > 1);
    assert.deepEqual(ended, ['noRoom', 'packed']);
    assert.equal(gunzipSync(readFileSync(`${path}.gz`)).toString(), noise);
    assert.equal(existsSync(path), false);
  }),
);

test('packing rests four times as long as it works, ends when told, and leaves nothing behind', async () => {
  const root = mkdtempSync(join(tmpdir(), 'podsched-pack-'));
  try {
    mkdirSync(root, { recursive: true });
    const path = join(root, '0.log.20260101-000000');
    writeFileSync(path, line('some text '.repeat(50)).repeat(20_000));
    const before = process.cpuUsage();
    const begun = performance.now();
    await packLog(path, { clock: systemClock, signal: new AbortController().signal, written: () => {} });
    const cpu = process.cpuUsage(before);
    const share = (cpu.user + cpu.system) / 1000 / (performance.now() - begun);
    assert.ok(share < 0.6, `${share} of one CPU`);
    assert.equal(gunzipSync(readFileSync(`${path}.gz`)).length, 20_000 * line('some text '.repeat(50)).length);

    writeFileSync(path, line('some text '.repeat(50)).repeat(20_000));
    const stop = new AbortController();
    const packing = packLog(path, { clock: systemClock, signal: stop.signal, written: (bytes) => void (bytes > 0 && stop.abort()) });
    await assert.rejects(packing, { name: 'AbortError' });
    assert.equal(existsSync(`${path}.tmp`), false);
    assert.equal(existsSync(path), true);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
