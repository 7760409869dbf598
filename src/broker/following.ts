/**
 * The filters of the inbox on one connection: subscribed one after the other, each with a marker after it, whatever of them the broker refuses.
 * A session that was resumed has its subscriptions still, and they are made again all the same: it costs nothing, and what is retained comes again.
 * Gives on only what was asked for. Owns what is true of this connection; the list and the refusals outlive it in `Reads`.
 */
import type { NodeTopics } from '../api/topics.ts';
import { Deadlines } from '../async/deadlines.ts';
import { type BrokerConnection, BrokerError, type BrokerMessage } from '../world/broker.ts';
import type { Clock, Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { Fetching } from './fetching.ts';
import { filterMatches, filtersAtOnce } from './filters.ts';
import type { Inbound, Inbox } from './inbox.ts';
import type { Reads } from './reads.ts';
import { quietMs } from './reconnect.ts';
import type { Snapshots } from './snapshots.ts';
import { refusedCode } from './subtree.ts';

export interface FollowingDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly topics: NodeTopics;
  readonly prefix: string;
  readonly inbox?: Inbox;
  readonly reads: Reads;
  readonly snapshots: Snapshots;
  /** Refused subscriptions are asked about again: those that are not followed too. */
  readonly onAskAgain: () => void;
  /** A step that fails with the connection, or ends it. */
  readonly run: (step: Promise<void>) => void;
}

/** A minute without the marker after a SUBSCRIBE: the next filter has its turn; the marker is waited for all the same. */
const markerTries = 6;
/** Groups that this node left while the agent was not running, and whose messages the broker still has for us. */
const straysAtMost = 32;

export class Following {
  readonly #fetching: Fetching;
  #again: Deadlines<'ask'>;
  #connection: BrokerConnection | undefined;
  #told = false;
  #gone = new AbortController();
  #asked = new Set<string>();
  /** The filter whose SUBACK is awaited. */
  #asking: string | undefined;
  /** Subscribed, and the end of the snapshot not seen yet. */
  #unended: string[] = [];
  #working = false;
  #workAgain = false;
  #ending = false;
  #markerLate = false;
  #markerGranted: Promise<boolean> | undefined;
  #strays = new Set<string>();

