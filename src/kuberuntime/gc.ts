/**
 * Takes away what is over: ended containers beyond the newest of a name, dead sandboxes, logs; everything of a pod that is gone and ended.
 * Owns nothing. It never touches what runs, nor what is not ours; the caller asks it only when all sources are ready, since before that
 * nobody knows who is gone. One thing that cannot be removed does not keep the rest, and whoever asked hears that something is left.
 * Mirrors kubelet v1.32 kuberuntime_gc.go (facts 13.1–13.3), with the wall clock left out: age is the attempt.
 */
import type { PodUid } from '../api/objects.ts';
import { isNotFound, type Runtime } from '../container/runtime.ts';
import { type Container, labels, newestFirst, type RuntimePod, type Sandbox } from '../container/words.ts';
import { describeError, type Log } from '../world/log.ts';
import { minimumGraceSeconds } from './kill.ts';
import type { LogFolders } from './logs.ts';
import { graceOfAnnotations } from './marks.ts';
import type { PodRef } from './names.ts';
import { removeRecord } from './remove.ts';

export interface ContainerGcDeps {
  readonly log: Log;
  readonly runtime: Pick<
    Runtime,
    'listSandboxes' | 'listContainers' | 'stopContainer' | 'removeContainer' | 'stopSandbox' | 'removeSandbox'
  >;
  readonly logs: LogFolders;
  /** By a sandbox's or container's labels: made by this node. */
  readonly mine: (labels: Readonly<Record<string, string>>) => boolean;
}

export interface CollectOptions {
  /** Ended containers kept of each name of a living pod. */
  readonly keepPerName: number;
  /** The pod is gone and has ended: nothing of it is kept. Asked only of pods that are ours. */
  readonly mayRemoveContent: (uid: PodUid) => boolean;
}

export class ContainerGc {
  constructor(private readonly deps: ContainerGcDeps) {}

  /** One pod, as the runtime lists it now. False: something could not be removed. Rejects only when it cannot be listed. */
  async collectPod(uid: PodUid, keepPerName: number, removeAll: boolean): Promise<boolean> {
    const sandboxes = (await this.deps.runtime.listSandboxes(uid)).filter((s) => this.deps.mine(s.labels));
    const containers = (await this.deps.runtime.listContainers(uid)).filter((c) => this.deps.mine(c.labels));
    // a container may be without its sandbox: one that was being made for an agent that died, while the next one took the sandbox away
    const words = sandboxes[0]?.labels ?? containers[0]?.labels;
    const [name, namespace] = [words?.[labels.podName], words?.[labels.podNamespace]];
    if (name === undefined || namespace === undefined) return true;
    return this.#collect({ uid, name, namespace, sandboxes, containers }, keepPerName, removeAll);
  }

  /** All pods (as PLEG last recorded them), and the log folders of pods that the runtime no longer knows. False: something is left. */
  async collect(pods: readonly RuntimePod[], o: CollectOptions): Promise<boolean> {
    let clean = true;
    const ours = pods.filter((p) => [...p.sandboxes, ...p.containers].every((r) => this.deps.mine(r.labels)));
    for (const pod of ours) {
      const removeAll = o.mayRemoveContent(pod.uid);
      // Listing again costs a call, so only where there is something to take away.
      if (removeAll || hasGarbage(pod, o.keepPerName)) {
        const done = await this.collectPod(pod.uid, o.keepPerName, removeAll).catch((e) => this.#report(pod, e));
        clean = done && clean;
      }
    }
    const known = new Set(pods.map((p) => p.uid));
    for (const pod of await this.deps.logs.list()) {
      if (!known.has(pod.uid) && o.mayRemoveContent(pod.uid)) clean = (await this.#removeLogs(pod)) && clean;
    }
    return clean;
  }

  async #collect(pod: RuntimePod, keepPerName: number, removeAll: boolean): Promise<boolean> {
    let clean = true;
    const removed = new Set<string>();
    for (const record of surplus(pod.containers, removeAll ? 0 : keepPerName, removeAll)) {
      try {
        if (record.state === 'unknown') await this.#end(record);
        await removeRecord(this.deps, pod, record);
        removed.add(record.id);
      } catch (e) {
        clean = this.#report(pod, e);
      }
    }
    const left = pod.containers.filter((c) => !removed.has(c.id));
    let leftSandboxes = pod.sandboxes.length;
    for (const sandbox of surplusSandboxes(pod.sandboxes, left, removeAll)) {
      try {
        await this.deps.runtime.stopSandbox(sandbox.id).catch(ignoreNotFound);
        await this.deps.runtime.removeSandbox(sandbox.id).catch(ignoreNotFound);
        leftSandboxes--;
      } catch (e) {
        clean = this.#report(pod, e);
      }
    }
    if (removeAll && left.length === 0 && leftSandboxes === 0) clean = (await this.#removeLogs(pod)) && clean;
    return clean;
  }

  #removeLogs(pod: PodRef): Promise<boolean> {
    return this.deps.logs.removePod(pod).then(
      () => true,
      (e) => this.#report(pod, e),
    );
  }

  /** Nobody knows whether it runs: it is ended before it is removed. */
  async #end(record: Container): Promise<void> {
    const grace = Math.max(minimumGraceSeconds, graceOfAnnotations(record.annotations) ?? minimumGraceSeconds);
    await this.deps.runtime.stopContainer(record.id, grace).catch(ignoreNotFound);
  }

  #report(pod: PodRef, e: unknown): false {
    this.deps.log.warn({ pod: pod.name, uid: pod.uid, error: describeError(e) }, 'something of a pod could not be removed');
    return false;
  }
}

const ignoreNotFound = (e: unknown): void => {
  if (!isNotFound(e)) throw e;
};

/** Ended containers beyond the `keep` newest of each name, oldest first. A newest one just created may be about to start: it stays unless all go. */
function surplus(containers: readonly Container[], keep: number, all: boolean): Container[] {
  const names = new Set(containers.map((c) => c.name));
  return [...names].flatMap((name) => {
    const records = containers.filter((c) => c.name === name).sort(newestFirst);
    const dead = records.filter((c, i) => c.state !== 'running' && (all || i > 0 || c.state !== 'created'));
    return keep < 0 && !all ? [] : dead.slice(Math.max(0, keep)).reverse();
  });
}

/** Dead sandboxes without any container; of a living pod the newest stays. */
function surplusSandboxes(sandboxes: readonly Sandbox[], containers: readonly Container[], all: boolean): Sandbox[] {
  const sorted = [...sandboxes].sort(newestFirst);
  return sorted.filter((s, i) => (all || i > 0) && s.state === 'notready' && !containers.some((c) => c.sandboxId === s.id)).reverse();
}

const hasGarbage = (pod: RuntimePod, keepPerName: number): boolean => {
  const gone = surplus(pod.containers, keepPerName, false);
  return gone.length > 0 || surplusSandboxes(pod.sandboxes, pod.containers, false).length > 0;
};
