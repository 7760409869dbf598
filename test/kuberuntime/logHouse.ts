/** A log folder on a real disk with a runtime that writes into it, for the tests of rotation. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { PodUid } from '../../src/api/objects.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import type { ContainerId } from '../../src/container/words.ts';
import type { LoggedContainer } from '../../src/kuberuntime/logFolder.ts';
import { LogRotation, type LogRotationDeps } from '../../src/kuberuntime/logRotation.ts';
import type { Clock } from '../../src/world/clock.ts';
import { silentLog } from '../../src/world/log.ts';

export const line = (text: string, tag = 'F'): string => `2026-01-01T00:00:00.000000000Z stdout ${tag} ${text}\n`;
export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function until(what: string, holds: () => boolean, ms = 30_000): Promise<void> {
  for (const end = performance.now() + ms; !holds(); await wait(5)) assert.ok(performance.now() < end, `not within ${ms} ms: ${what}`);
}

/** A container as containerd logs it: an open file that is appended to, whatever its name is now. */
export class Writer {
  #fd: number;
  n = 0;
  constructor(readonly path: string) {
    this.#fd = openSync(path, 'a');
  }
  /** A numbered line of so many bytes in all. */
  write(bytes = 100): void {
    const head = `${this.n++} `;
    writeSync(this.#fd, line(head + 'x'.repeat(Math.max(0, bytes - line(head).length))));
  }
  reopen(): void {
    closeSync(this.#fd);
    this.#fd = openSync(this.path, 'a');
  }
  close(): void {
    closeSync(this.#fd);
  }
}

export class LogHouse {
  readonly root: string;
  readonly dir: string;
  readonly containers: LoggedContainer[] = [];
  readonly writers = new Map<string, Writer>();
  /** Ids of the calls to open a log anew. */
  readonly reopened: string[] = [];
  /** What the runtime does instead. */
  reopen: ((id: string) => Promise<void>) | undefined;
  /** Files watched now. */
  readonly watched = new Map<string, () => void>();
  readonly warnings: string[] = [];
  readonly rotation: LogRotation;
  #stop = new AbortController();
  #ended: Promise<void> | undefined;

  constructor(clock: Clock, o: Partial<LogRotationDeps> & { readonly root?: string; readonly realWatch?: boolean } = {}) {
    const { root = mkdtempSync(join(tmpdir(), 'podsched-rotation-')), realWatch = false, ...deps } = o;
    this.root = root;
    this.dir = join(root, 'default_web_uid-1', 'c');
    mkdirSync(this.dir, { recursive: true });
    const log = { ...silentLog, warn: (_: object, sentence: string) => void this.warnings.push(sentence) };
    this.rotation = new LogRotation({
      clock,
      log,
      maxSizeBytes: () => 1000,
      maxFiles: () => 3,
      containers: () => this.containers,
      runtime: {
        reopenLog: async (id) => {
          this.reopened.push(id);
          if (this.reopen !== undefined) return this.reopen(id);
          const writer = this.writers.get(id);
          if (writer === undefined) throw new RuntimeError('unknown', 'container is not running');
          writer.reopen();
        },
      },
      ...(!realWatch && {
        watch: (path: string, onChange: () => void) => {
          if (!existsSync(path)) return undefined;
          this.watched.set(path, onChange);
          return () => void this.watched.delete(path);
        },
      }),
      ...deps,
    });
  }

  /** A container of attempt `n` that runs. */
  start(n: number): Writer {
    const id = `id-${n}`;
    const writer = new Writer(join(this.dir, `${n}.log`));
    this.writers.set(id, writer);
    this.containers.unshift({ id: id as ContainerId, uid: 'uid-1' as PodUid, name: 'c', logPath: writer.path, running: true });
    return writer;
  }

  end(n: number): void {
    const at = this.containers.findIndex((c) => c.id === `id-${n}`);
    const c = this.containers[at];
    if (c !== undefined) this.containers[at] = { ...c, running: false };
    this.writers.get(`id-${n}`)?.close();
    this.writers.delete(`id-${n}`);
  }

  run(): void {
    this.#ended = this.rotation.run(this.#stop.signal);
  }

  put(name: string, text: string): void {
    appendFileSync(join(this.dir, name), text);
  }

  /** Names and sizes, sorted by name. */
  files(): Record<string, number> {
    const names = readdirSync(this.dir).sort();
    return Object.fromEntries(names.flatMap((n) => (existsSync(join(this.dir, n)) ? [[n, statSync(join(this.dir, n)).size]] : [])));
  }

  total(): number {
    return Object.values(this.files()).reduce((a, b) => a + b, 0);
  }

  /** Every file's text in the order of writing; packed ones are unpacked. */
  text(): string {
    const names = Object.keys(this.files()).sort((a, b) => Number(/^\d+\.log$/.test(a)) - Number(/^\d+\.log$/.test(b)) || (a < b ? -1 : 1));
    return names
      .map((n) => {
        const bytes = readFileSync(join(this.dir, n));
        return (n.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
      })
      .join('');
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    for (const w of this.writers.values()) w.close();
    rmSync(this.root, { recursive: true, force: true });
  }
}