  constructor(private readonly deps: FollowingDeps) {
    this.#fetching = new Fetching(deps);
    this.#again = new Deadlines(
      deps.clock, // timers count whole milliseconds, so the moment may be a fraction away
      () => this.askAgain(deps.clock.monotonic() + 1),
    );
  }

  /** A minute passed without the marker, and it has not come since. */
  get markerLate(): boolean {
    return this.#markerLate && !this.deps.snapshots.marker.back;
  }

  /** CONNACK came, and this node speaks as itself: from here the inbox is told. */
  connected(sessionPresent: boolean, session: number): void {
    this.#told = true;
    this.deps.reads.newConnection(sessionPresent);
    this.#give(() => this.deps.inbox?.connected({ sessionPresent, session }));
  }

  /** The name is ours: subscribes, and goes on in the background. */
  start(connection: BrokerConnection): void {
    this.#connection = connection;
    // whatever was done on this connection before, such as looking for the boot counter
    this.#markerGranted = undefined;
    this.changed();
  }

  /** The list may be another. */
  changed(): void {
    const connection = this.#connection;
    if (connection === undefined || this.#gone.signal.aborted) return;
    // at once: who lets a filter go and follows it again wants its snapshot again
    const { reads } = this.deps;
    for (const filter of this.#asked) if (!reads.follows(filter)) this.#asked.delete(filter);
    this.#unended = this.#unended.filter((filter) => reads.follows(filter));
    this.#workAgain = true;
    if (!this.#working) this.deps.run(this.#work(connection));
  }

  /** An answer to a SUBSCRIBE for one of the node's own topics. Never rejects but with the connection. */
  async own(filter: string, subscription: Promise<void>): Promise<boolean> {
    const { clock, log, reads } = this.deps;
    const code = await refusedCode(subscription);
    if (code === undefined) {
      reads.granted(filter);
      return true;
    }
    log.warn({ filter, code }, 'the broker refuses a subscription');
    reads.refuse(filter, code, clock.monotonic());
    this.#armAgain();
    return false;
  }

  /** A message that is none of the node's own. */
  hear(m: BrokerMessage): void {
    if (!this.#told || this.#gone.signal.aborted) return;
    const { inbox, reads, snapshots } = this.deps;
    const answer = this.#fetching.answers(m.topic);
    if (!answer && !reads.followed.some((filter) => filterMatches(filter, m.topic))) {
      this.#stray(m.topic);
      return;
    }
    const inbound: Inbound = {
      topic: m.topic,
      // copied: as a part of what the socket read at once it would keep all of that in memory
      payload: new Uint8Array(m.payload),
      retain: m.retain,
      ...(m.responseTopic !== undefined && { responseTopic: m.responseTopic }),
      ...(m.correlationData !== undefined && { correlationData: new Uint8Array(m.correlationData) }),
      queued: !snapshots.marker.back,
    };
    this.#give(() => inbox?.message(inbound));
  }

  async fetch(connection: BrokerConnection, topics: readonly string[]): Promise<void> {
    await this.#hearMarker(connection);
    await this.#fetching.fetch(connection, topics);
  }

  /** Subscribes to the own marker, once; false: refused. */
  #hearMarker(connection: BrokerConnection): Promise<boolean> {
    const { marker } = this.deps.topics;
    this.#markerGranted ??= this.own(marker, connection.subscribe([marker], 1));
    return this.#markerGranted;
  }

  /** The connection is gone. `blame`: it may have ended over a SUBSCRIBE. True when one was out: then no message need be the cause. */
  stop(blame: boolean): boolean {
    if (this.#gone.signal.aborted) return false;
    this.#gone.abort(new BrokerError('the connection is gone'));
    this.#again.stop();
    const out = this.#asking;
    if (blame && out !== undefined) this.deps.reads.struck(out, this.deps.clock.monotonic());
    if (this.#told) this.#give(() => this.deps.inbox?.disconnected());
    return blame && out !== undefined;
  }

  async #work(connection: BrokerConnection): Promise<void> {
    this.#working = true;
    try {
      while (this.#workAgain && !this.#gone.signal.aborted) {
        this.#workAgain = false;
        await this.#subscribeAll(connection);
      }
    } finally {
      this.#working = false;
    }
    if (!this.#ending) await this.#waitForEnd();
  }

  async #subscribeAll(connection: BrokerConnection): Promise<void> {
    const { clock, reads, snapshots } = this.deps;
    if (reads.followed.length > 0) await this.#hearMarker(connection);
    for (;;) {
      const gone = [...reads.inSession].filter((filter) => !reads.follows(filter)).slice(0, filtersAtOnce);
      const next = reads.followed.find((filter) => !this.#asked.has(filter) && reads.mayAsk(filter, clock.monotonic()));
      if (gone.length > 0) {
        await connection.unsubscribe(gone);
        for (const filter of gone) reads.inSession.delete(filter);
      } else if (next !== undefined) {
        await snapshots.turn(() => this.#subscribeOne(connection, next));
      } else {
        break;
      }
    }
    this.#armAgain();
  }

  async #subscribeOne(connection: BrokerConnection, filter: string): Promise<void> {
    const { clock, log, reads, snapshots, topics } = this.deps;
    if (!reads.follows(filter)) return;
    this.#asked.add(filter);
    reads.inSession.add(filter);
    this.#asking = filter;
    const code = await refusedCode(connection.subscribe([filter], 1, { asPublished: filter === topics.commands }));
    this.#asking = undefined;
    if (code !== undefined) {
      log.warn({ filter, code }, 'the broker refuses a subscription');
      reads.refuse(filter, code, clock.monotonic());
      return;
    }
    reads.granted(filter);
    this.#unended.push(filter);
    const covered = [...this.#unended];
    const heard = await this.#hearMarker(connection);
    if (!(await snapshots.marker.wait(!heard ? 0 : this.#markerLate ? 1 : markerTries))) {
      if (!this.#markerLate && heard) log.warn({ topic: topics.marker }, 'the marker does not come back: may this user write and read it?');
      this.#markerLate = true;
      return;
    }
    // nothing retained is taken from there, so nothing retained is waited for
    if (filter !== topics.commands) await snapshots.quiet();
    this.#snapshotEnded(covered);
  }

  /** All is subscribed, and a marker is still out. */
  async #waitForEnd(): Promise<void> {
    this.#ending = true;
    try {
      while (this.#unended.length > 0) {
        const covered = [...this.#unended];
        while (!(await this.deps.snapshots.marker.wait(markerTries))) await this.deps.clock.sleep(quietMs, this.#gone.signal);
        await this.deps.snapshots.quiet();
        this.#snapshotEnded(covered);
      }
    } finally {
      this.#ending = false;
    }
  }

  /** What a marker says holds for all that was subscribed before it was sent. */
  #snapshotEnded(covered: readonly string[]): void {
    const filters = covered.filter((filter) => this.#unended.includes(filter));
    this.#unended = this.#unended.filter((filter) => !covered.includes(filter));
    if (!this.#gone.signal.aborted && filters.length > 0) this.#give(() => this.deps.inbox?.snapshot(filters));
  }

  #armAgain(): void {
    const at = this.deps.reads.nextAskAt;
    if (at === Number.POSITIVE_INFINITY) this.#again.delete('ask');
    else this.#again.set('ask', at as Monotonic);
  }

  /** Refused subscriptions are asked about once more: those whose time comes until `until`. */
  askAgain(until: number): void {
    const { onAskAgain, reads, topics } = this.deps;
    const connection = this.#connection;
    if (connection === undefined) return;
    for (const filter of reads.takeDue(until)) {
      if (reads.follows(filter)) this.#asked.delete(filter);
      else if (filter === topics.marker) this.#markerGranted = undefined;
      else if (filter === topics.online) this.deps.run(this.own(filter, connection.subscribe([filter], 1)).then(() => {}));
      else reads.forget(filter);
    }
    onAskAgain();
    this.changed();
  }

  /** The agent was not running when this node left the group: the broker's session still follows it. */
  #stray(topic: string): void {
    const groups = `${this.deps.prefix}/desired/groups/`;
    if (!topic.startsWith(groups) || this.#connection === undefined || this.#strays.size >= straysAtMost) return;
    const filter = `${groups}${topic.slice(groups.length).split('/', 1)[0] ?? ''}/#`;
    if (this.#strays.has(filter) || this.deps.reads.follows(filter)) return;
    this.#strays.add(filter);
    this.#connection.unsubscribe([filter]).catch(() => {}); // gone with the connection, or refused: it is passed over as before
  }

  #give(say: () => void): void {
    try {
      say();
    } catch (error) {
      this.deps.log.error({ error: describeError(error) }, 'what the broker sent could not be taken in');
    }
  }
}
