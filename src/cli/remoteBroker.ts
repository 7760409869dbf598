/**
 * One connection to a fleet's broker for the length of a command: listening, reading what is retained, publishing.
 * Owns the connection and its subscriptions, nothing that outlives the command: no session, no reconnecting. When the connection ends, everybody
 * who waits is told, with the exit code of what cannot be reached.
 * MQTT has no end of a snapshot: where this user may write beside what is read, a marker of our own says so, elsewhere silence.
 */
import { randomBytes } from 'node:crypto';
import { filterMatches, filtersAtOnce } from '../broker/filters.ts';
import { codeMeaning } from '../broker/reconnect.ts';
import { type Broker, type BrokerConnection, BrokerError, type BrokerMessage, type PublishOptions } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';
import { describeError } from '../world/log.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { RemoteSettings } from './remoteOptions.ts';

export interface RemoteDeps {
  readonly broker: Broker;
  readonly clock: Clock;
}

const connectMs = 15_000;
const keepaliveSeconds = 30;
/** The first retained message comes within that, or there is none; and between two of them it is never that still. */
const firstMs = 1500;
const stillMs = 500;
const markerMs = 10_000;
/** Some brokers send retained messages after the marker. */
const lateMs = 300;

export type Hear = (message: BrokerMessage) => void;

interface Listener {
  readonly filters: readonly string[];
  readonly hear: Hear;
}

export class RemoteBroker {
  #listeners = new Set<Listener>();
  #lost = new Set<(e: CommandError) => void>();
  #end: CommandError | undefined;
  #closing = false;

  private constructor(
    readonly settings: RemoteSettings,
    readonly clock: Clock,
    private connection: BrokerConnection | undefined,
  ) {}

  /** Resolves when one of the servers takes us. Rejects with `unreachable` and what each of them said. */
  static async open(settings: RemoteSettings, { broker, clock }: RemoteDeps): Promise<RemoteBroker> {
    const said: string[] = [];
    for (const server of settings.servers) {
      for (const protocolVersion of [5, 4] as const) {
        const remote = new RemoteBroker(settings, clock, undefined);
        try {
          remote.connection = await remote.#connect(broker, server, protocolVersion);
          return remote;
        } catch (e) {
          // a broker that does not know MQTT 5 says so at once
          if (protocolVersion === 5 && e instanceof BrokerError && codeMeaning(e.code) === 'version') continue;
          said.push(`${server}: ${reasonOf(e)}`);
          break;
        }
      }
    }
    throw new CommandError(exitCodes.unreachable, `no broker can be reached: ${said.join('; ')}`);
  }

  get prefix(): string {
    return this.settings.prefix;
  }

  /** 5 has response topics. */
  get protocolVersion(): 4 | 5 {
    return this.#connected.protocolVersion;
  }

  /** Rejects with `failed` when the broker refuses it, with `unreachable` when the connection ends first. */
  async publish(topic: string, payload: string | Uint8Array, o: Omit<PublishOptions, 'qos'>): Promise<void> {
    try {
      await this.#connected.publish(topic, payload, { qos: 1, ...o });
    } catch (e) {
      throw this.#failed(e, `the broker does not take ${topic} from this user`);
    }
  }

