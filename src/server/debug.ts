/** `/debug/{ns}/{pod}`: takes a `v1 EphemeralContainer` and answers with what was made of it. */
import type { IncomingMessage } from 'node:http';
import type { AgentView } from '../operations/agentView.ts';
import { debuggedPod } from '../operations/debug.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

const maxBodyBytes = 64 << 10;

/** Resolves when it is stored, or to why it was not taken. */
export async function answerDebug(agent: () => AgentView | undefined, log: Log, request: IncomingMessage, path: string): Promise<Answer> {
  if (request.method !== 'POST') return failure(405, `${path.slice(0, 200)} takes POST`, { allow: 'POST' });
  const view = agent();
  if (view === undefined) return starting;
  const named = debuggedPod(path);
  if (!named.ok) return failure(named.code, named.message);
  const body = await readBody(request).catch(() => 'gone' as const);
  if (body === 'gone') return failure(400, 'the asker went away'); // nobody reads it, and it is no news
  if (body === undefined) return failure(413, `a container of at most ${maxBodyBytes} bytes is meant`);
  let container: unknown;
  try {
    container = JSON.parse(body.toString());
  } catch {
    return failure(400, 'the body is no JSON'); // its error text would repeat what is in it
  }
  try {
    const added = await view.debug({ ...named.value, container });
    return added.ok ? { code: 201, body: added.value } : failure(added.code, added.message);
  } catch (e) {
    log.error({ error: describeError(e), url: path }, 'an ephemeral container could not be added');
    return failure(500, `it could not be added: ${describeError(e)}`);
  }
}

/** undefined: too large. Rejects when the asker goes away. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBodyBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}
