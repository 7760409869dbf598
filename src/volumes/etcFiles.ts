/**
 * The /etc/hosts and /etc/resolv.conf of pods (behaviour 27): files of the agent's own, bind-mounted into every container of a pod, written
 * in place and only when their text changes. Owns what it last wrote and the node's pods by name. Never makes a file for a pod that has no
 * container yet.
 */
import { readFile } from 'node:fs/promises';
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import { isMissing } from '../world/errno.ts';
import { hostsText, type Neighbour } from './hosts.ts';
import { rewrite, writeInPlace } from './inPlace.ts';
import { hostsName, podFolder, resolvName } from './layout.ts';
import { type ResolvWords, resolvText } from './resolv.ts';

/** A pod of this node with its addresses; on the host's network those of the node. */
export interface NodePod {
  readonly desired: DesiredPod;
  readonly ips: readonly string[];
}

export interface EtcFilesDeps {
  readonly dnsOf: (desired: DesiredPod) => ResolvWords;
  readonly hostsFile: string;
  readonly clusterDomain: string;
  readonly root: () => string;
}

const mode = 0o644;

export class EtcFiles {
  #neighbours: readonly Neighbour[] = [];
  /** By path: the text that is known to be there. A container may write to its own; then the next start sets it right. */
  #written = new Map<string, string>();
  /** By path: the end of its line of writes. A start and news of neighbours come at once, and two writers would mix their texts. */
  #lines = new Map<string, Promise<unknown>>();

  constructor(private readonly deps: EtcFilesDeps) {}

  setNeighbours(pods: readonly NodePod[]): void {
    this.#neighbours = pods.map(({ desired: { uid, name, namespace }, ips }) => ({ uid, name, namespace, ips }));
  }

  /** Makes or corrects the file before a container starts. Its path. */
  async hosts(desired: DesiredPod, ips: readonly string[]): Promise<string> {
    return this.#ensure(this.#path(desired.uid, hostsName), await this.#hostsText(desired, ips));
  }

  /** As hosts. */
  async resolv(desired: DesiredPod): Promise<string> {
    return this.#ensure(this.#path(desired.uid, resolvName), resolvText(this.deps.dnsOf(desired)));
  }

  /** Only where the file is there and differs. */
  async correctHosts({ desired, ips }: NodePod): Promise<void> {
    await this.#correct(this.#path(desired.uid, hostsName), await this.#hostsText(desired, ips));
  }

  async correctResolv(desired: DesiredPod): Promise<void> {
    await this.#correct(this.#path(desired.uid, resolvName), resolvText(this.deps.dnsOf(desired)));
  }

  forget(uid: PodUid): void {
    for (const name of [hostsName, resolvName]) this.#written.delete(this.#path(uid, name));
  }

  #path(uid: PodUid, name: string): string {
    return `${podFolder(this.deps.root(), uid)}/${name}`;
  }

  async #hostsText(desired: DesiredPod, ips: readonly string[]): Promise<string> {
    const { pod } = desired;
    const { clusterDomain, hostsFile } = this.deps;
    const nodeHosts = pod.spec.hostNetwork ? await nodeHostsText(hostsFile) : '';
    const own = pod.spec.hostNetwork ? [] : ips;
    return hostsText({ pod, uid: desired.uid, ips: own, nodeHosts, clusterDomain, neighbours: this.#neighbours });
  }

  #ensure(path: string, text: string): Promise<string> {
    return this.#inLine(path, async () => {
      this.#written.delete(path); // what a failed write leaves is nothing known
      await writeInPlace(path, text, mode);
      this.#written.set(path, text);
      return path;
    });
  }

  #correct(path: string, text: string): Promise<void> {
    return this.#inLine(path, async () => {
      if (this.#written.get(path) === text) return;
      this.#written.delete(path);
      if ((await rewrite(path, text)) !== undefined) this.#written.set(path, text);
    });
  }

  #inLine<T>(path: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#lines.get(path) ?? Promise.resolve()).then(work, work);
    this.#lines.set(path, mine);
    const end = (): void => {
      if (this.#lines.get(path) === mine) this.#lines.delete(path);
    };
    mine.then(end, end);
    return mine;
  }
}

/** A node without the file has no names to hand on. */
async function nodeHostsText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (e) {
    if (isMissing(e)) return '';
    throw e;
  }
}
