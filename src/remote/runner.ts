/**
 * A command that has its place: carried out, answered, and remembered. Owns nothing but the time it may take. What only reads ends with the
 * connection it came by; what changes something goes on, and its answer is there for who asks again.
 */
import { orAbort } from '../async/abort.ts';
import type { AgentView } from '../operations/agentView.ts';
import type { Clock } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Answer } from './answer.ts';
import { mebibyte, verbSpecs } from './arguments.ts';
import { chunkFor } from './chunks.ts';
import type { CommandEvents } from './commandEvents.ts';
import type { LogFollows } from './follow.ts';
import type { KnownIds } from './known.ts';
import { closeLog, partsOf } from './parts.ts';
import { refusal } from './reading.ts';
import type { runVerb } from './verbs.ts';
import type { Asked, Outcome, ReplyPart } from './words.ts';

export interface RunnerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** What does the verbs; asked for at each command, so that nothing is loaded where none comes. */
  readonly loadVerbs: () => Promise<typeof runVerb>;
  /** The most bytes the broker takes in one message on a topic. */
  readonly largestMessage: (topic: string) => number;
}

/** A command on its way through the gate. */
export interface Job {
  readonly asked: Asked;
  readonly view: AgentView;
  readonly answer: Answer;
  readonly changing: boolean;
  /** Ends with the connection it came by. */
  readonly connection: AbortSignal;
  /** Its id is written. */
  readonly noted: Promise<void>;
}

const beatMs = 10_000;
const quickMs = 60_000;
const slowMs = 10 * 60_000;
const bundleCapBytes = 2 * mebibyte;
const maxKeptBytes = 64 * 1024;

export class Runner {
  constructor(
    private readonly deps: RunnerDeps,
    private readonly known: KnownIds,
    private readonly follows: LogFollows,
    private readonly events: CommandEvents,
    /** The agent stops. */
    private readonly stop: AbortSignal,
  ) {}

  /** Never rejects. */
  async run(job: Job): Promise<void> {
    const { asked, answer, changing, connection, noted } = job;
    const over = new AbortController();
    const late = new AbortController();
    const signal = AbortSignal.any([this.stop, late.signal, ...(changing ? [] : [connection])]);
    this.#later(limitMs(asked), over.signal, () => late.abort(new Error('it took too long')));
    const found = new AbortController();
    const beat = (): void => {
      answer.note('running');
      this.#later(beatMs, found.signal, beat);
    };
    this.#later(beatMs, found.signal, beat);
    try {
      await noted;
      signal.throwIfAborted();
      const outcome = await this.#outcome(job, signal, late.signal);
      // the end is said after all else
      found.abort();
      await this.#deliver(job, outcome, signal);
    } catch (error) {
      // only the end of the connection or of the agent comes to here
      this.deps.log.info({ verb: asked.verb, error: describeError(error) }, 'a command was given up');
      // of what changes something the end is not known: it stays begun, for the agent that is started next
      if (asked.id !== '' && !(changing && this.stop.aborted)) this.known.finish(asked.id, undefined);
    } finally {
      found.abort();
      over.abort();
    }
  }

  async #outcome({ asked, view, changing }: Job, signal: AbortSignal, late: AbortSignal): Promise<Outcome> {
    const { clock, log } = this.deps;
    const { verb } = asked;
    let work: Promise<Outcome> | undefined;
    try {
      if (changing) this.events.carriedOut(asked, view);
      const run = await this.deps.loadVerbs();
      work = run(asked, { view, clock, follows: this.follows }, signal);
      return await orAbort(work, signal);
    } catch (error) {
      work?.then(closeBody).catch(() => {}); // what comes too late is heard by nobody
      if (late.aborted) return refusal('error', 'TookTooLong', 'it did not end in time; what it began may still go on');
      signal.throwIfAborted();
      // of a program that was run, the runtime quotes the arguments
      log.warn({ verb, ...(verb !== 'exec' && { error: describeError(error) }) }, 'a command failed');
      return refusal('error', 'InternalError', describeError(error));
    }
  }

  /** Part after part, each when the broker has the one before; remembered whole where that is not much. */
  async #deliver({ asked, answer, changing }: Job, outcome: Outcome, signal: AbortSignal): Promise<void> {
    const parts: ReplyPart[] = [];
    let bytes = 0;
    let reached = answer.topic !== undefined;
    // a question that could not be answered may be asked again
    let whole = changing || outcome.status === 'ok';
    const streams = outcome.status === 'ok' && outcome.body !== undefined && 'bytes' in outcome.body;
    const limits = {
      ...(answer.topic !== undefined && { chunkBytes: chunkFor(this.deps.largestMessage(answer.topic)) }),
      ...(asked.verb === 'bundle' && { capBytes: bundleCapBytes }),
    };
    for await (const part of partsOf(outcome, limits)) {
      bytes += part.data?.length ?? 0;
      if (changing || bytes <= maxKeptBytes) parts.push(part);
      else whole = false;
      // a broker that acknowledges nothing has no claim on a place
      if (reached) reached = await orAbort(answer.send(part), signal).catch(() => false);
      if (reached || !streams) continue;
      whole = false;
      break;
    }
    if (asked.id !== '') this.known.finish(asked.id, whole ? parts : undefined);
  }

  #later(ms: number, signal: AbortSignal, act: () => void): void {
    this.deps.clock.sleep(ms, signal).then(act, () => {}); // it was over before
  }
}

function limitMs({ verb, args }: Asked): number {
  if (verb === 'exec' && typeof args.timeoutSeconds === 'number') return (args.timeoutSeconds + 15) * 1000;
  return verbSpecs[verb].slow || verb === 'logs' ? slowMs : quickMs;
}

/** What was opened for somebody who is gone is closed. */
async function closeBody(outcome: Outcome): Promise<void> {
  if (outcome.status === 'ok' && outcome.body !== undefined && 'bytes' in outcome.body) await closeLog(outcome.body.bytes);
}
