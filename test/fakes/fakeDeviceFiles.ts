/** A /dev that a test fills: nodes, links and folders, and watches that hear of each change. */
import type { DeviceFiles, Entry } from '../../src/cm/deviceFiles.ts';

interface Watcher {
  readonly folder: string;
  readonly changed: (name: string | null) => void;
  readonly failed: (e: unknown) => void;
}

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'));
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

export class FakeDeviceFiles implements DeviceFiles {
  readonly watchers = new Set<Watcher>();
  /** What a new watch fails with. */
  refuse: Error | undefined;
  #entries = new Map<string, Entry & { readonly id: number }>([['/dev', { kind: 'folder', id: 0 }]]);
  #last = 0;

  /** A character device; its folders are made with it. */
  plug(
    path: string,
    minor: number,
    o: { readonly major?: number; readonly gid?: number; readonly mode?: number; readonly kind?: 'char' | 'block' } = {},
  ): void {
    const { major = 188, gid = 20, mode = 0o660, kind = 'char' } = o;
    this.#put(path, { kind, major, minor, gid, mode, inode: this.#last + 1 });
  }

  link(path: string, target: string): void {
    this.#put(path, { kind: 'link', target });
  }

  file(path: string): void {
    this.#put(path, { kind: 'other' });
  }

  /** With everything under it. */
  remove(path: string): void {
    for (const p of [...this.#entries.keys()]) if (p === path || p.startsWith(`${path}/`)) this.#entries.delete(p);
    this.#tell(path);
  }

  /** A new group, as udev gives one. */
  group(path: string, gid: number): void {
    const entry = this.#entries.get(path);
    if (entry?.kind !== 'char' && entry?.kind !== 'block') throw new Error(`${path} is no device`);
    this.#entries.set(path, { ...entry, gid });
    this.#tell(path);
  }

  watched(): string[] {
    return [...this.watchers].map((w) => w.folder).sort();
  }

  names(folder: string): readonly string[] | undefined {
    if (this.#entries.get(folder)?.kind !== 'folder') return undefined;
    return [...this.#entries.keys()].filter((path) => parentOf(path) === folder).map(nameOf);
  }

  look(path: string): Entry | undefined {
    return this.#entries.get(path);
  }

  hostPath(path: string): string {
    return path;
  }

  identity(folder: string): string | undefined {
    const entry = this.#entries.get(folder);
    return entry?.kind === 'folder' ? String(entry.id) : undefined;
  }

  watch(folder: string, changed: Watcher['changed'], failed: Watcher['failed']): { close(): void } {
    if (this.refuse !== undefined) throw this.refuse;
    const watcher = { folder, changed, failed };
    this.watchers.add(watcher);
    return { close: () => void this.watchers.delete(watcher) };
  }

  #put(path: string, entry: Entry): void {
    const parent = parentOf(path);
    if (this.#entries.get(parent)?.kind !== 'folder') this.#put(parent, { kind: 'folder' });
    this.#entries.set(path, { ...entry, id: ++this.#last });
    this.#tell(path);
  }

  #tell(path: string): void {
    for (const w of [...this.watchers]) if (w.folder === parentOf(path)) w.changed(nameOf(path));
  }
}
