// pure
/**
 * Where an answer may go: `P/reply/<requester>/<this node>` and nowhere else, or whoever may write commands could have the node write anything
 * anywhere its own rights reach.
 */
import { parseTopic } from '../api/topics.ts';
import type { ReplyTo } from './words.ts';

export type Guarded = { readonly ok: true; readonly to?: ReplyTo } | { readonly ok: false; readonly message: string };

const requester = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const longestRequester = 128;
/** It is sent back with every chunk. */
const longestCorrelation = 1024;

/** The response topic of MQTT 5 wins over `replyTo`; `to` is absent when neither was given. */
export function guardReply(
  at: { readonly prefix: string; readonly node: string },
  given: { readonly responseTopic?: string; readonly correlationData?: Uint8Array; readonly replyTo?: string },
): Guarded {
  const { responseTopic, correlationData, replyTo } = given;
  const topic = responseTopic ?? replyTo;
  if (topic === undefined) return { ok: true };
  const found = parseTopic(at.prefix, topic);
  const right =
    found?.of === 'reply' && found.node === at.node && found.requester.length <= longestRequester && requester.test(found.requester);
  if (!right) return { ok: false, message: `the reply topic must be ${at.prefix}/reply/<a-z, 0-9 and ->/${at.node}` };
  const what = { topic, requester: found.requester };
  // of a 3.1.1 client there is none; what came with a topic of the payload is not its
  if (correlationData === undefined || responseTopic === undefined) return { ok: true, to: what };
  if (correlationData.length > longestCorrelation)
    return { ok: false, message: `correlation data of at most ${longestCorrelation} bytes is sent back` };
  return { ok: true, to: { ...what, correlationData } };
}
