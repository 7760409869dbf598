/**
 * Commands to one node and their answers, over the broker. Owns who is waited for, and what was last heard of the node: one that is not there is
 * said to be so at once, and one that does not answer within 30 s after that.
 * Answers are taken in order: a piece that comes twice (QoS 1) counts once, one that is missing ends the answer.
 */

import { randomUUID } from 'node:crypto';
import type { Command, Reply, ReplyStatus } from '../api/messages.ts';
import { commandTopic, expirySeconds, nodeTopics } from '../api/topics.ts';
import type { Verb } from '../api/verbs.ts';
import { type HeardOnline, parseObject, parseOnline } from '../broker/online.ts';
import { spanText } from '../operations/age.ts';
import { bytesOf } from '../remote/chunks.ts';
import type { BrokerMessage } from '../world/broker.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { RemoteBroker } from './remoteBroker.ts';

export interface Ask {
  readonly target?: NonNullable<Command['target']>;
  readonly args?: Readonly<Record<string, unknown>>;
}

/** A reply as far as it is used. */
export type HeardReply = Pick<Reply, 'status'> &
  Partial<Pick<Reply, 'reason' | 'message' | 'chunk' | 'stream' | 'exitCode' | 'truncated'>> & { readonly data: Uint8Array };

export interface Answer {
  readonly last: HeardReply;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/** Signs a command: bytes of the Command in, the envelope out. */
export type SignCommand = (command: string) => string;

const onlineMs = 1500;
const answerMs = 30_000;
/** Once it was accepted, the node works on it for as long as it is heard. */
const workMs = 600_000;
const heartbeats = 3;

export class RemoteNode {
  #online: HeardOnline | undefined;
  /** How old the last word is, in seconds, as the broker counts; undefined: it does not say. */
  #age: number | undefined;
  #heardLive = false;
  #news = new AbortController();
  #waiting = new Map<string, HeardReply[]>();

  private constructor(
    readonly remote: RemoteBroker,
    readonly name: string,
    private readonly sign: SignCommand | undefined,
  ) {}

