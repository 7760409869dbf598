/** A node with a folder, a fake broker of desired topics, and a card: for stories of the MQTT source over whole restarts. */
import { createHash } from 'node:crypto';
import type { PodUpdate } from '../../src/api/desired.ts';
import type { NodeConfig } from '../../src/api/messages.ts';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import { Config } from '../../src/config/manager.ts';
import { RemoteSource } from '../../src/config/remote.ts';
import type { PolicyPort } from '../../src/config/remoteWords.ts';
import type { ConfigEvent } from '../../src/config/reports.ts';
import { computeSyncStatus } from '../../src/status/sync.ts';
import { silentLog } from '../../src/world/log.ts';
import { FakeClock, settle } from '../fakes/fakeClock.ts';
import { CountingStore, FakeFolder } from './builders.ts';

export const prefix = 'podsched/v1';
export const nodeTopic = (rest: string): string => `${prefix}/desired/nodes/pi/${rest}`;
export const groupTopic = (group: string, rest: string): string => `${prefix}/desired/groups/${group}/${rest}`;
export const allTopic = (rest: string): string => `${prefix}/desired/all/${rest}`;
export const rolloutTopicOf = (id: string): string => `${prefix}/rollouts/${id}`;

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

interface Said {
  readonly generation?: number;
  readonly audience?: string;
  readonly rollout?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const metadata = (
  name: string,
  { generation, audience, rollout, namespace, labels }: Said,
  more: Readonly<Record<string, string>> = {},
) => {
  const annotations = {
    ...(generation !== undefined && { 'podsched.dev/generation': String(generation) }),
    ...(audience !== undefined && { 'podsched.dev/audience': audience }),
    ...(rollout !== undefined && { 'podsched.dev/rollout': rollout }),
    ...more,
  };
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(labels && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
};

export const podText = (name: string, o: Said & { readonly image?: string; readonly spec?: object } = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metadata(name, o),
    spec: { containers: [{ name: 'c', image: o.image ?? 'busybox:1' }], ...o.spec },
  });

export const mapText = (name: string, o: Said & { readonly value?: string; readonly immutable?: boolean } = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadata(name, o),
    ...(o.immutable === true && { immutable: true }),
    data: { a: o.value ?? 'x' },
  });

export const tombstone = (kind: string, name: string, o: Said = {}): string =>
  JSON.stringify({ apiVersion: 'v1', kind, metadata: metadata(name, o, { 'podsched.dev/state': 'absent' }) });

export interface Entry {
  readonly name: string;
  readonly text: string;
  readonly kind?: string;
  readonly generation?: number;
}

export const indexText = (generation: number, entries: readonly Entry[], o: { readonly parts?: number } = {}): string =>
  JSON.stringify({
    apiVersion: 'podsched.dev/v1',
    kind: 'DesiredIndex',
    generation,
    ...(o.parts !== undefined && { parts: o.parts }),
    entries: entries.map(({ name, text, kind, generation: g }) => ({
      kind: kind ?? 'Pod',
      ns: 'default',
      name,
      sha256: hashOf(text),
      ...(g !== undefined && { generation: g }),
    })),
  });

export const configText = (o: Partial<NodeConfig>): string => JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'NodeConfig', ...o });

export const rolloutText = (id: string, gate: number, waves: readonly object[] = [{ percent: 100 }]): string =>
  JSON.stringify({ apiVersion: 'podsched.dev/v1', kind: 'Rollout', id, waves, gate });

