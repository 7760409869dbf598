/**
 * Commands over MQTT. Owns which commands run and how each is answered; what a verb does is the view's, the same that the local API asks.
 * Never: runs a retained command, one that waited in the broker while the node was away, or one that policy does not allow; publishes anywhere
 * but below `reply/` and the node's own logs; lets a message throw. Whoever writes to the command topics is taken for a stranger: everything is
 * bounded, the answer's size and the number of commands at once too. What changes something is an event that says who asked.
 * Mirrors "Commands" of the MQTT contract.
 */
import type { Command } from '../api/messages.ts';
import { nodeTopics, parseTopic } from '../api/topics.ts';
import type { Verb } from '../api/verbs.ts';
import type { Inbound } from '../broker/inbox.ts';
import type { AgentView } from '../operations/agentView.ts';
import { describeError } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { Answer, type AnswerDeps } from './answer.ts';
import { acts, changes, verbSpecs } from './arguments.ts';
import { CommandEvents, type CommandEventsDeps } from './commandEvents.ts';
import { LogFollows } from './follow.ts';
import { Gate } from './gate.ts';
import { guardReply } from './guard.ts';
import { fingerprint, KnownIds } from './known.ts';
import { type OpenedCommand, readCommand, refusal } from './reading.ts';
import { type Job, Runner, type RunnerDeps } from './runner.ts';
import { judge } from './verdict.ts';
import type { Asked, Refusal, ReplyPart, ReplyTo } from './words.ts';

export interface CommandsDeps extends AnswerDeps, RunnerDeps, CommandEventsDeps {
  readonly nodeName: string;
  /** `podsched/v1`. */
  readonly prefix: string;
  readonly bootId: string;
  /** Of the connection; undefined: there is none. */
  readonly session: () => number | undefined;
  /** undefined while the agent starts. */
  readonly view: () => AgentView | undefined;
  /** `verbs` and `namespaces` of policy.mqtt, as they are now. */
  readonly allows: (verb: Verb) => boolean;
  readonly allowsNamespace: (namespace: string) => boolean;
  /** Takes the envelope off. `signed`: the ids of the trusted keys that signed it; absent: it counts as unsigned. Never throws. */
  readonly openCommand: (bytes: Uint8Array) => OpenedCommand;
  /** Why a command may not be asked for in this form; undefined: it may. */
  readonly judgeCommand: (
    command: Command,
    verb: Verb,
    signed: string | undefined,
  ) => { readonly reason: string; readonly message: string } | undefined;
  /** runDir. */
  readonly store: Store;
  /** QoS 0, not retained. Resolves when written, rejects when the connection is gone. */
  readonly publishLogs: (topic: string, payload: string) => Promise<void>;
}

const atOnce = 4;
const inRow = 8;
/** Refusals and answers from memory on their way; a broker that takes none of them is not given more. */
const maxShort = 32;
const longestLevel = 64;

export class Commands {
  #known: KnownIds;
  #follows: LogFollows;
  #events: CommandEvents;
  #runner: Runner;
  #gate = new Gate(atOnce, inRow);
  #stop = new AbortController();
  #connection = new AbortController();
  #short = 0;

  constructor(private readonly deps: CommandsDeps) {
    const topics = nodeTopics(deps.prefix, deps.nodeName);
    this.#known = new KnownIds(deps);
    this.#follows = new LogFollows({ ...deps, topic: topics.logs, publish: deps.publishLogs });
    this.#events = new CommandEvents(deps);
    this.#runner = new Runner(deps, this.#known, this.#follows, this.#events, this.#stop.signal);
  }

