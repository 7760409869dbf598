/** The tree is ours: groups are folders, limits are written into the kernel's files. */
import { type CgroupName, checkName, type Driver } from './driver.ts';
import { type CgroupFs, kernelFs } from './files.ts';
import { type EnableResult, Hierarchy, type HierarchyOptions } from './hierarchy.ts';
import { type Resources, setResources } from './resources.ts';

export interface CgroupfsDriverOptions extends HierarchyOptions {
  /** Controllers to enable down the tree, of those that are available. Default: all. */
  readonly controllers?: readonly string[];
}

export class CgroupfsDriver implements Driver {
  readonly kind = 'cgroupfs';
  readonly hierarchy: Hierarchy;
  readonly #fs: CgroupFs;
  readonly #controllers: readonly string[] | undefined;

  constructor(options: CgroupfsDriverOptions = {}) {
    this.hierarchy = new Hierarchy(options);
    this.#fs = options.fs ?? kernelFs;
    this.#controllers = options.controllers;
  }

  #below(name: CgroupName): string {
    checkName(name, false);
    return name.join('/');
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
    const result = await this.hierarchy.create(this.#below(name), this.#controllers);
    await setResources(this.path(name), resources, this.#fs);
    return result;
  }

  update(name: CgroupName, resources: Resources): Promise<readonly string[]> {
    return setResources(this.path(name), resources, this.#fs);
  }

  remove(name: CgroupName, { kill = true }: { readonly kill?: boolean } = {}): Promise<void> {
    return this.hierarchy.delete(this.#below(name), { kill });
  }

  async list(name: CgroupName): Promise<readonly CgroupName[]> {
    if (!(await this.exists(name))) return [];
    return (await this.hierarchy.list(this.#below(name))).map((child) => child.split('/'));
  }

  procs(name: CgroupName): Promise<readonly number[]> {
    return this.hierarchy.procsOfSubtree(this.#below(name));
  }
}
