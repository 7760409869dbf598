/**
 * The looks at the node. Owns the last readings, and how soon the next look is worth it: how much is left and how fast it goes decide, since an
 * idle node must not pay for watching. Two looks that do not wait for each other: memory and processes are read in microseconds, a disk may hang.
 */
import { amountOf, type EvictionSignal, type EvictionThreshold } from '../api/evictionThresholds.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import type { NodeReadings } from './deps.ts';
import { longestLookMs, type MemoryTrack, nextMemoryLookMs, observeMemory, shortestLookMs, trackMemory } from './memory.ts';
import type { FilesystemReading, Observation, Observations } from './words.ts';

/** A disk is filled slower than memory, and asking it costs more. */
const nearDiskMs = 5_000;
const metDiskMs = 3_000;
/** A timer that comes a moment early has come. */
const slackMs = 50;

export interface Look {
  readonly observations: Observations;
  /** When to look again. */
  readonly nextMs: number;
}

export interface ObserverDeps {
  readonly clock: Clock;
  readonly node: NodeReadings;
  readonly thresholds: readonly EvictionThreshold[];
}

export class Observer {
  #before: MemoryTrack | undefined;
  #track: MemoryTrack | undefined;
  #processesDue = 0 as Monotonic;
  #nodefs: FilesystemReading | undefined;
  #imagefs: FilesystemReading | undefined;

  constructor(private readonly deps: ObserverDeps) {}

  /** Memory each time; processes every 10 s, every second while they are short. */
  lookAtMemory(): Look {
    const now = this.deps.clock.monotonic();
    const found = new Map<EvictionSignal, Observation>();
    const memoryMs = this.#readMemory(found, now);
    const near = now >= this.#processesDue - slackMs && this.#readProcesses(found, now);
    return { observations: found, nextMs: near ? shortestLookMs : memoryMs };
  }

  /** Both disks, which may be one. Never rejects. */
  async lookAtDisk(): Promise<Look> {
    const { node } = this.deps;
    [this.#nodefs, this.#imagefs] = await Promise.all([node.nodefs(), node.imagefs()]);
    const found = new Map<EvictionSignal, Observation>();
    const add = (name: 'nodefs' | 'imagefs', reading: FilesystemReading | undefined): void => {
      if (reading === undefined) return;
      found.set(`${name}.available`, { capacity: reading.capacityBytes, available: reading.availableBytes });
      if (reading.inodes > 0) found.set(`${name}.inodesFree`, { capacity: reading.inodes, available: reading.inodesFree });
    };
    add('nodefs', this.#nodefs);
    add('imagefs', this.#imagefs);
    return { observations: found, nextMs: this.#isBelow(found, 1) ? metDiskMs : this.#isBelow(found, 2) ? nearDiskMs : longestLookMs };
  }

  /** Images lie elsewhere than pods' folders; false as long as one of them is not known. */
  hasSeparateImageDisk(): boolean {
    return this.#nodefs !== undefined && this.#imagefs !== undefined && this.#nodefs.device !== this.#imagefs.device;
  }

  /** Some disk threshold is met, or would be at twice its amount: what pods write is worth measuring. */
  isDiskNear({ observations }: Look): boolean {
    return this.#isBelow(observations, 2);
  }

  /** Milliseconds until the next look. */
  #readMemory(found: Map<EvictionSignal, Observation>, now: Monotonic): number {
    const { node, thresholds } = this.deps;
    const reading = node.memory();
    if (reading === undefined) return longestLookMs;
    const hard = thresholds.find((t) => t.kind === 'hard' && t.signal === 'memory.available');
    const threshold = hard === undefined ? 0 : amountOf(hard.amount, reading.totalBytes);
    this.#before = this.#track;
    this.#track = trackMemory(this.#before, reading, now);
    found.set('memory.available', observeMemory(reading, this.#before, this.#track, threshold));
    const pods = node.podsMemory?.();
    if (pods !== undefined) {
      const available = Math.max(0, pods.limitBytes - pods.workingSetBytes);
      found.set('allocatableMemory.available', { capacity: pods.limitBytes, available });
    }
    return nextMemoryLookMs(reading, this.#track, threshold);
  }

  /** True: they are short, or nearly. */
  #readProcesses(found: Map<EvictionSignal, Observation>, now: Monotonic): boolean {
    const reading = this.deps.node.processes();
    if (reading === undefined) return false;
    const seen = { capacity: reading.most, available: reading.most - reading.running };
    found.set('pid.available', seen);
    const near = this.#isBelow(new Map([['pid.available' as const, seen]]), 2);
    this.#processesDue = after(now, near ? shortestLookMs : longestLookMs);
    return near;
  }

  /** Some threshold of what was observed is met, or would be at `times` its amount. */
  #isBelow(found: Observations, times: number): boolean {
    return this.deps.thresholds.some((t) => {
      const seen = found.get(t.signal);
      return seen !== undefined && seen.available < times * amountOf(t.amount, seen.capacity);
    });
  }
}
