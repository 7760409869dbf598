/**
 * Carries out what computePodActions decides: kills, makes the sandbox, starts containers, in the kubelet's order, and says of each step what
 * came of it. Owns nothing but that order: what the runtime shows belongs to container/cache, back-off and images to whom it asks.
 * It never decides on what it has just done: after a changing call the sync says `acted`, and the next one starts from newer news.
 * It never rejects for one container's failure, and touches only the pod it is given.
 * Mirrors kubelet v1.32 kuberuntime_manager.go SyncPod (facts 4.2) and KillPod (facts 7).
 */
import type { DesiredPod } from '../api/desired.ts';
import { isSidecar } from '../api/resources.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import { orAbort } from '../async/abort.ts';
import { startedAt, startedText } from '../container/started.ts';
import type { SyncResult } from '../container/syncResult.ts';
import type { ContainerId, ContainerStatus, RuntimePod, RuntimePodStatus } from '../container/words.ts';
import { describeError } from '../world/log.ts';
import { computePodActions, type PodActions } from './actions.ts';
import { sandboxConfig } from './configs.ts';
import type { KubeRuntimeDeps, SyncRun } from './deps.ts';
import { Endings } from './endings.ts';
import { PostStarts } from './hooks.ts';
import { type KillDeps, killPod, killTogether } from './kill.ts';
import type { ContainerToKill } from './records.ts';
import { removeRecord } from './remove.ts';
import { addressesOf, createSandbox, type ReadySandbox } from './sandbox.ts';
import { startContainer } from './start.ts';

export interface PodSyncResult {
  readonly results: SyncResult[];
  /** A changing call was made: decide again only on newer news. */
  readonly acted: boolean;
  /** Milliseconds until the first of the waiting results is due. */
  readonly nextWaitMs?: number;
}

export class KubeRuntime {
  private readonly deps: KubeRuntimeDeps & KillDeps;

  constructor(deps: KubeRuntimeDeps) {
    this.deps = { ...deps, endings: new Endings(deps.clock), postStarts: new PostStarts((uid) => deps.postStartEnded?.(uid)) };
  }

  /** Its postStart hook is not over: nothing judges it yet. */
  isStarting(id: ContainerId): boolean {
    return this.deps.postStarts.isPending(id);
  }

  /**
   * One step from what is to what should be. An aborted `signal` (the pod is to end, or to be another) stops it during a kill, which goes on
   * unheard, between two starts, and during a pull or a postStart.
   */
  async syncPod(desired: DesiredPod, status: RuntimePodStatus, signal: AbortSignal): Promise<PodSyncResult> {
    const { deps } = this;
    await deps.adoption.review(desired, status);
    await deps.restartOnChange?.review(desired, status);
    deps.lostDevices?.review(desired, status);
    deps.restarts?.review(desired.uid, status);
    const actions = computePodActions(desired.pod, status, {
      hashOf: (name) => desired.containerHashes[name] ?? '',
      sameHash: (recorded, wanted, id) => deps.adoption.sameHash(recorded, wanted, id),
      liveness: deps.liveness,
      startup: deps.startup,
      deleting: desired.pod.metadata.deletionTimestamp !== undefined,
      configChanged: (record) => deps.restartOnChange?.changed(desired, record) === true,
      deviceBack: (record) => deps.lostDevices?.isBack(desired, record) === true,
      restartAsked: (record) => deps.restarts?.isAsked(desired.uid, record) === true,
    });
    const run: SyncRun = { desired, status, signal, results: [], acted: false };
    await this.#carryOut(run, actions);
    const waits = run.results.flatMap((r) => r.waitMs ?? []);
    return { results: run.results, acted: run.acted, ...(waits.length > 0 && { nextWaitMs: Math.min(...waits) }) };
  }

  /**
   * Ends a pod. `target` undefined: a pod of ours that nobody wants, ended by what its containers' annotations say.
   * `graceOverrideSeconds` replaces every grace of the pod; `reason` is the text of the Killing events.
   */
  killPod(
    target: DesiredPod | undefined,
    status: RuntimePodStatus | RuntimePod,
    graceOverrideSeconds: number | undefined,
    reason?: string,
  ): Promise<SyncResult[]> {
    return killPod(this.deps, target, status, graceOverrideSeconds, reason);
  }

  /** As it is told: a container whose postStart hook has not ended yet does not run yet. */
  asStarted(status: RuntimePodStatus): RuntimePodStatus {
    const begins = (c: ContainerStatus): boolean => c.state === 'running' && this.deps.postStarts.isUnderWay(c.id);
    if (!status.containers.some(begins)) return status;
    return { ...status, containers: status.containers.map((c) => (begins(c) ? { ...c, state: 'created' } : c)) };
  }

  async #carryOut(run: SyncRun, actions: PodActions): Promise<void> {
    if (actions.createSandbox && actions.sandboxId !== undefined) {
      const text = 'Pod sandbox changed, it will be killed and re-created.';
      this.deps.event(run.desired, undefined, 'Normal', 'SandboxChanged', text);
    }
    if (!(actions.killPod ? await this.#killAll(run) : await this.#killSome(run, actions))) return;
    if (actions.killPod && !actions.createSandbox) return;
    await this.#removeInitRecords(run, actions.createSandbox);
    if (run.signal.aborted) return;

    const sandbox = await this.#sandbox(run, actions);
    if (sandbox !== undefined) await this.#startAll(run, actions, sandbox);
  }

  async #killAll(run: SyncRun): Promise<boolean> {
    const results = await killPod(this.deps, run.desired, run.status, undefined, undefined);
    run.acted ||= run.status.sandboxes.length > 0 || results.length > 0;
    run.results.push(...results);
    return results.every((r) => r.error === undefined);
  }

