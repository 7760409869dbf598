// pure
/** The words of eviction: what was read of the node, what pods use, which pressures there are. */
import type { EvictionSignal } from '../api/evictionThresholds.ts';
import type { PressureType } from '../api/pressures.ts';

/** As under the node's conditions, which always lists the three. */
export interface PressureCondition {
  readonly type: PressureType;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** Of the whole machine, in bytes, at one moment. */
export interface MemoryReading {
  readonly totalBytes: number;
  /** The kernel's own estimate of what can be had without swapping. */
  readonly availableBytes: number;
  readonly swapFreeBytes: number;
  /** Memory of no file: what can go nowhere but to swap. */
  readonly anonBytes: number;
  /** Swap lies compressed in memory itself. */
  readonly zram: boolean;
  /** Share of the last 10 s, in percent, in which some, or all, tasks waited for memory. Absent: the kernel does not tell (no PSI). */
  readonly stall?: { readonly some10: number; readonly full10: number };
}

export interface ProcessReading {
  /** The smaller of the kernel's two limits. */
  readonly most: number;
  readonly running: number;
}

export interface FilesystemReading {
  /** The same for two paths of one file system. */
  readonly device: number;
  readonly capacityBytes: number;
  /** For others than root. */
  readonly availableBytes: number;
  /** 0: it counts none. */
  readonly inodes: number;
  readonly inodesFree: number;
}

/** Of one signal. */
export interface Observation {
  readonly capacity: number;
  readonly available: number;
  /** It cannot wait until less than the threshold is left: tasks stall, or it is about to be gone. Said to people as it stands. */
  readonly urgent?: string;
}

export type Observations = ReadonlyMap<EvictionSignal, Observation>;

/** What a pod uses now; absent parts are not known. */
export interface PodUsage {
  readonly memoryBytes?: number;
  readonly processes?: number;
  /** Of its containers that run, by name. */
  readonly containerMemoryBytes?: ReadonlyMap<string, number>;
}

export interface DiskAmount {
  readonly bytes: number;
  readonly inodes: number;
}

/** What a pod has written, by where it lies. */
export interface PodDiskUsage {
  /** emptyDirs on disk, by volume name. */
  readonly volumes: ReadonlyMap<string, DiskAmount>;
  /** By container name. */
  readonly logs: ReadonlyMap<string, DiskAmount>;
  /** Writable layers, by container name; not known while the runtime does not answer. */
  readonly layers: ReadonlyMap<string, DiskAmount>;
}

/** The pressure that a signal is a part of. */
export const pressureOf = (signal: EvictionSignal): PressureType => {
  switch (signal) {
    case 'memory.available':
    case 'allocatableMemory.available':
      return 'MemoryPressure';
    case 'nodefs.available':
    case 'nodefs.inodesFree':
    case 'imagefs.available':
    case 'imagefs.inodesFree':
      return 'DiskPressure';
    case 'pid.available':
      return 'PIDPressure';
  }
};

/** As messages name what is short (facts 14.1). */
export const resourceOf = (signal: EvictionSignal): 'memory' | 'ephemeral-storage' | 'inodes' | 'pids' => {
  switch (signal) {
    case 'memory.available':
    case 'allocatableMemory.available':
      return 'memory';
    case 'nodefs.available':
    case 'imagefs.available':
      return 'ephemeral-storage';
    case 'nodefs.inodesFree':
    case 'imagefs.inodesFree':
      return 'inodes';
    case 'pid.available':
      return 'pids';
  }
};

export const isDiskSignal = (signal: EvictionSignal): boolean => pressureOf(signal) === 'DiskPressure';
