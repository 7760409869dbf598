/** Rotation (field case G6) step by step, on a virtual clock and a real disk. */
import assert from 'node:assert/strict';
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { RuntimeError } from '../../src/container/runtime.ts';
import { keepTail } from '../../src/kuberuntime/logFiles.ts';
import { FakeClock } from '../fakes/fakeClock.ts';
import { LogHouse, line, until, type Writer, wait } from './logHouse.ts';

/** Of the test that runs. */
let folder = '';

/** Node does not tell that it compresses; the file that it compresses into lies there meanwhile, and while the packer rests. */
function packs(): boolean {
  try {
    return readdirSync(folder).some((name) => name.endsWith('.tmp'));
  } catch {
    return false; // a test has put something else in its place
  }
}

/** The disk is real: what a waking caused is done when nothing is asked of the disk any more. */
async function calm(clock: FakeClock): Promise<void> {
  for (let still = 0; still < (packs() ? 50 : 4); ) {
    await clock.advance(0);
    await wait(1);
    const busy = process.getActiveResourcesInfo().some((r) => /^FSReq|CloseReq|FileHandle/i.test(r));
    still = busy ? 0 : still + 1;
  }
}
async function advance(clock: FakeClock, ms: number): Promise<void> {
  await clock.advance(ms);
  await calm(clock);
}

async function withHouse(work: (house: LogHouse, clock: FakeClock) => Promise<void>, o: ConstructorParameters<typeof LogHouse>[1] = {}) {
  const clock = new FakeClock(new Date(2026, 0, 1, 12, 0, 0).getTime());
  const house = new LogHouse(clock, o);
  folder = house.dir;
  try {
    await work(house, clock);
  } finally {
    await house.stop();
  }
}
const fill = (writer: Writer, lines: number): void => {
  for (let i = 0; i < lines; i++) writer.write(100);
};

test('a quiet log costs one look a minute, all in one waking; its first write after that is looked at soon', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    house.run();
    await calm(clock);
    await advance(clock, 1000);
    assert.deepEqual([...house.watched.keys()], [writer.path]);
    assert.equal(clock.sleeping, 1);
    const next = (clock.nextInMs ?? 0) + clock.monotonic();
    assert.equal(next % 60_000, 0);
    await advance(clock, 3_600_000);
    assert.deepEqual(house.reopened, []);
    fill(writer, 15);
    house.watched.get(writer.path)?.();
    assert.equal(house.watched.size, 0, 'one write wakes, the thousand after it do not');
    await advance(clock, 199);
    assert.deepEqual(house.reopened, []);
    await advance(clock, 1);
    assert.deepEqual(house.reopened, ['id-0']);
  }));

test('without a running container nothing is looked at, and no timer runs', () =>
  withHouse(async (house, clock) => {
    house.run();
    await calm(clock);
    assert.equal(clock.sleeping, 0);
    house.start(0).write();
    house.rotation.look();
    await calm(clock);
    assert.equal(clock.sleeping, 1);
    house.end(0);
    house.rotation.look();
    await calm(clock);
    assert.equal(clock.sleeping, 0);
    assert.equal(house.watched.size, 0);
  }));

test('a full log is moved aside under the local time and opened anew; two parts are kept, the older packed', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    house.run();
    await calm(clock);
    const seen: string[][] = [];
    for (let minute = 0; minute < 4; minute++) {
      for (let s = 0; s < 60; s += 6) {
        fill(writer, 1);
        house.watched.get(writer.path)?.();
        await advance(clock, 3000);
        await advance(clock, 3000);
      }
      await calm(clock);
      seen.push(Object.keys(house.files()));
    }
    assert.match(seen[0]?.join(' ') ?? '', /^0\.log 0\.log\.20260101-12\d{4}$/);
    assert.match(seen[3]?.join(' ') ?? '', /^0\.log 0\.log\.20260101-12\d{4}\.gz 0\.log\.20260101-12\d{4}$/);
    assert.equal(house.reopened.length, 4);
    const packed = Object.keys(house.files()).find((n) => n.endsWith('.gz')) ?? '';
    assert.equal(statSync(join(house.dir, packed)).mode & 0o777, 0o644);
    const numbers =
      house
        .text()
        .match(/(?<=F )\d+/g)
        ?.map(Number) ?? [];
    assert.deepEqual(
      numbers,
      Array.from({ length: 20 }, (_, i) => 20 + i),
      'what is kept is the newest, whole and in order',
    );
  }));

