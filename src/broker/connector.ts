/**
 * Which server, with which MQTT version, and when. Owns what was learned about the servers: their versions, who refused us, how often we
 * failed. One call of `connect` ends with a connection or with the abort of its signal, however long it takes.
 * Never looks into messages; a connection's life is the link's business.
 */
import type { Broker, BrokerConnection, BrokerHandlers, ConnectOptions } from '../world/broker.ts';
import { BrokerError } from '../world/broker.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { codeMeaning, fullJitterMs, isPlainBeyondLoopback, quietMs, splayMs, takeOverWindowMs } from './reconnect.ts';

/** What is read from files at each attempt: certificates and passwords are renewed while the agent runs. */
export type Credentials = Pick<ConnectOptions, 'username' | 'password' | 'tls'>;

export interface ConnectorDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly broker: Broker;
  /** URLs, tried in order. */
  readonly servers: readonly string[];
  readonly nodeName: string;
  readonly clientId: string;
  readonly credentials: () => Promise<Credentials>;
  readonly keepaliveSeconds: number;
  /** `mqtt.insecure`: plain mqtt:// and ws:// beyond loopback are allowed. Default: no. */
  readonly insecure?: boolean;
  readonly random: () => number;
  /** How far apart a fleet comes back after its broker sent it away; default 5,000. */
  readonly splayRangeMs?: number;
}

/** Of one attempt; made anew for each, because a session number is never used twice. */
export interface AttemptPlan {
  readonly will: ConnectOptions['will'];
  readonly cleanStart: boolean;
  readonly handlers: BrokerHandlers;
}

const attemptTimeoutMs = 15_000;
/** Jitter may come out as nothing; a round never follows another that fast. */
const shortestRoundMs = 100;

export class Connector {
  #versions = new Map<string, 4 | 5>();
  #refusedUntil = new Map<string, Monotonic>();
  #attempt = 0;
  /** Where the next round begins: after a server that takes us and drops us, the next one gets a chance. */
  #first = 0;
  #server = 0;
  #waitMs = 0;
  #lastTakenOver: Monotonic | undefined;
  #lastWords = '';
  /** Why there is no connection, in words; undefined while there is one, and before the first failure. */
  trouble: { readonly reason: 'Unreachable' | 'Refused' | 'TakenOver'; readonly message: string } | undefined;

  constructor(private readonly deps: ConnectorDeps) {}

