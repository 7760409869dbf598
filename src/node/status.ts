/**
 * The node's status: what it has, what of it pods may have, what is wrong with it, and how its board is. Owns the times of the conditions (over
 * restarts of the agent, in runDir), the temperature that was told, and since when what of the supply was seen.
 *
 * It reads the board once at the start and its sensors at each heartbeat, from files alone: it starts no process, and asks the runtime for its
 * images only when a person asks for the node. What it tells changes only with what it means: a temperature that moves by less than three
 * degrees, a supply that dips twice in five minutes and the time of a heartbeat are no news (mqtt.md: no message where nothing changed).
 * Mirrors kubelet v1.32 nodestatus/setters.go (facts 17).
 */
import { bytesText, type NodeCapacity } from '../api/nodeResources.ts';
import { every } from '../async/every.ts';
import type { ImageInfo } from '../container/runtime.ts';
import { type Clock, toRfc3339 } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { type Board, type BoardRoots, findBoard } from './board.ts';
import { type BoardCondition, boardConditions, boardConditionTypes, isOverheated } from './boardConditions.ts';
import { cardText } from './cardWear.ts';
import { conditionEvents, type JudgedCondition, kubeletConditions, type Readiness, type TimedCondition, timed } from './conditions.ts';
import { type DeviceCount, type NodeFacts, type NodeObject, nodeImages, nodeObject } from './info.ts';
import { PowerWatch } from './power.ts';
import { powerText } from './throttled.ts';
import { readUsage, readVitals, type Usage, type Vitals } from './vitals.ts';

export interface NodeStatusDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir's: what is kept holds for this boot. */
  readonly store: Store;
  readonly roots: BoardRoots;
  readonly bootId: string;
  /** What is fixed. */
  readonly node: Pick<NodeFacts, 'name' | 'machine' | 'agentVersion' | 'architecture' | 'kernelVersion' | 'pageBytes'>;
  readonly labels: () => Readonly<Record<string, string>>;
  /** What is told beside what the board tells, by name without our prefix. Left out: nothing. */
  readonly annotations?: () => Readonly<Record<string, string>>;
  readonly addresses: () => readonly string[];
  /** `containerd://1.7.24`; empty: not known yet. */
  readonly runtimeVersion: () => string;
  readonly capacity: () => NodeCapacity;
  readonly allocatable: () => NodeCapacity;
  /** By resource name. Left out: there are none. */
  readonly devices?: () => Readonly<Record<string, DeviceCount>>;
  readonly ready: () => Readiness;
  /** MemoryPressure, DiskPressure and PIDPressure; what is left out is not under pressure. */
  readonly pressures?: () => readonly JudgedCondition[];
  /** What other parts found to be wrong. */
  readonly others: () => readonly JudgedCondition[];
  readonly images: () => Promise<readonly ImageInfo[]>;
  readonly heartbeatMs: () => number;
  /** The file systems of these must be writable. */
  readonly writable: readonly string[];
  /** The file system that pods write to. */
  readonly disk: string;
  /** About the node. */
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** What is told is different. */
  readonly changed: () => void;
}

export interface BoardFacts {
  readonly model?: string;
  readonly serial?: string;
  readonly hasTemperature: boolean;
  /** It tells when its supply is too low. */
  readonly hasPower: boolean;
}

interface Entry {
  readonly bootId: string;
  readonly conditions: readonly TimedCondition[];
  /** Of the supply, since the boot. */
  readonly power: number;
}

const key = 'node-status';
/** A processor at work moves by less than that from one minute to the next. */
const stillDegrees = 3;
/** From here on a Pi's firmware may slow it, by its model. */
const warmDegrees = 58;
const nothing: Vitals = { degrees: undefined, readOnly: [], clockSynced: undefined };

