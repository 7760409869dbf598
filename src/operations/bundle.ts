/**
 * The support bundle: what somebody far away needs to see what is wrong with a node, in one JSON of at most 1 MiB. Owns nothing: each part is
 * asked of who knows it, at the same time; one that does not answer in time, or fails, says why in its place and holds up no other. Redacted as a
 * whole (redact.ts), whoever gave the part.
 */
import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import type { RuntimeCondition, RuntimeVersion } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { toRfc3339 } from '../world/clock.ts';
import { describeError } from '../world/log.ts';
import type { HealthCheck, NodeCondition } from './agentView.ts';
import { type Answered, refused } from './answered.ts';
import type { Finding } from './doctorFinding.ts';
import type { ListedImage } from './images.ts';
import type { ListedObject } from './objects.ts';
import { redact } from './redact.ts';

export interface BundleDeps {
  readonly clock: Clock;
  readonly nodeName: string;
  readonly version: string;
  /** As told: without commands, environments and volumes. */
  readonly pods: () => readonly ToldPod[];
  readonly sync: () => readonly SyncStatus[];
  readonly files: () => readonly FileStatus[];
  readonly objects: () => readonly ListedObject[];
  readonly events: () => readonly V1Event[];
  readonly conditions: () => readonly NodeCondition[];
  readonly health: () => readonly HealthCheck[];
  readonly configuration: () => Readonly<Record<string, unknown>>;
  readonly node: () => Promise<object>;
  readonly runtime: { version(): Promise<RuntimeVersion>; status(): Promise<readonly RuntimeCondition[]> };
  /** What the agent itself is: process, versions, memory, uptime. */
  readonly agent: () => object;
  /** The connection to the broker. Left out: there is none. */
  readonly broker?: (() => object) | undefined;
  readonly images?: (() => Promise<readonly ListedImage[]>) | undefined;
  readonly doctor?: (() => Promise<readonly Finding[]>) | undefined;
  /** What the kernel said of memory, USB, power and disks, the oldest first. Rejects when it may not be read. */
  readonly kernelLines: (signal: AbortSignal) => Promise<readonly string[]>;
}

export const maxBundleBytes = 1 << 20;
const partMs = 15_000;
const mostAtOnce = 2;

type Part = readonly [name: string, ask: (signal: AbortSignal) => unknown];

/** The most telling first: what does not fit is left out from the end. */
const partsOf = (d: BundleDeps): readonly Part[] => [
  ['agent', () => ({ version: d.version, ...d.agent() })],
  ['health', () => d.health()],
  ['conditions', () => d.conditions()],
  ['runtime', async () => ({ ...(await d.runtime.version()), conditions: await d.runtime.status() })],
  ['configuration', () => d.configuration()],
  ['broker', () => d.broker?.()],
  ['sync', () => d.sync()],
  ['files', () => d.files()],
  ['doctor', () => d.doctor?.()],
  ['kernel', (signal) => d.kernelLines(signal).then(newestFirst)],
  ['events', () => newestFirst(d.events())],
  ['pods', () => d.pods()],
  ['node', () => d.node()],
  ['objects', () => d.objects()],
  ['images', () => d.images?.()],
];

const newestFirst = <T>(items: readonly T[]): readonly T[] => [...items].reverse();

/** Two at once and no more: it is work. */
export class SupportBundles {
  #underWay = 0;

  constructor(private readonly deps: BundleDeps) {}

  /** Never rejects for a part; rejects with the signal's reason. */
  async make(signal: AbortSignal): Promise<Answered<object>> {
    const { deps } = this;
    if (this.#underWay >= mostAtOnce) return refused(429, 'bundles are being made already');
    this.#underWay++;
    try {
      const asked = await Promise.all(partsOf(deps).map(async ([name, ask]) => [name, await answerOf(deps.clock, ask, signal)] as const));
      signal.throwIfAborted();
      const head = { kind: 'SupportBundle', apiVersion: 'podsched.dev/v1', node: deps.nodeName, time: toRfc3339(deps.clock.now()) };
      const redacted = asked.flatMap(([name, value]): [string, unknown][] => (value === undefined ? [] : [[name, redact(value)]]));
      return { ok: true, value: fitted(head, redacted, maxBundleBytes) };
    } finally {
      this.#underWay--;
    }
  }
}

async function answerOf(clock: Clock, ask: Part[1], signal: AbortSignal): Promise<unknown> {
  const over = new AbortController();
  const end = (): void => over.abort(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  const late = clock.sleep(partMs, over.signal).then(
    () => ({ error: `no answer within ${partMs / 1000} s` }),
    () => undefined,
  );
  try {
    return await Promise.race([Promise.resolve().then(() => ask(over.signal)), late]);
  } catch (e) {
    return { error: describeError(e) };
  } finally {
    signal.removeEventListener('abort', end);
    over.abort();
  }
}

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');

/**
 * The parts in one object of at most so many bytes as JSON: a list that has no room loses its last items, anything else goes whole, and
 * `leftOut` says what. Every part has a share that the others cannot take.
 */
export function fitted(head: object, parts: readonly (readonly [name: string, value: unknown])[], maxBytes: number): object {
  const leftOut: Record<string, string> = {};
  const result: Record<string, unknown> = { ...head };
  // names, commas and what is said of what was left out
  let room = maxBytes - bytesOf(head) - parts.length * 120 - 20;
  const sizes = new Map(parts.map(([name, value]) => [name, bytesOf(value)]));
  for (const [i, [name, value]] of parts.entries()) {
    const later = parts.slice(i + 1);
    // those that come need no more than they are large
    const kept = later.reduce((sum, [other]) => sum + Math.min(sizes.get(other) ?? 0, Math.floor(maxBytes / parts.length / 2)), 0);
    const mine = Math.max(0, room - kept);
    const size = sizes.get(name) ?? 0;
    if (size <= mine) {
      result[name] = value;
      room -= size;
    } else if (Array.isArray(value)) {
      const items = firstItems(value, mine);
      result[name] = items;
      room -= bytesOf(items);
      leftOut[name] = `${value.length - items.length} of ${value.length}`;
    } else leftOut[name] = `all of it, ${size} bytes`;
  }
  return Object.keys(leftOut).length === 0 ? result : { ...result, leftOut };
}

function firstItems(items: readonly unknown[], maxBytes: number): readonly unknown[] {
  let room = maxBytes - 2;
  const end = items.findIndex((item) => {
    room -= bytesOf(item) + 1;
    return room < 0;
  });
  return items.slice(0, end < 0 ? items.length : end);
}
