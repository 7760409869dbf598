/**
 * The ordered steps of one pod: SyncPod, SyncTerminatingPod, SyncTerminatedPod. Owns nothing; asks the managers in the order that carries
 * the correctness: status told, then the deed; a completion is on the card before its containers may go.
 * Mirrors kubelet v1.32 kubelet.go SyncPod and its sisters (facts 4.1, 4.4–4.6).
 */
import type { DesiredPod } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import type { PodPhase, PodStatus } from './api/status.ts';
import { orAbort } from './async/abort.ts';
import { Deadlines } from './async/deadlines.ts';
import { startedAt } from './container/started.ts';
import type { SyncResult } from './container/syncResult.ts';
import type { RuntimePod, RuntimePodStatus } from './container/words.ts';
import type { Held } from './gates/manager.ts';
import { cutOff } from './pod/cutOff.ts';
import { podDeadline } from './pod/deadline.ts';
import type { SyncOutcome } from './pod/workers.ts';
import { failedMountText, VolumeError } from './volumes/volumeError.ts';
import { after, type Clock } from './world/clock.ts';
import { describeError, type Log } from './world/log.ts';

export interface StatusInputs {
  readonly terminal: boolean;
  /** It is being ended: nothing starts again. */
  readonly ending?: boolean;
  /** The pod's own end: the phase is Failed with this reason. */
  readonly failed?: { readonly reason: string; readonly message: string };
}

export interface PodSyncDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: string;
  readonly status: {
    /** Computes the status from manifest and runtime and the last one told. */
    generate(desired: DesiredPod, runtime: RuntimePodStatus, inputs: StatusInputs): PodStatus;
    /** The last one of this instance, of an earlier agent of this boot too. */
    get(uid: PodUid): PodStatus | undefined;
    set(desired: DesiredPod, status: PodStatus, ending?: { readonly graceSeconds: number }): void;
    setReasons(uid: PodUid, results: readonly SyncResult[]): void;
    /** The last words on an instance that has ended for good. */
    terminate(uid: PodUid): void;
  };
  readonly completions: {
    find(desired: DesiredPod): { readonly phase: PodPhase; readonly status: PodStatus } | undefined;
    record(desired: DesiredPod, exitCodes: Readonly<Record<string, number>>, status: PodStatus): Promise<void>;
    /** A record in an older hash scheme is written anew. */
    adopt(desired: DesiredPod): Promise<unknown>;
  };
  /** Its sandbox was made for another pod than the wanted one: the checkpoint was lost, and the pod edited meanwhile. */
  readonly madeOtherwise: (desired: DesiredPod, runtime: RuntimePodStatus) => boolean;
  /** What ended is another definition than the wanted one. */
  readonly endedOtherwise: (desired: DesiredPod, runtime: RuntimePodStatus) => Promise<boolean>;
  /** When it is looked at again, in milliseconds from now: known before the status that says why; undefined: it waits for nothing. */
  readonly waits: (uid: PodUid, ms: number | undefined) => void;
  /** The object goes on as a new instance. */
  readonly renew: (uid: PodUid) => void;
  readonly runtime: {
    syncPod(
      desired: DesiredPod,
      status: RuntimePodStatus,
      signal: AbortSignal,
    ): Promise<{ results: readonly SyncResult[]; acted: boolean; nextWaitMs?: number }>;
    killPod(
      target: DesiredPod | undefined,
      status: RuntimePodStatus | RuntimePod,
      graceSeconds: number | undefined,
    ): Promise<readonly SyncResult[]>;
  };
  /** Start gates. Left out: nothing is waited for. */
  readonly gates?: {
    /** Why an instance that was not started in this boot is not started now; undefined: it may start. */
    check(desired: DesiredPod): Promise<Held | undefined>;
  };
  /** The pod's own cgroup. Left out: the runtime makes it. */
  readonly cgroups?: {
    /**
     * It is there, with limits that are not lower than wanted. `runs`: something of the pod runs already. Says whether what is told of its limits
     * is another thing than before. Rejects with why the pod cannot be started.
     */
    ensurePod(desired: DesiredPod, o: { readonly runs: boolean }): Promise<boolean>;
    /** No container of an older definition is left: limits that fell are written. */
    updatePod(desired: DesiredPod): Promise<void>;
    /** What still runs in it ends, and it goes. Rejects while it cannot. */
    removePod(uid: PodUid): Promise<void>;
  };
  readonly volumes: {
    /**
     * Everything the pod's containers are given from the node stands; rejects with a text for people. `runs`: something of it runs already.
     */
    setUp(desired: DesiredPod, o: { readonly runs: boolean }): Promise<void>;
    /**
     * Files that follow ConfigMaps, Secrets and the pod itself are brought up to date; does nothing when they are. Rejects with what cannot
     * follow, which stays as it was. Left out: nothing follows.
     */
    refresh?(desired: DesiredPod): Promise<void>;
    /** What was made for it goes. Rejects while something of it is still in use. */
    tearDown(uid: PodUid): Promise<void>;
  };
  readonly probes: {
    addPod(desired: DesiredPod): void;
    /** Before a kill: an ending container is not judged. Readiness goes on, so that a draining pod is seen as such. */
    stopLivenessAndStartup(uid: PodUid): void;
    removePod(uid: PodUid): void;
  };
  /** The newest word of the runtime there is, without asking. */
  readonly latestStatus: (uid: PodUid) => RuntimePodStatus | undefined;
  /** The runtime's word newer than this moment, for the check that nothing runs. */
  readonly newerStatus: (uid: PodUid, signal: AbortSignal) => Promise<RuntimePodStatus>;
  /** Why pods with a network of their own cannot start now; undefined: they can. */
  readonly networkError: () => string | undefined;
  /** False: it was not asked yet or does not answer, which is no pod's own trouble. */
  readonly runtimeUp: () => boolean;
  readonly event: (desired: DesiredPod, type: 'Normal' | 'Warning', reason: string, message: string) => void;
  /** What is wanted of this instance now; undefined: its end is a removal, not its own. */
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
}