export class NodeStatus {
  #board: Board | undefined;
  #power: PowerWatch | undefined;
  #vitals = nothing;
  #toldDegrees: number | undefined;
  #overheated = false;
  #conditions: readonly TimedCondition[] = [];
  #stored = '';
  #images: readonly ImageInfo[] = [];

  constructor(private readonly deps: NodeStatusDeps) {}

  /** What an earlier run told, and the board with its first reading. Never rejects. */
  async load(): Promise<void> {
    const { clock, log, store, roots, bootId } = this.deps;
    const stored = entry(await store.get(key).catch(() => undefined)); // unreadable: times begin anew
    this.#board = await findBoard(roots);
    this.#power = new PowerWatch({ clock, log, throttled: this.#board.throttled, underVoltage: this.#board.underVoltage });
    if (stored?.bootId === bootId) {
      this.#conditions = stored.conditions;
      this.#power.restore(stored.power);
    }
    await this.#read();
  }

  /** Reads at each heartbeat, and at once when the kernel says that something of the supply changed. Until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, heartbeatMs, changed } = this.deps;
    this.#power?.watch(changed, signal);
    let first = true;
    const step = async (): Promise<void> => {
      // `load` has just done it
      if (!first) await this.#read();
      first = false;
      changed();
    };
    await every(clock, heartbeatMs, signal, step, (e) => log.warn({ error: describeError(e) }, 'the node could not be looked at'));
  }

  /** As it is told in `info`. */
  told(): NodeObject {
    return nodeObject({ ...this.#facts(), conditions: this.conditions() });
  }

  /** Whole: with images, usage and times of heartbeats. Rejects never: what the runtime does not tell now is as it was. */
  async whole(): Promise<NodeObject> {
    const { clock, log, roots, disk } = this.deps;
    const [usage] = await Promise.all([readUsage(roots, disk), this.#read(), this.#listImages(log)]);
    const at = toRfc3339(clock.now());
    const facts = this.#facts();
    return nodeObject({
      ...facts,
      annotations: { ...facts.annotations, ...this.#temperature(1, this.#vitals.degrees), ...usageTexts(usage) },
      conditions: this.conditions().map((c) => ({ ...c, lastHeartbeatTime: at })),
      images: nodeImages(this.#images),
    });
  }

  /** Of the processor, in degrees, at the last look; undefined: no sensor. */
  temperature(): number | undefined {
    return this.#vitals.degrees;
  }

  /** What of the board others ask for; before `load` nothing is known. */
  boardFacts(): BoardFacts {
    const board = this.#board;
    return {
      ...(board?.model !== undefined && { model: board.model }),
      ...(board?.serial !== undefined && { serial: board.serial }),
      hasTemperature: board?.temperature !== undefined,
      hasPower: this.#power?.known === true,
    };
  }

  /** All conditions as they are now. */
  conditions(): readonly TimedCondition[] {
    const { clock, node, event, ready, pressures, others } = this.deps;
    const judged = [...kubeletConditions(ready(), pressures?.() ?? []), ...others(), ...this.board()];
    const now = timed(this.#conditions, judged, toRfc3339(clock.now()));
    // what an earlier run told is not known yet: nothing is news
    if (this.#board === undefined) return now;
    const events = conditionEvents(node.name, this.#conditions, now, boardConditionTypes);
    this.#conditions = now;
    for (const e of events) event(e.type, e.reason, e.message);
    this.#keep();
    return now;
  }

  /** What is wrong with the board. */
  board(): readonly BoardCondition[] {
    const { readOnly, clockSynced } = this.#vitals;
    const power = this.#power?.state() ?? { held: 0, sinceBoot: 0 };
    return boardConditions({ power, overheated: this.#overheated, cards: this.#board?.cards ?? [], readOnly, clockSynced });
  }

  async #read(): Promise<void> {
    const { roots, writable } = this.deps;
    if (this.#board === undefined) return;
    this.#vitals = await readVitals(roots, this.#board, writable);
    const { degrees } = this.#vitals;
    this.#overheated = isOverheated(degrees, this.#overheated);
    if (degrees === undefined) this.#toldDegrees = undefined;
    else if (this.#toldDegrees === undefined || Math.abs(degrees - this.#toldDegrees) >= stillDegrees)
      this.#toldDegrees = Math.round(degrees);
    await this.#power?.read((degrees ?? 0) >= warmDegrees);
  }

  async #listImages(log: Log): Promise<void> {
    try {
      this.#images = await this.deps.images();
    } catch (e) {
      log.debug({ error: describeError(e) }, 'the images of the node could not be listed');
    }
  }

  #facts(): Omit<NodeFacts, 'conditions'> {
    const { deps } = this;
    const board = this.#board;
    return {
      ...deps.node,
      bootId: deps.bootId,
      labels: deps.labels(),
      addresses: deps.addresses(),
      runtimeVersion: deps.runtimeVersion(),
      resources: { capacity: deps.capacity(), allocatable: deps.allocatable(), devices: deps.devices?.() ?? {} },
      ...(board && { osImage: board.osImage, systemUUID: board.systemUUID }),
      annotations: this.#annotations(board),
    };
  }

  #annotations(board: Board | undefined): Readonly<Record<string, string>> {
    const power = this.#power?.known === true ? this.#power.state() : undefined;
    return {
      ...(board?.model !== undefined && { model: board.model }),
      ...(board?.serial !== undefined && { serial: board.serial }),
      ...this.#temperature(0, this.#toldDegrees),
      ...(power && { power: powerText(power.held, power.sinceBoot) }),
      ...(board !== undefined && board.cards.length > 0 && { storage: board.cards.map(cardText).join('; ') }),
      ...(board !== undefined && board.resetReasons.length > 0 && { 'reset-reason': board.resetReasons.join(', ') }),
      ...this.deps.annotations?.(),
    };
  }

  #temperature(digits: number, degrees: number | undefined): Readonly<Record<string, string>> {
    return degrees === undefined ? {} : { 'cpu-temperature': degrees.toFixed(digits) };
  }

  /** Writes nothing where nothing changed. */
  #keep(): void {
    const { store, log, bootId } = this.deps;
    const value: Entry = { bootId, conditions: this.#conditions, power: this.#power?.state().sinceBoot ?? 0 };
    const text = JSON.stringify(value);
    if (text === this.#stored) return;
    this.#stored = text;
    store.put(key, value).catch((e) => log.warn({ error: describeError(e) }, 'the times of the conditions could not be stored'));
  }
}

function usageTexts({ uptimeSeconds, load, memory, swap, disk }: Usage): Readonly<Record<string, string>> {
  return {
    ...(uptimeSeconds !== undefined && { 'uptime-seconds': String(uptimeSeconds) }),
    ...(load !== undefined && { load }),
    ...(memory && { 'memory-available': bytesText(memory.availableBytes) }),
    ...(swap && { swap: `${bytesText(swap.usedBytes)} of ${bytesText(swap.totalBytes)} used${swap.zram ? ' (zram)' : ''}` }),
    ...(disk && { 'disk-available': bytesText(disk.availableBytes) }),
  };
}

const statuses: readonly unknown[] = ['True', 'False', 'Unknown'];

/** undefined: nothing of use. */
function entry(value: unknown): Entry | undefined {
  const v = value as Partial<Entry> | null | undefined;
  if (typeof v?.bootId !== 'string' || !Array.isArray(v.conditions)) return undefined;
  const conditions = v.conditions.filter(
    (c: Partial<TimedCondition> | null) =>
      c !== null &&
      typeof c === 'object' &&
      statuses.includes(c.status) &&
      [c.type, c.reason, c.message, c.lastTransitionTime].every((text) => typeof text === 'string'),
  );
  return { bootId: v.bootId, conditions, power: Number.isInteger(v.power) ? Number(v.power) : 0 };
}
