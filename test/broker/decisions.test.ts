import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NodeOnlineSchema } from '../../src/api/payloads.ts';
import { filterMatches, isFilter, isTopic } from '../../src/broker/filters.ts';
import { onlinePayload, parseOnline } from '../../src/broker/online.ts';
import { blamesFilter, blamesMessage, codeMeaning, fullJitterMs, isPlainBeyondLoopback, splayMs } from '../../src/broker/reconnect.ts';
import { RetainedTopics } from '../../src/broker/retained.ts';
import { MessageRing } from '../../src/broker/ring.ts';
import { payloadBytes, trimPayload } from '../../src/broker/trim.ts';
import type { Monotonic } from '../../src/world/clock.ts';
import { topicMatches } from '../fakes/fakeBroker.ts';
import { cpuMs } from '../until.ts';

const at = (ms: number) => ms as Monotonic;

test('full jitter: up to 1 s at first, doubling, never above 120 s', () => {
  assert.deepEqual(
    [0, 1, 2, 6, 7, 50, 2_000].map((n) => fullJitterMs(n, 1)),
    [1_000, 2_000, 4_000, 64_000, 120_000, 120_000, 120_000],
  );
  assert.equal(fullJitterMs(7, 0), 0);
});

test('the splay of a node is its own, stable, and spread over the range', () => {
  const names = Array.from({ length: 200 }, (_, i) => `pi-${i}`);
  const splays = names.map((n) => splayMs(n, 5_000));
  assert.deepEqual(
    splays,
    names.map((n) => splayMs(n, 5_000)),
  );
  assert.ok(splays.every((s) => s >= 0 && s < 5_000));
  for (let bin = 0; bin < 5; bin++) assert.ok(splays.filter((s) => Math.floor(s / 1_000) === bin).length > 20, `second ${bin}`);
});

test('what codes ask of us, and which blame a message', () => {
  const cases: [number | undefined, string, boolean][] = [
    [undefined, 'unknown', true],
    [1, 'version', false],
    [3, 'otherwise', false],
    [4, 'refused', false],
    [5, 'refused', false],
    [0x80, 'otherwise', true],
    [0x84, 'version', false],
    [0x86, 'refused', false],
    [0x87, 'refused', false],
    [0x8b, 'otherwise', false],
    [0x8d, 'otherwise', false],
    [0x8e, 'taken', false],
    [0x95, 'tooLarge', true],
    [0x97, 'quota', false],
    [0x99, 'otherwise', true],
  ];
  for (const [code, meaning, blames] of cases) {
    assert.equal(codeMeaning(code), meaning, `${code}`);
    assert.equal(blamesMessage(code), blames, `${code}`);
  }
});

test('plain text beyond loopback is told from what is safe', () => {
  const plain = [
    'mqtt://broker',
    'mqtt://192.168.1.2:1883',
    'ws://x/mqtt',
    'MQTT://x',
    'mqtt://localhost.example',
    'mqtt://127.0.0.1.example',
    'mqtt://127.0.0.1@evil',
    'mqtt://[fe80::1]:1883',
  ];
  const safe = [
    'mqtt://127.0.0.1:1883',
    'mqtt://localhost',
    'mqtt://[::1]:1883',
    'ws://127.1.2.3/mqtt',
    'mqtts://broker',
    'wss://broker',
    'mqtt://u:p@localhost',
  ];
  for (const server of plain) assert.ok(isPlainBeyondLoopback(server), server);
  for (const server of safe) assert.ok(!isPlainBeyondLoopback(server), server);
});

test('what is said online is what the schema of the contract says', () => {
  const payload = JSON.parse(
    onlinePayload('online', {
      node: 'pi-1',
      machine: 'm',
      bootID: 'b',
      session: 1,
      heartbeatSeconds: 60,
      agentVersion: '1',
      clockSynced: true,
      boot: 1,
      seq: 2,
    }),
  );
  assert.deepEqual(Object.keys(payload).sort(), [...NodeOnlineSchema.required].sort());
});

