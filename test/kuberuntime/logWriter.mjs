// A container that writes as fast as it is told: numbered lines of 4000 bytes to the file of argv[2], argv[3] bytes a second, after one
// line and argv[4] milliseconds of silence. `SIGUSR1`: it
// opens the file anew. A write that finds no room is tried again with the rest of the line, so that the only torn lines would be others' doing.
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';

const [, , path, rate, silentMs] = process.argv;
let fd = openSync(path, 'a');
process.on('SIGUSR1', () => {
  const old = fd;
  fd = openSync(path, 'a');
  closeSync(old);
  process.stdout.write('reopened\n');
});
const head = '2026-01-01T00:00:00.000000000Z stdout F ';
const begun = performance.now() + Number(silentMs);
let written = -4000;
let n = 0;
let rest;
const turn = () => {
  const due = Math.max(0, ((performance.now() - begun) / 1000) * Number(rate));
  // whatever the machine can do, a signal is heard soon
  const until = performance.now() + 5;
  while (written < due && performance.now() < until) {
    const text = rest === undefined ? `${head}${n++} `.padEnd(3999, 'x') : '';
    const line = rest ?? Buffer.from(`${text}\n`);
    try {
      const done = writeSync(fd, line);
      written += done;
      rest = done < line.length ? line.subarray(done) : undefined;
    } catch (e) {
      if (e.code !== 'ENOSPC') throw e;
      rest = line.length === 4000 ? undefined : line; // a line of which nothing was written is lost
      written = due;
    }
  }
  setTimeout(turn, 2);
};
turn();
process.on('SIGTERM', () => {
  writeFileSync(1, `lines ${n}\n`);
  process.exit(0);
});
process.stdout.write('ready\n');
