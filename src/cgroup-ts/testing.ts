/**
 * A cgroup v2 tree in a temporary folder, for tests: `new FakeCgroupfs(dir)` is the `fs` option of Hierarchy and of the drivers. It does what
 * the kernel does when one writes or makes a folder, as far as this package looks at it: controllers handed on, files that appear with a
 * group, keyed files, freeze, kill, populated, EBUSY, ENOENT, EINVAL. It is a small model, not the kernel.
 */
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { CgroupFs } from './files.ts';

export interface FakeCgroupfsOptions {
  /** cgroup.controllers of the root. */
  readonly controllers?: readonly string[];
  /** Has the kernel cgroup.kill (5.14)? */
  readonly killFile?: boolean;
}

const zeroStat = 'usage_usec 0\nuser_usec 0\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n';
const noPressure = 'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n';

const filesOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cpu: { 'cpu.weight': '100\n', 'cpu.max': 'max 100000\n', 'cpu.max.burst': '0\n', 'cpu.idle': '0\n' },
  cpuset: { 'cpuset.cpus': '\n', 'cpuset.mems': '\n', 'cpuset.cpus.effective': '0-3\n', 'cpuset.mems.effective': '0\n' },
  memory: {
    'memory.min': '0\n',
    'memory.low': '0\n',
    'memory.high': 'max\n',
    'memory.max': 'max\n',
    'memory.swap.max': 'max\n',
    'memory.swap.current': '0\n',
    'memory.oom.group': '0\n',
    'memory.current': '0\n',
    'memory.peak': '0\n',
    'memory.stat': 'anon 0\nfile 0\ninactive_file 0\n',
    'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n',
    'memory.events.local': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n',
  },
  pids: { 'pids.max': 'max\n', 'pids.current': '0\n', 'pids.peak': '0\n', 'pids.events': 'max 0\n' },
  io: { 'io.weight': 'default 100\n', 'io.max': '', 'io.stat': '' },
  hugetlb: { 'hugetlb.2MB.max': 'max\n', 'hugetlb.2MB.current': '0\n', 'hugetlb.2MB.events': 'max 0\n' },
  misc: { 'misc.max': '', 'misc.current': '', 'misc.events': '' },
};

const failure = (code: string, path: string): Error => Object.assign(new Error(`${code}: ${path}`), { code });

/** As a kernel file changes: never seen empty in between, and still the same file for who watches it. */
export function putText(file: string, text: string): void {
  if (!existsSync(file)) {
    writeFileSync(file, text);
    return;
  }
  const fd = openSync(file, 'r+');
  try {
    writeSync(fd, text, 0);
    ftruncateSync(fd, Buffer.byteLength(text));
  } finally {
    closeSync(fd);
  }
}

export class FakeCgroupfs implements CgroupFs {
  readonly root: string;
  /** Every write, mkdir and rmdir that came in, oldest first: `write kubepods/cpu.weight 79`. */
  readonly calls: string[] = [];
  /** Errors to come: `fail.set('write a/memory.max', ['EBUSY'])`; one is taken for each call, of `mkdir x`, `rmdir x` or `write x/file`. */
  readonly fail = new Map<string, string[]>();
  readonly #killFile: boolean;

  /** `root` must be an empty folder or not exist. */
  constructor(root: string, options: FakeCgroupfsOptions = {}) {
    this.root = root;
    this.#killFile = options.killFile ?? true;
    mkdirSync(root, { recursive: true });
    const controllers = options.controllers ?? ['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids', 'rdma', 'misc'];
    writeFileSync(join(root, 'cgroup.controllers'), `${controllers.join(' ')}\n`);
    writeFileSync(join(root, 'cgroup.subtree_control'), '\n');
    writeFileSync(join(root, 'cgroup.procs'), '');
    writeFileSync(join(root, 'cpu.stat'), zeroStat);
  }

  async mkdir(dir: string): Promise<void> {
    this.#note('mkdir', dir);
    this.makeGroup(dir);
  }

