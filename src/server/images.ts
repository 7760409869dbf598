/** `/images` and what can be asked of it: `prune`, `pull`, `import`, `pin`, `unpin`. All but the first change something and take POST; nobody's body is read. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AgentView } from '../operations/agentView.ts';
import type { Answered } from '../operations/answered.ts';
import type { ImagesView } from '../operations/images.ts';
import { describeError, type Log } from '../world/log.ts';
import { type Answer, failure, starting } from './routes.ts';

const prefix = '/images';

/** Whether the path is one of images. */
export const asksForImages = (path: string): boolean => path === prefix || path.startsWith(`${prefix}/`);

const given = <T>(kind: string, answered: Answered<T>): Answer =>
  answered.ok
    ? { code: 200, body: { kind, apiVersion: 'podsched.dev/v1', metadata: {}, ...answered.value } }
    : failure(answered.code, answered.message);

/** Resolves when it is done. An asker that goes away ends a pull and an import. */
export async function answerImages(
  agent: () => AgentView | undefined,
  log: Log,
  {
    request,
    response,
    path,
    query,
  }: { readonly request: IncomingMessage; readonly response: ServerResponse; readonly path: string; readonly query: string },
): Promise<Answer> {
  const what = path.slice(prefix.length);
  if (!['', '/prune', '/pull', '/import', '/pin', '/unpin'].includes(what)) return failure(404, `there is no ${path.slice(0, 200)}`);
  const reads = what === '';
  const method = request.method ?? '';
  if (reads && method !== 'GET' && method !== 'HEAD') return failure(405, `${path} is read with GET`, { allow: 'GET, HEAD' });
  if (!reads && method !== 'POST') return failure(405, `${path} takes POST`, { allow: 'POST' });
  const images = agent()?.images;
  if (images === undefined) return starting;
  const parameters = new URLSearchParams(query);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    switch (what) {
      case '':
        return { code: 200, body: { kind: 'ImageList', apiVersion: 'podsched.dev/v1', metadata: {}, items: await images.list() } };
      case '/prune': {
        const dryRun = parameters.get('dryRun');
        // a slip of the pen must not remove anything
        if (dryRun !== null && dryRun !== '1') return failure(400, 'dryRun=1 is meant, or no dryRun');
        return given('ImagePrune', await images.prune(dryRun === '1'));
      }
      case '/pull': {
        const image = parameters.get('image');
        if (image === null || image === '') return failure(400, `${path}?image=NAME is meant`);
        return given('ImagePull', await images.pull(image, gone.signal));
      }
      case '/pin':
      case '/unpin': {
        const image = parameters.get('image');
        if (image === null || image === '') return failure(400, `${path}?image=NAME is meant`);
        return await answerPin(images, log, image, what === '/pin');
      }
      default: {
        const file = parameters.get('path');
        if (file === null || file === '') return failure(400, `${path}?path=FILE is meant`);
        return given('ImageImport', await images.import(file, gone.signal));
      }
    }
  } catch (e) {
    if (gone.signal.aborted) return failure(400, 'the asker went away'); // nobody reads it, and it is no news
    log.warn({ error: describeError(e), path }, 'images could not be asked for');
    return failure(502, `the runtime does not answer: ${describeError(e)}`);
  }
}

/** It is of the card, not of the runtime: what goes wrong is said so. */
async function answerPin(images: ImagesView, log: Log, image: string, pinned: boolean): Promise<Answer> {
  try {
    return given('ImagePin', await images.pin(image, pinned));
  } catch (e) {
    log.error({ error: describeError(e) }, 'which images stay could not be stored');
    return failure(500, `it could not be stored: ${describeError(e)}`);
  }
}
