// What the probes of the bench ask: answers 200 at once, and notes when each path was asked. Arguments: the port.
// GET /-/seen: by path, how often and with what longest pause (ms) since the last such question; the pause that goes on counts too.
import { createServer } from 'node:http';

const seen = new Map();
let since = performance.now();

function look() {
  const now = performance.now();
  const told = [...seen].map(([path, { count, last, longest }]) => ({ path, count, longestMs: Math.max(longest, now - last) }));
  const ms = now - since;
  since = now;
  // the last arrival stays: a pause that began before goes on
  for (const entry of seen.values()) Object.assign(entry, { count: 0, longest: 0 });
  return JSON.stringify({ ms, paths: told });
}

createServer((request, response) => {
  const { url = '' } = request;
  if (url === '/-/seen') return response.end(look());
  const now = performance.now();
  const entry = seen.get(url);
  if (entry === undefined) seen.set(url, { count: 1, last: now, longest: 0 });
  else {
    entry.count += 1;
    entry.longest = Math.max(entry.longest, now - entry.last);
    entry.last = now;
  }
  response.end('ok');
}).listen(Number(process.argv[2]), '127.0.0.1');
