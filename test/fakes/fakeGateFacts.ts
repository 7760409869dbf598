/** A machine as its gates see it: nothing is mounted, the clock is not set and there is no network until a test says so. */
import type { GateFacts } from '../../src/gates/facts.ts';

export class FakeGateFacts implements GateFacts {
  readonly mounted = new Set<string>();
  /** Where a path of the node leads to, when it is a link. */
  readonly links = new Map<string, string>();
  synced = false;
  network = false;

  readonly mounts: GateFacts['mounts'] = {
    has: async (path) => this.mounted.has(path),
    realPath: async (path) => this.links.get(path) ?? path,
  };
  readonly timeSynced = (): boolean => this.synced;
  readonly networkUp = async (): Promise<boolean> => this.network;
}
