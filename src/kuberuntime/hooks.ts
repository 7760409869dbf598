/**
 * When the hooks of containers run (facts 7.2, 7.3, 4.3): postStart after the start, preStop within the grace of an end. Owns the postStart
 * hooks under way, which may outlive the sync that began them: a pod that was edited meanwhile goes on, and only the end of its own
 * container cuts a hook. What a hook does is handlers/hook.ts. Mirrors kubelet v1.32 startContainer and executePreStopHook.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { Container, EphemeralContainer, LifecycleHandler } from '../api/v1.ts';
import { orAbort } from '../async/abort.ts';
import type { SyncResult } from '../container/syncResult.ts';
import type { ContainerId, Container as ContainerRecord, SandboxId } from '../container/words.ts';
import { runHook } from '../handlers/hook.ts';
import { describeError } from '../world/log.ts';
import type { KubeRuntimeDeps } from './deps.ts';
import type { Ending } from './endings.ts';
import { portsOfAnnotations, preStopOfAnnotations } from './marks.ts';
import type { PodRef } from './names.ts';
import { sandboxIps } from './sandbox.ts';

export type HookDeps = Pick<KubeRuntimeDeps, 'clock' | 'log' | 'runtime' | 'event' | 'settings'>;

interface Hooked {
  readonly ref: PodRef;
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly signal: AbortSignal;
}

function run(deps: HookDeps, handler: LifecycleHandler, o: Hooked): Promise<void> {
  return runHook(handler, {
    container: o.container,
    podIps: () => sandboxIps(deps, o.sandboxId),
    exec: async (command, signal) => (await deps.runtime.execSync(o.id, command, 0, signal)).exitCode,
    clock: deps.clock,
    warn: (reason, message) => deps.event(o.ref, o.container.name, 'Warning', reason, message),
    signal: o.signal,
  });
}

/** A container that was started a moment ago. */
export interface Started {
  readonly desired: DesiredPod;
  readonly container: Container | EphemeralContainer;
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
}

export class PostStarts {
  #running = new Map<ContainerId, { readonly uid: PodUid; readonly over: AbortController; readonly done: Promise<SyncResult> }>();
  /** Containers whose hook is not over: also those that are being started. */
  #pending = new Set<ContainerId>();

  /** `ended`: a hook of this pod is over. */
  constructor(private readonly ended: (uid: PodUid) => void) {}

  /** It is about to be started: it counts as starting until its hook is over. */
  expect(id: ContainerId, container: Container | EphemeralContainer): void {
    if (container.lifecycle?.postStart !== undefined) this.#pending.add(id);
  }

  /** It did not start. */
  forget(id: ContainerId): void {
    this.#pending.delete(id);
  }

  isPending(id: ContainerId): boolean {
    return this.#pending.has(id);
  }

  /**
   * Runs the hook of a started container to its end and yields what the start came to; `kill` ends a container whose hook failed. An abort
   * of `signal` ends the waiting only. Rejects with nothing else.
   */
  run(deps: HookDeps, started: Started, kill: () => Promise<unknown>, signal: AbortSignal): Promise<SyncResult> {
    const { desired, container, id } = started;
    const handler = container.lifecycle?.postStart;
    if (handler === undefined) return Promise.resolve({ action: 'StartContainer', target: container.name });
    const over = new AbortController();
    const done = this.#carryOut(deps, started, handler, kill, over.signal).finally(() => {
      this.#running.delete(id);
      this.#pending.delete(id);
      this.ended(desired.uid);
    });
    this.#running.set(id, { uid: desired.uid, over, done });
    return orAbort(done, signal);
  }

  isUnderWay(id: ContainerId): boolean {
    return this.#running.has(id);
  }

  /** The container is being ended: its hook has no purpose any more. */
  cut(id: ContainerId): void {
    this.#running.get(id)?.over.abort();
  }

  /** Waits for the hooks of a pod that an earlier sync began; yields what failed. Rejects when `signal` fires. */
  async settled(uid: PodUid, signal: AbortSignal): Promise<SyncResult[]> {
    const ofPod = [...this.#running.values()].filter((r) => r.uid === uid).map((r) => r.done);
    const results = ofPod.length === 0 ? [] : await orAbort(Promise.all(ofPod), signal);
    return results.filter((r) => r.error !== undefined);
  }

  async #carryOut(
    deps: HookDeps,
    { desired, container, id, sandboxId }: Started,
    handler: LifecycleHandler,
    kill: () => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<SyncResult> {
    const target = container.name;
    try {
      await run(deps, handler, { ref: desired, container, id, sandboxId, signal });
      return { action: 'StartContainer', target };
    } catch (e) {
      const error = { reason: 'PostStartHookError', message: describeError(e) };
      // cut short by the end of its container, which says for itself why
      if (signal.aborted) return { action: 'StartContainer', target };
      deps.event(desired, target, 'Warning', 'FailedPostStartHook', 'PostStartHook failed');
      deps.log.info({ pod: desired.name, container: target, message: error.message }, 'a postStart hook failed');
      // what ended meanwhile needs no end
      const now = await deps.runtime.containerStatus(id).catch(() => undefined);
      if (now?.state !== 'exited') await kill();
      return { action: 'StartContainer', target, error };
    }
  }
}

/**
 * Runs what the container's annotations name as preStop, at most to the end of the grace; then the call is cut. They say what the container
 * was made with, also of an orphan and of a container whose manifest was edited. Never rejects: a failed hook keeps nothing from ending.
 */
export async function runPreStop(
  deps: HookDeps,
  ref: PodRef,
  record: Pick<ContainerRecord, 'id' | 'name' | 'annotations' | 'sandboxId'>,
  ending: Ending,
): Promise<void> {
  const handler = preStopOfAnnotations(record.annotations);
  if (handler === undefined || ending.hookRan || ending.leftSeconds <= 0) return;
  ending.hookRan = true;
  const container = { name: record.name, ports: portsOfAnnotations(record.annotations) };
  const over = new AbortController();
  const { id, sandboxId } = record;
  const hook = run(deps, handler, { ref, container, id, sandboxId, signal: over.signal }).catch((e) => {
    if (over.signal.aborted) return;
    // an event is read by many: why is for the log
    deps.event(ref, record.name, 'Warning', 'FailedPreStopHook', 'PreStopHook failed');
    deps.log.info({ pod: ref.name, container: record.name, error: describeError(e) }, 'a preStop hook failed');
  });
  if (await ending.inTime(hook)) return;
  over.abort();
  const text = `the preStop hook had not ended when the grace of ${ending.grace} s was over, and was cut off`;
  deps.event(ref, record.name, 'Warning', 'PreStopHookOverran', text);
}
