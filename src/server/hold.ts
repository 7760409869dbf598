/** `/hold/{ns}/{pod}` and `/release/{ns}/{pod}`: POST without a body; answers with what came of it. */
import type { AgentView } from '../operations/agentView.ts';
import { holdRequest } from '../operations/hold.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

/** Resolves when it is stored, or to why it was not done. */
export async function answerHold(view: AgentView | undefined, log: Log, method: string, path: string): Promise<Answer> {
  if (method !== 'POST') return failure(405, `${path.slice(0, 200)} takes POST`, { allow: 'POST' });
  if (view === undefined) return starting;
  const asked = holdRequest(path);
  if (!asked.ok) return failure(asked.code, asked.message);
  try {
    const done = await view.hold(asked.value);
    return done.ok ? { code: 200, body: done.value } : failure(done.code, done.message);
  } catch (e) {
    log.error({ error: describeError(e), url: path }, 'a hold could not be changed');
    return failure(500, `it could not be stored: ${describeError(e)}`);
  }
}
