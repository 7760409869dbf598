/**
 * One connection from CONNACK to its end: birth, heartbeat, reading back what was said, and when the own subtree is read. As the node
 * (`normal`) it follows what the inbox wants; aside (`listening`, `duplicate`), while the name may be another's, it only hears and says who it is.
 * Owns what is true of this connection only; what outlives it is in `SessionState`. Mirrors "Session" of the MQTT contract.
 */

import { expirySeconds, type NodeTopics } from '../api/topics.ts';
import { Deadlines } from '../async/deadlines.ts';
import {
  type BrokerConnection,
  BrokerError,
  type BrokerHandlers,
  type BrokerMessage,
  type ConnectOptions,
  type DropReason,
} from '../world/broker.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import type { Log } from '../world/log.ts';
import { Following } from './following.ts';
import type { Inbox } from './inbox.ts';
import { adoptLostBoot } from './lostBoot.ts';
import { Marker } from './marker.ts';
import { judgeOnline, parseOnline } from './online.ts';
import type { Reads } from './reads.ts';
import { blamesFilter, blamesMessage, stableMs } from './reconnect.ts';
import type { RetainedTopics } from './retained.ts';
import { hearRival, suspect, takeName } from './rival.ts';
import type { Sender } from './sender.ts';
import { Snapshots } from './snapshots.ts';
import { SubtreeReader } from './subtree.ts';
import { Voice } from './voice.ts';
import { within } from './within.ts';
import type { LinkEnd, SessionIdentity, SessionState } from './words.ts';

export interface LinkDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly topics: NodeTopics;
  readonly identity: SessionIdentity;
  readonly state: SessionState;
  readonly retained: RetainedTopics;
  readonly sender: Sender;
  readonly heartbeatSeconds: () => number;
  readonly agentVersion: string;
  readonly clockSynced: () => boolean;
  readonly seq: () => number;
  readonly stable: () => void;
  readonly onHeartbeat: () => void;
  readonly onSettled: () => void;
  readonly onBootAdopted: () => void;
  readonly prefix: string;
  readonly inbox?: Inbox;
  readonly reads: Reads;
  /** Something that arrived was given to nobody. */
  readonly onDropped: (reason: DropReason) => void;
}

type Moment = 'heartbeat' | 'settled' | 'stable' | 'readBack' | 'sayAgain' | 'listened' | 'unsuspected' | 'send';

/** Heartbeats without a word: the board was replaced. A duplicate waits longer, for a name that changes hands at each reboot helps nobody. */
const [replacedBeats, outlivedBeats] = [2, 10];
const settledMs = 2_000;
const readBackMs = 10_000;
const sayAgainMs = 1_000;
const farewellMs = 2_000;
/** What a payload says is not believed beyond this. */
const longestHeartbeatSeconds = 3_600;

export class Link {
  readonly handlers: BrokerHandlers = {
    onMessage: (m) => this.#onMessage(m),
    onClose: (e) => this.#onClose(e),
    onDropped: (reason) => this.deps.onDropped(reason),
  };
  #connection: BrokerConnection | undefined;
  #early: BrokerMessage[] = [];
  #deadlines: Deadlines<Moment>;
  #snapshots: Snapshots;
  #subtree: SubtreeReader;
  readonly following: Following;
  #voice: Voice;
  #seenBoot: number | undefined;
  #echoed = false;
  /** Some `online` stood at the broker when we came. */
  #stood = false;
  #saying = false;
  /** The farewell is said or being said: nothing says `online` after it. */
  #leaving = false;
  #saidAt: Monotonic | undefined;
  #openedAt: Monotonic | undefined;
  #ours: { readonly again: boolean } | undefined;
  #end: (e: LinkEnd) => void = () => {};
  readonly #whenEnded: Promise<LinkEnd>;