/** Retained messages, as a broker keeps them. */
export class FakeRetained {
  readonly topics = new Map<string, string | Uint8Array>();
  /** Topics that no snapshot brings: a queue that was full. */
  readonly dropped = new Set<string>();
  set(topic: string, payload: string | Uint8Array): void {
    if (payload.length === 0) this.topics.delete(topic);
    else this.topics.set(topic, payload);
  }
  matching(filter: string): [string, string | Uint8Array][] {
    const start = filter.replace(/[#+]$/, '');
    return [...this.topics].filter(([topic]) => (filter === start ? topic === filter : topic.startsWith(start)));
  }
}

export interface RemoteRig {
  readonly config: Config;
  readonly remote: RemoteSource;
  readonly folder: FakeFolder;
  readonly store: CountingStore;
  readonly clock: FakeClock;
  readonly broker: FakeRetained;
  readonly events: ConfigEvent[];
  readonly updates: PodUpdate[];
  readonly asked: string[][];
  readonly followed: string[][];
  readonly configs: (NodeConfig | undefined)[];
  policy: PolicyPort;
  /** In place of what the fake broker answers at once. */
  fetch?: (topics: readonly string[]) => Promise<void>;
  groups: string[];
  labels: Record<string, string>;
  /** Pods whose edits have no room. */
  readonly blocked: Set<string>;
  /** `ADD web`, in order; emptied by reading. */
  take(): string[];
  /** A whole connection: every filter's retained messages, each with its marker. */
  connect(o?: { readonly whole?: boolean }): Promise<void>;
  /** Published now: kept by the broker, and heard by a node that listens. */
  publish(topic: string, payload: string | Uint8Array): Promise<void>;
  settle(): Promise<void>;
  /** `Waiting Missing`: phase and reason told of an object, as status/ tells them. */
  told(key: string): string | undefined;
  /** Phase and reason of one of its sources. */
  row(key: string, source: string): string | undefined;
  restart(): Promise<RemoteRig>;
}

interface Start {
  readonly folder?: FakeFolder;
  readonly store?: CountingStore;
  readonly broker?: FakeRetained;
  readonly policy?: PolicyPort;
  readonly groups?: string[];
  readonly labels?: Record<string, string>;
  readonly fetchFails?: boolean;
  /** Labels of `_config` count where values of the node are put in, as the wiring does it. */
  readonly afar?: boolean;
}

let uids = 0;

export function remoteRig(o: Start = {}): RemoteRig {
  const folder = o.folder ?? new FakeFolder();
  const store = o.store ?? new CountingStore();
  const broker = o.broker ?? new FakeRetained();
  const clock = new FakeClock();
  let taken = 0;
  let listens = false;
  const bytes = (payload: string | Uint8Array): Uint8Array => (typeof payload === 'string' ? new TextEncoder().encode(payload) : payload);
  const r: Omit<RemoteRig, 'config' | 'remote'> & { config?: Config; remote?: RemoteSource } = {
    ...{ folder, store, clock, broker, events: [], updates: [], asked: [], followed: [], configs: [] },
    policy: o.policy ?? {},
    groups: o.groups ?? [],
    labels: o.labels ?? {},
    blocked: new Set(),
    take: () => {
      const lines = r.updates.slice(taken).flatMap((u) => u.pods.map((p) => `${u.op} ${p.name}`));
      taken = r.updates.length;
      return lines;
    },
    connect: async ({ whole = true } = {}) => {
      listens = true;
      remote.connected();
      for (const filter of remote.filters()) {
        for (const [topic, payload] of broker.matching(filter)) {
          if (!broker.dropped.has(topic)) remote.message({ topic, payload: bytes(payload), retain: true });
        }
        if (whole) remote.snapshot([filter]);
        await r.settle();
      }
    },
    publish: async (topic, payload) => {
      broker.set(topic, payload);
      if (listens) remote.message({ topic, payload: bytes(payload), retain: false });
      await r.settle();
    },
    settle: async () => {
      for (let i = 0; i < 6; i++) await settle();
      await clock.advance(0);
    },
    told: (key) => {
      const view = config.view().objects.find((v) => v.key === key);
      const body = view && computeSyncStatus(view);
      return body && `${body.phase} ${body.reason}`;
    },
    row: (key, source) => {
      const row = config
        .view()
        .objects.find((v) => v.key === key)
        ?.sources.find((s) => s.source === source);
      return row && `${row.phase} ${row.reason}`;
    },
    restart: async () => {
      const again = remoteRig({ ...o, folder, store, broker, policy: r.policy, groups: r.groups, labels: r.labels });
      await again.config.load();
      await again.config.readFolder();
      await again.settle();
      return again;
    },
  };
  const remote = new RemoteSource({
    ...{ clock, log: silentLog, store, prefix, nodeName: 'pi' },
    groups: () => r.groups,
    labels: () => r.labels,
    fetch: async (topics) => {
      r.asked.push([...topics]);
      if (r.fetch !== undefined) return r.fetch(topics);
      if (o.fetchFails === true) throw new Error('the connection ended');
      await settle();
      for (const topic of topics) {
        const payload = broker.topics.get(topic);
        if (payload !== undefined) remote.message({ topic, payload: bytes(payload), retain: true });
      }
    },
    follow: (filters) => r.followed.push([...filters]),
    configChanged: (config) => {
      r.configs.push(config);
      if (o.afar === true) remote.settingsChanged();
    },
  });
  const port: PolicyPort = {
    judge: (object, by) => r.policy.judge?.(object, by) ?? [],
    open: (payload, by) => r.policy.open?.(payload, by) ?? { ok: true, bytes: payload },
    openFile: (payload, by) => r.policy.openFile?.(payload, by) ?? { ok: true, bytes: payload },
    requiresSignature: (source) => r.policy.requiresSignature?.(source) === true,
    trust: (said) => r.policy.trust?.(said),
    unseal: (secret) => r.policy.unseal?.(secret) ?? { ok: true, secret },
    mayRead: (source, namespace) => r.policy.mayRead?.(source, namespace) === true,
    locked: (source) => r.policy.locked?.(source) === true,
    maxPods: (of) => r.policy.maxPods?.(of),
  };
  const config = new Config({
    ...{ clock, log: silentLog, store, folder, remote, policy: port, nodeName: 'pi' },
    strict: () => false,
    nodeFacts: () => ({ name: 'pi', labels: { ...r.labels, ...(o.afar === true && remote.config()?.labels) } }),
    newUid: () => `u${++uids}` as PodUid,
    instanceState: () => ({ sandboxDead: false, finished: false, initUnfinished: false, terminating: false }),
    runtimeUid: () => undefined,
    judgeEdits: (edits) =>
      new Map(
        edits
          .filter((e) => e.effect !== 'none' && r.blocked.has(e.after.name))
          .map((e) => [e.after.key, { act: 'block', reason: 'OutOfcpu', message: 'no room' }]),
      ),
    emit: (u) => r.updates.push(u),
    changed: () => {},
    event: (e) => r.events.push(e),
  });
  r.config = config;
  r.remote = remote;
  return r as RemoteRig;
}

/** A node that was started and has heard everything that stands at its broker. */
export async function online(topics: Readonly<Record<string, string>> = {}, o: Start = {}): Promise<RemoteRig> {
  const r = remoteRig(o);
  for (const [topic, payload] of Object.entries(topics)) r.broker.set(topic, payload);
  await r.config.load();
  await r.config.readFolder();
  await r.connect();
  return r;
}

export const web = 'Pod/default/web' as KeyText;
