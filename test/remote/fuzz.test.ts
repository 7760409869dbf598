/** Whatever arrives: no exception, no publishing elsewhere, nothing that stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeCommand } from '../../src/remote/decode.ts';
import { commandBed, prefix, replyTopic, self } from './commandBed.ts';

/** The same row each time (mulberry32). */
function row(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const good = JSON.stringify({
  apiVersion: 'podsched.dev/v1',
  kind: 'Command',
  id: 'a-1',
  target: { namespace: 'default', pod: 'web', container: 'app' },
  args: { tailLines: 5, follow: false, __proto__: { x: 1 } },
  replyTo: replyTopic(),
  session: 1000,
  node: self,
});
const pieces = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\\',
  '\\u0000',
  '\\ud800',
  'null',
  '1e999',
  '-0',
  '"__proto__"',
  '"constructor"',
  'ÿ',
  '\0',
  ' ',
  'true',
];

function mutated(random: (below: number) => number): Uint8Array {
  let text = good;
  for (let i = random(6); i >= 0; i--) {
    const at = random(text.length + 1);
    switch (random(4)) {
      case 0:
        text = text.slice(0, at) + text.slice(at + random(8));
        break;
      case 1:
        text = text.slice(0, at) + (pieces[random(pieces.length)] ?? '') + text.slice(at);
        break;
      case 2:
        text = text.slice(0, at) + text.slice(random(text.length), random(text.length)) + text.slice(at);
        break;
      default:
        text = text.slice(0, at);
    }
  }
  const bytes = Buffer.from(text);
  if (random(3) === 0 && bytes.length > 0) bytes[random(bytes.length)] = random(256);
  return bytes;
}

test('twenty thousand damaged commands are each decoded or refused', () => {
  const random = row(7);
  const seen = { command: 0, envelope: 0, tooLarge: 0, refused: 0 };
  for (let i = 0; i < 20_000; i++) {
    const decoded = decodeCommand(mutated(random));
    seen[decoded.as]++;
    if (decoded.as !== 'command') continue;
    const { id = 'x', target } = decoded.command;
    assert.match(id, /^[\x21-\x7e]{1,128}$/);
    assert.match(target?.pod ?? 'x', /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/);
  }
  assert.ok(seen.command > 100 && seen.refused > 1000, JSON.stringify(seen));
});

test('two thousand of them at a node: it publishes replies alone, and nothing of them stays', async () => {
  const random = row(11);
  const b = commandBed();
  const verbs = ['get', 'logs', 'exec', 'why', 'nonsense', 'restart', '__proto__'];
  for (let i = 0; i < 2_000; i++) {
    b.commands.message({
      topic: `${prefix}/cmd/${self}/${verbs[random(verbs.length)] ?? ''}`,
      payload: mutated(random),
      retain: random(20) === 0,
      queued: random(20) === 0,
      ...(random(3) === 0 && { responseTopic: [replyTopic('x'), 'elsewhere', `${prefix}/reply/+/${self}`][random(3)] ?? '' }),
    });
    if (i % 50 === 0) await b.rest();
  }
  await b.rest();
  for (const { topic } of b.published) assert.match(topic, /^podsched\/v1\/reply\/[a-z0-9-]+\/pi-07$/);
  assert.ok(b.published.length > 50);
  assert.equal(b.clock.sleeping, 0);
  assert.deepEqual(await b.store.list(''), []);
});
