/** A Mounter that only remembers: mounts by target, options as given, failures as asked for. */
import { readlink } from 'node:fs/promises';
import type { Mounter } from '../../src/volumes/mount.ts';

export class FakeMounter implements Mounter {
  /** `type options` by target, in order. */
  readonly mounted: { readonly target: string; readonly what: string }[] = [];
  /** Throws for what the machine refuses; asked before each mount, bind and unmount. */
  refuse: (what: string, target: string) => Error | undefined = () => undefined;

  bind: Mounter['bind'] = async (source, target) => this.#add(`bind ${await readlink(`/proc/self/fd/${source.fd}`)}`, target);

  mount: Mounter['mount'] = async (type, target, options) => this.#add(`${type} ${options.join(',')}`, target);

  unmount: Mounter['unmount'] = async (target) => {
    const error = this.refuse('unmount', target);
    if (error !== undefined) throw error;
    const index = this.mounted.findLastIndex((m) => m.target === target);
    if (index < 0) throw new Error(`${target}: not mounted`);
    this.mounted.splice(index, 1);
  };

  makePrivate: Mounter['makePrivate'] = async () => {};

  mountPoints: Mounter['mountPoints'] = async () => this.mounted.map((m) => m.target);

  #add(what: string, target: string): void {
    const error = this.refuse(what, target);
    if (error !== undefined) throw error;
    this.mounted.push({ target, what });
  }
}