  constructor(
    private readonly deps: LinkDeps,
    readonly session: number,
  ) {
    this.#deadlines = new Deadlines(deps.clock, (moment) => this.#due(moment));
    const marker = new Marker(deps.clock, `${session}`, (payload) =>
      deps.sender.urgent(deps.topics.marker, payload, { qos: 1, retain: false, expirySeconds: expirySeconds.marker }),
    );
    const snapshots = new Snapshots(deps.clock, marker);
    this.#snapshots = snapshots;
    this.#voice = new Voice(deps, session);
    this.following = new Following({ ...deps, snapshots, onAskAgain: () => this.readGhosts(), run: (step) => this.#run(step) });
    this.#subtree = new SubtreeReader({ ...deps, snapshots, granted: (filter, asked) => this.following.own(filter, asked) });
    this.#whenEnded = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** What the broker says for us when we cannot: made before CONNECT, with this session's number. */
  will(): ConnectOptions['will'] {
    return this.#voice.will();
  }

  /** Lives until the connection ends. */
  open(connection: BrokerConnection): Promise<LinkEnd> {
    this.#connection = connection;
    this.#openedAt = this.deps.clock.monotonic();
    this.deps.sender.attach(connection);
    if (this.deps.state.mode === 'normal') this.following.connected(connection.sessionPresent, this.session);
    for (const m of this.#early) this.#hear(m);
    this.#early = [];
    this.#run(this.#begin(connection));
    return this.#whenEnded;
  }

  /** The next moment at which the sender has something to do. */
  wakeSender(at: number): void {
    if (at === Number.POSITIVE_INFINITY) this.#deadlines.delete('send');
    else this.#deadlines.set('send', at as Monotonic);
  }

  /** Clean exit: `offline`, or nothing under its topic any more; then DISCONNECT. Bounded, whatever the broker does. */
  async leave({ cleared = false } = {}): Promise<void> {
    if (this.#connection === undefined || this.#ours !== undefined) return;
    const { clock, sender, state } = this.deps;
    this.#leaving = true;
    sender.close();
    let settled = true;
    if (state.mode !== 'listening') {
      // refused: the will would be too
      settled = await within(
        clock,
        farewellMs,
        (cleared ? this.#voice.clear() : this.#voice.offline()).catch(() => {}),
      );
    }
    // an offline that was not acknowledged may not be there: without DISCONNECT the will says it
    await this.#finish(false, settled ? 'disconnect' : 'drop');
  }

  /** Its socket stands on an address that the node has not any more: nothing will come over it again, and nobody says so. */
  async moved(addresses: readonly string[]): Promise<void> {
    const local = this.#connection?.localAddress;
    if (local === undefined || addresses.includes(local)) return;
    this.deps.log.warn({ address: local }, 'the address of the connection to the broker is gone: a new one is made');
    await this.#finish(true, 'drop');
  }

  /** Rejects with BrokerError while the name may be another machine's, as without a connection. */
  fetch(topics: readonly string[]): Promise<void> {
    if (this.#connection === undefined || this.deps.state.mode !== 'normal')
      return Promise.reject(new BrokerError('not connected as the node'));
    return this.following.fetch(this.#connection, topics);
  }

  /** Says `online` before its time. */
  beat(): void {
    if (this.#saying && this.deps.state.mode === 'normal') this.#sayOnline();
  }

  /** The marker of a SUBSCRIBE does not come back. */
  markerLate(): boolean {
    return this.following.markerLate;
  }

  /** Reads the own retained subtree when it is due and nothing forbids it. */
  readGhosts(): void {
    const { clock, state } = this.deps;
    if (!state.ready || !state.ghostsDue || state.mode !== 'normal' || this.#subtree.reading || !this.#saying) return;
    if (clock.monotonic() < state.suspectUntil) {
      this.#deadlines.set('unsuspected', state.suspectUntil as Monotonic);
      return;
    }
    if (this.#connection === undefined) return;
    this.#run(
      this.#subtree.read(this.#connection).then(() => {
        // put off because another machine was heard meanwhile: when that has passed, once more
        if (clock.monotonic() < state.suspectUntil) this.readGhosts();
      }),
    );
  }

  async #begin(connection: BrokerConnection): Promise<void> {
    const { identity, retained, sender, state, topics, clock } = this.deps;
    const subscribed = connection.subscribe([topics.online], 1);
    if (state.mode !== 'normal') {
      await subscribed; // who cannot hear must not conclude that nobody speaks
      return this.#beginAside();
    }
    this.#run(this.following.own(topics.online, subscribed).then(() => {}));
    // a reading that a crash cut short has left its filter in the broker's session
    if (state.first && connection.sessionPresent) connection.unsubscribe([topics.subtree]).catch(() => {}); // the connection's end comes by itself
    state.first = false;
    if (!identity.bootKnown() && (await this.#adoptBoot(connection))) return this.#finish(true);
    if (this.#leaving) return;
    if (!connection.sessionPresent) state.ghostsDue = true;
    this.#saying = true;
    this.#sayOnline();
    retained.spread(!connection.sessionPresent, clock.monotonic());
    sender.open();
    this.following.start(connection);
    this.#in('settled', settledMs);
    this.#in('stable', stableMs);
    this.readGhosts();
  }

  #beginAside(): void {
    const beats = this.deps.state.mode === 'duplicate' ? outlivedBeats : replacedBeats;
    this.#in('stable', stableMs);
    if (beats === outlivedBeats) this.#sayDuplicate();
    if (this.#deadlines.get('listened') === undefined) this.#in('listened', beats * 1_000 * this.deps.heartbeatSeconds());
  }

  async #adoptBoot(connection: BrokerConnection): Promise<boolean> {
    const another = await adoptLostBoot(connection, { ...this.deps, marker: this.#snapshots.marker, seen: () => this.#seenBoot });
    if (another) this.deps.onBootAdopted();
    return another;
  }

  #onMessage(m: BrokerMessage): void {
    if (this.#connection === undefined) this.#early.push(m);
    else this.#hear(m);
  }

  #hear(m: BrokerMessage): void {
    const { topics } = this.deps;
    this.#snapshots.see(m);
    this.#subtree.see(m);
    if (m.topic === topics.marker) this.#snapshots.marker.came(m.payload);
    else if (m.topic === topics.online) this.#hearOnline(m);
    else if (this.deps.state.mode === 'normal') this.following.hear(m);
  }

  #hearOnline(m: BrokerMessage): void {
    const { clock, heartbeatSeconds, identity, state } = this.deps;
    const heard = parseOnline(m.payload);
    if (heard === undefined) return;
    if (heard.boot !== undefined) this.#seenBoot = Math.max(this.#seenBoot ?? 0, heard.boot);
    this.#stood ||= m.retain;
    const live = this.#echoed || state.unread || this.#connection?.sessionPresent !== true;
    const own = { machine: identity.machine, session: this.session, normal: state.mode === 'normal', live };
    const theirsMs = 1_000 * Math.min(heard.heartbeatSeconds ?? heartbeatSeconds(), longestHeartbeatSeconds);
    // whatever the retained one says: so often its writer would be heard, if it lives
    if (m.retain && state.mode === 'listening')
      this.#deadlines.set('listened', after(this.#openedAt ?? clock.monotonic(), replacedBeats * theirsMs));
    switch (judgeOnline(heard, m.retain, own)) {
      case 'echo':
        if (!this.#echoed && !this.#stood && this.#connection?.sessionPresent === true) this.#tellAgain();
        this.#echoed = true;
        state.unread = false;
        this.#deadlines.delete('readBack');
        return;
      case 'sayAgain':
        if (this.#saying) this.#deadlines.setEarlier('sayAgain', after(this.#saidAt ?? clock.monotonic(), sayAgainMs));
        return;
      case 'otherOnce':
        // a board that was replaced leaves its online behind; a living one will be heard within two heartbeats
        if (!identity.formerMachines().includes(heard.machine)) suspect(this.deps, heard.machine, replacedBeats * theirsMs);
        return;
      case 'otherLive':
        suspect(this.deps, heard.machine, 3 * theirsMs);
        this.#run(this.#hearOther(heard.machine, outlivedBeats * theirsMs));
        return;
      case 'nothing':
    }
  }

  /** It knows our session, and nothing that we had it keep. */
  #tellAgain(): void {
    const { clock, log, retained, sender, state } = this.deps;
    log.warn({}, 'the broker has kept the session and lost what it retained: everything is told again');
    state.ghostsDue = true;
    retained.spread(true, clock.monotonic());
    sender.kick();
    this.readGhosts();
  }

  /** `silenceMs`: unheard for so long from now, it is taken for gone. */
  async #hearOther(machine: string, silenceMs: number): Promise<void> {
    const hearing = hearRival(this.deps, machine);
    // at once, whatever the identity file still has to be written
    if (this.deps.state.mode === 'duplicate') {
      this.deps.sender.close();
      this.#in('listened', silenceMs);
    }
    const act = await hearing;
    if (act === 'aside') this.#sayDuplicate();
    else if (act === 'leave') await this.#finish(true);
  }

  #due(moment: Moment): void {
    const { log, onHeartbeat, onSettled, retained, sender, stable, state, topics } = this.deps;
    switch (moment) {
      case 'heartbeat':
        if (state.mode === 'duplicate') {
          this.#sayDuplicate();
        } else {
          this.#sayOnline();
          onHeartbeat();
        }
        return;
      case 'sayAgain':
        this.#sayOnline();
        return;
      case 'settled':
        // some brokers take a session and a message, and have forgotten both a moment later
        this.#sayOnline();
        retained.touch(topics.info);
        sender.kick();
        onSettled();
        return;
      case 'stable':
        stable();
        return;
      case 'readBack':
        if (!state.unread)
          log.warn({ topic: topics.online }, 'our own online does not come back: the broker refuses our writes, or our reading');
        state.unread = true;
        return;
      case 'listened':
        this.#run(takeName(this.deps).then(() => this.#finish(true)));
        return;
      case 'unsuspected':
        this.readGhosts();
        return;
      case 'send':
        sender.kick();
        return;
    }
  }

  #sayOnline(): void {
    if (this.#leaving) return;
    this.#saidAt = this.deps.clock.monotonic();
    this.#in('heartbeat', 1_000 * this.deps.heartbeatSeconds());
    this.#deadlines.setEarlier('readBack', after(this.#saidAt, readBackMs));
    this.#said(this.#voice.online());
  }

  #sayDuplicate(): void {
    if (this.#leaving) return;
    this.#in('heartbeat', 1_000 * this.deps.heartbeatSeconds());
    this.#said(this.#voice.duplicate());
  }

  #said(saying: Promise<void>): void {
    saying.catch((e: unknown) => {
      // a refusal is a condition at once; without a code the connection is going, and its end is told elsewhere
      if (e instanceof BrokerError && e.code !== undefined) this.deps.state.unread = true;
    });
  }

  #in(moment: Moment, ms: number): void {
    this.#deadlines.set(moment, after(this.deps.clock.monotonic(), ms));
  }

  /** Ours to end: DISCONNECT (no will), and the socket after two seconds in any case. */
  async #finish(again: boolean, how: 'disconnect' | 'drop' = 'disconnect'): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined || this.#ours !== undefined) return;
    this.#ours = { again };
    await within(this.deps.clock, farewellMs, connection.end(how));
    await connection.end('drop');
    this.#onClose(undefined);
  }

  #onClose(error: BrokerError | undefined): void {
    this.#deadlines.stop();
    this.#snapshots.marker.stop();
    this.#subtree.stop();
    const theirs = this.#ours === undefined;
    const overFilter = this.following.stop(theirs && blamesFilter(error?.code));
    this.deps.sender.detach(error?.code, theirs && !overFilter && blamesMessage(error?.code));
    this.#end(this.#ours === undefined ? { by: 'broker', error } : { by: 'us', again: this.#ours.again });
  }

  /** A step of this connection. It fails when the connection does, whose end is told elsewhere; what else fails ends the connection. */
  #run(step: Promise<void>): void {
    step.catch((error: unknown) => {
      if (error instanceof BrokerError && error.code === undefined) return;
      this.deps.log.error({ error }, 'a step of the broker session failed');
      this.#connection?.end('drop').catch(() => {}); // gone already
    });
  }
}
