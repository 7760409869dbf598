/**
 * What a test of the whole agent stands on: a bed, a mosquitto, the real bundle, a reader of its topics, and a witness that looks at the
 * runtime all the time and notes what must never be seen, however short it was.
 */
import { type Agent, type AgentOptions, startAgent } from './agent.ts';
import { type Bed, startBed } from './bed.ts';
import { type Mosquitto, type MosquittoOptions, startMosquitto } from './mosquitto.ts';
import { sleep } from './process.ts';
import type { RawContainer } from './rawCri.ts';
import { startTcpProxy, type TcpProxy } from './tcpProxy.ts';
import { type Watcher, watchTopics } from './watcher.ts';

export interface Witness {
  /** Two instances of one pod at once, or two containers of one name in one pod. */
  readonly offences: readonly string[];
  /** Every container that was ever seen, as it was seen last. */
  readonly containers: ReadonlyMap<string, RawContainer>;
  end(): Promise<void>;
}

export interface Lab {
  readonly bed: Bed;
  readonly broker: Mosquitto;
  readonly agent: Agent;
  readonly watcher: Watcher;
  readonly witness: Witness;
  /** Where several agents share the runtime: only what carries this name is this one's. */
  readonly node?: string;
  /** Between the agent and its broker; whoever else speaks with the broker does so directly. */
  readonly proxy: TcpProxy;
  stop(): Promise<void>;
}

export interface LabOptions extends AgentOptions {
  readonly broker?: MosquittoOptions;
}

const podName = 'io.kubernetes.pod.name';
const podNamespace = 'io.kubernetes.pod.namespace';
const podUid = 'io.kubernetes.pod.uid';

/** Texts that occur for more than one `of`: what should have been one is two. */
function twice<T>(items: readonly T[], group: (item: T) => string, of: (item: T) => string): string[] {
  const seen = new Map<string, Set<string>>();
  for (const item of items) seen.set(group(item), (seen.get(group(item)) ?? new Set()).add(of(item)));
  return [...seen].filter(([, which]) => which.size > 1).map(([name, which]) => `${name}: ${[...which].join(' and ')}`);
}

/** On everything that an agent makes in the runtime: its node. */
export const nodeLabel = 'podsched.dev/managed';

/** Lists the runtime every 50 ms. Each listing is judged by itself: two listings are of two moments. `several`: pods are told apart by node, too. */
export function startWitness(bed: Bed, several = false): Witness {
  const offences = new Set<string>();
  const containers = new Map<string, RawContainer>();
  let over = false;
  const pod = (labels: Readonly<Record<string, string>>) =>
    `${several ? `${labels[nodeLabel]} ` : ''}${labels[podNamespace]}/${labels[podName]}`;
  const look = async () => {
    const sandboxes = (await bed.cri.sandboxes()).filter((s) => s.ready);
    for (const o of twice(
      sandboxes,
      (s) => pod(s.labels),
      (s) => s.uid,
    ))
      offences.add(`two instances live: ${o}`);
    const listed = await bed.cri.containers();
    for (const c of listed) containers.set(c.id, c);
    const running = listed.filter((c) => c.state === 'running' && c.labels[podUid] !== undefined);
    for (const o of twice(
      running,
      (c) => pod(c.labels),
      (c) => c.labels[podUid] ?? '',
    ))
      offences.add(`containers of two instances run: ${o}`);
    for (const o of twice(
      running,
      (c) => `${pod(c.labels)} ${c.name}`,
      (c) => c.id,
    ))
      offences.add(`two containers of one name run: ${o}`);
  };
  const looking = (async () => {
    while (!over) {
      await look().catch(() => {}); // the runtime is away: nothing to see
      await sleep(50);
    }
  })();
  return {
    get offences() {
      return [...offences];
    },
    containers,
    end: () => {
      over = true;
      return looking;
    },
  };
}

/** Starts all of it; what was started is ended again when a part of it cannot be. */
export async function startLab(name: string, o: LabOptions = {}): Promise<Lab> {
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    const failures: unknown[] = [];
    for (const step of undo.splice(0).reverse()) await step().catch((e) => failures.push(e));
    if (failures.length > 0) throw failures[0];
  };
  try {
    const bed = await startBed({ name });
    undo.push(() => bed.stop());
    const broker = await startMosquitto(o.broker);
    undo.push(() => broker.stop());
    const proxy = await startTcpProxy(broker.port);
    undo.push(() => proxy.close());
    const witness = startWitness(bed);
    undo.push(() => witness.end());
    const watcher = await watchTopics(broker.url);
    undo.push(() => watcher.end());
    const agent = await startAgent(bed, { servers: [`mqtt://127.0.0.1:${proxy.port}`], nodeName: name, ...o });
    undo.push(() => agent.remove());
    return { bed, broker, agent, watcher, witness, proxy, stop };
  } catch (e) {
    await stop().catch(() => {});
    throw e;
  }
}
