/** A fresh fake tree for one test, and a sleep that only counts. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { FakeCgroupfs, type FakeCgroupfsOptions, putText } from '../testing.ts';

export interface Tree {
  readonly root: string;
  readonly fs: FakeCgroupfs;
  /** How long everything slept. */
  readonly slept: number[];
  readonly sleep: (ms: number) => Promise<void>;
  /** Called before each sleep ends: what the world does meanwhile. */
  onSleep: () => void;
  text(file: string): string;
  put(file: string, text: string): void;
}

const made: string[] = [];
after(() => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true });
});

/** A folder that goes away after the tests of this file. */
export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'cgroup-ts-'));
  made.push(dir);
  return dir;
}

export function newTree(options?: FakeCgroupfsOptions): Tree {
  const root = join(temporaryFolder(), 'cgroup');
  const tree: Tree = {
    root,
    fs: new FakeCgroupfs(root, options),
    slept: [],
    sleep: async (ms) => {
      tree.slept.push(ms);
      await new Promise(setImmediate);
      tree.onSleep();
    },
    onSleep: () => undefined,
    text: (file) => readFileSync(join(root, file), 'utf8').trim(),
    put: (file, text) => putText(join(root, file), text),
  };
  return tree;
}
