/** Commands with everything around them: a node that is asked, a broker that acknowledges when told to. */
import assert from 'node:assert/strict';
import type { Command, LogLines, Reply } from '../../src/api/messages.ts';
import type { EventSubject } from '../../src/api/status.ts';
import { defaultVerbs, type Verb } from '../../src/api/verbs.ts';
import type { Inbound } from '../../src/broker/inbox.ts';
import type { AgentView } from '../../src/operations/agentView.ts';
import { bytesOf } from '../../src/remote/chunks.ts';
import { Commands, type CommandsDeps } from '../../src/remote/commands.ts';
import { runVerb } from '../../src/remote/verbs.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore } from '../../src/world/store.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { agentView } from '../operations/view.ts';

export const self = 'pi-07';
export const prefix = 'podsched/v1';
export const replyTopic = (requester = 'ops'): string => `${prefix}/reply/${requester}/${self}`;

export interface BedOptions {
  readonly view?: Partial<AgentView>;
  readonly allows?: readonly Verb[];
  readonly deps?: Partial<CommandsDeps>;
  readonly store?: MemoryStore;
  readonly clock?: FakeClock;
}

export interface Published {
  readonly topic: string;
  readonly reply: Reply;
  readonly correlationData?: Uint8Array;
}

export interface ToldEvent {
  readonly subject: EventSubject;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export function commandBed(o: BedOptions = {}) {
  const clock = o.clock ?? new FakeClock();
  const store = o.store ?? new MemoryStore();
  const published: Published[] = [];
  const lines: LogLines[] = [];
  const events: ToldEvent[] = [];
  /** The broker keeps its acknowledgements back. */
  const held: { resolve: () => void; reject: (e: Error) => void }[] = [];
  let holds = false;
  let session: number | undefined = 1000;
  const view: AgentView = agentView(o.view);
  const { allows = defaultVerbs } = o;
  const commands = new Commands({
    clock,
    log: silentLog,
    nodeName: self,
    prefix,
    bootId: 'boot-1',
    session: () => session,
    view: () => view,
    loadVerbs: async () => runVerb,
    allows: (verb) => allows.includes(verb),
    allowsNamespace: () => true,
    openCommand: () => ({ ok: false, reason: 'KeyUnknown', message: 'no keys here' }),
    judgeCommand: () => undefined,
    store,
    event: (subject, type, reason, message) => void events.push({ subject, type, reason, message }),
    boot: () => 3,
    seq: () => 42,
    largestMessage: () => 120 * 1024,
    reply: (topic, payload, { correlationData }) => {
      assert.ok(Buffer.byteLength(payload) <= 120 * 1024);
      published.push({ topic, reply: JSON.parse(payload) as Reply, ...(correlationData && { correlationData }) });
      return holds ? new Promise<void>((resolve, reject) => held.push({ resolve, reject })) : Promise.resolve();
    },
    publishLogs: async (_, payload) => void lines.push(JSON.parse(payload) as LogLines),
    ...o.deps,
  });
  commands.connected();

  /** Everything that needs no time is done when it resolves. */
  const rest = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await settle();
  };
  const raw = (verb: string, payload: Uint8Array | string, m: Partial<Inbound> = {}): void =>
    commands.message({
      topic: `${prefix}/cmd/${self}/${verb}`,
      payload: typeof payload === 'string' ? new TextEncoder().encode(payload) : payload,
      retain: false,
      queued: false,
      ...m,
    });
  /** A Command by a 3.1.1 client that wants its answer. */
  const ask = async (verb: string, command: Partial<Command> & Record<string, unknown> = {}, m: Partial<Inbound> = {}): Promise<void> => {
    raw(verb, JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'Command', replyTo: replyTopic(), ...command }), m);
    await rest();
  };
  return {
    clock,
    store,
    commands,
    published,
    lines,
    events,
    rest,
    raw,
    ask,
    replies: (): Reply[] => published.map((p) => p.reply),
    /** Statuses and reasons, in order. */
    said: (): string[] => published.map(({ reply: { status, reason } }) => (reason === undefined ? status : `${status} ${reason}`)),
    /** The data of all chunks that came so far. */
    data: (): string =>
      Buffer.concat(
        published.map(({ reply: { data = '', encoding } }) => bytesOf({ data, ...(encoding !== undefined && { encoding }) })),
      ).toString(),
    clear: (): void => {
      published.length = 0;
      events.length = 0;
    },
    holdAcks: (): void => {
      holds = true;
    },
    ack: async (): Promise<void> => {
      held.shift()?.resolve();
      await rest();
    },
    unacked: (): number => held.length,
    /** The connection ends: what is not acknowledged is refused. */
    disconnect: async (): Promise<void> => {
      session = undefined;
      commands.disconnected();
      for (const { reject } of held.splice(0)) reject(new Error('the connection is gone'));
      await rest();
    },
    reconnect: (to: number): void => {
      session = to;
      holds = false;
      commands.connected();
    },
  };
}
