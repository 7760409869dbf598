// pure
/**
 * What containers use, as the runtime reads it from their cgroups and snapshots when it is asked. Written by cri/ at the sill. Each part has
 * the time of its own reading, in milliseconds since 1970 with a fraction: two readings are told apart by it, and rates are made of it.
 * A part is absent where the runtime has none: of a container that does not run there is no processor time and no memory.
 */
import type { ContainerId } from './words.ts';

export interface CpuReading {
  readonly atMs: number;
  /** Processor time since the container's start, in nanoseconds. */
  readonly usageNs: number;
}

export interface MemoryReading {
  readonly atMs: number;
  /** Without the file cache that the kernel may take back at once. */
  readonly workingSetBytes: number;
  readonly usageBytes?: number;
  readonly rssBytes?: number;
  /** What is left below the limit; absent without one. */
  readonly availableBytes?: number;
  readonly pageFaults?: number;
  readonly majorPageFaults?: number;
}

export interface SwapReading {
  readonly atMs: number;
  readonly usageBytes: number;
  readonly availableBytes?: number;
}

/** Files: what a container has written over its image. */
export interface LayerReading {
  readonly atMs: number;
  /** A folder on the file system in which they lie. */
  readonly mountpoint: string;
  readonly usedBytes: number;
  readonly inodesUsed?: number;
}

export interface ContainerStats {
  readonly id: ContainerId;
  readonly name: string;
  readonly attempt: number;
  /** The container's, with the pod it belongs to. */
  readonly labels: Readonly<Record<string, string>>;
  readonly cpu?: CpuReading;
  readonly memory?: MemoryReading;
  readonly swap?: SwapReading;
  readonly writableLayer?: LayerReading;
}