test('a flood’s parts are not packed, and the cap counts', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    house.run();
    await calm(clock);
    await advance(clock, 1000);
    fill(writer, 1);
    house.watched.get(writer.path)?.();
    for (let i = 0; i < 100; i++) {
      fill(writer, 3);
      await advance(clock, 100);
      assert.ok(house.total() <= 3000 + 300 * 10, JSON.stringify(house.files()));
    }
    assert.ok(house.total() <= 3000 + 300);
    assert.equal(Object.keys(house.files()).filter((n) => /gz|tmp/.test(n)).length, 0);
    assert.ok(house.reopened.length >= 20);
    const numbers =
      house
        .text()
        .match(/(?<=F )\d+/g)
        ?.map(Number) ?? [];
    assert.deepEqual(
      numbers,
      Array.from({ length: numbers.length }, (_, i) => 301 - numbers.length + i),
    );
  }));

test('a crash loop stays under the cap over all its attempts, and each one’s last lines are the last to go', () =>
  withHouse(async (house, clock) => {
    house.run();
    for (let n = 0; n < 12; n++) {
      fill(house.start(n), 8);
      house.rotation.look();
      await calm(clock);
      house.end(n);
      house.rotation.look();
      await calm(clock);
      assert.ok(house.total() <= 3000, JSON.stringify(house.files()));
    }
    assert.deepEqual(house.files(), { '10.log': 800, '11.log': 800, '9.log': 800 });
  }));

test('logs of attempts that the runtime has forgotten count and go first', () =>
  withHouse(async (house, clock) => {
    for (const n of [1, 2, 3]) house.put(`${n}.log`, line('old').repeat(40));
    fill(house.start(4), 2);
    house.run();
    await calm(clock);
    assert.equal(house.files()['1.log'], undefined);
    assert.ok(house.total() <= 3000);
    assert.equal(house.files()['4.log'], 200);
  }));

test('a container that burst and ended keeps the end of its log, from a line’s start', () =>
  withHouse(async (house, clock) => {
    house.run();
    fill(house.start(0), 2);
    fill(house.start(1), 77);
    house.end(0);
    house.end(1);
    house.rotation.look();
    await calm(clock);
    assert.deepEqual(house.files(), { '1.log': 1000 });
    assert.deepEqual(
      house
        .text()
        .match(/(?<=F )\d+/g)
        ?.map(Number),
      [67, 68, 69, 70, 71, 72, 73, 74, 75, 76],
    );
  }));

test('the end of a log is kept in whole lines wherever the cut falls', () =>
  withHouse(async (house) => {
    const path = join(house.dir, '0.log');
    const whole = Array.from({ length: 3000 }, (_, i) => line(`${i} ${'y'.repeat((i * 31) % 97)}`)).join('');
    for (const keep of [0, 1, 50, 99, 100, 101, 70_000, 131_072, whole.length - 1, whole.length, whole.length + 1]) {
      writeFileSync(path, whole);
      await keepTail(path, keep);
      const left = readFileSync(path, 'utf8');
      assert.ok(left.length <= keep && whole.endsWith(left) && (left === '' || left.startsWith('2026-')), String(keep));
      assert.ok(left.length > keep - 250 || left.length === whole.length, String(keep));
    }
    writeFileSync(path, 'z'.repeat(200_000));
    await keepTail(path, 1000);
    assert.equal(readFileSync(path, 'utf8'), '', 'what is no line is not kept');
  }));

test('a missing log is opened anew', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    rmSync(writer.path);
    house.run();
    await calm(clock);
    assert.deepEqual(house.reopened, ['id-0']);
    assert.ok(existsSync(writer.path));
    assert.equal(house.warnings.length, 0);
  }));

test('a log that stays missing is asked for less and less often', () =>
  withHouse(async (house, clock) => {
    house.reopen = () => Promise.reject(new RuntimeError('unknown', 'no such folder'));
    rmSync(house.start(0).path);
    house.run();
    await calm(clock);
    for (let i = 0; i < 60; i++) await advance(clock, 5000);
    assert.ok(house.reopened.length >= 7 && house.reopened.length <= 12, String(house.reopened.length));
    assert.equal(house.warnings.length, 1);
  }));

test('when the runtime opens no new file the log is moved back, and tried again', () =>
  withHouse(async (house, clock) => {
    house.reopen = () => Promise.reject(new RuntimeError('unavailable', 'away'));
    const writer = house.start(0);
    fill(writer, 12);
    house.run();
    await calm(clock);
    assert.deepEqual(house.files(), { '0.log': 1200 });
    assert.equal(house.reopened.length, 1);
    fill(writer, 1);
    await advance(clock, 999);
    assert.deepEqual(house.files(), { '0.log': 1300 });
    house.reopen = undefined;
    for (let i = 0; i < 3; i++) await advance(clock, 1000);
    assert.deepEqual(Object.values(house.files()), [0, 1300]);
  }));

