// A container that writes as much as it is told: numbered lines of 4000 bytes to the file of argv[2], the first at once, then as many bytes as
// each line of its input says, after which it says `wrote`. So it is never ahead of who reads it, however the machine divides its time.
// `SIGUSR1`: it opens the file anew. A write that finds no room is tried again with the rest of the line, so that the only torn lines would be
// others' doing; a line of which nothing was written is lost.
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';

const [, , path] = process.argv;
let fd = openSync(path, 'a');
process.on('SIGUSR1', () => {
  const old = fd;
  fd = openSync(path, 'a');
  closeSync(old);
  process.stdout.write('reopened\n');
});
const head = '2026-01-01T00:00:00.000000000Z stdout F ';
let due = 4000;
let n = 0;
let rest;
const write = () => {
  while (due > 0) {
    const text = rest === undefined ? `${head}${n++} `.padEnd(3999, 'x') : '';
    const line = rest ?? Buffer.from(`${text}\n`);
    try {
      const done = writeSync(fd, line);
      due -= done;
      rest = done < line.length ? line.subarray(done) : undefined;
    } catch (e) {
      if (e.code !== 'ENOSPC') throw e;
      rest = line.length === 4000 ? undefined : line;
      due = 0;
      process.stdout.write('full\n');
    }
  }
};
write();
let input = '';
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (input + text).split('\n');
  input = lines.pop();
  for (const line of lines) {
    due += Number(line);
    write();
    process.stdout.write('wrote\n');
  }
});
process.on('SIGTERM', () => {
  writeFileSync(1, `lines ${n}\n`);
  process.exit(0);
});
process.stdout.write('ready\n');
