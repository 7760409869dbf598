/**
 * One probe of one container: asks by its plan, one at a time, and counts. It lives as long as its container's id; the probe's definition is
 * that of its beginning. Keeps no result itself: what an answer comes to is handed to its host.
 */
import type { Container, Probe } from '../api/v1.ts';
import type { ContainerId } from '../container/words.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import type { Outcome } from './attempt.ts';
import {
  countAnswer,
  mayProbe,
  nextTurn,
  type ProbeType,
  slowness,
  type Timing,
  type TurnState,
  timeoutsBeforeSlower,
  timing,
} from './turn.ts';

export interface Subject {
  readonly id: ContainerId;
  readonly container: Container;
  readonly type: ProbeType;
  readonly probe: Probe;
  /** On the monotonic clock. */
  readonly startedAt: Monotonic;
  /** Before this moment nothing is asked: turns are spread. */
  readonly notBefore: Monotonic;
}

export interface WorkerHost {
  readonly clock: Clock;
  /** Calls `turn` at that moment; undefined: not at all. */
  plan(worker: ProbeWorker, at: Monotonic | undefined): void;
  /** The container's startup probe has succeeded, or it has none. */
  started(subject: Subject): boolean;
  ask(subject: Subject, timeoutMs: number, signal: AbortSignal): Promise<Outcome>;
  /**
   * Whether the container has ended already, by the runtime itself: then what its probe found says nothing of it. `news`: this answer is not
   * as the last one was.
   */
  over(subject: Subject, news: boolean): Promise<boolean>;
  /** Every answer, errors and time-outs too. */
  heard(subject: Subject, outcome: Outcome): void;
  /** A threshold is reached: this is the result now, as before or not. */
  stored(subject: Subject, result: 'success' | 'failure'): void;
  /** So many time-outs in a row that it is asked less often. */
  slowed(subject: Subject, timeouts: number, periodMs: number): void;
}

/** What cannot be asked is tried so often at once. */
const maxTries = 3;

export class ProbeWorker {
  #running = false;
  #stopped = false;
  #planned: Monotonic | undefined;
  /** The turn before the planned one. */
  #turn: Monotonic | undefined;
  #asking = false;
  /** Ends what is in flight; one for many probes, for making it costs more than the rest of a turn. */
  #end: AbortController | undefined;
  #timeouts = 0;

  constructor(
    private readonly host: WorkerHost,
    readonly subject: Subject,
    private state: TurnState,
  ) {}

  /** The container runs, or what this probe waited for has come. */
  wake(): void {
    if (this.#stopped) return;
    this.#running = true;
    if (this.#planned !== undefined || !this.#may()) return;
    const { startedAt, notBefore } = this.subject;
    const from = startedAt + this.#timing().initialDelayMs;
    this.#plan(Math.max(from, notBefore, this.host.clock.monotonic()) as Monotonic);
  }

  /** The container does not run. */
  rest(): void {
    this.#running = false;
    this.#plan(undefined);
    this.#end?.abort(over);
    this.#end = undefined;
    this.#asking = false;
  }

  /** For good. */
  stop(): void {
    this.rest();
    this.#stopped = true;
  }

  /** The planned moment has come. */
  turn(): void {
    const planned = this.#planned;
    this.#planned = undefined;
    if (planned === undefined || this.#stopped || !this.#may()) return;
    this.#turn = planned;
    this.#planNext();
    // still at it: this turn is left out
    if (!this.#asking) void this.#ask(); // it never rejects
  }

  async #ask(): Promise<void> {
    this.#end ??= new AbortController();
    const { signal } = this.#end;
    this.#asking = true;
    const { timeoutMs } = this.#timing();
    let outcome = await this.host.ask(this.subject, timeoutMs, signal);
    for (let tries = 1; outcome.kind === 'error' && tries < maxTries && !signal.aborted; tries++)
      outcome = await this.host.ask(this.subject, timeoutMs, signal);
    if (signal.aborted) return;
    const bad = outcome.kind === 'failure' || outcome.kind === 'error';
    // between a container's end and the news of it a probe finds nobody
    const ended = bad && (await this.host.over(this.subject, outcome.kind === 'error' || this.state.last !== 'failure'));
    if (signal.aborted) return;
    this.#asking = false;
    if (ended) return;
    this.host.heard(this.subject, outcome);
    if (outcome.kind === 'error') return;
    this.#pace(outcome.timedOut);
    const answer = outcome.kind === 'failure' ? 'failure' : 'success';
    const counted = countAnswer(this.subject.type, this.state, answer, this.#timing());
    this.state = counted.state;
    if (this.state.hold) this.#plan(undefined);
    if (counted.stored !== undefined) this.host.stored(this.subject, counted.stored);
  }

  /** A command that runs into its time-out leaves processes behind: after some in a row it is asked less often, until it answers. */
  #pace(timedOut: boolean): void {
    if (this.subject.probe.exec === undefined) return;
    const before = slowness(this.#timeouts);
    this.#timeouts = timedOut ? this.#timeouts + 1 : 0;
    if (slowness(this.#timeouts) !== before) this.#planNext();
    if (this.#timeouts === timeoutsBeforeSlower) this.host.slowed(this.subject, this.#timeouts, this.#periodMs());
  }

  #planNext(): void {
    if (this.#turn === undefined) return;
    this.#plan(nextTurn(this.#turn, this.#periodMs(), this.host.clock.monotonic()));
  }

  #plan(at: Monotonic | undefined): void {
    if (at === undefined && this.#planned === undefined) return;
    this.#planned = at;
    this.host.plan(this, at);
  }

  #periodMs(): number {
    return this.#timing().periodMs * slowness(this.#timeouts);
  }

  #timing(): Timing {
    return timing(this.subject.probe);
  }

  #may(): boolean {
    return mayProbe({ type: this.subject.type, hold: this.state.hold, running: this.#running, started: this.host.started(this.subject) });
  }
}

/** One object for all: an abort reason of its own would cost a stack trace each time. */
const over = Object.assign(new Error('the container is not asked any more'), { name: 'AbortError' });
