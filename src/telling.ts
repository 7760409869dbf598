/**
 * What is told follows from what is known: this marks which objects and files changed and gives each its answer once per turn of the loop,
 * however many reasons there were. Owns only the marks. Pods' own topics are status/'s; here it is the `sync` topics.
 */
import type { DesiredPod } from './api/desired.ts';
import { type KeyText, keyText, type ObjectKey } from './api/objects.ts';
import type { FileBody, SyncBody } from './api/payloads.ts';
import { computeFileStatus, computeSyncStatus, type LivePod, type SyncView } from './status/sync.ts';

export interface FileView {
  readonly file: string;
  readonly objects: readonly KeyText[];
  readonly problems: Parameters<typeof computeFileStatus>[0]['problems'];
  readonly warnings: Parameters<typeof computeFileStatus>[0]['warnings'];
}

export interface TellingDeps {
  readonly view: () => { readonly objects: readonly SyncView[]; readonly files: readonly FileView[] };
  /** The newest instance of a key, desired or still ending. */
  readonly instance: (key: KeyText) => DesiredPod | undefined;
  readonly live: (pod: DesiredPod) => LivePod;
  /** The agent has just begun and nobody has looked yet: what an earlier one told of the pod stands until then. */
  readonly isUnseen: (pod: DesiredPod | undefined) => boolean;
  readonly setSync: (key: ObjectKey, body: SyncBody | undefined) => void;
  readonly setFile: (file: string, body: FileBody | undefined) => void;
}

const toKey = (text: KeyText): ObjectKey => {
  const [kind = 'Pod', namespace = '', name = ''] = text.split('/');
  return { kind: kind as ObjectKey['kind'], namespace, name };
};

export class Telling {
  #keys = new Set<KeyText>();
  #told = new Set<KeyText>();
  #files = new Set<string>();
  #filesChanged = false;
  #listed: readonly SyncView[] | undefined;
  #byKey: ReadonlyMap<KeyText, SyncView> = new Map();
  #scheduled = false;

  constructor(private readonly deps: TellingDeps) {}

  /** Something about these objects changed. */
  mark(keys: Iterable<KeyText>): void {
    for (const key of keys) this.#keys.add(key);
    this.#schedule();
  }

  /** A file was read with another outcome. */
  markFiles(): void {
    this.#filesChanged = true;
    this.#schedule();
  }

  /** All of it: the runtime went or came. */
  markAll(): void {
    this.mark(this.#told);
    this.markFiles();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const { deps } = this;
    const view = deps.view();
    // the same list for as long as nothing in it is different
    if (this.#listed !== view.objects) {
      this.#listed = view.objects;
      this.#byKey = new Map(view.objects.map((o) => [keyText(o), o]));
    }
    for (const key of [...this.#keys]) {
      const pod = deps.instance(key);
      const seen = this.#byKey.get(key);
      const isPod = pod !== undefined || (seen?.kind === 'Pod' && seen.winner !== undefined);
      if (isPod && deps.isUnseen(pod)) continue;
      this.#keys.delete(key);
      if (seen === undefined && pod === undefined) {
        this.#told.delete(key);
        deps.setSync(toKey(key), undefined);
        continue;
      }
      this.#told.add(key);
      deps.setSync(toKey(key), computeSyncStatus(seen ?? { ...toKey(key), sources: [] }, pod === undefined ? {} : deps.live(pod)));
    }
    if (!this.#filesChanged) return;
    this.#filesChanged = false;
    const now = new Set(view.files.map((f) => f.file));
    for (const file of [...this.#files].filter((f) => !now.has(f))) {
      this.#files.delete(file);
      deps.setFile(file, undefined);
    }
    for (const f of view.files) {
      this.#files.add(f.file);
      deps.setFile(f.file, computeFileStatus(f));
    }
  }
}
