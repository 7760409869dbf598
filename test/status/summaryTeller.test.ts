import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeMetrics, NodeSummary } from '../../src/api/messages.ts';
import { nodeTopics } from '../../src/api/topics.ts';
import type { MetricsSource } from '../../src/status/metrics.ts';
import type { SummaryFacts } from '../../src/status/summary.ts';
import { type NodeReading, SummaryTeller } from '../../src/status/summaryTeller.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';

const topics = nodeTopics('podsched/v1', 'pi-07');
const day = 86_400;

function setUp(o: { quiet?: boolean; begins?: boolean } = {}) {
  const clock = new FakeClock();
  const told: { topic: string; payload: string; expirySeconds: number; at: number }[] = [];
  const world = {
    connected: false,
    conditions: [] as SummaryFacts['conditions'],
    reading: async (): Promise<NodeReading> => ({ cpuUsec: clock.monotonic() * 1000, memoryBytes: 10, temperatureCelsius: 50 }),
    metrics: async (): Promise<MetricsSource> => ({ node: {}, pods: [] }),
    reads: 0,
  };
  let seq = 0;
  const put = (topic: string, payload: string, { expirySeconds }: { readonly expirySeconds: number }) =>
    told.push({ topic, payload, expirySeconds, at: clock.monotonic() - 1_000_000 });
  const teller = new SummaryTeller({
    clock,
    log: silentLog,
    topics,
    tell: put,
    send: put,
    connected: () => world.connected,
    stamp: () => ({ boot: 3, seq: ++seq }),
    facts: () => ({ node: 'pi-07', pods: [], sync: [], conditions: world.conditions, restartsLastHour: 0 }),
    uptimeSeconds: () => clock.monotonic() / 1000,
    cpus: 4,
    readNode: () => {
      world.reads++;
      return world.reading();
    },
    readMetrics: () => world.metrics(),
    quiet: () => o.quiet === true,
    heartbeatSeconds: () => 60,
  });
  const summaries = () => told.filter((t) => t.topic === topics.summary).map((t) => JSON.parse(t.payload) as NodeSummary);
  if (o.begins !== true) teller.ready();
  world.connected = true;
  const metrics = () => told.filter((t) => t.topic === topics.metrics).map((t) => JSON.parse(t.payload) as NodeMetrics);
  return { clock, told, world, teller, summaries, metrics };
}
const broken: SummaryFacts['conditions'] = [{ type: 'UnderVoltage', status: 'True' }];

test('at each heartbeat summary and metrics are told with boot and seq, for three and two heartbeats', async () => {
  const { clock, told, teller, summaries, metrics } = setUp();
  for (let i = 0; i < 3; i++) {
    teller.heartbeat();
    await clock.advance(60_000);
  }
  assert.deepEqual([summaries().length, metrics().length], [3, 3]);
  assert.deepEqual([...new Set(told.map((t) => `${t.topic.split('/').at(-1)} ${t.expirySeconds}`))].sort(), ['metrics 120', 'summary 180']);
  const stamps = told.map((t) => JSON.parse(t.payload) as { boot: number; seq: number });
  assert.deepEqual([...new Set(stamps.map((s) => s.boot))], [3]);
  assert.equal(new Set(stamps.map((s) => s.seq)).size, 6);
});

test('use of the processors is over the time since the look before, of all of them together', async () => {
  const { clock, world, teller, summaries } = setUp();
  let cpuUsec = 5_000_000;
  world.reading = async () => ({ cpuUsec });
  teller.heartbeat();
  await clock.advance(60_000);
  cpuUsec += 60_000_000; // one of the four was busy
  teller.heartbeat();
  await clock.advance(100);
  cpuUsec += 400_000;
  world.conditions = broken;
  teller.heartbeat(); // too soon to measure: as before
  await clock.advance(60_000);
  cpuUsec = 0; // it began anew
  teller.heartbeat();
  await settle();
  assert.deepEqual(
    summaries().map((s) => s.cpuPercent),
    [undefined, 25, 25, 25],
  );
});

