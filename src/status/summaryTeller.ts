/**
 * Tells the node's summary and metrics. Owns what was told of them last, and the last reading of the processor's counter, from which use per
 * second is made. At each heartbeat both are told; in the quiet profile the summary only when its counts or alerts have changed, and no metrics.
 * A change of those is told within seconds in either profile, so that a dashboard does not wait for the heartbeat. While the broker is away
 * nothing is read: what is told after the next connect is of then. The summary asks no runtime, so it is told while that is down. It is silent
 * until what is desired has been told (or that takes too long): before that it would count no pods.
 */
import { expirySeconds, maxRetainedBytes, type NodeTopics } from '../api/topics.ts';
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock, type Monotonic, toRfc3339 } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import { type MetricsSource, nodeMetrics } from './metrics.ts';
import { nodeSummary, type SummaryFacts, type SummaryUse, summaryNews } from './summary.ts';
import type { Stamp } from './teller.ts';

/** What a look at the machine reads; what cannot be read is absent. */
export interface NodeReading extends Omit<SummaryUse, 'cpuPercent'> {
  /** Processor time of all processors since the machine started, in microseconds. */
  readonly cpuUsec?: number;
}

export interface SummaryTellerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly topics: Pick<NodeTopics, 'summary' | 'metrics'>;
  /** Retained, QoS 0. */
  readonly tell: (topic: string, payload: string, o: { readonly expirySeconds: number }) => void;
  /** Not retained, QoS 0. */
  readonly send: (topic: string, payload: string, o: { readonly expirySeconds: number }) => void;
  readonly connected: () => boolean;
  readonly stamp: () => Stamp;
  /** What was told of everything else. */
  readonly facts: () => Omit<SummaryFacts, 'use' | 'uptimeSeconds'>;
  readonly uptimeSeconds: () => number;
  /** Processors of the node. */
  readonly cpus: number;
  readonly readNode: () => Promise<NodeReading>;
  /** As stats/summary tells it. Rejects when the runtime does not answer: no metrics then. */
  readonly readMetrics: () => Promise<MetricsSource>;
  readonly quiet: () => boolean;
  readonly heartbeatSeconds: () => number;
}

/** A pod that is just starting is several changes: one telling, when it has begun. */
const settleMs = 5_000;
/** With a runtime that does not answer it may take for ever until all pods are known. */
const patienceMs = 30_000;
/** Over less time the grain of the counter is all that is measured. */
const shortestMs = 1_000;
const quietExpirySeconds = expirySeconds.info;

export class SummaryTeller {
  #news: string | undefined;
  #cpu: { readonly usec: number; readonly at: Monotonic } | undefined;
  #cpuPercent: number | undefined;
  #telling = false;
  #measuring = false;
  #ready = false;
  #due: Deadlines<'changed' | 'ready'>;

  constructor(private readonly deps: SummaryTellerDeps) {
    this.#due = new Deadlines(deps.clock, (what) => (what === 'changed' ? this.#changed() : this.ready()));
  }

  /** The agent has read what it stored. */
  start(): void {
    if (!this.#ready) this.#due.set('ready', after(this.deps.clock.monotonic(), patienceMs));
  }

  /** What is desired is known and has been told. */
  ready(): void {
    if (this.#ready) return;
    this.#ready = true;
    this.#due.delete('ready');
    this.#changed();
  }

  /** `online` was said, at a heartbeat or after a connect. */
  heartbeat(): void {
    if (this.deps.quiet()) {
      this.#changed();
      return;
    }
    this.#start();
    this.#sendMetrics().catch((e) => this.deps.log.debug({ error: describeError(e) }, 'no metrics at this heartbeat'));
  }

  /** Something of what the summary counts may be different. */
  changed(): void {
    this.#due.setEarlier('changed', after(this.deps.clock.monotonic(), settleMs));
  }

  /** The boot turned out to have another number: what was told so far carries the wrong one. */
  retell(): void {
    this.#news = undefined;
    this.changed();
  }

  stop(): void {
    this.#due.stop();
  }

  #changed(): void {
    const { connected, facts } = this.deps;
    if (this.#ready && connected() && summaryNews(nodeSummary({ ...facts(), uptimeSeconds: 0, use: {} })) !== this.#news) this.#start();
  }

  #start(): void {
    if (this.#telling || !this.#ready) return;
    this.#telling = true;
    this.#tell()
      .catch((e) => this.deps.log.warn({ error: describeError(e) }, 'the summary could not be told'))
      .finally(() => {
        this.#telling = false;
      });
  }

  async #tell(): Promise<void> {
    const { topics, tell, facts, uptimeSeconds, stamp, quiet, heartbeatSeconds } = this.deps;
    const use = await this.#use();
    // counted when it is told: what came while the machine was read is in it
    const body = nodeSummary({ ...facts(), uptimeSeconds: uptimeSeconds(), use });
    this.#news = summaryNews(body);
    const expiry = quiet() ? quietExpirySeconds : 3 * heartbeatSeconds();
    tell(topics.summary, JSON.stringify({ ...body, ...stamp() }), { expirySeconds: expiry });
  }

  async #use(): Promise<SummaryUse> {
    const { clock, log, cpus, readNode } = this.deps;
    let reading: NodeReading;
    try {
      reading = await readNode();
    } catch (e) {
      log.debug({ error: describeError(e) }, 'the summary has no figures of use');
      return {};
    }
    const { cpuUsec, ...rest } = reading;
    const now = clock.monotonic();
    const before = this.#cpu;
    if (cpuUsec !== undefined && (before === undefined || now - before.at >= shortestMs)) {
      const usedMs = before === undefined ? undefined : (cpuUsec - before.usec) / 1000;
      if (before !== undefined && usedMs !== undefined && usedMs >= 0)
        this.#cpuPercent = Math.min(100, (usedMs / (now - before.at) / Math.max(1, cpus)) * 100);
      this.#cpu = { usec: cpuUsec, at: now };
    }
    return { ...rest, ...(this.#cpuPercent !== undefined && { cpuPercent: this.#cpuPercent }) };
  }

  async #sendMetrics(): Promise<void> {
    const { clock, topics, send, connected, facts, readMetrics, stamp, heartbeatSeconds } = this.deps;
    // a runtime that is slow to answer is asked once
    if (this.#measuring) return;
    this.#measuring = true;
    try {
      const source = await readMetrics();
      if (!connected()) return;
      const body = nodeMetrics(facts().node, toRfc3339(clock.now()), source, maxRetainedBytes);
      send(topics.metrics, JSON.stringify({ ...body, ...stamp() }), { expirySeconds: 2 * heartbeatSeconds() });
    } finally {
      this.#measuring = false;
    }
  }
}