  /** Rejects with `notFound` for a node that nobody knows, with `unreachable` for one that is not there. */
  static async open(remote: RemoteBroker, name: string, o: { readonly sign?: SignCommand } = {}): Promise<RemoteNode> {
    const node = new RemoteNode(remote, name, o.sign);
    const { online, info } = node.topics;
    await remote.listen([node.#replyTopic, online], (m) => node.#heard(m), 1);
    await node.#change(onlineMs, () => node.#online !== undefined);
    const told = node.#online !== undefined || (await remote.retained([info], (found) => found.size > 0)).size > 0;
    const absent = absence(name, node.#online, told, node.#age);
    if (absent !== undefined) throw absent;
    return node;
  }

  get topics(): ReturnType<typeof nodeTopics> {
    return nodeTopics(this.remote.prefix, this.name);
  }

  get #replyTopic(): string {
    return this.topics.reply(this.remote.settings.requester);
  }

  /** Resolves with the whole answer. Rejects with what the node refuses, and when it does not answer. */
  async ask(verb: Verb, what: Ask = {}): Promise<Answer> {
    const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
    let last: HeardReply | undefined;
    for await (const reply of this.replies(verb, what)) {
      parts[reply.stream ?? 'stdout'].push(reply.data);
      last = reply;
    }
    if (last === undefined) throw new CommandError(exitCodes.failed, `node "${this.name}" gave no answer to ${verb}`);
    return { last, stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr) };
  }

  /** The answer piece by piece, as it comes. Ends after the last one. */
  async *replies(verb: Verb, { target, args = {} }: Ask = {}): AsyncGenerator<HeardReply, void> {
    const id = randomUUID();
    const heard: HeardReply[] = [];
    this.#waiting.set(id, heard);
    try {
      await this.#send(verb, id, { ...(target && { target }), args });
      let next = 0;
      let patienceMs = answerMs;
      for (;;) {
        if (!(await this.#change(patienceMs, () => heard.length > 0 || this.#gone(), patienceMs === workMs))) throw this.#silent(verb);
        const reply = heard.shift();
        if (reply === undefined) throw absence(this.name, this.#online, true) ?? this.#silent(verb);
        switch (reply.status) {
          case 'accepted':
          case 'running':
            patienceMs = workMs;
            continue;
          case 'error':
          case 'denied':
          case 'expired':
          case 'tooLarge':
            // what could be read before it broke
            if (reply.data.length > 0) yield reply;
            throw refusal(this.name, verb, reply);
          case 'ok':
        }
        const { seq, last } = reply.chunk ?? { seq: next, last: true };
        if (seq < next) continue;
        if (seq > next) throw new CommandError(exitCodes.failed, `a piece of the answer of node "${this.name}" was lost on the way`);
        next++;
        patienceMs = answerMs;
        yield reply;
        if (last) return;
      }
    } finally {
      this.#waiting.delete(id);
    }
  }

  /** The answer as JSON. */
  async json(verb: Verb, what: Ask = {}): Promise<unknown> {
    const { stdout } = await this.ask(verb, what);
    try {
      return JSON.parse(new TextDecoder().decode(stdout));
    } catch (cause) {
      throw new CommandError(exitCodes.failed, `the answer of node "${this.name}" to ${verb} is no JSON`, { cause });
    }
  }

  async #send(verb: Verb, id: string, body: Pick<Command, 'target' | 'args'>): Promise<void> {
    const five = this.remote.protocolVersion === 5;
    const { bootID, session } = this.#online ?? {};
    const command: Command = {
      apiVersion: 'podsched.dev/v1',
      kind: 'Command',
      id,
      ...body,
      ...(!five && { replyTo: this.#replyTopic }),
      // what is signed counts for one node, one boot and one session: it cannot be said again later
      ...(this.sign && {
        node: this.name,
        verb,
        ...(bootID !== undefined && { bootID }),
        ...(session !== undefined && { session }),
      }),
    };
    const text = JSON.stringify(command);
    await this.remote.publish(commandTopic(this.remote.prefix, this.name, verb), this.sign?.(text) ?? text, {
      retain: false,
      expirySeconds: expirySeconds.command,
      ...(five && { responseTopic: this.#replyTopic, correlationData: Buffer.from(id) }),
    });
  }

  #heard({ topic, payload, retain, correlationData, expiresInSeconds }: BrokerMessage): void {
    if (topic === this.topics.online) {
      this.#online = parseOnline(payload);
      // a last word lives for 30 days from when it was said
      const lived = expirySeconds.will - (expiresInSeconds ?? Number.NaN);
      this.#age = retain && lived >= 0 ? lived : undefined;
      if (!retain) this.#heardLive = true;
    } else {
      const found = parseReply(payload);
      if (found === undefined) return;
      // what could not be read of an envelope has no id, and MQTT 5 knows it all the same
      const id = found.id === '' && correlationData !== undefined ? new TextDecoder().decode(correlationData) : found.id;
      this.#waiting.get(id)?.push(found.reply);
    }
    this.#news.abort();
    this.#news = new AbortController();
  }

  #gone(): boolean {
    return this.#heardLive && absence(this.name, this.#online, true) !== undefined;
  }

  /** False: `ms` passed and it did not come true. `lively`: without a heartbeat, that is. */
  async #change(ms: number, isTrue: () => boolean, lively = false): Promise<boolean> {
    const { clock } = this.remote;
    const most = lively ? Math.max(ms, heartbeats * 1000 * (this.#online?.heartbeatSeconds ?? 0)) : ms;
    let until = clock.monotonic() + most;
    while (!isTrue()) {
      const left = until - clock.monotonic();
      if (left <= 0) return false;
      const news = this.#news.signal;
      await this.remote.wait(left, news);
      if (lively && news.aborted) until = clock.monotonic() + most;
    }
    return true;
  }

  #silent(verb: Verb): CommandError {
    const every = this.#online?.heartbeatSeconds;
    const last = this.#online === undefined ? 'nothing is known of it' : `its last word was "${this.#online.state}"`;
    const beat = this.#heardLive ? ', and it has been heard meanwhile' : every === undefined ? '' : `, a heartbeat is due every ${every} s`;
    // one that takes no orders does not even hear them
    const deaf =
      this.#online?.state === 'online' ? '; it hears none with mqtt.config: false, or from an embedded broker without a passwordFile' : '';
    return new CommandError(exitCodes.unreachable, `node "${this.name}" does not answer to ${verb}: ${last}${beat}${deaf}`);
  }
}

/** Why a node cannot answer; undefined: nothing is known against it. `told`: something of it is retained. `ageSeconds`: of its last word. */
export function absence(
  name: string,
  online: Pick<HeardOnline, 'state'> | undefined,
  told: boolean,
  ageSeconds?: number,
): CommandError | undefined {
  const ago = ageSeconds === undefined ? '' : ` ${spanText(ageSeconds)} ago`;
  switch (online?.state) {
    case undefined:
      return told
        ? new CommandError(exitCodes.unreachable, `node "${name}" is stale: its heartbeats have stopped, and what is told of it is old`)
        : new CommandError(exitCodes.notFound, `no node "${name}" is known on this broker (or this user may not read its topics)`);
    case 'offline':
      return new CommandError(exitCodes.unreachable, `node "${name}" is offline: its agent was ended${ago}`);
    case 'lost':
      return new CommandError(exitCodes.unreachable, `node "${name}" is lost: its connection to the broker broke${ago}`);
    case 'duplicate':
      return new CommandError(exitCodes.unreachable, `node "${name}" has found its name taken by another machine`);
    case 'online':
      return undefined;
  }
}

function refusal(node: string, verb: Verb, { status, reason, message }: HeardReply): CommandError {
  const code = reason === 'NotFound' ? exitCodes.notFound : exitCodes.failed;
  if (status === 'denied')
    return new CommandError(code, `node "${node}" does not allow ${verb} over MQTT: ${message ?? reason ?? 'policy'}`);
  if (status === 'expired')
    return new CommandError(
      exitCodes.unreachable,
      `node "${node}" got the command too late, and has not run it: ${message ?? reason ?? ''}`,
    );
  return new CommandError(code, message ?? `node "${node}" answers ${verb} with ${reason ?? status}`);
}

const statuses: readonly ReplyStatus[] = ['accepted', 'running', 'ok', 'error', 'denied', 'expired', 'tooLarge'];

/** A reply out of bytes; undefined: it is none. */
export function parseReply(payload: Uint8Array): { readonly id: string; readonly reply: HeardReply } | undefined {
  const o = parseObject(payload);
  const status = statuses.find((s) => s === o?.status);
  if (o === undefined || status === undefined || typeof o.id !== 'string') return undefined;
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  const [reason, message, truncated, data] = [text(o.reason), text(o.message), text(o.truncated), text(o.data)];
  const chunk = typeof o.chunk === 'object' && o.chunk !== null ? (o.chunk as Readonly<Record<string, unknown>>) : undefined;
  return {
    id: o.id,
    reply: {
      status,
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
      ...(truncated !== undefined && { truncated }),
      ...(typeof chunk?.seq === 'number' && { chunk: { seq: chunk.seq, last: chunk.last === true } }),
      ...((o.stream === 'stdout' || o.stream === 'stderr') && { stream: o.stream }),
      ...(typeof o.exitCode === 'number' && { exitCode: o.exitCode }),
      data: bytesOf({ data: data ?? '', encoding: o.encoding }),
    },
  };
}
