/** Field case L5: a log that is asked for through the broker while it is written, rotated and packed, from a real file. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openLogs } from '../../src/operations/logs.ts';
import { systemClock } from '../../src/world/clock.ts';
import { cs, running, told } from '../operations/view.ts';
import { until } from '../until.ts';
import { commandBed } from './commandBed.ts';

const line = (n: number): string => `2026-01-01T00:00:00Z stdout F line ${String(n).padStart(6, '0')} ${'x'.repeat(80)}\n`;
const pod = told('web', { status: { containerStatuses: [cs('app', { state: running, containerID: 'containerd://c1' })] } });

test('L5: a log that is rotated while it is sent: every line that stood in it comes, once and in order, and none of the new file', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'podsched-log-case-'));
  const path = join(dir, '0.log');
  const count = 3000;
  writeFileSync(path, Array.from({ length: count }, (_, i) => line(i)).join(''));
  const bed = commandBed({
    view: { logs: (request, signal) => openLogs(request, signal, { clock: systemClock, pods: () => [pod], logPath: async () => path }) },
  });
  try {
    bed.holdAcks();
    await bed.ask('logs', { id: 'l', target: { pod: 'web' }, args: { tailLines: count } });
    await until('the first piece waits for its PUBACK', () => bed.unacked() > 0);
    renameSync(path, join(dir, '0.log.20260101-000000'));
    writeFileSync(path, line(999_999));
    appendFileSync(join(dir, '0.log.20260101-000000'), line(count));
    const ended = () => bed.replies().at(-1)?.chunk?.last === true;
    await until('the log ends', async () => {
      await bed.ack();
      return ended();
    });
    const lines = bed.data().trimEnd().split('\n');
    const numbers = lines.map((l) => Number(l.slice('line '.length, 'line 000000'.length)));
    assert.deepEqual(
      numbers.slice(0, count),
      Array.from({ length: count }, (_, i) => i),
    );
    assert.ok(!numbers.includes(999_999) && numbers.length <= count + 1);
    assert.equal(bed.replies().at(-1)?.status, 'ok');
  } finally {
    await bed.commands.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
