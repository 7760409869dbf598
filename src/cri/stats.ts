/** Readings of containers, from messages to words. A message without the value it is about is no reading. */
import type { ContainerStats } from '../container/stats.ts';
import type { ContainerId } from '../container/words.ts';
import type * as pb from './gen/cri_pb.ts';

/** Milliseconds with a fraction of three digits: a float has no more since 1970, and rates need no more. */
const milliseconds = (ns: bigint): number => Number(ns / 1000n) / 1000;

const value = (v: pb.UInt64Value | undefined): number | undefined => (v === undefined ? undefined : Number(v.value));

/** Only what is there, under its name. */
function known<K extends string>(values: Readonly<Record<K, number | undefined>>): { readonly [P in K]?: number } {
  return Object.fromEntries(Object.entries(values).filter(([, v]) => v !== undefined)) as { readonly [P in K]?: number };
}

export function containerStatsWord({ attributes, cpu, memory, swap, writableLayer }: pb.ContainerStats): ContainerStats {
  const usageNs = value(cpu?.usageCoreNanoSeconds);
  const workingSetBytes = value(memory?.workingSetBytes);
  const swapBytes = value(swap?.swapUsageBytes);
  const usedBytes = value(writableLayer?.usedBytes);
  return {
    id: (attributes?.id ?? '') as ContainerId,
    name: attributes?.metadata?.name ?? '',
    attempt: attributes?.metadata?.attempt ?? 0,
    labels: attributes?.labels ?? {},
    ...(cpu && usageNs !== undefined && { cpu: { atMs: milliseconds(cpu.timestamp), usageNs } }),
    ...(memory &&
      workingSetBytes !== undefined && {
        memory: {
          atMs: milliseconds(memory.timestamp),
          workingSetBytes,
          ...known({
            usageBytes: value(memory.usageBytes),
            rssBytes: value(memory.rssBytes),
            // containerd says 0 where there is no limit
            availableBytes: value(memory.availableBytes) || undefined,
            pageFaults: value(memory.pageFaults),
            majorPageFaults: value(memory.majorPageFaults),
          }),
        },
      }),
    ...(swap &&
      swapBytes !== undefined && {
        swap: {
          atMs: milliseconds(swap.timestamp),
          usageBytes: swapBytes,
          ...known({ availableBytes: value(swap.swapAvailableBytes) }),
        },
      }),
    ...(writableLayer &&
      usedBytes !== undefined && {
        writableLayer: {
          atMs: milliseconds(writableLayer.timestamp),
          mountpoint: writableLayer.fsId?.mountpoint ?? '',
          usedBytes,
          ...known({ inodesUsed: value(writableLayer.inodesUsed) }),
        },
      }),
  };
}
