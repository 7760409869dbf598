/** Acts on the node: the words of a path, and what each is asked of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { actOnNode, asksForNodeAct, type NodeActDeps, type NodeActRequest, nodeActRequest } from '../../src/operations/nodeActs.ts';

function rig(o: Partial<NodeActDeps> = {}) {
  const did: string[] = [];
  const deps: NodeActDeps = {
    nodeName: 'pi-07',
    readSources: async () => {
      did.push('read');
    },
    tellAll: () => did.push('tell'),
    forgetLost: async () => did.push('forget') > 0,
    blink: async (seconds) => {
      did.push(`blink ${seconds}`);
      return { ok: true, value: 'ACT' };
    },
    decommission: async () => {
      did.push('leave');
      return 1;
    },
    ...o,
  };
  return { did, act: (r: NodeActRequest) => actOnNode(r, deps) };
}

test('a path says what is meant, and nothing else is taken', () => {
  const rows: readonly (readonly [string, string, unknown])[] = [
    ['/resync', '', { act: 'resync' }],
    ['/resync', 'forgetLost=1', { act: 'resync', forgetLost: true }],
    ['/identify', 'seconds=5', { act: 'identify', seconds: 5 }],
    ['/decommission', 'confirm=pi-07', { act: 'decommission', confirm: 'pi-07' }],
    ['/decommission', '', { act: 'decommission', confirm: '' }],
  ];
  for (const [path, query, value] of rows) assert.deepEqual(nodeActRequest(path, query), { ok: true, value });
  for (const [path, query] of [
    ['/resync', 'forgetLost=yes'],
    ['/resync', 'forget=1'],
    ['/identify', 'confirm=pi-07'],
  ] as const)
    assert.equal(nodeActRequest(path, query).ok, false, `${path}?${query}`);
  assert.deepEqual(['/resync', '/resync/', '/identify', '/decommissioned'].map(asksForNodeAct), [true, false, true, false]);
});

test('resync reads before it tells; what is lost is forgotten before that, and only when it is asked for', async () => {
  const plain = rig();
  assert.equal((await plain.act({ act: 'resync' })).ok, true);
  assert.deepEqual(plain.did, ['read', 'tell']);
  const { did, act } = rig();
  await act({ act: 'resync', forgetLost: true });
  assert.deepEqual(did, ['forget', 'read', 'tell']);
});

test('the light blinks for ten seconds, or as long as a person may wish', async () => {
  const { did, act } = rig();
  await act({ act: 'identify' });
  await act({ act: 'identify', seconds: 300 });
  for (const seconds of [0, -1, 301, Number.NaN, Number.POSITIVE_INFINITY])
    assert.equal((await act({ act: 'identify', seconds })).ok, false, String(seconds));
  assert.deepEqual(did, ['blink 10', 'blink 300']);
});

test('a node leaves its fleet only by its own name, and only when it is in one', async () => {
  const { did, act } = rig();
  for (const confirm of ['', 'pi-08', 'PI-07', 'true']) assert.equal((await act({ act: 'decommission', confirm })).ok, false, confirm);
  assert.deepEqual(did, []);
  assert.equal((await act({ act: 'decommission', confirm: 'pi-07' })).ok, true);
  assert.deepEqual(did, ['leave']);
  const alone = await rig({ decommission: async () => undefined }).act({ act: 'decommission', confirm: 'pi-07' });
  assert.match(JSON.stringify(alone), /no broker to leave/);
});