  /** The next connection. Rejects only when aborted. */
  async connect(plan: () => AttemptPlan, signal: AbortSignal): Promise<BrokerConnection> {
    const { clock, servers } = this.deps;
    for (;;) {
      if (this.#waitMs > 0) await clock.sleep(this.#waitMs, signal);
      signal.throwIfAborted();
      for (let i = 0; i < servers.length; i++) {
        const index = (this.#first + i) % servers.length;
        const server = servers[index];
        if (server === undefined || clock.monotonic() < (this.#refusedUntil.get(server) ?? 0)) continue;
        const connection = await this.#try(server, plan, signal);
        if (connection === undefined) continue;
        this.#server = index;
        this.trouble = undefined;
        this.#lastWords = '';
        return connection;
      }
      this.#waitMs = this.#roundDelayMs();
    }
  }

  /** A connection ended. `broker`: the other side ended it (or it broke); false: we did, to come back at once with other words. */
  ended(error: BrokerError | undefined, broker: boolean): void {
    if (!broker) {
      this.#waitMs = 0;
      return;
    }
    const { clock, nodeName, random, servers, splayRangeMs = 5_000 } = this.deps;
    this.#waitMs = splayMs(nodeName, splayRangeMs) + fullJitterMs(this.#attempt, random());
    this.#first = this.#attempt === 0 ? 0 : (this.#server + 1) % Math.max(1, servers.length);
    this.#attempt++;
    const server = servers[this.#server] ?? '';
    this.trouble = {
      reason: 'Unreachable',
      message: `${server}: ${error === undefined ? 'the connection was closed' : describeError(error)}`,
    };
    this.deps.log.warn(
      { server, code: error?.code, error: error?.message, retryMs: Math.round(this.#waitMs) },
      'the broker connection ended',
    );
    switch (codeMeaning(error?.code)) {
      case 'taken': {
        const now = clock.monotonic();
        if (this.#lastTakenOver !== undefined && now - this.#lastTakenOver < takeOverWindowMs) {
          // two agents with one client id would throw each other out for ever
          this.#waitMs = quietMs;
          this.trouble = {
            reason: 'TakenOver',
            message: `${server}: another client uses our client id ${this.deps.clientId}; quiet for 5 min`,
          };
        }
        this.#lastTakenOver = now;
        return;
      }
      case 'refused':
        this.#refused(server, describeEnd(error));
        return;
      case 'version':
      case 'tooLarge':
      case 'quota':
      case 'otherwise':
      case 'unknown':
    }
  }

  /** The session has lasted: the next loss begins with short delays again, at the first server. */
  stable(): void {
    this.#attempt = 0;
    this.#first = 0;
  }

  async #try(server: string, plan: () => AttemptPlan, signal: AbortSignal): Promise<BrokerConnection | undefined> {
    if (this.deps.insecure !== true && isPlainBeyondLoopback(server)) {
      this.#tellTrouble('Refused', `${server}: not encrypted, and not loopback: use mqtts://, or set mqtt.insecure: true`);
      return undefined;
    }
    for (;;) {
      const protocolVersion = this.#versions.get(server) ?? 5;
      try {
        return await this.#attemptOnce(server, protocolVersion, plan(), signal);
      } catch (e) {
        if (signal.aborted) throw e;
        const code = e instanceof BrokerError ? e.code : undefined;
        const meaning = codeMeaning(code);
        if (meaning === 'version' && protocolVersion === 5) {
          this.#versions.set(server, 4);
          this.deps.log.info({ server }, 'the broker speaks MQTT 3.1.1');
          continue;
        }
        if (meaning === 'refused') this.#refused(server, describeError(e));
        else this.#tellTrouble('Unreachable', `${server}: ${describeError(e)}`);
        return undefined;
      }
    }
  }

  async #attemptOnce(server: string, protocolVersion: 4 | 5, plan: AttemptPlan, signal: AbortSignal): Promise<BrokerConnection> {
    const { broker, clientId, clock, credentials, keepaliveSeconds } = this.deps;
    // one signal for this attempt alone: AbortSignal.any on a signal that lives as long as the agent would collect dependents
    const attempt = new AbortController();
    const timer = new AbortController();
    const stop = () => attempt.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    clock.sleep(attemptTimeoutMs, timer.signal).then(
      () => attempt.abort(new BrokerError(`no answer within ${attemptTimeoutMs / 1000} s`)),
      () => {}, // the attempt has ended
    );
    try {
      const { username, password, tls } = await credentials();
      const options: ConnectOptions = {
        server,
        protocolVersion,
        clientId,
        cleanStart: plan.cleanStart,
        keepaliveSeconds,
        will: plan.will,
        ...(username !== undefined && { username }),
        ...(password !== undefined && { password }),
        ...(tls !== undefined && { tls }),
      };
      return await broker.connect(options, plan.handlers, attempt.signal);
    } finally {
      timer.abort();
      signal.removeEventListener('abort', stop);
    }
  }

  #refused(server: string, message: string): void {
    this.#refusedUntil.set(server, after(this.deps.clock.monotonic(), quietMs * (1 + 0.1 * this.deps.random())));
    this.#tellTrouble('Refused', `${server}: ${message}; tried again in 5 min`);
  }

  /** All servers were tried, or are left alone for now. */
  #roundDelayMs(): number {
    const now = this.deps.clock.monotonic();
    const waits = this.deps.servers.map((s) => Math.max(0, (this.#refusedUntil.get(s) ?? 0) - now));
    // every server refuses us: nothing to do before the first of them may be asked again
    const allRefuse = Math.min(...waits);
    return allRefuse > 0 ? allRefuse : Math.max(shortestRoundMs, fullJitterMs(this.#attempt++, this.deps.random()));
  }

  /** Said once for each new reason, not at each of a thousand attempts. */
  #tellTrouble(reason: 'Unreachable' | 'Refused', message: string): void {
    this.trouble = { reason, message };
    if (message === this.#lastWords) return;
    this.#lastWords = message;
    this.deps.log.warn({ reason, detail: message }, 'no broker connection');
  }
}

function describeEnd(error: BrokerError | undefined): string {
  if (error === undefined) return 'the connection was closed';
  return error.code === undefined ? describeError(error) : `${describeError(error)} (0x${error.code.toString(16)})`;
}
