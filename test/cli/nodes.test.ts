import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError } from '../../src/cli/exitCodes.ts';
import { findNodes, isNodeKind, showNode } from '../../src/cli/nodes.ts';
import type { NodeObject } from '../../src/node/info.ts';
import { event, nowMs, told } from '../operations/view.ts';

const node = (uptime = '60', message = 'm'): NodeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'pi-07', labels: {}, annotations: { 'podsched.dev/uptime-seconds': uptime, 'podsched.dev/model': 'Raspberry Pi 5' } },
  status: {
    addresses: [],
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message, lastTransitionTime: 't', lastHeartbeatTime: uptime }],
    nodeInfo: { kubeletVersion: 'podsched 0.1.0' },
  },
});

const client = (answer: NodeObject, asked: string[] = []) => ({
  async node() {
    asked.push('node');
    return answer;
  },
  pods: async () => [told('web')],
  events: async () => [
    event('pi-07', 'Rebooted', 'of a pod with that name'),
    { ...event('pi-07', 'NodeReady', 'it is'), involvedObject: { kind: 'Node', namespace: 'default', name: 'pi-07' } },
  ],
});

test('the table of nodes has the one there is, wide with where it is and what it is', async () => {
  const asked: string[] = [];
  const found = await findNodes([], { watch: false }, client(node(), asked));
  assert.deepEqual(asked, ['node']);
  assert.deepEqual(found.head, ['NAME', 'STATUS', 'UPTIME', 'VERSION', 'PROBLEMS']);
  assert.deepEqual(
    found.items.map((i) => i.row),
    [['pi-07', 'Ready', '60s', '0.1.0', '<none>']],
  );
  assert.equal(found.items[0]?.name, 'node/pi-07');
  const wide = await findNodes(['pi-07'], { watch: false, output: 'wide' }, client(node()));
  assert.equal(wide.items[0]?.row.length, wide.head.length);
  assert.ok(wide.items[0]?.row.includes('Raspberry Pi 5'));
});

test('another name is another machine', async () => {
  await assert.rejects(
    findNodes(['pi-08'], { watch: false }, client(node())),
    (e: unknown) => e instanceof CommandError && /is not this one, which is pi-07/.test(e.message),
  );
});

test('while it is watched, only what means something is a change', async () => {
  const look = async (of: NodeObject): Promise<string> =>
    JSON.stringify((await findNodes([], { watch: true }, client(of))).items[0]?.object);
  assert.equal(await look(node('60')), await look(node('61')));
  assert.notEqual(await look(node('60')), await look(node('60', 'other')));
});

test('a node is described with its own events', async () => {
  const out: string[] = [];
  const print = { out: (text: string) => out.push(text), err: () => {}, nowMs: () => nowMs, sleep: async () => {} };
  assert.equal(await showNode(undefined, client(node()), print), 0);
  assert.match(out.join(''), /^Name: +pi-07$/m);
  assert.match(out.join(''), /NodeReady/);
  assert.doesNotMatch(out.join(''), /of a pod with that name/);
  assert.deepEqual(['node', 'Nodes', 'no', 'pod'].map(isNodeKind), [true, true, true, false]);
});