test('trimming: what fits is left as it is, what does not fits afterwards or is undefined, and it says so', () => {
  const anyText = fc.string({ maxLength: 3_000, unit: 'grapheme' });
  fc.assert(
    fc.property(fc.array(anyText, { maxLength: 60 }), fc.boolean(), fc.integer({ min: 300, max: 20_000 }), (texts, ours, max) => {
      const payload = JSON.stringify({ apiVersion: ours ? 'podsched.dev/v1' : 'v1', kind: 'X', metadata: { name: 'n' }, texts });
      const trimmed = trimPayload(payload, max);
      if (payloadBytes(payload) <= max) return assert.equal(trimmed, payload);
      if (trimmed === undefined) return;
      assert.ok(payloadBytes(trimmed) <= max);
      const o = JSON.parse(trimmed);
      assert.equal(o.metadata.name, 'n');
      assert.ok(ours ? o.truncated : o.metadata.annotations['podsched.dev/truncated']);
    }),
    { numRuns: 200 },
  );
  assert.equal(trimPayload('x'.repeat(100), 10), undefined);
});

test('the map: whatever happens in between, the last value is told, and then nothing is dirty', () => {
  const step = fc.oneof(
    fc.record({
      do: fc.constant('set' as const),
      topic: fc.integer({ min: 0, max: 3 }),
      value: fc.option(fc.integer(), { nil: undefined }),
    }),
    fc.record({ do: fc.constant('send' as const) }),
    fc.record({ do: fc.constant('ack' as const) }),
    fc.record({ do: fc.constant('lose' as const) }),
    fc.record({ do: fc.constant('forgot' as const) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const map = new RetainedTopics(() => 0.5);
      const wanted = new Map<string, string | undefined>();
      const told = new Map<string, string>();
      const flying: NonNullable<ReturnType<RetainedTopics['next']>>[] = [];
      let now = 0;
      const send = () => {
        const o = map.next(at(now), false);
        if (o === undefined) return false;
        map.sent(o.topic);
        flying.push(o);
        return true;
      };
      const ack = () => {
        const o = flying.shift();
        if (o === undefined) return false;
        if (o.payload === '') told.delete(o.topic);
        else told.set(o.topic, o.payload);
        map.acked(o, at(now));
        return true;
      };
      for (const s of steps) {
        now += 10_000;
        if (s.do === 'set') {
          const topic = `t${s.topic}`;
          const value = s.value === undefined ? undefined : `${s.value}`;
          wanted.set(topic, value);
          map.set(topic, value, { qos: 1 });
        } else if (s.do === 'send') send();
        else if (s.do === 'ack') ack();
        else if (s.do === 'lose') for (const o of flying.splice(0)) map.failed(o.topic);
        else {
          for (const o of flying.splice(0)) map.failed(o.topic);
          told.clear();
          map.spread(true, at(now));
        }
      }
      now += 20_000;
      while (send() || ack());
      assert.equal(map.dirtyCount, 0);
      assert.deepEqual(Object.fromEntries(told), Object.fromEntries([...wanted].filter(([, v]) => v !== undefined)));
    }),
    { numRuns: 500 },
  );
});

test('the ring keeps the newest, counts what it lost, and skips what has expired', () => {
  const ring = new MessageRing(3);
  for (const i of [1, 2, 3, 4]) ring.push('t', `${i}`, { qos: 1, expirySeconds: 10 }, at(i * 1_000));
  assert.equal(ring.dropped, 1);
  assert.equal(ring.take(at(12_500), false)?.payload, '3');
  assert.equal(ring.dropped, 2);
  assert.equal(ring.length, 1);
  assert.equal(ring.take(at(12_500), true), undefined);
  assert.equal(ring.length, 1);
});

test('the fake matches topics as MQTT does', () => {
  const cases: [string, string, boolean][] = [
    ['a/#', 'a/b/c', true],
    ['a/#', 'a', true],
    ['a/+', 'a/b', true],
    ['a/+', 'a/b/c', false],
    ['a/+/c', 'a/b/c', true],
    ['#', '$SYS/x', false],
    ['a', 'a/b', false],
    ['a/b', 'a', false],
  ];
  for (const [filter, topic, matches] of cases) assert.equal(topicMatches(filter, topic), matches, `${filter} ${topic}`);
});

