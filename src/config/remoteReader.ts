/**
 * One message of the MQTT source into what follows from it: accepted, refused with its reason, waiting, or gone. Owns nothing but the answers
 * it writes into the rooms of remote.ts. It reads a payload once; the same bytes again do not come here.
 */

import { immutableProblem } from '../api/immutable.ts';
import type { Rollout } from '../api/messages.ts';
import type { Problem, Source } from '../api/objects.ts';
import type { RolloutNode } from '../api/rollout.ts';
import { shown } from '../api/scalars.ts';
import { maxRetainedBytes } from '../api/topics.ts';
import { denialOf, wholly } from './allowed.ts';
import { audienceProblem, type DecodedObject, type DocumentOptions } from './decode.ts';
import { type Delivery, isMeantFor } from './delivery.ts';
import { readIndex } from './desiredIndex.ts';
import type { ObjectPlace } from './desiredTopics.ts';
import { generationProblem } from './generationRule.ts';
import type { Deleted } from './generations.ts';
import type { Candidate } from './merge.ts';
import { decodePayload, readJsonValue } from './payload.ts';
import type { RemoteIndexes } from './remoteIndexes.ts';
import type { Again, RemoteObjects, TopicRecord } from './remoteObjects.ts';
import type { PayloadOf, PolicyPort, Unwrapped } from './remoteWords.ts';
import { rolloutWait } from './rollouts.ts';
import type { Told } from './view.ts';

/** A payload as it waits for its turn. */
export interface Arrival {
  /** Empty also when it was too large to be kept. */
  readonly payload: Uint8Array;
  readonly bytes: number;
  /** First 16 hex digits of SHA-256. */
  readonly hash: string;
  readonly retain: boolean;
}

export interface ReaderContext {
  readonly node: RolloutNode;
  readonly groups: readonly string[];
  readonly policy: PolicyPort;
  readonly decode: DocumentOptions;
  readonly rollouts: ReadonlyMap<string, Rollout>;
  /** What is accepted of a source, or will be in the next step. */
  candidate(place: ObjectPlace): Pick<Candidate, 'object' | 'revision'> | undefined;
}

export interface ReaderRooms {
  readonly objects: RemoteObjects;
  readonly indexes: RemoteIndexes;
}

type Refusal = Told & { readonly problems: readonly Problem[] };
const refusal = (reason: string, message: string): Refusal => ({ reason, message, problems: [wholly(message)] });

/** What follows from a payload for its topic. */
type Verdict =
  | { readonly act: 'accept'; readonly decoded: DecodedObject; readonly delivery: Delivery; readonly signed: string | undefined }
  | { readonly act: 'refuse'; readonly told: Refusal; readonly generation?: number | undefined; readonly again?: Again | undefined }
  | { readonly act: 'wait'; readonly rollout: string; readonly message: string; readonly generation: number | undefined }
  | { readonly act: 'remove'; readonly by: Deleted['by']; readonly hash: string | undefined; readonly generation?: number | undefined };

/** Takes in what an object's topic says. */
export function readObject(record: TopicRecord, a: Arrival, rooms: ReaderRooms, c: ReaderContext): void {
  const { objects } = rooms;
  const verdict = a.bytes === 0 ? judgeEmpty(record, c) : judgePayload(record, a, rooms, c);
  switch (verdict.act) {
    case 'accept':
      objects.accept(record, a.hash, verdict.decoded, verdict.delivery, verdict.signed);
      break;
    case 'refuse':
      objects.refuse(record, a.hash, verdict.told, verdict.generation, verdict.again);
      break;
    case 'wait':
      objects.wait(record, a.hash, verdict.rollout, verdict.message, verdict.generation);
      break;
    case 'remove':
      objects.remove(record, verdict.by, verdict.hash, verdict.generation);
      break;
  }
}