/** Nothing of it runs, or may run: what was only created cannot start without a sandbox. */
const isDown = (runtime: RuntimePodStatus): boolean =>
  runtime.sandboxes.every((s) => s.state !== 'ready') && runtime.containers.every((c) => c.state === 'exited' || c.state === 'created');

/** It was not started in this boot, and no other agent's start of it runs. */
const isNew = (runtime: RuntimePodStatus, bootId: string): boolean =>
  runtime.sandboxes.every((s) => s.state !== 'ready') && startedAt(runtime.sandboxes, bootId) === undefined;

/** News that come during a step wait so long for its end. */
const lateMs = 1000;

/** Files that could not follow are tried again, as often as the kubelet comes by; what they miss wakes the pod at once. */
const staleAgainMs = 60_000;

/** A new instance that could not be stored is asked for again. */
const renewAgainMs = 10_000;

const failures = (results: readonly SyncResult[]) => results.filter((r) => r.error !== undefined);

export class PodSync {
  /** Of pods that are being ended: as it was told. */
  #endings = new Map<PodUid, { readonly graceSeconds: number } | undefined>();

  /** Of pods whose step is at the part that may take long: pulls, starts, hooks. */
  #acting = new Set<PodUid>();
  #late: Deadlines<PodUid>;

  constructor(private readonly deps: PodSyncDeps) {
    this.#late = new Deadlines(deps.clock, (uid) => this.#tellLate(uid));
  }

  /** Nothing is told any more. */
  stop(): void {
    this.#late.stop();
  }