test('what a stranger writes on the own topic is taken only as far as a node could have written it', () => {
  const heard = (o: object) => parseOnline(new TextEncoder().encode(JSON.stringify({ state: 'online', machine: 'b1', ...o })));
  assert.deepEqual(heard({ heartbeatSeconds: 60, boot: 3, session: 2 }), {
    state: 'online',
    machine: 'b1',
    heartbeatSeconds: 60,
    boot: 3,
    session: 2,
  });
  for (const machine of ['evil\n\u001b[2J', '', 'x'.repeat(65), { a: 1 }, null]) assert.equal(heard({ machine }), undefined);
  for (const o of [
    { heartbeatSeconds: 1e308 },
    { heartbeatSeconds: -1 },
    { boot: 1e308 },
    { boot: 2 ** 53 - 1 },
    { boot: 1.5 },
    { boot: 'x' },
  ])
    assert.deepEqual(heard(o), { state: 'online', machine: 'b1' }, JSON.stringify(o));
});

test('a filter takes in what the standard says, and the fake agrees', () => {
  const level = fc.constantFrom('a', 'b', 'ab', '');
  const filter = fc
    .array(fc.oneof(level, fc.constant('+')), { minLength: 1, maxLength: 4 })
    .chain((levels) => fc.boolean().map((hash) => [...levels, ...(hash ? ['#'] : [])].join('/')));
  const topic = fc.array(level, { minLength: 1, maxLength: 5 }).map((levels) => levels.join('/'));
  fc.assert(
    fc.property(filter, topic, (f, t) => {
      assert.equal(filterMatches(f, t), topicMatches(f, t), `${f} ${t}`);
    }),
    { numRuns: 2_000 },
  );
  const cases: [string, string, boolean][] = [
    ['a/#', 'a', true],
    ['a/#', 'ab', false],
    ['a/+/#', 'a/b', true],
    ['a/+/#', 'a', false],
    ['cmd/+', 'cmd/x/y', false],
  ];
  for (const [f, t, matches] of cases) assert.equal(filterMatches(f, t), matches, `${f} ${t}`);
});

test('what a broker would hang up over is neither topic nor filter', () => {
  for (const t of ['a', 'podsched/v1/desired/all/default/configmap:a~b', 'grüße/€']) assert.ok(isTopic(t) && isFilter(t), t);
  for (const f of ['#', '+', 'a/+/b', 'a/#']) assert.ok(isFilter(f) && !isTopic(f), f);
  for (const f of ['', 'a#', 'a/#/b', 'a+/b', '\u0000', 'a\u007f', 'a\u0085', '\ufffd', '\ud800', 'x'.repeat(1_025)])
    assert.ok(!isFilter(f) && !isTopic(f), JSON.stringify(f));
});

test('which ends blame a SUBSCRIBE that is out', () => {
  for (const code of [undefined, 0x80, 0x83, 0x8f, 0xa2]) assert.ok(blamesFilter(code), `${code}`);
  for (const code of [0x87, 0x8b, 0x8d, 0x8e, 0x95, 0x97]) assert.ok(!blamesFilter(code), `${code}`);
});

test('telling four times as many topics costs little more than four times as much', () => {
  const tellAll = (n: number) => () => {
    const map = new RetainedTopics(() => 0.5);
    for (let i = 0; i < n; i++) {
      map.set(`nodes/pi/pods/default/p${i}`, `${i}`, { qos: 1, expirySeconds: 60 });
      map.nextAt(at(0));
    }
    map.spread(true, at(0));
    let told = 0;
    for (let now = 0; now <= 10_000; now += 5) {
      for (let o = map.next(at(now), false); o !== undefined; o = map.next(at(now), false)) {
        map.sent(o.topic);
        map.nextAt(at(now));
        map.acked(o, at(now));
        told++;
      }
    }
    assert.equal(told, n);
  };
  tellAll(500)();
  const few = cpuMs(tellAll(2_000));
  const many = cpuMs(tellAll(8_000));
  assert.ok(many < 10 * few + 50, `${few} ms for 2,000, ${many} ms for 8,000`);
});

test('the ring is bounded in characters too', () => {
  const ring = new MessageRing(200);
  for (let i = 0; i < 100; i++) ring.push('t', `${i}${'x'.repeat(100_000)}`, { qos: 1 }, at(i));
  assert.ok(ring.length >= 5 && ring.length <= 6, `${ring.length}`);
  assert.equal(ring.dropped, 100 - ring.length);
  assert.match(ring.take(at(200), false)?.payload ?? '', /^9[45]x/);
});