  async #killSome(run: SyncRun, { killContainers }: PodActions): Promise<boolean> {
    const asked = killContainers.filter((k) => k.asked === true);
    // what a person restarts ends as the pod would, so that it is away for one grace, not for the sum
    for (const kills of [asked, ...killContainers.filter((k) => k.asked !== true).map((k) => [k])]) {
      if (run.signal.aborted) return false;
      if (!(await this.#kill(run, kills))) return false;
    }
    return true;
  }

  /** False: the sync was called off, or something still runs. */
  async #kill(run: SyncRun, kills: readonly ContainerToKill[]): Promise<boolean> {
    const { desired, status, signal } = run;
    const found = kills.flatMap(({ id, reason, message }) => {
      const record = status.containers.find((c) => c.id === id);
      return record === undefined ? [] : { pod: desired.pod, ref: desired, record, reason, message, override: undefined };
    });
    if (found.length === 0) return true;
    run.acted = true;
    // called off, the sync leaves it under way: who ends the pod next joins it, perhaps with a shorter grace
    const results = await orAbort(killTogether(this.deps, found), signal).catch(() => undefined);
    if (results === undefined) return false;
    run.results.push(...results);
    const failed = results.find((r) => r.error !== undefined);
    if (failed === undefined) return true;
    this.deps.log.warn({ pod: desired.name, container: failed.target }, 'the sync ends: what must be replaced still runs');
    return false;
  }

  /** Before a new sandbox all records of init containers go, for they run again; else all but the newest ended one of each. */
  async #removeInitRecords(run: SyncRun, all: boolean): Promise<void> {
    for (const { name } of run.desired.pod.spec.initContainers ?? []) {
      const records: readonly ContainerStatus[] = run.status.containers.filter((c) => c.name === name);
      const old = all ? records : records.filter((c) => c.state === 'exited' || c.state === 'unknown').slice(1);
      for (const record of old) {
        run.acted = true;
        await removeRecord(this.deps, run.desired, record).catch((e) => {
          // the garbage collection comes by again
          this.deps.log.warn({ pod: run.desired.name, container: name, error: describeError(e) }, 'a container could not be removed');
        });
      }
    }
  }

  async #sandbox(run: SyncRun, actions: PodActions): Promise<ReadySandbox | undefined> {
    const { settings, clock } = this.deps;
    const inputs = {
      nodeName: settings.nodeName,
      podLogsDir: settings.podLogsDir,
      started: startedText(settings.bootId, startedAt(run.status.sandboxes, settings.bootId) ?? clock.monotonic()),
      cgroupDriver: settings.cgroupDriver(),
      ...(settings.cgroupParent && { cgroupParent: settings.cgroupParent }),
      ...(settings.cgroups && { cgroups: settings.cgroups }),
      hostDns: settings.hostDns(),
      ...(settings.clusterDns && { clusterDns: settings.clusterDns }),
      ...(settings.clusterDomain && { clusterDomain: settings.clusterDomain }),
    };
    if (actions.createSandbox) return createSandbox(this.deps, run, actions.attempt, inputs);
    const { sandboxId: id } = actions;
    const status = run.status.sandboxes.find((s) => s.id === id);
    if (id === undefined || status === undefined) return undefined;
    try {
      const ips = addressesOf(status, settings.hostIps?.() ?? []);
      return { id, config: sandboxConfig(run.desired, { ...inputs, attempt: actions.attempt }), ips };
    } catch (e) {
      // the sandbox is older than a setting that its pod does not fit any more
      const error = { reason: 'ConfigPodSandboxError', message: describeError(e) };
      run.results.push({ action: 'ConfigPodSandbox', target: run.desired.name, error });
      return undefined;
    }
  }

  /** Ephemeral, then init, then app containers. One app container's failure is none of the others' business. */
  async #startAll(run: SyncRun, actions: PodActions, sandbox: ReadySandbox): Promise<void> {
    const { spec } = run.desired.pod;
    // a postStart that an earlier sync began holds up those who come after it
    const failed = await this.deps.postStarts.settled(run.desired.uid, run.signal).catch(() => undefined);
    if (failed === undefined) return;
    run.results.push(...failed);
    const start = async (container: Container | EphemeralContainer | undefined): Promise<SyncResult | undefined> => {
      if (container === undefined || run.signal.aborted) return undefined;
      const result = await startContainer(this.deps, run, container, sandbox);
      if (result !== undefined) run.results.push(result);
      return result;
    };
    for (const i of actions.startEphemeral) await start(spec.ephemeralContainers?.[i]);
    for (const i of actions.startInit) {
      const container = spec.initContainers?.[i];
      const result = await start(container);
      // the pod does not get past a plain init container; a sidecar is tried again beside the others
      if (result?.error !== undefined && container !== undefined && !isSidecar(container)) return;
    }
    for (const i of actions.startContainers) await start(spec.containers[i]);
  }
}