  /** The runtime or a probe has news of a pod. A step under way tells them at its end; they do not wait for a pull or a hook. */
  news(uid: PodUid): void {
    if (this.#acting.has(uid)) this.#late.setEarlier(uid, after(this.deps.clock.monotonic(), lateMs));
  }

  #tellLate(uid: PodUid): void {
    const { status, desired: desiredOf, latestStatus } = this.deps;
    const [desired, runtime] = [desiredOf(uid), latestStatus(uid)];
    if (!this.#acting.has(uid) || desired === undefined || runtime === undefined) return;
    const now = status.generate(desired, runtime, { terminal: false });
    // an end is on the card before it is told
    if (now.phase !== 'Succeeded' && now.phase !== 'Failed') status.set(desired, now);
  }

  /** A pod that is being ended has news before its step is over: a container that drains is not ready. Others are told by their own step. */
  tellEnding(desired: DesiredPod, runtime: RuntimePodStatus): void {
    const { status } = this.deps;
    if (!this.#endings.has(desired.uid)) return;
    status.set(desired, status.generate(desired, runtime, { terminal: false, ending: true }), this.#endings.get(desired.uid));
  }

  async syncPod(desired: DesiredPod, runtime: RuntimePodStatus, signal: AbortSignal): Promise<SyncOutcome> {
    const { deps } = this;
    const done = deps.completions.find(desired);
    if (done !== undefined) {
      await deps.completions.adopt(desired);
      // what was told after the record was made is the last word, and its times stay
      const last = deps.status.get(desired.uid);
      deps.status.set(desired, last?.phase === done.phase ? last : done.status);
      return { terminal: true };
    }
    // such an edit makes a new pod, so the wanted one begins as a new instance, when this one is gone
    if (deps.madeOtherwise(desired, runtime)) {
      deps.renew(desired.uid);
      return { terminal: false, retryAfterMs: renewAgainMs };
    }
    const deadline = podDeadline(desired.pod, runtime.sandboxes, deps.bootId);
    const overdue = deadline !== undefined && deps.clock.monotonic() >= deadline;
    const failed = overdue
      ? { reason: 'DeadlineExceeded', message: 'Pod was active on the node longer than the specified deadline' }
      : cutOff(desired.pod, runtime, deps.bootId);
    const status = deps.status.generate(desired, runtime, { terminal: false, ...(failed && { failed }) });
    if (status.phase === 'Succeeded' || status.phase === 'Failed') {
      // edited at its end: the wanted work has not run, so its end is not to be recorded
      if (!overdue && (await deps.endedOtherwise(desired, runtime))) {
        deps.renew(desired.uid);
        return { terminal: false, retryAfterMs: renewAgainMs };
      }
      if (failed !== undefined) deps.event(desired, 'Normal', failed.reason, failed.message);
      // on the card before a container of it may be removed: a one-shot pod runs once
      try {
        await deps.completions.record(desired, exitCodes(status), status);
      } catch (e) {
        deps.event(desired, 'Warning', 'StoreFailed', `the end of the pod cannot be stored: ${describeError(e)}`);
        throw e;
      } finally {
        // what is told is true either way
        deps.status.set(desired, status);
      }
      return { terminal: true };
    }
    deps.status.set(desired, status);

    if (isNew(runtime, deps.bootId)) {
      const held = deps.gates && (await orAbort(deps.gates.check(desired), signal));
      if (held !== undefined) {
        const { reason, message, retryAfterMs } = held;
        deps.status.setReasons(desired.uid, [{ action: 'OpenGates', target: desired.name, error: { reason, message } }]);
        return { terminal: false, acted: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
      }
    }

    const networkError = desired.pod.spec.hostNetwork === true ? undefined : deps.networkError();
    if (networkError !== undefined) {
      if (deps.runtimeUp()) deps.event(desired, 'Warning', 'NetworkNotReady', `network is not ready: ${networkError}`);
      return { terminal: false, error: new Error(`network is not ready: ${networkError}`) };
    }

    try {
      const runs = !isDown(runtime);
      const news = await orAbort(deps.cgroups?.ensurePod(desired, { runs }) ?? Promise.resolve(false), signal);
      if (news) deps.status.set(desired, deps.status.generate(desired, runtime, { terminal: false }));
    } catch (e) {
      if (signal.aborted) throw e;
      const error = { reason: 'FailedCreatePodContainer', message: describeError(e) };
      deps.status.setReasons(desired.uid, [{ action: 'CreatePodCgroup', target: desired.name, error }]);
      return { terminal: false, error: new Error(error.message) };
    }

    try {
      await orAbort(deps.volumes.setUp(desired, { runs: !isDown(runtime) }), signal);
    } catch (e) {
      if (signal.aborted) throw e;
      const failed = this.#failedMount(desired, e);
      deps.status.setReasons(desired.uid, [failed]);
      return { terminal: false, error: new Error(failed.error.message) };
    }
    const stale = await this.#refreshVolumes(desired, signal);
    deps.probes.addPod(desired);

    this.#acting.add(desired.uid);
    const did = await deps.runtime.syncPod(desired, runtime, signal).finally(() => {
      this.#acting.delete(desired.uid);
      this.#late.delete(desired.uid);
    });
    const { acted, nextWaitMs } = did;
    // what could not be stopped or started may still need what it had
    const tooHigh = failures(did.results).length === 0 ? await this.#lowerLimits(desired, signal) : [];
    const results = [...stale, ...did.results, ...tooHigh];
    const untilDeadline = deadline === undefined ? undefined : Math.max(0, deadline - deps.clock.monotonic());
    const waits = [nextWaitMs, untilDeadline, stale.length > 0 ? staleAgainMs : undefined].filter((ms) => ms !== undefined);
    const retryAfterMs = waits.length > 0 ? Math.min(...waits) : undefined;
    deps.waits(desired.uid, retryAfterMs);
    deps.status.setReasons(desired.uid, results);
    // what stands in the way is told at once; what was done shows as far as the runtime has said so, for a hook may have taken long
    if (failures(results).length > 0) {
      const now = deps.latestStatus(desired.uid) ?? runtime;
      deps.status.set(desired, deps.status.generate(desired, now, { terminal: false }));
    }

    const error = failures(results).find((r) => r.waitMs === undefined)?.error;
    return {
      terminal: false,
      acted,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(error !== undefined && { error: new Error(`${error.reason}: ${error.message}`) }),
    };
  }

  /** What runs goes on with the files it has, and starts again with them, as with the kubelet: only told. */
  async #refreshVolumes(desired: DesiredPod, signal: AbortSignal): Promise<readonly SyncResult[]> {
    try {
      await orAbort(this.deps.volumes.refresh?.(desired) ?? Promise.resolve(), signal);
      return [];
    } catch (e) {
      if (signal.aborted) throw e;
      return [{ ...this.#failedMount(desired, e), waitMs: staleAgainMs }];
    }
  }

  /** What runs goes on with the limits that stand: only told, and tried again. */
  async #lowerLimits(desired: DesiredPod, signal: AbortSignal): Promise<readonly SyncResult[]> {
    try {
      await orAbort(this.deps.cgroups?.updatePod(desired) ?? Promise.resolve(), signal);
      return [];
    } catch (e) {
      if (signal.aborted) throw e;
      const error = { reason: 'FailedCreatePodContainer', message: `limits that fell cannot be written: ${describeError(e)}` };
      this.deps.event(desired, 'Warning', error.reason, error.message);
      return [{ action: 'UpdatePodCgroup', target: desired.name, error }];
    }
  }

  #failedMount(desired: DesiredPod, e: unknown): SyncResult & { readonly error: { readonly message: string } } {
    const error = { reason: e instanceof VolumeError ? e.reason : 'FailedMount', message: describeError(e) };
    const texts = e instanceof VolumeError ? e.failures.map(failedMountText) : [error.message];
    for (const text of texts) this.deps.event(desired, 'Warning', error.reason, text);
    return { action: 'MountVolumes', target: desired.name, error };
  }

  async syncTerminatingPod(
    desired: DesiredPod,
    runtime: RuntimePodStatus,
    kill: { readonly graceSeconds: number | undefined },
    signal: AbortSignal,
  ): Promise<SyncOutcome> {
    const { deps } = this;
    const removed = deps.desired(desired.uid) === undefined;
    const grace = kill.graceSeconds ?? desired.pod.spec.terminationGracePeriodSeconds ?? 30;
    const ending = removed ? { graceSeconds: grace } : undefined;
    this.#endings.set(desired.uid, ending);
    deps.status.set(desired, deps.status.generate(desired, runtime, { terminal: false, ending: true }), ending);

    deps.probes.stopLivenessAndStartup(desired.uid);
    // a pod that ended in the life of an earlier agent was taken down then; touching it again would be without a cause
    // cut short by a shorter grace, the running stop goes on beside the new one: the runtime ends the container at whichever comes first
    const results = isDown(runtime) ? [] : await orAbort(deps.runtime.killPod(desired, runtime, kill.graceSeconds), signal);
    const failure = failures(results)[0]?.error;
    if (failure !== undefined) {
      deps.event(desired, 'Warning', 'FailedKillPod', `error killing pod: ${failure.message}`);
      return { terminal: false, acted: true, error: new Error(`${failure.reason}: ${failure.message}`) };
    }
    const now = await deps.newerStatus(desired.uid, signal);
    const running = now.containers.filter((c) => c.state === 'running');
    if (running.length > 0) {
      return {
        terminal: false,
        acted: true,
        error: new Error(`the runtime still shows running: ${running.map((c) => c.name).join(', ')}`),
      };
    }
    deps.probes.removePod(desired.uid);
    this.#endings.delete(desired.uid);
    deps.status.set(desired, deps.status.generate(desired, now, { terminal: true }), ending);
    return { terminal: false, acted: true };
  }

  /** A pod of ours in the runtime that nobody wants: ended by its own grace, read from its annotations. */
  async syncTerminatingRuntimePod(pod: RuntimePod): Promise<void> {
    const failure = failures(await this.deps.runtime.killPod(undefined, pod, undefined))[0]?.error;
    if (failure !== undefined) throw new Error(`${failure.reason}: ${failure.message}`);
  }

  async syncTerminatedPod(desired: DesiredPod, runtime: RuntimePodStatus): Promise<void> {
    const { deps } = this;
    const removed = deps.desired(desired.uid) === undefined;
    deps.status.set(desired, deps.status.generate(desired, runtime, { terminal: true }), removed ? { graceSeconds: 0 } : undefined);
    deps.status.terminate(desired.uid);
    // also of an instance that is still wanted: it has ended for good, and what it keeps in memory is needed by others
    await deps.volumes.tearDown(desired.uid).catch((e) => {
      // a pod of the same name waits for it: why is told
      deps.event(desired, 'Warning', 'FailedUnmount', describeError(e));
      throw e;
    });
    await deps.cgroups?.removePod(desired.uid).catch((e) => {
      // as above
      deps.event(desired, 'Warning', 'FailedKillPod', `error killing pod: its cgroup cannot be removed: ${describeError(e)}`);
      throw e;
    });
  }
}

/** The last exit of each container, by name. */
const exitCodes = (status: PodStatus): Record<string, number> =>
  Object.fromEntries(
    [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].flatMap((c) =>
      c.state.terminated === undefined ? [] : [[c.name, c.state.terminated.exitCode] as const],
    ),
  );