  /**
   * Hears what comes on these filters, retained messages first; the way back ends it. Rejects when the broker refuses one of them.
   * QoS 0 is what one reads with: mosquitto's queue drops what is over 1,020 at QoS 1, and at QoS 0 sends all of it.
   */
  async listen(filters: readonly string[], hear: Hear, qos: 0 | 1 = 0): Promise<() => Promise<void>> {
    const listener = { filters, hear };
    this.#listeners.add(listener);
    try {
      for (let i = 0; i < filters.length; i += filtersAtOnce) await this.#connected.subscribe(filters.slice(i, i + filtersAtOnce), qos);
    } catch (e) {
      this.#listeners.delete(listener);
      throw this.#failed(e, `the broker does not let this user read ${filters.join(', ')}`);
    }
    return async () => {
      this.#listeners.delete(listener);
      const still = new Set([...this.#listeners].flatMap((l) => l.filters));
      const unused = filters.filter((filter) => !still.has(filter));
      if (unused.length > 0) await this.connection?.unsubscribe(unused).catch(() => {}); // the connection has ended, and all of it with it
    };
  }

  /**
   * The same, and resolves when what is retained has come: when nothing of it came for a while. `enough` ends the waiting before.
   * What this user may not read does not come: brokers do not say so.
   */
  async listenWhole(filters: readonly string[], hear: Hear, enough: () => boolean = () => false): Promise<() => Promise<void>> {
    const whole = new AbortController();
    let lastAt: number | undefined;
    const stop = await this.listen(filters, (m) => {
      hear(m);
      if (m.retain) lastAt = this.clock.monotonic();
      if (enough()) whole.abort();
    });
    const began = this.clock.monotonic();
    for (;;) {
      const until = lastAt === undefined ? began + firstMs : lastAt + stillMs;
      const left = until - this.clock.monotonic();
      if (left <= 0 || whole.signal.aborted) return stop;
      await this.wait(left, whole.signal);
    }
  }

  /** What is retained there now, by topic. */
  async retained(
    filters: readonly string[],
    enough: (found: ReadonlyMap<string, Uint8Array>) => boolean = () => false,
  ): Promise<Map<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>();
    const stop = await this.listenWhole(
      filters,
      (m) => keep(found, m),
      () => enough(found),
    );
    await stop();
    return found;
  }

  /**
   * The same up to a marker, published to a topic beside it that nobody takes for anything else. Undefined: the marker did not come back, so
   * nobody knows whether all of it was seen.
   */
  async snapshot(filters: readonly string[], markerTopic: string): Promise<Map<string, Uint8Array> | undefined> {
    const found = new Map<string, Uint8Array>();
    const id = randomBytes(8).toString('hex');
    const back = new AbortController();
    const stop = await this.listen([...filters, markerTopic], (m) => {
      if (m.topic === markerTopic) {
        if (new TextDecoder().decode(m.payload).includes(id)) back.abort();
      } else keep(found, m);
    });
    try {
      const marker = JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'Marker', id });
      await this.publish(markerTopic, marker, { retain: false, expirySeconds: 60 });
      await this.wait(markerMs, back.signal);
      if (!back.signal.aborted) return undefined;
      await this.wait(lateMs);
      return found;
    } finally {
      await stop();
    }
  }

  /** Resolves after `ms`, or when woken. Rejects when the connection ends. */
  async wait(ms: number, woken?: AbortSignal): Promise<void> {
    if (this.#end !== undefined) throw this.#end;
    if (woken?.aborted) return;
    const timer = new AbortController();
    const wake = (): void => timer.abort();
    let lost: CommandError | undefined;
    const ended = (e: CommandError): void => {
      lost = e;
      timer.abort();
    };
    this.#lost.add(ended);
    woken?.addEventListener('abort', wake, { once: true });
    await this.clock.sleep(ms, timer.signal).catch(() => {}); // woken, or lost: which one is said below
    woken?.removeEventListener('abort', wake);
    this.#lost.delete(ended);
    if (lost !== undefined) throw lost;
  }

  /** Calls `tell` when the connection ends by itself; the way back takes it away. */
  onLost(tell: (e: CommandError) => void): () => void {
    if (this.#end !== undefined) tell(this.#end);
    else this.#lost.add(tell);
    return () => this.#lost.delete(tell);
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.connection?.end('disconnect');
  }

  get #connected(): BrokerConnection {
    if (this.#end !== undefined) throw this.#end;
    if (this.connection === undefined) throw new Error('not connected');
    return this.connection;
  }

  async #connect(broker: Broker, server: string, protocolVersion: 4 | 5): Promise<BrokerConnection> {
    const { prefix, requester, username, password, tls } = this.settings;
    const attempt = new AbortController();
    const timer = new AbortController();
    this.clock.sleep(connectMs, timer.signal).then(
      () => attempt.abort(new BrokerError(`no answer within ${connectMs / 1000} s`)),
      () => {}, // it has come
    );
    try {
      return await broker.connect(
        {
          server,
          protocolVersion,
          clientId: `podsched-cli-${randomBytes(6).toString('hex')}`,
          cleanStart: true,
          keepaliveSeconds,
          // an empty retained message leaves nothing behind: a command that is cut off has no last will
          will: { topic: `${prefix}/reply/${requester}/_gone`, payload: '', qos: 1, retain: true, delaySeconds: 0, expirySeconds: 1 },
          ...(username !== undefined && { username }),
          ...(password !== undefined && { password }),
          tls,
        },
        { onMessage: (m) => this.#heard(m), onClose: (e) => this.#closed(e) },
        attempt.signal,
      );
    } finally {
      timer.abort();
    }
  }

  #heard(message: BrokerMessage): void {
    for (const { filters, hear } of this.#listeners) if (filters.some((filter) => filterMatches(filter, message.topic))) hear(message);
  }

  #closed(error: BrokerError | undefined): void {
    const why = error === undefined ? '' : `: ${reasonOf(error)}`;
    this.#end = new CommandError(exitCodes.unreachable, `the connection to the broker ended${why}`);
    if (this.#closing) return;
    for (const tell of [...this.#lost]) tell(this.#end);
  }

  #failed(e: unknown, refused: string): CommandError {
    if (e instanceof CommandError) return e;
    if (e instanceof BrokerError && e.code !== undefined)
      return new CommandError(exitCodes.failed, `${refused} (0x${e.code.toString(16)})`);
    return this.#end ?? new CommandError(exitCodes.unreachable, reasonOf(e));
  }
}

/** Keeps the newest of each topic; what is cleared goes. A change that comes meanwhile is passed on live, without the flag: it counts where something was. */
function keep(found: Map<string, Uint8Array>, { topic, payload, retain }: BrokerMessage): void {
  if (!retain && !found.has(topic)) return;
  if (payload.length === 0) found.delete(topic);
  else found.set(topic, payload);
}

function reasonOf(e: unknown): string {
  const text = describeError(e);
  return e instanceof BrokerError && e.code !== undefined ? `${text} (0x${e.code.toString(16)})` : text;
}
