import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Rollout } from '../../src/api/messages.ts';
import type { SyncStatus } from '../../src/api/payloads.ts';
import { rolloutPlace } from '../../src/api/rollout.ts';
import { decideGate, type GateDecision, type GateNode, type Progress, progressOf, settleMs, worstOf } from '../../src/cli/rolloutGate.ts';
import { sync } from '../operations/view.ts';

const bake = 600;
const names = Array.from({ length: 200 }, (_, i) => `pi-${i}`);
/** Of the first wave (10 %), and of the second. */
const [a = '', b = ''] = names.filter((name) => rolloutPlace('r1', name) < 10);
const [c = '', d = ''] = names.filter((name) => rolloutPlace('r1', name) >= 10);

const rollout = (o: Partial<Rollout> = {}): Rollout => ({
  apiVersion: 'podsched.dev/v1',
  kind: 'Rollout',
  id: 'r1',
  waves: [{ percent: 10 }, { percent: 100 }],
  gate: 1,
  bakeSeconds: bake,
  ...o,
});
const node = (name: string, progress: Progress, o: Partial<GateNode> = {}): GateNode => ({
  name,
  labels: {},
  away: false,
  progress,
  ...(progress === 'ready' && { readyAt: 0 }),
  ...o,
});
/** The gate has stood there for so long, in seconds. */
const after = (seconds: number) => ({ now: seconds * 1000, gateAt: 0 });

interface Row {
  readonly name: string;
  readonly rollout?: Partial<Rollout>;
  readonly nodes: readonly GateNode[];
  readonly seconds?: number;
  readonly failures?: readonly string[];
  readonly is: Partial<GateDecision>;
}

const rows: readonly Row[] = [
  { name: 'a shut gate is opened for the first wave', rollout: { gate: 0 }, nodes: [], is: { act: 'open', gate: 1 } },
  { name: 'without waves there is nothing to do', rollout: { gate: 0, waves: [] }, nodes: [], is: { act: 'done' } },
  { name: 'a node of the wave that still waits keeps it', nodes: [node(a, 'ready'), node(b, 'waiting')], is: { act: 'wait' } },
  { name: 'one that is on its way, too', nodes: [node(a, 'ready'), node(b, 'updating')], seconds: bake * 2, is: { act: 'wait' } },
  { name: 'all ready: it is watched for the bake time', nodes: [node(a, 'ready')], seconds: 10, is: { act: 'wait', at: bake * 1000 } },
  {
    name: 'the time counts from the last one that became ready',
    nodes: [node(a, 'ready'), node(b, 'ready', { readyAt: 500_000 })],
    seconds: bake + 1,
    is: { act: 'wait', at: 500_000 + bake * 1000 },
  },
  { name: 'and then the next wave is open', nodes: [node(a, 'ready'), node(c, 'waiting')], seconds: bake, is: { act: 'open', gate: 2 } },
  {
    name: 'the last wave ready for long enough is the end',
    rollout: { gate: 2 },
    nodes: [node(a, 'ready'), node(c, 'ready')],
    seconds: bake,
    is: { act: 'done' },
  },
  {
    name: 'an earlier wave that became unready holds the later one',
    rollout: { gate: 2 },
    nodes: [node(a, 'updating'), node(c, 'ready')],
    seconds: bake * 2,
    is: { act: 'wait' },
  },
  { name: 'a failure is one too many, without a limit', nodes: [node(a, 'failed')], failures: [a], is: { act: 'abort' } },
  {
    name: 'under the limit it keeps nobody waiting',
    rollout: { abortAfterFailures: 2 },
    nodes: [node(a, 'failed'), node(b, 'ready')],
    failures: [a],
    seconds: bake,
    is: { act: 'open', gate: 2 },
  },
  {
    name: 'at the limit it ends',
    rollout: { abortAfterFailures: 2 },
    nodes: [node(a, 'failed'), node(b, 'failed')],
    failures: [a, b],
    is: { act: 'abort' },
  },
  {
    name: 'who is away is not waited for',
    nodes: [node(a, 'ready'), node(b, 'waiting', { away: true })],
    seconds: bake,
    is: { act: 'open', gate: 2 },
  },
  {
    name: 'but one must be there to show that it goes well',
    nodes: [node(a, 'waiting', { away: true })],
    seconds: bake * 10,
    is: { act: 'wait' },
  },
  { name: 'an empty wave may be a silent one', nodes: [node(c, 'waiting')], seconds: 1, is: { act: 'wait', at: settleMs } },
  { name: 'and after a while it is empty', nodes: [node(c, 'waiting')], seconds: settleMs / 1000, is: { act: 'open', gate: 2 } },
  {
    name: 'who has it from elsewhere has no part',
    nodes: [node(a, 'outside'), node(b, 'ready')],
    seconds: bake,
    is: { act: 'open', gate: 2 },
  },
  {
    name: 'without a bake time ready is enough',
    rollout: { bakeSeconds: 0 },
    nodes: [node(a, 'ready')],
    seconds: 0,
    is: { act: 'open', gate: 2 },
  },
  {
    name: 'somebody has aborted it',
    rollout: { state: 'aborted' },
    nodes: [node(a, 'ready')],
    seconds: bake * 2,
    is: { act: 'ended', state: 'aborted' },
  },
  {
    name: 'it is done',
    rollout: { state: 'done', gate: 2 },
    nodes: [node(d, 'failed')],
    failures: [d],
    is: { act: 'ended', state: 'done' },
  },
];
for (const row of rows) {
  test(`the gate: ${row.name}`, () => {
    const decision = decideGate(rollout(row.rollout), row.nodes, after(row.seconds ?? 0), row.failures ?? []);
    const { why: _, ...rest } = { why: '', ...decision };
    assert.deepEqual(rest, row.is);
  });
}

