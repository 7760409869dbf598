/** What was told, judged: the shapes of the contract, and the parts of a payload that tests compare. */
import assert from 'node:assert/strict';
import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { LogLinesSchema, NodeMetricsSchema, NodeSummarySchema } from '../../src/api/messages.ts';
import { FileStatusSchema, NodeOnlineSchema, SyncStatusSchema } from '../../src/api/payloads.ts';
import { defaultPrefix, maxMessageBytes, maxRetainedBytes, parseTopic } from '../../src/api/topics.ts';
import { run } from './process.ts';
import type { Heard } from './watcher.ts';

export interface Told {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status?: {
    readonly phase?: string;
    readonly startTime?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly containerID?: string;
      readonly restartCount: number;
      readonly ready: boolean;
      readonly state: Readonly<Record<string, { readonly startedAt?: string; readonly reason?: string }>>;
    }[];
  };
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly state?: string;
  readonly seq?: number;
  readonly session?: number;
  readonly problems?: readonly unknown[];
}

/** Any payload, as far as a test reads it; undefined for a topic that has none. */
export const told = (value: unknown): Told => (value ?? {}) as Told;

export const isRunning = (value: unknown): boolean =>
  told(value).status?.phase === 'Running' && (told(value).status?.containerStatuses ?? []).every((c) => c.ready);

export const condition = (
  node: unknown,
  type: string,
): { readonly status: string; readonly reason?: string; readonly message?: string } | undefined =>
  told(node).status?.conditions?.find((c) => c.type === type);

/** A payload without what is of the moment of telling. */
export function unstamped(value: unknown): unknown {
  const { boot: _b, seq: _s, session: _n, ...rest } = value as Record<string, unknown>;
  const metadata = rest.metadata as { annotations?: Record<string, unknown> } | undefined;
  if (metadata?.annotations === undefined) return rest;
  const { 'podsched.dev/boot': _c, 'podsched.dev/seq': _t, ...annotations } = metadata.annotations;
  return { ...rest, metadata: { ...metadata, annotations } };
}

const schemas: Readonly<Record<string, TSchema>> = {
  online: NodeOnlineSchema,
  duplicate: NodeOnlineSchema,
  sync: SyncStatusSchema,
  file: FileStatusSchema,
  summary: NodeSummarySchema,
  metrics: NodeMetricsSchema,
  logs: LogLinesSchema,
};
const v1Kinds: Readonly<Record<string, string>> = { info: 'Node', pod: 'Pod', events: 'Event' };

/**
 * Everything the agent said: known topics only, each payload in its shape and size, and (boot, seq) rising on each topic.
 * `eventsAgain`: its connection was broken while it told. An event that was not confirmed then is sent again, maybe after a newer one, and
 * whoever reads orders them by seq; everybody else hears events in their order too.
 */
export function assertContract(heard: readonly Heard[], node: string, o: { readonly eventsAgain?: boolean } = {}): void {
  const last = new Map<string, number>();
  for (const { topic, text, retained } of heard) {
    if (!topic.startsWith(`${defaultPrefix}/nodes/${node}/`)) continue;
    const parsed = parseTopic(defaultPrefix, topic);
    assert.ok(parsed !== undefined, `${topic} is no topic of the contract`);
    assert.ok(topic.split('/').length - 1 <= 6, `${topic} has more than six slashes`);
    if (parsed.of === 'marker' || text === '') continue;
    assert.ok(Buffer.byteLength(text) <= (parsed.of === 'events' ? maxMessageBytes : maxRetainedBytes), `${topic} is too large`);
    const payload = JSON.parse(text) as Record<string, unknown>;
    const schema = schemas[parsed.of];
    if (schema !== undefined) assert.deepEqual([...Value.Errors(schema, payload)], [], `${topic}: ${text}`);
    else {
      assert.equal(payload.apiVersion, 'v1', topic);
      assert.equal(payload.kind, v1Kinds[parsed.of], topic);
    }
    const annotations = (payload.metadata as { annotations?: Record<string, string> } | undefined)?.annotations;
    const seq = Number(payload.seq ?? annotations?.['podsched.dev/seq']);
    const boot = Number(payload.boot ?? annotations?.['podsched.dev/boot']);
    assert.ok(Number.isSafeInteger(seq) && Number.isSafeInteger(boot), `${topic} carries boot and seq: ${text}`);
    // what a broker kept comes again; a will was written when its connection began
    if (retained || payload.state === 'lost') continue;
    if (o.eventsAgain === true && parsed.of === 'events') continue;
    assert.ok(seq >= (last.get(topic) ?? 0), `${topic}: seq ${seq} after ${last.get(topic)}`);
    last.set(topic, seq);
  }
}

/** What `mosquitto_sub --retained-only` shows of `filter` in so many seconds, a part of it where that was too short: payloads by topic, sorted. */
export async function retainedOnly(port: number, filter: string, seconds = 2): Promise<Readonly<Record<string, string>>> {
  // in hexadecimal digits a payload is one word
  const how = ['--retained-only', '-W', String(seconds), '-F', '%t %x'];
  // the time-out (27) is how it ends when nothing more comes
  const { code, stdout, stderr } = await run('mosquitto_sub', ['-p', String(port), '-t', filter, ...how]);
  if (code !== 0 && code !== 27) throw new Error(`mosquitto_sub ended with ${code}: ${stderr}`);
  const lines = stdout.split('\n').filter(Boolean).sort();
  const at = (line: string) => line.lastIndexOf(' ');
  return Object.fromEntries(lines.map((l) => [l.slice(0, at(l)), Buffer.from(l.slice(at(l) + 1), 'hex').toString()]));
}
