/**
 * Ending containers: each by its own grace, its preStop hook first, sidecars after what they serve, never with less than 2 s. Mirrors kubelet
 * v1.32 killContainer and killPodWithSyncResult (facts 7). Stopping what is gone is success; a stop that was interrupted is simply called
 * again.
 */
import { containerNamed } from '../api/containers.ts';
import type { DesiredPod } from '../api/desired.ts';
import { isSidecar } from '../api/resources.ts';
import type { Pod } from '../api/v1.ts';
import { isNotFound } from '../container/runtime.ts';
import type { SyncResult } from '../container/syncResult.ts';
import type { Container, RuntimePod, RuntimePodStatus } from '../container/words.ts';
import { describeError } from '../world/log.ts';
import type { KubeRuntimeDeps } from './deps.ts';
import type { Ending, Endings } from './endings.ts';
import { type PostStarts, runPreStop } from './hooks.ts';
import { graceOfAnnotations } from './marks.ts';
import type { PodRef } from './names.ts';
import type { KillReason } from './records.ts';

export interface KillDeps extends Pick<KubeRuntimeDeps, 'clock' | 'log' | 'runtime' | 'event' | 'acted' | 'settings'> {
  /** Who is being ended, over all syncs. */
  readonly endings: Endings;
  readonly postStarts: PostStarts;
}

export const minimumGraceSeconds = 2;

/** The grace a container is due, in seconds (facts 7.1). Without a pod, or when the pod has no such container, its annotations tell. */
export function graceSeconds(
  pod: Pod | undefined,
  record: Pick<Container, 'name' | 'annotations'>,
  reason: KillReason,
  override: number | undefined,
): number {
  if (override !== undefined) return override;
  if (pod === undefined) return graceOfAnnotations(record.annotations) ?? minimumGraceSeconds;
  if (pod.metadata.deletionGracePeriodSeconds !== undefined) return pod.metadata.deletionGracePeriodSeconds;
  const own = pod.spec.terminationGracePeriodSeconds;
  if (own === undefined) return minimumGraceSeconds;
  const spec = containerNamed(pod.spec, record.name);
  const probe = reason === 'LivenessProbe' ? spec?.livenessProbe : reason === 'StartupProbe' ? spec?.startupProbe : undefined;
  return probe?.terminationGracePeriodSeconds ?? own;
}

export interface Kill {
  readonly pod: Pod | undefined;
  readonly ref: PodRef;
  readonly record: Pick<Container, 'id' | 'name' | 'annotations' | 'sandboxId'>;
  readonly reason: KillReason;
  /** The text of the Killing event; undefined: "Stopping container NAME". */
  readonly message: string | undefined;
  readonly override: number | undefined;
  /** Resolves when those it waits for have ended. */
  readonly turn?: Promise<unknown>;
}

/**
 * Stops one container and waits until it is down: preStop, turn and stop share its grace. While hook or turn of an earlier call are under
 * way, this one joins it and can only shorten its grace. Never rejects: the result says what went wrong.
 */
export function killContainer(deps: KillDeps, kill: Kill): Promise<SyncResult> {
  deps.postStarts.cut(kill.record.id);
  const grace = graceSeconds(kill.pod, kill.record, kill.reason, kill.override);
  return deps.endings.run(kill.record.id, grace, (ending) => endContainer(deps, kill, ending));
}

async function endContainer(deps: KillDeps, kill: Kill, ending: Ending): Promise<SyncResult> {
  const { record, ref } = kill;
  deps.event(ref, record.name, 'Normal', 'Killing', kill.message ?? `Stopping container ${record.name}`);
  await runPreStop(deps, ref, record, ending);
  if (kill.turn !== undefined) await ending.inTime(kill.turn);
  ending.stopping = true;
  try {
    await deps.runtime.stopContainer(record.id, Math.max(minimumGraceSeconds, ending.leftSeconds));
    deps.acted(ref.uid, record.id);
  } catch (e) {
    if (!isNotFound(e)) {
      deps.log.warn({ pod: ref.name, container: record.name, error: describeError(e) }, 'a container could not be stopped');
      return { action: 'KillContainer', target: record.name, error: { reason: 'KillContainerError', message: describeError(e) } };
    }
  }
  return { action: 'KillContainer', target: record.name };
}

/** For each running container its turn: sidecar i ends after all app containers and after the next sidecar (facts 7.4). */
class TerminationOrder {
  #ended = new Map<string, { readonly done: Promise<void>; readonly resolve: () => void }>();

  constructor(
    private readonly pod: Pod | undefined,
    running: readonly string[],
  ) {
    for (const name of running) {
      let resolve = (): void => {};
      const done = new Promise<void>((r) => {
        resolve = r;
      });
      this.#ended.set(name, { done, resolve });
    }
  }

  /** undefined: it waits for nobody. What did not run at the start has ended. */
  turnOf(name: string): Promise<unknown> | undefined {
    if (this.pod === undefined) return undefined;
    const sidecars = (this.pod.spec.initContainers ?? []).filter(isSidecar).map((c) => c.name);
    const i = sidecars.indexOf(name);
    if (i < 0) return undefined;
    const next = sidecars.slice(i + 1).find((s) => this.#ended.has(s));
    const before = [...this.pod.spec.containers.map((c) => c.name), ...(next === undefined ? [] : [next])];
    const waits = before.flatMap((n) => this.#ended.get(n)?.done ?? []);
    return waits.length === 0 ? undefined : Promise.all(waits);
  }

  ended(name: string): void {
    this.#ended.get(name)?.resolve();
  }
}

/** Ends these containers of one pod together, sidecars after what they serve. Never rejects. */
export function killTogether(deps: KillDeps, kills: readonly Omit<Kill, 'turn'>[]): Promise<SyncResult[]> {
  const order = new TerminationOrder(
    kills[0]?.pod,
    kills.map((k) => k.record.name),
  );
  return Promise.all(
    kills.map(async (kill) => {
      const turn = order.turnOf(kill.record.name);
      const result = await killContainer(deps, { ...kill, ...(turn !== undefined && { turn }) });
      order.ended(kill.record.name);
      return result;
    }),
  );
}

/**
 * Ends a pod: its running containers in parallel, then every sandbox in any state, whatever became of the containers.
 * `desired` undefined: an orphan, ended by what its annotations say. Never rejects.
 */
export async function killPod(
  deps: KillDeps,
  desired: DesiredPod | undefined,
  status: RuntimePodStatus | RuntimePod,
  override: number | undefined,
  message: string | undefined,
): Promise<SyncResult[]> {
  const ref: PodRef = desired ?? status;
  const pod = desired?.pod;
  const containers: readonly Container[] = status.containers;
  const running = containers.filter((c) => c.state === 'running');
  const results = await killTogether(
    deps,
    running.map((record) => ({ pod, ref, record, reason: '' as const, message, override })),
  );
  for (const sandbox of status.sandboxes) {
    try {
      await deps.runtime.stopSandbox(sandbox.id);
      if (sandbox.state === 'ready') deps.acted(ref.uid, sandbox.id);
      results.push({ action: 'KillPodSandbox', target: ref.name });
    } catch (e) {
      if (isNotFound(e)) continue;
      const error = { reason: 'KillPodSandboxError', message: describeError(e) };
      results.push({ action: 'KillPodSandbox', target: ref.name, error });
    }
  }
  return results;
}
