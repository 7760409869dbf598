// pure
/** What evictions say, in the kubelet's words (v1.32 eviction/helpers.go and eviction_manager.go; facts 14.5, 14.6), the space at the end included. */
const suffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'] as const;

/** An amount with the largest binary suffix that keeps it whole: `104857600` → `100Mi`. */
export function binaryText(amount: number): string {
  let value = Math.round(amount);
  let i = 0;
  while (value !== 0 && value % 1024 === 0 && i < suffixes.length - 1) {
    value /= 1024;
    i++;
  }
  return `${value}${suffixes[i]}`;
}

export interface Offender {
  readonly container: string;
  /** As texts. */
  readonly usage: string;
  readonly request: string;
}

export interface LowResource {
  /** `memory`, `ephemeral-storage`, `inodes`, `pids`. */
  readonly resource: string;
  readonly threshold: string;
  readonly available: string;
  /** Why it could not wait; a sentence. */
  readonly urgent?: string;
  /** Containers that use more than they asked for. */
  readonly offenders: readonly Offender[];
}

/** The status message and the text of the event `Evicted`. */
export function lowResourceMessage({ resource, threshold, available, urgent = '', offenders }: LowResource): string {
  const uses = offenders.map(
    ({ container, usage, request }) =>
      `Container ${container} was using ${usage}, request is ${request}, has larger consumption of ${resource}. `,
  );
  return `The node was low on resource: ${resource}. Threshold quantity: ${threshold}, available: ${available}. ${urgent}${uses.join('')}`;
}

/** The event about the node. */
export const reclaimMessage = (resource: string): string => `Attempting to reclaim ${resource}`;

/** Of pods that broke a limit of their own on local storage; `limit` as a text. */
export const volumeLimitMessage = (volume: string, limit: string): string =>
  `Usage of EmptyDir volume "${volume}" exceeds the limit "${limit}". `;
export const podLimitMessage = (limit: string): string =>
  `Pod ephemeral local storage usage exceeds the total limit of containers ${limit}. `;
export const containerLimitMessage = (container: string, limit: string): string =>
  `Container ${container} exceeded its local ephemeral storage limit "${limit}". `;
