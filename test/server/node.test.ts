import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeObject } from '../../src/node/info.ts';
import { answerNode, asksForNode } from '../../src/server/node.ts';
import { silentLog } from '../../src/world/log.ts';

const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-07', labels: {} }, status: {} } as unknown as NodeObject;

test('/node is the node as it is, read with GET', async () => {
  assert.deepEqual(await answerNode(async () => node, silentLog, 'GET'), { code: 200, body: node });
  assert.equal((await answerNode(async () => node, silentLog, 'HEAD')).code, 200);
  assert.equal((await answerNode(async () => node, silentLog, 'DELETE')).code, 405);
  assert.deepEqual(['/node', '/nodes', '/node/x'].map(asksForNode), [true, false, false]);
});

test('while the agent starts nobody can say, and a failure is told as one', async () => {
  assert.equal((await answerNode(undefined, silentLog, 'GET')).code, 503);
  const answer = await answerNode(() => Promise.reject(new Error('broken')), silentLog, 'GET');
  assert.deepEqual([answer.code, (answer.body as { message: string }).message], [500, 'the node could not be looked at: broken']);
});
