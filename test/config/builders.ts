/** A folder, a world and short manifests for the tests of this room. */
import type { InstanceState, PodUpdate } from '../../src/api/desired.ts';
import type { EditVerdict } from '../../src/api/edit.ts';
import type { NodeValues } from '../../src/api/nodeValues.ts';
import type { KeyText, PodUid } from '../../src/api/objects.ts';
import { Config } from '../../src/config/manager.ts';
import type { ConfigEvent } from '../../src/config/reports.ts';
import type { FileText, FolderListing, FolderReader } from '../../src/world/folder.ts';
import { silentLog } from '../../src/world/log.ts';
import { MemoryStore, type Store } from '../../src/world/store.ts';
import { FakeClock } from '../fakes/fakeClock.ts';

export const pod = (name: string, o: { image?: string; env?: string; label?: string; extra?: string } = {}): string =>
  [
    'apiVersion: v1',
    'kind: Pod',
    'metadata:',
    `  name: ${name}`,
    ...(o.label === undefined ? [] : [`  labels: {app: ${o.label}}`]),
    'spec:',
    '  containers:',
    '  - name: c',
    `    image: ${o.image ?? 'busybox:1'}`,
    ...(o.env === undefined ? [] : ['    env:', `    - {name: X, value: ${JSON.stringify(o.env)}}`]),
    ...(o.extra === undefined ? [] : [o.extra]),
    '',
  ].join('\n');

export const configMap = (name: string, value = 'x'): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {a: ${JSON.stringify(value)}}\n`;

/** The folder as a map of texts; undefined content stands for a file that cannot be read. */
export class FakeFolder implements FolderReader {
  readonly files = new Map<string, string | Uint8Array | undefined>();
  readonly insecureFiles = new Map<string, string>();
  readonly signatures = new Map<string, string>();
  insecure: string | undefined;
  missing = false;
  reads = 0;
  tick: () => void = () => {};
  degrade: (reason: string | undefined) => void = () => {};

  async read(): Promise<FolderListing> {
    this.reads++;
    if (this.missing) return { ok: false, message: '/m does not exist' };
    const files = [...this.files].sort().map(([name, content]): FileText => {
      const insecure = this.insecureFiles.get(name);
      const signature = this.signatures.get(name);
      return {
        name,
        content:
          content === undefined
            ? { ok: false, reason: 'Unreadable', message: 'permission denied' }
            : { ok: true, bytes: typeof content === 'string' ? new TextEncoder().encode(content) : content },
        ...(insecure === undefined ? {} : { insecure }),
        ...(signature === undefined ? {} : { signature: new TextEncoder().encode(signature) }),
      };
    });
    return { ok: true, files, ...(this.insecure === undefined ? {} : { insecure: this.insecure }) };
  }
  watch(onTick: () => void, onDegraded: (reason: string | undefined) => void): void {
    this.tick = onTick;
    this.degrade = onDegraded;
  }
  set(files: Readonly<Record<string, string>>): this {
    this.files.clear();
    for (const [name, text] of Object.entries(files)) this.files.set(name, text);
    return this;
  }
}

export class CountingStore extends MemoryStore {
  writes: string[] = [];
  full = false;
  /** Called before each write lands. */
  onWrite: () => void = () => {};
  override async put(key: string, value: unknown): Promise<void> {
    if (this.full) throw new Error('no space left on device');
    this.onWrite();
    this.writes.push(`put ${key}`);
    await super.put(key, value);
  }
  override async remove(key: string): Promise<void> {
    if (this.full) throw new Error('read-only file system');
    this.writes.push(`remove ${key}`);
    await super.remove(key);
  }
}

export interface Rig {
  readonly config: Config;
  readonly folder: FakeFolder;
  readonly store: CountingStore;
  readonly clock: FakeClock;
  readonly events: ConfigEvent[];
  readonly changed: KeyText[][];
  /** `ADD Pod/default/web u1`, in order; emptied by reading. */
  take(): string[];
  readonly updates: PodUpdate[];
  states: Map<PodUid, Partial<InstanceState>>;
  runtime: Map<string, PodUid> | 'unknown';
  strict: boolean;
  node: NodeValues;
  readonly asked: KeyText[];
  /** What admission says of edits, by pod name. */
  readonly verdicts: Map<string, EditVerdict>;
  /** Pods that somebody holds, by name. */
  readonly held: Set<string>;
  /** What it was asked, by call: `update web`. */
  readonly judged: string[][];
  /** The agent starts again on the same card and folder. */
  restart(store?: Store): Promise<Rig>;
}

const calm: InstanceState = { sandboxDead: false, finished: false, initUnfinished: false, terminating: false };
let uids = 0;

export function rig(o: { folder?: FakeFolder; store?: CountingStore } = {}): Rig {
  const folder = o.folder ?? new FakeFolder();
  const store = o.store ?? new CountingStore();
  const clock = new FakeClock();
  const updates: PodUpdate[] = [];
  let taken = 0;
  const r: Omit<Rig, 'config'> & { config?: Config } = {
    folder,
    store,
    clock,
    events: [],
    changed: [],
    updates,
    states: new Map(),
    runtime: new Map(),
    strict: false,
    node: { name: 'pi', labels: {} },
    asked: [],
    verdicts: new Map(),
    held: new Set(),
    judged: [],
    take: () => {
      const lines = updates.slice(taken).flatMap((u) => u.pods.map((p) => `${u.op} ${p.name} ${p.uid}`));
      taken = updates.length;
      return lines;
    },
    restart: async (next) => {
      const again = rig({ folder, store: (next ?? store) as CountingStore });
      await again.config.load();
      return again;
    },
  };
  r.config = new Config({
    clock,
    log: silentLog,
    store,
    folder,
    nodeName: 'pi',
    strict: () => r.strict,
    nodeFacts: () => r.node,
    newUid: () => `u${++uids}` as PodUid,
    instanceState: (uid) => ({ ...calm, ...r.states.get(uid) }),
    runtimeUid: (key) => {
      r.asked.push(key);
      return r.runtime === 'unknown' ? 'unknown' : r.runtime.get(key);
    },
    judgeEdits: (edits) => {
      r.judged.push(edits.map((e) => `${e.effect} ${e.after.name}`));
      return new Map(
        edits.flatMap(({ after }) => {
          const verdict = r.verdicts.get(after.name);
          return verdict === undefined ? [] : [[after.key, verdict] as const];
        }),
      );
    },
    held: (_, { metadata }) => (r.held.has(metadata.name) ? 'held by a test' : undefined),
    emit: (u) => updates.push(u),
    changed: (keys) => r.changed.push(keys),
    event: (e) => r.events.push(e),
  });
  return r as Rig;
}

/** A started agent that has read the folder. */
export async function started(files: Readonly<Record<string, string>>): Promise<Rig> {
  const r = rig({ folder: new FakeFolder().set(files) });
  await r.config.load();
  await r.config.readFolder();
  return r;
}

export const uidOf = (r: Rig, key: string): PodUid => {
  const uid = r.config.view().objects.find((o) => o.key === key)?.uid;
  if (uid === undefined) throw new Error(`${key} has no uid`);
  return uid;
};