function judgePayload(record: TopicRecord, a: Arrival, { objects, indexes }: ReaderRooms, c: ReaderContext): Verdict {
  const { place } = record;
  const { source } = place;
  if (a.bytes > maxRetainedBytes) {
    return { act: 'refuse', told: refusal('TooLarge', `${a.bytes} bytes, and at most ${maxRetainedBytes} are taken: split ConfigMaps`) };
  }
  // it stood at the broker when an index that leaves it out was followed first
  if (a.retain && record.accepted === undefined && indexes.strikes(source, place.topic))
    return { act: 'remove', by: 'index', hash: a.hash };
  const opened: Unwrapped = c.policy.open?.(a.payload, { source, of: 'manifest' }) ?? { ok: true, bytes: a.payload };
  if (!opened.ok) return { act: 'refuse', told: refusal(opened.reason, opened.message), again: 'policy' };
  const payload = decodePayload(opened.bytes, place, c.decode, opened.signed !== undefined);
  if (!payload.ok) {
    const { reason, problems, generation } = payload;
    const message = reason === 'NameMismatch' ? 'the payload is another object than its topic names' : '';
    // with other values of the node it may be right another day
    return { act: 'refuse', told: { reason, message, problems }, generation, again: 'node' };
  }
  const { delivery, decoded } = payload;
  const { audience, generation } = delivery;
  const { signed } = opened;
  const refuse = (told: Refusal, again?: Again): Verdict => ({ act: 'refuse', told, generation, again });
  if (audience !== undefined && !isMeantFor(audience, c.node.name, c.groups)) {
    return refuse({ reason: 'WrongAudience', message: 'it is meant for others', problems: [audienceProblem(audience)] }, 'audience');
  }
  const distrust = decoded === undefined ? tombstoneDistrust(place, delivery, signed, c.policy) : undefined;
  if (distrust !== undefined) return refuse(refusal(distrust.reason, distrust.message), 'policy');
  const fell = generationProblem(objects.known(record), { ...(generation !== undefined && { generation }), hash: a.hash });
  if (fell !== undefined) return refuse(refusal(fell.reason, fell.message));
  if (decoded === undefined) return { act: 'remove', by: 'tombstone', hash: a.hash, generation };
  const denied = denialOf({ object: decoded.object, source, ...(signed !== undefined && { signed }), ...delivery }, c.policy);
  if (denied !== undefined) return refuse(denied, 'policy');
  const before = c.candidate(place);
  const same = before?.revision === decoded.revision;
  const changed = before !== undefined && !same ? immutableProblem(before.object, decoded.object) : undefined;
  if (changed !== undefined) return refuse({ reason: 'Invalid', message: '', problems: [changed] });
  // what is accepted already and only written in another way waits for nobody
  const message = same ? undefined : rolloutWait(delivery.rollout, source, c.rollouts, c.node);
  if (message !== undefined && delivery.rollout !== undefined) return { act: 'wait', rollout: delivery.rollout, message, generation };
  return { act: 'accept', decoded, delivery, signed };
}

function tombstoneDistrust(
  { source, key }: ObjectPlace,
  delivery: Delivery,
  signed: string | undefined,
  policy: PolicyPort,
): Told | undefined {
  if (signed !== undefined) return policy.trust?.({ source, signed, of: 'manifest', key, ...delivery });
  if (policy.requiresSignature?.(source) !== true) return undefined;
  return { reason: 'Unsigned', message: 'a tombstone without a signature deletes nothing here' };
}

function judgeEmpty({ place, accepted }: TopicRecord, { policy }: ReaderContext): Verdict {
  if (policy.requiresSignature?.(place.source) !== true || accepted === undefined)
    return { act: 'remove', by: 'payload', hash: accepted?.hash };
  const message = 'an empty payload is not signed, so that it deletes nothing: a signed tombstone or index does';
  return { act: 'refuse', told: refusal('Unsigned', message), again: 'policy' };
}

/** Takes in one part of an index; what is wrong with it, if something is. */
export function readIndexPart(source: Source, part: number, a: Arrival, { indexes }: ReaderRooms, c: ReaderContext): Refusal | undefined {
  if (a.bytes === 0) {
    if (c.policy.requiresSignature?.(source) !== true) indexes.clear(source, part);
    return undefined;
  }
  const opened = openWords(source, 'index', a, c);
  if ('reason' in opened) return opened;
  const read = readIndex(opened.value);
  if (!read.ok) return { reason: 'Invalid', message: '', problems: read.problems };
  const named = (opened.value as { readonly part?: unknown }).part;
  // a signed part is good for its own topic only
  if (named !== part && (named !== undefined || opened.signed !== undefined)) {
    return { reason: 'Invalid', message: '', problems: [{ path: 'part', expected: `${part}, as the topic says`, got: shown(named) }] };
  }
  const told = untrustedWords(source, 'index', opened, read.part.generation, c) ?? indexes.set(source, part, read.part, a.hash);
  return told && refusal(told.reason, told.message);
}

/** The plain value of an index or `_config`, out of its envelope. */
export function openWords(
  source: Source,
  of: PayloadOf,
  a: Arrival,
  c: Pick<ReaderContext, 'policy'>,
): Refusal | { readonly value: unknown; readonly signed: string | undefined } {
  if (a.bytes > maxRetainedBytes) return refusal('TooLarge', `${a.bytes} bytes, and at most ${maxRetainedBytes} are taken`);
  const opened: Unwrapped = c.policy.open?.(a.payload, { source, of }) ?? { ok: true, bytes: a.payload };
  if (!opened.ok) return refusal(opened.reason, opened.message);
  const value = readJsonValue(opened.bytes);
  return value === undefined ? refusal('Invalid', 'it is no JSON object') : { value, signed: opened.signed };
}

/** What keys say against something signed that is no object. */
export function untrustedWords(
  source: Source,
  of: 'index' | 'config',
  { value, signed }: { readonly value: unknown; readonly signed: string | undefined },
  generation: number | undefined,
  c: Pick<ReaderContext, 'policy'>,
): Told | undefined {
  if (signed === undefined) {
    return c.policy.requiresSignature?.(source) === true
      ? { reason: 'Unsigned', message: 'it is not signed, and policy asks for a signature' }
      : undefined;
  }
  const audience = typeof value === 'object' && value !== null ? (value as { audience?: unknown }).audience : undefined;
  const words = { ...(typeof audience === 'string' && { audience }), ...(generation !== undefined && { generation }) };
  return c.policy.trust?.({ source, signed, of, ...words });
}
