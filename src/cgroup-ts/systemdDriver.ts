/**
 * The tree is systemd's: groups are transient slices, made and changed by `busctl` (no D-Bus library). systemd gets what it has properties
 * for, so that it does not undo it at the next reload; then the kernel's files get what still differs: what systemd cannot say, and exact
 * values where it rounds.
 */
import {
  busctlError,
  complaintOf,
  type Property,
  pingManager,
  resetFailedUnit,
  resourceProperties,
  setUnitProperties,
  sliceProperties,
  startTransientUnit,
  startUnit,
  stopUnit,
} from './busctl.ts';
import type { CgroupName, Driver } from './driver.ts';
import { CgroupError } from './error.ts';
import { type CgroupFs, kernelFs } from './files.ts';
import { type EnableResult, Hierarchy, type HierarchyOptions } from './hierarchy.ts';
import { type Resources, setResources } from './resources.ts';
import { type Run, type RunResult, runCommand } from './run.ts';
import { expandSlice, parentSlice, parseSliceName, sliceName } from './slices.ts';
import { realSleep, type Sleep, waits } from './time.ts';

export interface SystemdDriverOptions extends HierarchyOptions {
  /** Runs an argument list. Default: execFile, without a shell. */
  readonly run?: Run;
  /** The program. Default: `busctl`, found by PATH. */
  readonly busctl?: string;
  /** Controllers to enable down the tree beyond what systemd does. Default: all that are available. */
  readonly controllers?: readonly string[];
  /** How long systemd's job may take until the folder is there. Default: 5 s. */
  readonly jobTimeoutMs?: number;
  /** What `systemctl status` shows for a slice. */
  readonly description?: (slice: string) => string;
}

/** How long systemd gets for removing a folder before we do it. */
const removeWaitMs = 1000;

export class SystemdDriver implements Driver {
  readonly kind = 'systemd';
  readonly hierarchy: Hierarchy;
  readonly #fs: CgroupFs;
  readonly #sleep: Sleep;
  readonly #run: Run;
  readonly #busctl: string;
  readonly #options: SystemdDriverOptions;
  /** false after systemd said that it has no AllowedCPUs (before 244): the files get it then. */
  #withCpuset = true;
  /** What this process told systemd last, by slice and property: a command is only run for what is new. */
  readonly #told = new Map<string, Map<string, string>>();

  /** By slice, as it was last asked for: systemd has no property for it, and writes its own whenever it writes anything of memory. */
  readonly #oomGroup = new Map<string, boolean>();

  constructor(options: SystemdDriverOptions = {}) {
    this.hierarchy = new Hierarchy(options);
    this.#fs = options.fs ?? kernelFs;
    this.#sleep = options.sleep ?? realSleep;
    this.#run = options.run ?? runCommand;
    this.#busctl = options.busctl ?? 'busctl';
    this.#options = options;
  }

