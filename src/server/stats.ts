/** `/stats/summary` (the kubelet's), `/top/pods` and `/top/node`: what is used now. Read at the question, which takes up to a second or two. */
import type { AgentView } from '../operations/agentView.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

const paths: ReadonlySet<string> = new Set(['/stats/summary', '/top/pods', '/top/node']);

/** Whether the path asks for what is used. */
export const asksForStats = (path: string): boolean => /^\/(stats|top)(\/|$)/.test(path);

/** Never rejects; 502 when the runtime does not answer. */
export async function answerStats(
  view: AgentView | undefined,
  log: Log,
  { method, path, query }: { readonly method: string; readonly path: string; readonly query: string },
): Promise<Answer> {
  if (!paths.has(path)) return failure(404, `there is no ${path.slice(0, 200)}; there are ${[...paths].join(', ')}`);
  if (method !== 'GET' && method !== 'HEAD') return failure(405, `${path} is read with GET`, { allow: 'GET, HEAD' });
  if (view === undefined) return starting;
  const { stats } = view;
  if (stats === undefined) return failure(404, 'this agent does not measure what is used');
  const parameters = new URLSearchParams(query);
  try {
    if (path === '/top/node') return { code: 200, body: await stats.topNode() };
    if (path === '/stats/summary') {
      const only = parameters.get('only_cpu_and_memory') ?? 'false';
      if (!['true', 'false', '1', '0', ''].includes(only))
        return failure(400, 'only_cpu_and_memory=true is meant, or no only_cpu_and_memory');
      return { code: 200, body: await stats.summary(only === 'true' || only === '1' ? 'cpuAndMemory' : 'all') };
    }
    const namespace = parameters.get('namespace');
    const items = (await stats.topPods()).filter((p) => namespace === null || p.metadata.namespace === namespace);
    return { code: 200, body: { kind: 'PodUsageList', apiVersion: 'podsched.dev/v1', metadata: {}, items } };
  } catch (e) {
    log.warn({ error: describeError(e), path }, 'what is used could not be asked for');
    if (path === '/top/node') return failure(500, `the node could not be measured: ${describeError(e)}`);
    return failure(502, `the runtime does not answer: ${describeError(e)}`);
  }
}
