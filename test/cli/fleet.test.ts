import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError, exitCodes } from '../../src/cli/exitCodes.ts';
import { getFleet } from '../../src/cli/fleet.ts';
import { presenceOf } from '../../src/cli/fleetView.ts';
import { type Bed, fleetBed, online, root } from './fleetBed.ts';

const info = (name: string, o: Record<string, unknown> = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { site: 'attic' }, annotations: {} },
    status: {
      addresses: [{ type: 'InternalIP', address: '192.0.2.7' }],
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' },
        { type: 'UnderVoltage', status: 'True', reason: 'UnderVoltage', message: '' },
      ],
      nodeInfo: { kubeletVersion: 'podsched 1.2.3' },
    },
    ...o,
  });
const summary = (ready: number): string =>
  JSON.stringify({
    kind: 'NodeSummary',
    node: 'pi-07',
    uptimeSeconds: 7200,
    pods: { desired: 3, running: 3, ready },
    restartsLastHour: 0,
    alerts: [],
  });
const say = (bed: Bed, topic: string, payload: string): void => bed.broker.say(`${root}/nodes/${topic}`, payload, { retain: true });

const presences: readonly [string, Parameters<typeof presenceOf>[0], number, ReturnType<typeof presenceOf>][] = [
  ['online and heard just now', { state: 'online', heartbeatSeconds: 60 }, 0, 'online'],
  ['three heartbeats are not too long', { state: 'online', heartbeatSeconds: 60 }, 180_000, 'online'],
  ['more is', { state: 'online', heartbeatSeconds: 60 }, 180_001, 'stale'],
  ['a quiet one has longer', { state: 'online', heartbeatSeconds: 900 }, 1_000_000, 'online'],
  ['without its heartbeat the usual one counts', { state: 'online' }, 180_001, 'stale'],
  ['offline', { state: 'offline', heartbeatSeconds: 60 }, 0, 'offline'],
  ['lost', { state: 'lost', heartbeatSeconds: 60 }, 0, 'lost'],
  ['no online at all', undefined, 0, 'stale'],
];
for (const [name, heard, silentMs, is] of presences)
  test(`how a node stands: ${name}`, () => assert.equal(presenceOf(heard, silentMs), is));

test('the fleet in one table: who is there, who is not, and what is wrong', async () => {
  const bed = await fleetBed();
  say(bed, 'pi-07/online', online('pi-07'));
  say(bed, 'pi-07/info', info('pi-07'));
  say(bed, 'pi-07/summary', summary(2));
  say(bed, 'pi-08/online', online('pi-08', 'lost'));
  say(bed, 'pi-08/info', info('pi-08'));
  say(bed, 'pi-09/info', info('pi-09'));
  say(bed, 'pi-10/online', online('pi-10'));
  say(bed, 'pi-10/duplicates/bbbbbbbbbbbb', online('pi-10', 'duplicate'));
  for (const topic of ['online', 'info', 'summary', 'duplicates/x']) say(bed, `pi-11/${topic}`, 'not JSON');
  assert.equal(await bed.run(getFleet('nodes', [], { watch: false }, bed.remote, bed.print)), exitCodes.done);
  assert.deepEqual(
    bed
      .said()
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/)),
    [
      ['NAME', 'STATUS', 'PODS', 'UPTIME', 'VERSION', 'PROBLEMS'],
      ['pi-07', 'Ready', '2/3', '120m', '1.2.3', 'UnderVoltage'],
      ['pi-08', 'Lost', '<none>', '<unknown>', '1.2.3', 'UnderVoltage'],
      ['pi-09', 'Stale', '<none>', '<unknown>', '1.2.3', 'UnderVoltage'],
      ['pi-10', 'Unknown', '<none>', '<none>', '<none>', 'DuplicateName'],
    ],
  );
});

test('as JSON each is a v1 Node, with how it stands beside it; one by name stands alone', async () => {
  const bed = await fleetBed();
  say(bed, 'pi-07/online', online('pi-07', 'offline'));
  say(bed, 'pi-07/info', info('pi-07'));
  say(bed, 'pi-08/online', online('pi-08'));
  await bed.run(getFleet('node/pi-07', [], { watch: false, output: 'json' }, bed.remote, bed.print));
  const node = JSON.parse(bed.said()) as { kind: string; podsched: unknown };
  assert.equal(node.kind, 'Node');
  assert.deepEqual(node.podsched, { presence: 'offline' });
  await bed.run(getFleet('nodes', [], { watch: false, output: 'name' }, bed.remote, bed.print));
  assert.equal(bed.said(), 'node/pi-07\nnode/pi-08\n');
});

test('a node that nobody knows is not found, with the name that was meant perhaps; other kinds are asked of one node', async () => {
  const bed = await fleetBed();
  say(bed, 'pi-07/online', online('pi-07'));
  const code = (e: unknown, is: number, text: RegExp) => e instanceof CommandError && e.code === is && text.test(e.message);
  await assert.rejects(bed.run(getFleet('nodes', ['pi-7'], { watch: false }, bed.remote, bed.print)), (e) =>
    code(e, exitCodes.notFound, /did you mean pi-07/),
  );
  await assert.rejects(bed.run(getFleet('pods', [], { watch: false }, bed.remote, bed.print)), (e) =>
    code(e, exitCodes.usage, /--node NAME/),
  );
});

test('watched: a node that falls silent becomes stale without any message', async () => {
  const bed = await fleetBed();
  say(bed, 'pi-07/online', online('pi-07'));
  say(bed, 'pi-07/info', info('pi-07'));
  const work = getFleet('nodes', [], { watch: true }, bed.remote, bed.print);
  work.catch(() => {});
  await bed.pass(170);
  assert.match(bed.said(), /pi-07 +Ready/);
  await bed.pass(30);
  assert.match(bed.said(), /^pi-07 +Stale/m);
  bed.broker.cut();
  await assert.rejects(bed.run(work), /connection to the broker ended/);
});