  #below(name: CgroupName): string {
    return expandSlice(sliceName(name));
  }

  path(name: CgroupName): string {
    return this.hierarchy.path(this.#below(name));
  }

  cgroupParent(name: CgroupName): string {
    return `/${this.#below(name)}`;
  }

  exists(name: CgroupName): Promise<boolean> {
    return this.hierarchy.exists(this.#below(name));
  }

  async create(name: CgroupName, resources: Resources = {}): Promise<EnableResult> {
    if (name.length === 0) throw new CgroupError({ code: 'EINVAL', file: '-.slice', detail: 'the root slice is there already' });
    for (let depth = 1; depth < name.length; depth++) {
      const parent = name.slice(0, depth);
      if (!(await this.exists(parent))) await this.#start(parent, {});
    }
    await this.#start(name, resources);
    const enabled = await this.hierarchy.enable(this.#below(name), this.#options.controllers);
    await this.#write(name, resources, true);
    return enabled;
  }

  /** `told`: systemd was told of them just now, so that it may be about to write. */
  async #write(name: CgroupName, resources: Resources, told: boolean): Promise<readonly string[]> {
    const { memory } = resources;
    const unit = sliceName(name);
    const group = memory?.['oom.group'] ?? this.#oomGroup.get(unit);
    if (memory === undefined || group === undefined) return setResources(this.path(name), resources, this.#fs);
    this.#oomGroup.set(unit, group);
    // it answers before it writes; what it answers next comes after
    if (told) await this.#run(pingManager(this.#busctl));
    return setResources(this.path(name), { ...resources, memory: { ...memory, 'oom.group': group } }, this.#fs);
  }

  async #start(name: CgroupName, resources: Resources): Promise<void> {
    const unit = sliceName(name);
    const description = this.#options.description?.(unit) ?? `cgroup-ts slice ${unit}`;
    const fixed = sliceProperties(parentSlice(unit), description);
    const result = await this.#withResources(resources, (properties) => startTransientUnit(this.#busctl, unit, [...fixed, ...properties]));
    if (result.code !== 0) {
      if (complaintOf(result.stderr) !== 'exists') throw busctlError(unit, 'StartTransientUnit', result.stderr);
      this.#told.delete(unit);
      if (await this.exists(name)) await this.#setProperties(unit, resources);
      // loaded and without a folder: a unit that stopped or failed and is still known; forget it and try once more
      else await this.#startAgain(unit, fixed, resources);
    }
    await this.#waitFor(name, true);
    this.#noteTold(unit, resources);
  }

  async #startAgain(unit: string, fixed: readonly Property[], resources: Resources): Promise<void> {
    await this.#run(stopUnit(this.#busctl, unit));
    await this.#run(resetFailedUnit(this.#busctl, unit));
    const result = await this.#withResources(resources, (properties) => startTransientUnit(this.#busctl, unit, [...fixed, ...properties]));
    if (result.code === 0) return;
    if (complaintOf(result.stderr) !== 'exists') throw busctlError(unit, 'StartTransientUnit', result.stderr);
    // it has a unit file of its own
    const started = await this.#run(startUnit(this.#busctl, unit));
    if (started.code !== 0) throw busctlError(unit, 'StartUnit', started.stderr);
    await this.#setProperties(unit, resources);
  }

  /** One call with the properties of `resources`; when systemd does not know AllowedCPUs, once more without. */
  async #withResources(resources: Resources, argv: (properties: readonly Property[]) => readonly string[]): Promise<RunResult> {
    const result = await this.#run(argv(resourceProperties(resources, this.#withCpuset)));
    const cpusetAsked = this.#withCpuset && (resources.cpuset?.cpus !== undefined || resources.cpuset?.mems !== undefined);
    if (result.code === 0 || !cpusetAsked || complaintOf(result.stderr) !== 'unknown property') return result;
    this.#withCpuset = false;
    return this.#run(argv(resourceProperties(resources, false)));
  }

  /** False: systemd has no property for any of it. */
  async #setProperties(unit: string, resources: Resources): Promise<boolean> {
    if (resourceProperties(resources, this.#withCpuset).length === 0) return false;
    const result = await this.#withResources(resources, (properties) => setUnitProperties(this.#busctl, unit, properties));
    if (result.code !== 0) throw busctlError(unit, 'SetUnitProperties', result.stderr);
    this.#noteTold(unit, resources);
    return true;
  }

  #noteTold(unit: string, resources: Resources): void {
    const told = this.#told.get(unit) ?? new Map<string, string>();
    for (const [name, ...words] of resourceProperties(resources, this.#withCpuset)) told.set(name, words.join(' '));
    this.#told.set(unit, told);
  }

  #knows(unit: string, resources: Resources): boolean {
    const told = this.#told.get(unit);
    return resourceProperties(resources, this.#withCpuset).every(([name, ...words]) => told?.get(name) === words.join(' '));
  }

  async update(name: CgroupName, resources: Resources): Promise<readonly string[]> {
    if (!(await this.exists(name))) throw new CgroupError({ code: 'ENOENT', file: this.path(name), detail: 'no such cgroup' });
    const unit = sliceName(name);
    const known = this.#knows(unit, resources);
    if (!known) await this.#setProperties(unit, resources);
    const written = await this.#write(name, resources, !known);
    // somebody else changed what we had told: systemd may hold their value, and would put it back
    if (known && written.length > 0 && (await this.#setProperties(unit, resources))) await this.#write(name, resources, true);
    return written;
  }

  async remove(name: CgroupName, { kill = true }: { readonly kill?: boolean } = {}): Promise<void> {
    const unit = sliceName(name);
    const below = this.#below(name);
    this.#told.delete(unit);
    this.#oomGroup.delete(unit);
    // to stop a slice ends what is in it; systemd learns from the kernel that the folder is gone
    if (!kill) return this.hierarchy.delete(below, { kill });
    if (await this.exists(name)) await this.hierarchy.kill(below);
    const stopped = await this.#run(stopUnit(this.#busctl, unit));
    if (stopped.code !== 0 && complaintOf(stopped.stderr) !== 'not loaded') throw busctlError(unit, 'StopUnit', stopped.stderr);
    // systemd takes away what it knows; what it does not know of, or was slow to remove, is removed here
    if (stopped.code === 0) await this.#waitFor(name, false, removeWaitMs).catch(() => undefined);
    await this.hierarchy.delete(below);
    await this.#run(resetFailedUnit(this.#busctl, unit)); // a failed unit would keep its name; "not loaded" is what we want to hear
  }

  async #waitFor(name: CgroupName, there: boolean, timeoutMs = this.#options.jobTimeoutMs ?? 5000): Promise<void> {
    for (const ms of [...waits(timeoutMs), undefined]) {
      if ((await this.exists(name)) === there) return;
      if (ms !== undefined) await this.#sleep(ms);
    }
    const detail = `systemd's job did not ${there ? 'make' : 'remove'} ${sliceName(name)} in ${timeoutMs} ms`;
    throw new CgroupError({ code: 'ETIMEDOUT', file: this.path(name), detail });
  }

  async list(name: CgroupName): Promise<readonly CgroupName[]> {
    if (!(await this.exists(name))) return [];
    const children = await this.hierarchy.list(this.#below(name));
    return children.flatMap((child) => {
      const parsed = parseSliceName(child.slice(child.lastIndexOf('/') + 1));
      return parsed?.length === name.length + 1 && name.every((part, i) => part === parsed[i]) ? [parsed] : [];
    });
  }

  procs(name: CgroupName): Promise<readonly number[]> {
    return this.hierarchy.procsOfSubtree(this.#below(name));
  }
}