  /** As mkdir, without a note: what somebody else (systemd, a runtime) makes. */
  makeGroup(dir: string): void {
    mkdirSync(dir);
    const files: Record<string, string> = {
      'cgroup.controllers': this.#text(dirname(dir), 'cgroup.subtree_control'),
      'cgroup.subtree_control': '\n',
      'cgroup.procs': '',
      'cgroup.type': 'domain\n',
      'cgroup.freeze': '0\n',
      'cgroup.events': 'populated 0\nfrozen 0\n',
      'cpu.stat': zeroStat,
      'cpu.pressure': noPressure,
      'memory.pressure': noPressure,
      'io.pressure': noPressure,
      ...(this.#killFile && { 'cgroup.kill': '' }),
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
    this.#controllerFiles(dir, this.#words(dirname(dir), 'cgroup.subtree_control'), []);
  }

  async rmdir(dir: string): Promise<void> {
    this.#note('rmdir', dir);
    if (!existsSync(dir)) throw failure('ENOENT', dir);
    if (this.#children(dir).length > 0 || this.#text(dir, 'cgroup.procs').trim() !== '') throw failure('EBUSY', dir);
    rmSync(dir, { recursive: true });
    if (dirname(dir).startsWith(this.root)) this.#populate(dirname(dir));
  }

  async write(file: string, value: string): Promise<void> {
    this.#note('write', file, value);
    const [dir, name] = [dirname(file), basename(file)];
    if (!existsSync(file)) throw failure('ENOENT', file);
    switch (name) {
      case 'cgroup.subtree_control':
        return this.#subtreeControl(dir, value);
      case 'cgroup.procs':
        return this.setProcs(dir, [...this.procs(dir), Number(value)]);
      case 'cgroup.kill':
        for (const group of [dir, ...this.#below(dir)]) this.setProcs(group, []);
        return;
      case 'cgroup.freeze':
        putText(file, `${value}\n`);
        return this.#event(dir, 'frozen', Number(value));
      case 'cpu.max':
        return putText(file, `${/\s/.test(value) ? value : `${value} ${this.#words(dir, name)[1]}`}\n`);
      case 'cpu.weight':
        if (!(Number(value) >= 1 && Number(value) <= 10_000)) throw failure('EINVAL', file);
        return putText(file, `${value}\n`);
      case 'io.max':
      case 'misc.max':
        return this.#keyed(dir, name, value);
      default:
        return putText(file, `${value}\n`);
    }
  }

  /** Who is in a group (absolute folder). */
  procs(dir: string): readonly number[] {
    return this.#words(dir, 'cgroup.procs').map(Number);
  }

  /** Puts these pids into a group, instead of those there. */
  setProcs(dir: string, pids: readonly number[]): void {
    putText(join(dir, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''));
    this.#populate(dir);
  }

  #note(what: 'mkdir' | 'rmdir' | 'write', path: string, value?: string): void {
    const key = `${what} ${relative(this.root, path)}`;
    this.calls.push(value === undefined ? key : `${key} ${value.trim()}`);
    const code = this.fail.get(key)?.shift();
    if (code !== undefined) throw failure(code, path);
  }

  #text(dir: string, name: string): string {
    return existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8') : '';
  }

  #words(dir: string, name: string): readonly string[] {
    return this.#text(dir, name).split(/\s+/).filter(Boolean);
  }

  #children(dir: string): readonly string[] {
    return readdirSync(dir, { withFileTypes: true })
      .filter((e) => e.isDirectory())
      .map((e) => join(dir, e.name));
  }

  #below(dir: string): readonly string[] {
    return this.#children(dir).flatMap((child) => [child, ...this.#below(child)]);
  }

  /** A group's files come and go with its parent's subtree_control. */
  #controllerFiles(dir: string, now: readonly string[], before: readonly string[]): void {
    for (const name of now.filter((c) => !before.includes(c)))
      for (const [file, text] of Object.entries(filesOf[name] ?? {})) putText(join(dir, file), text);
    for (const name of before.filter((c) => !now.includes(c)))
      for (const file of Object.keys(filesOf[name] ?? {})) rmSync(join(dir, file), { force: true });
  }

  #subtreeControl(dir: string, value: string): void {
    const before = this.#words(dir, 'cgroup.subtree_control');
    const result = new Set(before);
    for (const word of value.split(/\s+/).filter(Boolean)) {
      const name = word.slice(1);
      if (!/^[+-]/.test(word)) throw failure('EINVAL', dir);
      if (word.startsWith('-')) result.delete(name);
      else if (!this.#words(dir, 'cgroup.controllers').includes(name)) throw failure('ENOENT', dir);
      else if (dir !== this.root && this.procs(dir).length > 0) throw failure('EBUSY', dir);
      else result.add(name);
    }
    putText(join(dir, 'cgroup.subtree_control'), `${[...result].join(' ')}\n`);
    for (const child of this.#children(dir)) {
      putText(join(child, 'cgroup.controllers'), `${[...result].join(' ')}\n`);
      this.#controllerFiles(child, [...result], before);
    }
  }

  #keyed(dir: string, name: string, value: string): void {
    const [key = '', ...words] = value.split(/\s+/);
    const lines = new Map(
      this.#text(dir, name)
        .split('\n')
        .filter(Boolean)
        .map((line) => [line.split(' ')[0] ?? '', line] as const),
    );
    if (name === 'misc.max') lines.set(key, `${key} ${words[0]}`);
    else {
      const old = Object.fromEntries(
        (lines.get(key) ?? '')
          .split(' ')
          .slice(1)
          .map((word) => word.split('=')),
      );
      const all = {
        rbps: 'max',
        wbps: 'max',
        riops: 'max',
        wiops: 'max',
        ...old,
        ...Object.fromEntries(words.map((word) => word.split('='))),
      };
      lines.set(
        key,
        `${key} ${Object.entries(all)
          .map(([k, v]) => `${k}=${v}`)
          .join(' ')}`,
      );
    }
    putText(join(dir, name), [...lines.values()].map((line) => `${line}\n`).join(''));
  }

  #event(dir: string, key: string, value: number): void {
    const file = join(dir, 'cgroup.events');
    if (!existsSync(file)) return;
    const text = readFileSync(file, 'utf8');
    const next = text.replace(new RegExp(`^${key} \\d+$`, 'm'), `${key} ${value}`);
    if (next !== text) putText(file, next);
  }

  #populate(dir: string): void {
    for (let at = dir; at !== this.root && at.startsWith(this.root); at = dirname(at)) {
      const alive = [at, ...this.#below(at)].some((group) => this.procs(group).length > 0);
      this.#event(at, 'populated', alive ? 1 : 0);
    }
  }
}
