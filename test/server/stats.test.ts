/** What is used, over the local API. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StatsView } from '../../src/operations/stats.ts';
import type { PodUsage } from '../../src/operations/top.ts';
import { answerStats, asksForStats } from '../../src/server/stats.ts';
import { silentLog } from '../../src/world/log.ts';
import { agentView } from '../operations/view.ts';

const usage = (name: string, namespace: string) => ({ kind: 'PodUsage', metadata: { name, namespace } }) as PodUsage;

const stats = (o: Partial<StatsView> = {}): StatsView => ({
  summary: async (only) => ({ node: { nodeName: only }, pods: [] }),
  topPods: async () => [usage('web', 'default'), usage('cam', 'kitchen')],
  topNode: async () => ({ kind: 'NodeUsage' }) as Awaited<ReturnType<StatsView['topNode']>>,
  ...o,
});

const ask = (path: string, o: { readonly query?: string; readonly method?: string; readonly stats?: StatsView } = {}) =>
  answerStats(agentView({ stats: o.stats ?? stats() }), silentLog, { method: o.method ?? 'GET', path, query: o.query ?? '' });

test('the summary is whole, or of CPU and memory alone', async () => {
  const node = async (query: string) => ((await ask('/stats/summary', { query })).body as { node: { nodeName: string } }).node.nodeName;
  assert.equal(await node(''), 'all');
  assert.equal(await node('only_cpu_and_memory=false'), 'all');
  assert.equal(await node('only_cpu_and_memory=true'), 'cpuAndMemory');
  assert.equal((await ask('/stats/summary', { query: 'only_cpu_and_memory=yes' })).code, 400);
});

test('usage of pods is a list, of one namespace where it is named', async () => {
  const names = async (query: string) => {
    const { code, body } = await ask('/top/pods', { query });
    assert.equal(code, 200);
    const { kind, items } = body as { kind: string; items: readonly PodUsage[] };
    assert.equal(kind, 'PodUsageList');
    return items.map((p) => p.metadata.name);
  };
  assert.deepEqual(await names(''), ['web', 'cam']);
  assert.deepEqual(await names('namespace=kitchen'), ['cam']);
  assert.deepEqual(await names('namespace=%00'), []);
  assert.equal(((await ask('/top/node')).body as { kind: string }).kind, 'NodeUsage');
});

test('a wrong question is refused before anything is measured', async () => {
  const never = () => assert.fail('it was measured');
  const none = stats({ summary: never, topPods: never, topNode: never });
  assert.equal((await ask('/top', { stats: none })).code, 404);
  assert.equal((await ask('/top/pods/web', { stats: none })).code, 404);
  assert.equal((await ask('/stats/summary/', { stats: none })).code, 404);
  const post = await ask('/stats/summary', { method: 'POST', stats: none });
  assert.deepEqual([post.code, post.headers], [405, { allow: 'GET, HEAD' }]);
  assert.ok(asksForStats('/top') && asksForStats('/stats/x') && !asksForStats('/topics') && !asksForStats('/'));
});

test('a runtime that does not answer is told as such, an agent that starts or does not measure too', async () => {
  const away = () => Promise.reject(new Error('connect ENOENT'));
  const failing = stats({ summary: away, topPods: away, topNode: away });
  const message = async (path: string) => {
    const { code, body } = await ask(path, { stats: failing });
    return `${code} ${(body as { message: string }).message}`;
  };
  assert.equal(await message('/stats/summary'), '502 the runtime does not answer: connect ENOENT');
  assert.equal(await message('/top/pods'), '502 the runtime does not answer: connect ENOENT');
  assert.equal(await message('/top/node'), '500 the node could not be measured: connect ENOENT');
  const get = { method: 'GET', path: '/top/node', query: '' };
  assert.equal((await answerStats(undefined, silentLog, get)).code, 503);
  assert.equal((await answerStats(agentView(), silentLog, get)).code, 404);
});