  /** A message on a topic of commands. Never throws; what it asks for is begun before anything later is, and answered when it is done. */
  message(m: Inbound): void {
    if (this.#stop.signal.aborted) return;
    try {
      this.#take(m);
    } catch (error) {
      this.deps.log.error({ error: describeError(error) }, 'a command could not be looked at');
    }
  }

  connected(): void {
    this.#connection = new AbortController();
    void this.#known.load();
  }

  /** What is being read for somebody ends, and so does the following of logs; what changes something goes on. */
  disconnected(): void {
    this.#connection.abort(new Error('the connection has ended'));
    this.#follows.disconnected();
  }

  /** Nothing is taken or answered any more. Resolves when what must be remembered is written. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the agent stops'));
    this.#follows.stop();
    await this.#known.settled();
  }

  #take(m: Inbound): void {
    const { allows, allowsNamespace, bootId, judgeCommand, nodeName, prefix, session } = this.deps;
    const topic = parseTopic(prefix, m.topic);
    if (topic?.of !== 'command' || topic.node !== nodeName) return;
    const level = topic.verb.slice(0, longestLevel);
    if (m.retain) {
      // an empty one is how a retained command is taken back
      if (m.payload.length > 0)
        this.#events.refused(level, refusal('denied', 'Retained', 'a retained command is never run: it would come again and again'));
      return;
    }
    const read = readCommand(m.payload, this.deps.openCommand);
    const guarded = guardReply({ prefix, node: nodeName }, { ...m, ...(read.replyTo !== undefined && { replyTo: read.replyTo }) });
    if (!guarded.ok) {
      this.#events.refused(level, refusal('denied', 'ReplyTopicRefused', guarded.message));
      return;
    }
    const { to } = guarded;
    if ('refusal' in read.is) {
      this.#refuse(level, read.id, to, read.is.refusal);
      return;
    }
    const { command } = read.is;
    const verdict = judge(level, command, {
      ...{ nodeName, bootId, allows, allowsNamespace, queued: m.queued },
      session: session(),
      distrusts: (asked, verb) => judgeCommand(asked, verb, read.signed),
    });
    if (!verdict.run) {
      this.#refuse(level, read.id, to, verdict);
      return;
    }
    const { verb, args } = verdict;
    const who = { ...(to && { requester: to.requester }), ...(read.signed !== undefined && { keyId: read.signed }) };
    const asked: Asked = { verb, id: read.id, target: command.target ?? {}, args, who };
    const { signal } = this.#connection;
    this.#admit(asked, to, signal).catch((error) => this.deps.log.error({ error: describeError(error) }, 'a command was not begun'));
  }

  async #admit(asked: Asked, to: ReplyTo | undefined, connection: AbortSignal): Promise<void> {
    await this.#known.load();
    const { id, verb, args, who } = asked;
    const turnAway = (r: Refusal): void => this.#refuse(verb, id, to, r);
    const print = fingerprint(asked);
    if (id !== '') {
      const seen = this.#known.look(id, print);
      if (seen.is === 'answered') return this.#briefly(new Answer(this.deps, to, { id, verb }), seen.parts);
      if (seen.is === 'running') return this.#briefly(new Answer(this.deps, to, { id, verb }), [{ status: 'running' }]);
      if (seen.is === 'another') return turnAway(refusal('error', 'IdReused', 'another command had this id within the last 10 minutes'));
    }
    // nobody would hear what was read
    if (to === undefined && !acts(verb, args)) return;
    const view = this.deps.view();
    if (view === undefined) return turnAway(refusal('error', 'Unavailable', 'the agent is starting'));
    if (this.#gate.full) return turnAway(refusal('error', 'Busy', `${atOnce} commands run and ${inRow} wait already; try again later`));
    if (who.keyId !== undefined) {
      const spent = this.#known.spendSigned(id, this.deps.session());
      if (spent === 'spent') return turnAway(refusal('expired', 'Replayed', 'this signed command was run already in this session'));
      if (spent === 'full')
        return turnAway(refusal('denied', 'Replayable', 'too many signed commands in one session to remember all of them'));
    }
    const answer = new Answer(this.deps, to, { id, verb });
    const changing = changes(verb, args);
    const noted = id === '' ? Promise.resolve() : this.#known.begin(id, print, changing);
    const job: Job = { asked, view, answer, changing, connection, noted };
    const place = this.#gate.enter(() => this.#runner.run(job));
    if (verbSpecs[verb].slow || place === 'waits') answer.note('accepted');
  }

  /** Few words to somebody, without a place in the row. */
  #briefly(answer: Answer, parts: readonly ReplyPart[]): void {
    if (this.#short >= maxShort) {
      this.deps.log.info({}, 'an answer was left out: the broker takes them too slowly');
      return;
    }
    this.#short++;
    const send = async (): Promise<void> => {
      for (const part of parts) if (!(await answer.send(part))) break;
      this.#short--;
    };
    void send();
  }

  /** To who asked, if anybody can be told; a denial, and what nobody can be told, is an event. */
  #refuse(level: string, id: string, to: ReplyTo | undefined, { status, reason, message }: Refusal): void {
    if (to === undefined || status === 'denied') this.#events.refused(level, { status, reason, message }, to?.requester);
    if (to !== undefined) this.#briefly(new Answer(this.deps, to, { id, verb: level }), [{ status, reason, message }]);
  }
}