test('a reopening that hangs is given up, and one whose answer is lost counts', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    house.reopen = () => new Promise(() => {});
    fill(writer, 12);
    house.run();
    await calm(clock);
    assert.equal(Object.keys(house.files()).length, 1);
    await advance(clock, 5000);
    assert.deepEqual(house.files(), { '0.log': 1200 }, 'moved back');
    house.reopen = () => {
      writer.reopen();
      return Promise.reject(new RuntimeError('deadlineExceeded', 'late'));
    };
    for (let i = 0; i < 3; i++) await advance(clock, 1000);
    assert.deepEqual(Object.values(house.files()), [0, 1200], 'a new file is there: the old one must not cover it');
  }));

test('the last resort: over the cap, and no new file is opened: the log is emptied, and begins with a line', () =>
  withHouse(async (house, clock) => {
    house.reopen = () => Promise.reject(new RuntimeError('unknown', 'no'));
    const writer = house.start(0);
    house.put('0.log.20250101-000000', line('old').repeat(10));
    house.run();
    await calm(clock);
    for (let i = 0; i < 60; i++) {
      fill(writer, 1);
      house.watched.get(writer.path)?.();
      await advance(clock, 300);
      assert.ok(house.total() <= 3000 + 400, JSON.stringify(house.files()));
    }
    assert.deepEqual(Object.keys(house.files()), ['0.log']);
    assert.match(house.text(), /^2026/);
    assert.ok(house.warnings.some((w) => /emptied/.test(w)));
  }));

test('a link in the place of a log is neither moved nor followed', () =>
  withHouse(async (house, clock) => {
    const victim = join(house.root, 'victim');
    writeFileSync(victim, 'x'.repeat(5000));
    const writer = house.start(0);
    rmSync(writer.path);
    symlinkSync(victim, writer.path);
    house.put('0.log.20250101-000000', 'x'.repeat(5000));
    symlinkSync(victim, join(house.dir, '0.log.20250101-000001'));
    house.run();
    await calm(clock);
    for (let i = 0; i < 5; i++) await advance(clock, 10_000);
    assert.equal(readFileSync(victim, 'utf8').length, 5000);
    assert.ok(house.reopened.length <= 8);
  }));

test('a clock that was set back does not make the newest part the oldest', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    house.put('0.log.20270101-000000', line('newest so far'));
    fill(writer, 12);
    house.run();
    await calm(clock);
    assert.deepEqual(Object.keys(house.files()), ['0.log', '0.log.20270101-000000', '0.log.20270101-000000-001']);
  }));

test('a log that was emptied or replaced by somebody is looked at as it is now', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    fill(writer, 9);
    house.run();
    await calm(clock);
    truncateSync(writer.path, 0);
    await advance(clock, 1000);
    fill(writer, 9);
    for (let i = 0; i < 10; i++) await advance(clock, 1000);
    assert.deepEqual(house.reopened, []);
    utimesSync(writer.path, 0, 0); // times of files decide nothing
    renameSync(writer.path, `${writer.path}.moved`);
    writer.reopen();
    fill(writer, 11);
    await advance(clock, 60_000);
    assert.deepEqual(house.reopened, ['id-0']);
  }));

test('a folder that cannot be read is reported once, and looked at again', () =>
  withHouse(async (house, clock) => {
    const writer = house.start(0);
    fill(writer, 12);
    // a file in the place of the folder
    rmSync(house.dir, { recursive: true });
    writeFileSync(house.dir, '');
    house.reopen = () => Promise.reject(new RuntimeError('unknown', 'not a folder'));
    house.run();
    await calm(clock);
    for (let i = 0; i < 5; i++) await advance(clock, 5_000);
    assert.ok(house.warnings.length <= 2, house.warnings.join());
    assert.ok(clock.sleeping > 0);
  }));

test('who ends while a log is being moved ends in order', () =>
  withHouse(async (house, clock) => {
    let go = () => {};
    const writer = house.start(0);
    house.reopen = () =>
      new Promise((resolve) => {
        go = () => {
          writer.reopen();
          resolve();
        };
      });
    fill(writer, 12);
    house.run();
    await until('it reopens', () => house.reopened.length === 1);
    house.containers.length = 0;
    house.rotation.look();
    go();
    await calm(clock);
    assert.equal(clock.sleeping, 0);
    assert.equal(house.watched.size, 0);
  }));
