/** The wiring of summary and metrics on a real machine: of whom they are counted, and where the figures are read. Owns nothing. */
import { cpus, uptime } from 'node:os';
import type { BrokerSession } from './broker/session.ts';
import type { NodeUse } from './cm/usage.ts';
import { diskWrittenBytes } from './node/diskWrites.ts';
import type { StatsView } from './operations/stats.ts';
import type { StatusManager } from './status/manager.ts';
import type { SummaryFacts } from './status/summary.ts';
import { type NodeReading, SummaryTeller } from './status/summaryTeller.ts';
import type { Stamp } from './status/teller.ts';
import type { Clock } from './world/clock.ts';
import type { Log } from './world/log.ts';

export interface SummaryParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeName: string;
  readonly session: Pick<BrokerSession, 'tell' | 'send' | 'connected' | 'topics'>;
  readonly stamp: () => Stamp;
  readonly status: () => Pick<StatusManager, 'told' | 'sync' | 'restartsLastHour'>;
  /** The node's own and all others, as `info` tells them. */
  readonly conditions: () => SummaryFacts['conditions'];
  readonly stats: () => Pick<StatsView, 'summary'>;
  readonly nodeUse: () => Promise<NodeUse>;
  /** Of the processor, as it was read last. */
  readonly temperature: () => number | undefined;
  readonly quiet: () => boolean;
  readonly heartbeatSeconds: () => number;
  /** `/sys` */
  readonly sys: string;
}

export function buildSummary(parts: SummaryParts): SummaryTeller {
  const { session, status, conditions, nodeName } = parts;
  return new SummaryTeller({
    ...parts,
    topics: session.topics,
    tell: (topic, payload, { expirySeconds }) => session.tell(topic, payload, { qos: 0, expirySeconds }),
    send: (topic, payload, { expirySeconds }) => session.send(topic, payload, { qos: 0, expirySeconds }),
    connected: () => session.connected(),
    facts: () => ({
      node: nodeName,
      pods: status().told(),
      sync: status().sync(),
      conditions: conditions(),
      restartsLastHour: status().restartsLastHour(),
    }),
    uptimeSeconds: uptime,
    cpus: cpus().length,
    readNode: () => readNode(parts),
    readMetrics: () => parts.stats().summary('cpuAndMemory'),
  });
}

async function readNode({ nodeUse, temperature, sys }: SummaryParts): Promise<NodeReading> {
  const [{ memory, totalBytes, cpuUsec }, written] = await Promise.all([nodeUse(), diskWrittenBytes(sys)]);
  const degrees = temperature();
  return {
    memoryBytes: memory.workingSetBytes,
    memoryTotalBytes: totalBytes,
    ...(cpuUsec !== undefined && { cpuUsec }),
    ...(degrees !== undefined && { temperatureCelsius: degrees }),
    ...(written !== undefined && { diskWrittenBytes: written }),
  };
}
