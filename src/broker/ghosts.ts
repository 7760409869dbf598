// pure
/**
 * Ghosts: retained topics of this node that nobody tells any more, because their pod went while the broker or the agent was away.
 * Judged one by one as they arrive, so that a large snapshot is not kept; decided when the marker has come back.
 */
import { parseObject } from './online.ts';

/** What the agent wants told under a topic; undefined: nothing (any more). */
export type Told = (topic: string) => string | undefined;

/** Of what is under `root`, only these may be cleared: the others have an owner of their own (online, info, summary, duplicates, _marker). */
const mayBeGhost = (root: string, topic: string): boolean => topic.startsWith(`${root}/pods/`) || topic.startsWith(`${root}/sync/`);

/** Names a payload another machine than ours as its teller? Most payloads name none: the topic then counts as ours. */
export function toldByOther(payload: Uint8Array, ownMachines: ReadonlySet<string>): boolean {
  const object = parseObject(payload);
  if (object === undefined) return false;
  const metadata = object.metadata as { annotations?: Record<string, unknown> } | null | undefined;
  const machine = object.machine ?? metadata?.annotations?.['podsched.dev/machine'];
  return typeof machine === 'string' && !ownMachines.has(machine);
}

/** Do two payloads say the same? boot and seq (fields, or annotations of v1 shapes) do not count. */
export function samePayload(wanted: string, seen: Uint8Array): boolean {
  if (Buffer.from(seen).equals(Buffer.from(wanted))) return true;
  const a = parseObject(wanted);
  const b = parseObject(seen);
  try {
    return a !== undefined && b !== undefined && JSON.stringify(unstamped(a)) === JSON.stringify(unstamped(b));
  } catch {
    return false; // nested deeper than can be written again: nothing of ours
  }
}

function unstamped(object: Record<string, unknown>): Record<string, unknown> {
  const { boot: _boot, seq: _seq, ...rest } = object;
  const metadata = rest.metadata as { annotations?: Record<string, unknown> } | null | undefined;
  if (metadata?.annotations === undefined) return rest;
  const { 'podsched.dev/boot': _b, 'podsched.dev/seq': _s, ...annotations } = metadata.annotations;
  return { ...rest, metadata: { ...metadata, annotations } };
}

export interface GhostPlan {
  readonly clear: readonly string[];
  readonly publish: readonly string[];
}

/** One reading of the own retained subtree. */
export class OwnSubtree {
  #ghosts = new Set<string>();
  #same = new Set<string>();

  constructor(
    private readonly root: string,
    private readonly told: Told,
    private readonly ownMachines: ReadonlySet<string>,
  ) {}

  /** A message of the snapshot (`retain`), or one that passed while it was read. */
  see(topic: string, payload: Uint8Array, retain: boolean): void {
    if (payload.length === 0) {
      this.#same.delete(topic);
      this.#ghosts.delete(topic);
      return;
    }
    const wanted = this.told(topic);
    if (wanted !== undefined) {
      if (samePayload(wanted, payload)) this.#same.add(topic);
      else this.#same.delete(topic);
    } else if (retain && mayBeGhost(this.root, topic) && !toldByOther(payload, this.ownMachines)) {
      this.#ghosts.add(topic);
    }
  }

  /** The snapshot has ended: what to clear, and which of the topics told before are missing or differ. */
  plan(toldTopics: readonly string[]): GhostPlan {
    return {
      clear: [...this.#ghosts].filter((topic) => this.told(topic) === undefined).sort(),
      publish: toldTopics.filter((topic) => !this.#same.has(topic)),
    };
  }
}
