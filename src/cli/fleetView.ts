/**
 * What a fleet's nodes say of themselves: online, info, summary, and machines that found their name taken. Staleness is judged by the time of our
 * own receiving; a retained heartbeat counts as heard when it came, which is the best that can be known of it.
 */

import type { NodeSummary } from '../api/messages.ts';
import { isPlain, type Plain } from '../api/plain.ts';
import { parseTopic } from '../api/topics.ts';
import { type HeardOnline, parseObject, parseOnline } from '../broker/online.ts';
import type { NodeObject } from '../node/info.ts';
import type { BrokerMessage } from '../world/broker.ts';
import type { Clock } from '../world/clock.ts';

export type Presence = 'online' | 'offline' | 'lost' | 'stale' | 'duplicate';

export interface FleetNode {
  readonly name: string;
  readonly presence: Presence;
  readonly info: NodeObject | undefined;
  readonly summary: NodeSummary | undefined;
  /** Machines that told they found this name taken. */
  readonly duplicates: number;
}

interface Heard {
  online?: HeardOnline | undefined;
  onlineAt?: number | undefined;
  info?: NodeObject | undefined;
  summary?: NodeSummary | undefined;
  readonly duplicates: Set<string>;
}

const heartbeats = 3;
const usualHeartbeatSeconds = 60;

/** Nothing heard for three heartbeats, or other topics but no `online` at all: stale. */
export function presenceOf(online: Pick<HeardOnline, 'state' | 'heartbeatSeconds'> | undefined, silentMs: number): Presence {
  if (online === undefined) return 'stale';
  if (online.state !== 'online') return online.state;
  return silentMs > heartbeats * 1000 * (online.heartbeatSeconds ?? usualHeartbeatSeconds) ? 'stale' : 'online';
}

export class Fleet {
  #nodes = new Map<string, Heard>();

  constructor(
    private readonly prefix: string,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  heard({ topic, payload }: BrokerMessage): void {
    const about = parseTopic(this.prefix, topic);
    switch (about?.of) {
      case 'online': {
        const node = this.#node(about.node);
        node.online = parseOnline(payload);
        node.onlineAt = this.clock.monotonic();
        return;
      }
      case 'info':
        this.#node(about.node).info = nodeOf(parseObject(payload));
        return;
      case 'summary':
        this.#node(about.node).summary = summaryOf(parseObject(payload));
        return;
      case 'duplicate': {
        const { duplicates } = this.#node(about.node);
        const state = parseOnline(payload)?.state;
        if (state === 'duplicate') duplicates.add(about.machine);
        else duplicates.delete(about.machine);
        return;
      }
      default:
    }
  }

  /** By name. */
  nodes(): readonly FleetNode[] {
    return [...this.#nodes]
      .filter(([, { online, info, duplicates }]) => online !== undefined || info !== undefined || duplicates.size > 0)
      .map(([name, { info, summary, duplicates }]) => ({
        name,
        presence: this.#presence(name),
        info,
        summary,
        duplicates: duplicates.size,
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  isAway = (name: string): boolean => this.#presence(name) !== 'online';

  labels = (name: string): Readonly<Record<string, string>> => this.#nodes.get(name)?.info?.metadata.labels ?? {};

  #presence(name: string): Presence {
    const { online, onlineAt = 0 } = this.#nodes.get(name) ?? {};
    return presenceOf(online, this.clock.monotonic() - onlineAt);
  }

  #node(name: string): Heard {
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const heard: Heard = { duplicates: new Set() };
    this.#nodes.set(name, heard);
    return heard;
  }
}

/** As much of a Node as the table reads, whatever came. */
function nodeOf(o: Plain | undefined): NodeObject | undefined {
  const metadata = o?.metadata;
  const status = o?.status;
  if (o?.kind !== 'Node' || !isPlain(metadata) || typeof metadata.name !== 'string' || !isPlain(status)) return undefined;
  const list = (value: unknown): readonly Plain[] => (Array.isArray(value) ? value.filter(isPlain) : []);
  const texts = (value: unknown): Readonly<Record<string, string>> =>
    isPlain(value) ? Object.fromEntries(Object.entries(value).filter((e): e is [string, string] => typeof e[1] === 'string')) : {};
  return {
    ...o,
    metadata: { ...metadata, name: metadata.name, labels: texts(metadata.labels), annotations: texts(metadata.annotations) },
    status: {
      ...status,
      addresses: list(status.addresses),
      conditions: list(status.conditions),
      nodeInfo: texts(status.nodeInfo),
    },
  } as unknown as NodeObject;
}

function summaryOf(o: Plain | undefined): NodeSummary | undefined {
  const pods = o?.pods;
  if (o?.kind !== 'NodeSummary' || !isPlain(pods)) return undefined;
  return typeof pods.ready === 'number' && typeof pods.desired === 'number' ? (o as unknown as NodeSummary) : undefined;
}