test('a change of counts or alerts does not wait for the heartbeat, and one that comes and goes is not told', async () => {
  const { clock, world, teller, summaries } = setUp();
  teller.heartbeat();
  await clock.advance(10_000);
  world.conditions = broken;
  teller.changed();
  await clock.advance(2_000);
  teller.changed();
  await clock.advance(3_000);
  assert.deepEqual(
    summaries().map((s) => s.alerts),
    [[], ['UnderVoltage']],
  );
  world.conditions = [];
  teller.changed();
  await clock.advance(1_000);
  world.conditions = broken;
  teller.changed();
  await clock.advance(30_000);
  assert.equal(summaries().length, 2);
  assert.equal(clock.sleeping, 0, 'nothing is waited for');
});

test('quiet: no metrics, the summary on change only and for 30 days', async () => {
  const { clock, told, world, teller, summaries, metrics } = setUp({ quiet: true });
  for (let i = 0; i < 100; i++) {
    teller.heartbeat();
    await clock.advance(900_000);
  }
  assert.deepEqual([summaries().length, metrics().length], [1, 0]);
  assert.equal(told[0]?.expirySeconds, 30 * day);
  assert.equal(world.reads, 1, 'an unchanged node is not even read');
  world.conditions = broken;
  teller.changed();
  await clock.advance(10_000);
  assert.deepEqual(summaries().at(-1)?.alerts, ['UnderVoltage']);
});

test('while the broker is away nothing is read or told, however much changes', async () => {
  const { clock, told, world, teller } = setUp();
  world.connected = false;
  for (let i = 0; i < 1000; i++) {
    world.conditions = i % 2 === 0 ? broken : [];
    teller.changed();
    await clock.advance(10_000);
  }
  assert.deepEqual([told.length, world.reads], [0, 0]);
});

test('a runtime that does not answer costs the metrics, never the summary', async () => {
  const { clock, world, teller, summaries, metrics } = setUp();
  let asked = 0;
  world.metrics = () => {
    asked++;
    return clock.sleep(600_000).then(() => Promise.reject(new Error('no answer')));
  };
  for (let i = 0; i < 5; i++) {
    teller.heartbeat();
    await clock.advance(60_000);
  }
  assert.deepEqual([summaries().length, metrics().length, asked], [5, 0, 1]);
});

test('a machine that cannot be read costs the figures, never the summary', async () => {
  const { world, teller, summaries } = setUp();
  world.reading = () => Promise.reject(new Error('/proc is gone'));
  teller.heartbeat();
  await settle();
  assert.equal(summaries().length, 1);
  assert.equal(summaries()[0]?.memoryBytes, undefined);
});

test('metrics that were measured while the connection ended are not kept for the next one', async () => {
  const { clock, world, teller, metrics } = setUp();
  world.metrics = () => clock.sleep(1_000).then(() => ({ node: {}, pods: [] }));
  teller.heartbeat();
  world.connected = false;
  await clock.advance(5_000);
  assert.equal(metrics().length, 0);
});

test('another boot number: it is told again', async () => {
  const { clock, teller, summaries } = setUp({ quiet: true });
  teller.heartbeat();
  await settle();
  teller.retell();
  await clock.advance(5_000);
  assert.equal(summaries().length, 2);
});

test('it is silent until what is desired has been told, but not for ever', async () => {
  const one = setUp({ begins: true });
  one.teller.start();
  one.teller.heartbeat();
  one.teller.changed();
  await one.clock.advance(10_000);
  assert.equal(one.summaries().length, 0);
  one.teller.ready();
  await settle();
  assert.equal(one.summaries().length, 1, 'at once, not at the next heartbeat');
  await one.clock.advance(60_000);
  assert.equal(one.summaries().length, 1);
  const two = setUp({ begins: true });
  two.teller.start();
  await two.clock.advance(30_000);
  assert.equal(two.summaries().length, 1, 'the runtime never answered');
});

test('after stop nothing is told', async () => {
  const { clock, told, teller } = setUp();
  teller.changed();
  teller.stop();
  await clock.advance(60_000);
  assert.equal(told.length, 0);
});
