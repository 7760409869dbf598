/**
 * Who this node is: its name, the hash of its board, the kernel's boot and its number. Owns the entries `identity` (written once, and again
 * only when the board or the name changes) and `boot` (written once per boot) in the stateDir store. A lost or unreadable entry is made anew,
 * never a reason to stop: the name comes from the board again, the boot counter from what the broker remembers.
 * Never uses the host name, which changes, and never the wall clock.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../world/log.ts';
import { isStoreCorrupt, type Store } from '../world/store.ts';
import { type HardwareRoots, machineHashes, nameFromHardware, readHardware } from './hardware.ts';

export interface IdentityDeps {
  /** The stateDir's. */
  readonly store: Store;
  readonly log: Log;
  /** `nodeName` of the configuration; empty or undefined: made from the board. */
  readonly configuredName: string | undefined;
  readonly roots: HardwareRoots;
  /** 12 hex digits, for a board with neither serial number nor address. */
  readonly randomMachine: () => string;
  /** A UUID, should the kernel's boot id be unreadable. */
  readonly randomBootId: () => string;
}

interface IdentityEntry {
  readonly nodeName: string;
  readonly machine: string;
  /** Names this card had before: what carries them in the runtime is ours. */
  readonly formerNames: readonly string[];
  /** Boards this name was on before. */
  readonly formerMachines: readonly string[];
  /** The name before the board changed, until a name is configured. */
  readonly movedFrom?: string;
}

interface BootEntry {
  readonly bootId: string;
  readonly boot: number;
}

export interface IdentityCondition {
  readonly type: 'IdentityMoved';
  readonly reason: string;
  readonly message: string;
}

/** Reads the identity, making what is missing. Throws only when the store cannot be written. */
export async function loadIdentity(deps: IdentityDeps): Promise<Identity> {
  const { configuredName, log, randomBootId, randomMachine, roots, store } = deps;
  const hardware = await readHardware(roots);
  const hashes = machineHashes(hardware);
  const stored = identityEntry(await read(store, 'identity', log));
  // a board may be known by an address one day and by its serial number the next: any of its hashes will do
  const same = stored !== undefined && (hashes.length === 0 || hashes.includes(stored.machine));
  const machine = same ? stored.machine : (hashes[0] ?? randomMachine());
  const configured = configuredName === '' ? undefined : configuredName;
  const ownName = nameFromHardware(hardware, machine);

  let entry: IdentityEntry;
  if (stored === undefined) {
    entry = { nodeName: configured ?? ownName, machine, formerNames: [], formerMachines: [] };
  } else if (configured !== undefined) {
    // the board in the entry stays as it is: whether it was replaced, or a second board has a copy of this card, only the broker can tell
    const { movedFrom: _settled, ...rest } = stored;
    entry = { ...rest, nodeName: configured, formerNames: renamed(stored, configured) };
  } else if (!same) {
    const name = ownName === stored.nodeName ? `${ownName}-${machine.slice(0, 4)}` : ownName;
    entry = {
      nodeName: name,
      machine,
      formerNames: renamed(stored, name),
      formerMachines: stored.formerMachines,
      movedFrom: stored.nodeName,
    };
    log.warn({ from: stored.nodeName, to: name }, 'the board has changed and no nodeName is configured: the node has a new name');
  } else {
    entry = stored;
  }
  if (JSON.stringify(entry) !== JSON.stringify(stored)) await store.put('identity', entry);

  const bootId = (await readFile(join(roots.proc, 'sys/kernel/random/boot_id'), 'utf8').catch(() => '')).trim() || randomBootId();
  const lastBoot = bootEntry(await read(store, 'boot', log));
  let boot = lastBoot;
  if (lastBoot !== undefined && lastBoot.bootId !== bootId) {
    boot = { bootId, boot: lastBoot.boot + 1 };
    await store.put('boot', boot);
  }
  return new Identity(store, entry, machine, bootId, boot?.boot);
}

export class Identity {
  readonly nodeName: string;

  constructor(
    private readonly store: Store,
    private entry: IdentityEntry,
    /** Hash of this board, 12 hex digits. */
    readonly machine: string,
    readonly bootId: string,
    private bootNumber: number | undefined,
  ) {
    this.nodeName = entry.nodeName;
  }

  /** Number of this kernel boot; 1 while it is not known. */
  boot(): number {
    return this.bootNumber ?? 1;
  }

  /** False when the counter was lost (or never was): somebody has to call `adoptBoot` before anything is told. */
  bootKnown(): boolean {
    return this.bootNumber !== undefined;
  }

  /** The counter goes on after the greatest one seen in the own retained `online`; at 1 when nothing was seen. */
  async adoptBoot(greatestSeen: number | undefined): Promise<void> {
    if (this.bootNumber !== undefined) return;
    const boot = (greatestSeen ?? 0) + 1;
    await this.store.put('boot', { bootId: this.bootId, boot } satisfies BootEntry);
    this.bootNumber = boot;
  }

  /** Does the stored identity name this board? If not, another board may be alive under the name. */
  rightful(): boolean {
    return this.entry.machine === this.machine;
  }

  /** This board takes the name: the old one was replaced. */
  async claim(): Promise<void> {
    if (this.rightful()) return;
    const formerMachines = [...this.entry.formerMachines.filter((m) => m !== this.machine), this.entry.machine];
    await this.#store({ ...this.entry, machine: this.machine, formerMachines });
  }

  /** The board whose name we took is alive after all. */
  async giveBack(machine: string): Promise<void> {
    await this.#store({ ...this.entry, machine, formerMachines: this.entry.formerMachines.filter((m) => m !== machine) });
  }

  formerNames(): readonly string[] {
    return this.entry.formerNames;
  }

  formerMachines(): readonly string[] {
    return this.entry.formerMachines;
  }

  conditions(): readonly IdentityCondition[] {
    const { movedFrom, nodeName } = this.entry;
    if (movedFrom === undefined) return [];
    const message = `this card was in another board, where the node was ${movedFrom}; here it is ${nodeName}. Set nodeName to choose a name`;
    return [{ type: 'IdentityMoved', reason: 'BoardChanged', message }];
  }

  async #store(entry: IdentityEntry): Promise<void> {
    await this.store.put('identity', entry);
    this.entry = entry;
  }
}

const renamed = (before: IdentityEntry, name: string): readonly string[] =>
  before.nodeName === name
    ? before.formerNames
    : [...before.formerNames.filter((n) => n !== name && n !== before.nodeName), before.nodeName];

async function read(store: Store, key: string, log: Log): Promise<unknown> {
  try {
    return await store.get(key);
  } catch (error) {
    if (!isStoreCorrupt(error)) throw error;
    log.error({ error }, 'a stored part of the identity cannot be read and is made anew');
    return undefined;
  }
}

function identityEntry(value: unknown): IdentityEntry | undefined {
  const v = value as Partial<IdentityEntry> | null | undefined;
  if (typeof v?.nodeName !== 'string' || typeof v.machine !== 'string') return undefined;
  const { nodeName, machine, formerNames = [], formerMachines = [], movedFrom } = v;
  return { nodeName, machine, formerNames, formerMachines, ...(movedFrom !== undefined && { movedFrom }) };
}

function bootEntry(value: unknown): BootEntry | undefined {
  const v = value as Partial<BootEntry> | null | undefined;
  return typeof v?.bootId === 'string' && typeof v.boot === 'number' && Number.isSafeInteger(v.boot)
    ? { bootId: v.bootId, boot: v.boot }
    : undefined;
}
