/** The figures as they are read from a real disk. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fsSpace, systemStats } from '../../src/operations/statsFiles.ts';

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-stats-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

const stats = (dir: string) =>
  systemStats({
    roots: { proc: join(dir, 'proc'), sys: join(dir, 'sys'), etc: join(dir, 'etc'), run: join(dir, 'run') },
    podLogsDir: join(dir, 'logs'),
  });

test('logs of a container are all files in its folder, by what they take on the disk', async (t) => {
  const dir = folder(t);
  const logs = join(dir, 'logs/default_web_uid-1/app');
  mkdirSync(logs, { recursive: true });
  writeFileSync(join(logs, '0.log'), 'x'.repeat(100_000));
  writeFileSync(join(logs, '0.log.20260101-000000.gz'), 'x'.repeat(10));
  symlinkSync('/nowhere', join(logs, '1.log'));
  const web = { namespace: 'default', name: 'web', uid: 'uid-1' };
  const used = await stats(dir).logUsage(web, 'app');
  assert.equal(used?.inodesUsed, 4);
  assert.ok((used?.usedBytes ?? 0) >= 100_000 && (used?.usedBytes ?? 0) < 200_000, String(used?.usedBytes));
  assert.equal(await stats(dir).logUsage(web, 'side'), undefined);
});

test('a file system is asked how much is left of it; one that is not there says nothing', async (t) => {
  const found = await fsSpace(folder(t));
  assert.ok(found !== undefined && found.capacityBytes > 0 && found.availableBytes <= found.capacityBytes);
  assert.equal(await fsSpace('/nowhere/at/all'), undefined);
});

test('the temperature is that of the board, and nothing where it has no sensor', async (t) => {
  const dir = folder(t);
  assert.equal(await stats(dir).temperature?.(), undefined);
  const zone = join(dir, 'sys/class/thermal/thermal_zone0');
  mkdirSync(zone, { recursive: true });
  writeFileSync(join(zone, 'type'), 'cpu-thermal\n');
  writeFileSync(join(zone, 'temp'), '48312\n');
  assert.equal(await stats(dir).temperature?.(), 48.312);
  writeFileSync(join(zone, 'temp'), 'garbage\n');
  assert.equal(await stats(dir).temperature?.(), undefined);
});
