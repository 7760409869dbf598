/** `/node`: this node as a v1 Node, as the API server of a cluster would have it. Its sensors are read at the question. */
import type { NodeObject } from '../node/info.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

export const asksForNode = (path: string): boolean => path === '/node';

/** `node`: undefined while the agent starts. Never rejects. */
export async function answerNode(node: (() => Promise<NodeObject>) | undefined, log: Log, method: string): Promise<Answer> {
  if (method !== 'GET' && method !== 'HEAD') return failure(405, '/node is read with GET', { allow: 'GET, HEAD' });
  if (node === undefined) return starting;
  try {
    return { code: 200, body: await node() };
  } catch (e) {
    log.warn({ error: describeError(e) }, 'the node could not be looked at');
    return failure(500, `the node could not be looked at: ${describeError(e)}`);
  }
}