const source = 'mqtt:group/attic';
const object = { key: { kind: 'Pod', namespace: 'default', name: 'web' }, source, generation: 3 } as const;
const said = (o: Partial<SyncStatus> = {}, s: Partial<SyncStatus['sources'][number]> = {}): SyncStatus =>
  sync('web', {
    desired: { source, revision: 'new', generation: 3 },
    running: { revision: 'new', uid: 'u' },
    sources: [{ source, revision: 'new', generation: 3, phase: 'Accepted', reason: 'Accepted', message: '', problems: [], ...s }],
    ...o,
  });

const progress: readonly [string, SyncStatus | undefined, Progress][] = [
  ['nothing told', undefined, 'outside'],
  ['another source only', sync('web'), 'outside'],
  ['shadowed by a file', said({}, { phase: 'Shadowed' }), 'outside'],
  ['a stronger source wins', said({ desired: { source: 'file:web.yaml', revision: 'f' } }), 'outside'],
  ['waits for its wave', said({}, { phase: 'Waiting', reason: 'Rollout' }), 'waiting'],
  ['has the generation before', said({}, { generation: 2 }), 'waiting'],
  ['has no generation', sync('web', { sources: [{ source, phase: 'Accepted', reason: '', message: '', problems: [] }] }), 'waiting'],
  ['refused', said({ phase: 'Refused', reason: 'Invalid' }, { phase: 'Refused', reason: 'Invalid' }), 'failed'],
  ['the old one still runs', said({ running: { revision: 'old', uid: 'u' } }), 'updating'],
  ['the old one crashes', said({ running: { revision: 'old', uid: 'u' }, reason: 'CrashLoopBackOff' }), 'updating'],
  ['runs and is ready', said(), 'ready'],
  ['runs, with an older image', said({ reason: 'ImageStale' }), 'ready'],
  ['runs, not ready', said({ reason: 'ContainersNotReady' }), 'updating'],
  ['crashes', said({ reason: 'CrashLoopBackOff' }), 'failed'],
  ['crashes, nothing running', said({ phase: 'Waiting', reason: 'CrashLoopBackOff' }), 'failed'],
  ['image not there yet', said({ phase: 'Waiting', reason: 'ImagePullBackOff' }), 'updating'],
  ['update held back', said({ phase: 'UpdateBlocked', reason: 'ImagesNotHere' }), 'updating'],
  ['held by a person', said({ phase: 'Held', reason: 'Held' }), 'updating'],
  ['rolled back', said({ phase: 'RolledBack', reason: 'RolledBack' }), 'failed'],
  ['failed', said({ phase: 'Failed', reason: 'ContainersFailed' }), 'failed'],
  ['ended well', said({ phase: 'Completed', reason: 'Succeeded' }), 'ready'],
];
for (const [name, status, is] of progress) test(`a node's part: ${name}`, () => assert.equal(progressOf(status, object).progress, is));

test('a ConfigMap is there as soon as it is accepted', () => {
  const map = { ...object, key: { kind: 'ConfigMap', namespace: 'default', name: 'app' } } as const;
  assert.equal(progressOf(said({ phase: 'Accepted', reason: 'Accepted' }), map).progress, 'ready');
  assert.equal(progressOf(said({ phase: 'Waiting', reason: 'Missing' }), map).progress, 'updating');
});

test('a node is as far as its slowest object', () => {
  const of = (...all: Progress[]): Progress => worstOf(all.map((p) => ({ progress: p }))).progress;
  assert.equal(of('ready', 'updating'), 'updating');
  assert.equal(of('ready', 'failed', 'waiting'), 'failed');
  assert.equal(of('ready', 'outside'), 'ready');
  assert.equal(of('outside'), 'outside');
  assert.equal(of(), 'outside');
});
