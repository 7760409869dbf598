/**
 * What changes a pod or the node: `/restart/{ns}/{pod}` and its sisters, `/resync`, `/identify`, `/decommission`; POST without a body, answered
 * with what came of it. And `/bundle`, which is read.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AgentView } from '../operations/agentView.ts';
import type { Answered } from '../operations/answered.ts';
import { asksForNodeAct, nodeActRequest } from '../operations/nodeActs.ts';
import { asksForPodAct, podActRequest } from '../operations/podActs.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

const bundlePath = '/bundle';

/** Whether the path is one of acts, or of the bundle. */
export const asksForAct = (path: string): boolean => path === bundlePath || asksForPodAct(path) || asksForNodeAct(path);

export interface ActAsked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: string;
}

/** Resolves when it is stored or made, or to why it was not done. */
export async function answerAct(view: AgentView | undefined, log: Log, { request, response, path, query }: ActAsked): Promise<Answer> {
  const method = request.method ?? '';
  const reads = path === bundlePath;
  if (reads && method !== 'GET') return failure(405, `${path} is read with GET`, { allow: 'GET' });
  if (!reads && method !== 'POST') return failure(405, `${path.slice(0, 200)} takes POST`, { allow: 'POST' });
  if (view === undefined) return starting;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    const done = reads ? await view.bundle(gone.signal) : await act(view, path, query);
    return done.ok ? { code: 200, body: done.value } : failure(done.code, done.message);
  } catch (e) {
    if (gone.signal.aborted) return failure(400, 'the asker went away'); // nobody reads it, and it is no news
    log.error({ error: describeError(e), url: path }, 'what a person asked for could not be done');
    return failure(500, `it could not be done: ${describeError(e)}`);
  }
}

async function act(view: AgentView, path: string, query: string): Promise<Answered<object>> {
  if (asksForPodAct(path)) {
    const asked = podActRequest(path, query);
    return asked.ok ? view.act(asked.value) : asked;
  }
  const asked = nodeActRequest(path, query);
  return asked.ok ? view.nodeAct(asked.value) : asked;
}
