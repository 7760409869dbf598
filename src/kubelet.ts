/**
 * The wiring: the only file in which managers meet. It builds them around a world (real or fake) and hands each the functions it asks for.
 * Owns the mailbox and which instances are known; decides nothing.
 */
import type { DesiredPod } from './api/desired.ts';
import type { PodUid } from './api/objects.ts';
import type { PodStatus } from './api/status.ts';
import { Mailbox } from './async/mailbox.ts';
import { Config } from './config/manager.ts';
import { PodCache } from './container/cache.ts';
import { labels } from './container/words.ts';
import { Instances } from './instances.ts';
import { RuntimeSide } from './kubeletRuntime.ts';
import { StatusSide } from './kubeletStatus.ts';
import { Upkeep } from './kubeletUpkeep.ts';
import type { KubeletSettings, KubeletWorld } from './kubeletWorld.ts';
import { RuntimeState } from './node/runtimeState.ts';
import { adoptableUid, isAlive, predecessorsOf } from './pleg/adoption.ts';
import { followEvents } from './pleg/follow.ts';
import { Pleg } from './pleg/pleg.ts';
import { Completions } from './pod/completions.ts';
import { instanceState } from './pod/instanceState.ts';
import { PodManager } from './pod/manager.ts';
import { PodWorkers, type SyncOutcome } from './pod/workers.ts';
import { PodSync } from './podsync.ts';
import type { EventRecorder } from './status/events.ts';
import { rejectedPodStatus } from './status/generate.ts';
import type { StatusManager } from './status/manager.ts';
import type { LivePod } from './status/sync.ts';
import { type SyncEvent, SyncLoop } from './syncloop.ts';
import { Telling } from './telling.ts';
import { toRfc3339 } from './world/clock.ts';
import { describeError } from './world/log.ts';

const inspectTimeoutMs = 30_000;
const stopMs = 3_000;

export class Kubelet {
  readonly status: StatusManager;
  readonly events: EventRecorder;
  readonly config: Config;
  readonly pleg: Pleg;
  readonly workers: PodWorkers;
  readonly runtimeState: RuntimeState;
  readonly pods = new PodManager();

  #instances: Instances;
  #mailbox = new Mailbox<SyncEvent>();
  #cache: PodCache;
  #completions: Completions;
  #runtime: RuntimeSide;
  #status: StatusSide;
  #upkeep: Upkeep;
  #loop: SyncLoop;
  #podSync: PodSync;
  #telling: Telling;
  #ready = false;
  #stop = new AbortController();
  #running: Promise<unknown>[] = [];

  constructor(
    private readonly world: KubeletWorld,
    private readonly settings: KubeletSettings,
  ) {
    const { clock, log, runtime } = world;
    this.#instances = new Instances(clock, this.pods);

    this.#status = new StatusSide(world, settings, {
      known: (uid) => this.#instances.get(uid),
      runtimeName: () => this.runtimeState.runtimeName(),
    });
    this.status = this.#status.manager;
    this.events = this.#status.events;
    this.#completions = new Completions({ log, store: world.stateStore });
    this.runtimeState = new RuntimeState({ clock, log, runtime, changed: (up) => this.#runtimeChanged(up) });
    this.#cache = new PodCache({ clock, onWait: (uid) => this.pleg.look(uid) });
    this.pleg = new Pleg({
      clock,
      log,
      runtime,
      cache: this.#cache,
      mine: this.#mine,
      emit: (event) => this.#mailbox.push({ from: 'pleg', event }),
      inspectTimeoutMs,
      firstListed: () => this.#firstListed(),
      listFailed: () => this.#suspect(false),
    });
    this.config = new Config({
      clock,
      log,
      store: world.stateStore,
      folder: world.folder,
      nodeName: settings.nodeName,
      strict: settings.strict,
      allowedUnsafeSysctls: () => settings.allowedUnsafeSysctls ?? [],
      newUid: world.newUid,
      instanceState: (uid) =>
        instanceState(this.pods.get(uid), this.#cache.get(uid), {
          worker: this.workers.state(uid),
          completed: this.#completions.has(this.pods.get(uid)),
        }),
      runtimeUid: (key, podHash) => (this.pleg.listed() ? adoptableUid(this.pleg.pods(), key, podHash) : 'unknown'),
      emit: (update) => this.#mailbox.push({ from: 'config', update }),
      changed: (keys) => {
        this.#telling.mark(keys);
        this.#telling.markFiles();
        world.conditionsChanged();
        this.#checkReady();
      },
      event: ({ type, reason, message, object }) => this.events.event(object, type, reason, message),
    });
    this.#runtime = new RuntimeSide(world, settings, {
      event: (pod, container, type, reason, message) => this.#status.event(pod, container, type, reason, message),
      exitSeenAt: (id) => this.pleg.exitSeenAt(id),
      acted: (uid, id) => this.pleg.expectEvent(id, uid),
      desired: (uid) => this.pods.get(uid),
      mine: this.#mine,
    });
    this.#podSync = new PodSync({
      clock,
      log,
      bootId: world.bootId,
      status: {
        generate: (desired, runtimeStatus, inputs) => this.#status.generate(desired, runtimeStatus, inputs),
        get: (uid) => this.status.get(uid),
        set: (desired, status, ending) => this.#setStatus(desired, status, ending),
        setReasons: (uid, results) => this.status.setReasons(uid, results),
        terminate: (uid) => this.status.terminate(uid),
      },
      completions: {
        find: (desired) => this.#completions.find(desired.key, desired.workHash),
        record: (desired, exits, status) => this.#completions.record(desired, status.phase, exits, status),
        adopt: (desired) => this.#completions.adopt(desired.key, desired.workHash),
      },
      endedOtherwise: (desired, status) => this.#runtime.endedOtherwise(desired, status),
      renew: (uid) => this.#renew(uid),
      runtime: {
        syncPod: (desired, status, signal) => this.#runtime.syncPod(desired, status, signal),
        killPod: (target, status, grace) => this.#runtime.manager.killPod(target, status, grace),
      },
      newerStatus: (uid, signal) => this.#cache.getNewerThan(uid, this.#cache.stamp(), signal),
      networkError: () => this.runtimeState.networkError(),
      runtimeUp: () => this.runtimeState.down() === undefined,
      event: (desired, type, reason, message) => this.#status.event(desired, undefined, type, reason, message),
      isDesired: (uid) => this.pods.get(uid) !== undefined,
    });
    this.workers = new PodWorkers({
      clock,
      log,
      cache: this.#cache,
      syncPod: (desired, status, signal) => this.#syncPod(desired, status, signal),
      syncTerminatingPod: (desired, status, kill, signal) => this.#podSync.syncTerminatingPod(desired, status, kill, signal),
      syncTerminatingRuntimePod: (pod) => this.#podSync.syncTerminatingRuntimePod(pod),
      syncTerminatedPod: (desired, status) => this.#podSync.syncTerminatedPod(desired, status),
      effectivePod: (uid) => this.pods.get(uid),
      unreadable: (desired, error) =>
        this.#status.event(desired, undefined, 'Warning', 'FailedSync', `error determining status: ${describeError(error)}`),
      onFinished: (uid) => this.#mailbox.push({ from: 'finished', uid }),
      random: world.random,
      syncFrequencyMs: settings.syncFrequencyMs,
      predecessors: (desired) => (this.pleg.listed() ? predecessorsOf(this.pleg.pods(), desired) : 'unknown'),
      mayLive: (uid) => !this.pleg.listed() || this.pleg.pods().some((p) => p.uid === uid && isAlive(p)),
    });
    this.#upkeep = new Upkeep(world, {
      config: this.config,
      pleg: this.pleg,
      workers: this.workers,
      pods: this.pods,
      instances: this.#instances,
      completions: this.#completions,
      runtime: this.#runtime,
      retain: (known) => this.status.removeOrphans(known),
      due: () => this.#mailbox.push({ from: 'housekeeping' }),
    });
    this.#telling = new Telling({
      view: () => this.config.view(),
      instance: (key) => this.#instances.byKey(key),
      live: (pod) => this.#live(pod),
      isUnseen: (pod) => !this.runtimeState.asked || (this.runtimeState.down() === undefined && this.#isUnseen(pod)),
      setSync: (key, body) => this.status.setSync(key, body),
      setFile: (file, body) => this.status.setFile(file, body),
    });
    this.#loop = new SyncLoop({
      log,
      pods: {
        set: (pod) => this.#setDesired(pod),
        remove: (uid) => this.#removeDesired(uid),
        get: (uid) => this.#instances.get(uid),
      },
      workers: {
        updatePod: (update) => {
          this.workers.updatePod(update);
          if (update.pod === undefined) return;
          this.#telling.mark([update.pod.key]);
          if (update.type === 'update' && this.workers.isTerminationRequested(update.pod.uid)) this.#renewIfEdited(update.pod.uid);
        },
      },
      admit: () => ({ admit: true }),
      reject: (pod, reason, message) => this.#reject(pod, reason, message),
      cleanUpContainers: (uid) => this.#upkeep.cleanUp(uid),
      finished: (uid) => this.#finished(uid),
      housekeeping: () => this.#keepHouse(),
      changed: () => this.#upkeep.soon(),
    });
  }

  /** Reads what is stored, then runs everything until `stop`. Resolves when the loop runs. */
  async start(): Promise<void> {
    const { signal } = this.#stop;
    const { clock, log, runtime } = this.world;
    await Promise.all([this.#status.load(), this.#completions.load(), this.#runtime.load()]);
    await this.config.load();
    this.#telling.mark(this.#instances.keys());
    this.#running = [
      this.#loop.run(this.#mailbox, signal),
      this.pleg.run(signal),
      this.runtimeState.run(signal),
      followEvents({ clock, log, runtime, pleg: this.pleg, changed: (flows) => this.#suspect(flows) }, signal),
      this.config.run(signal),
    ];
    this.#upkeep.start();
  }

  /** Ends the agent's own work; pods go on. What became of a call that hangs is for the next agent to find: nobody waits for it. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#upkeep.stop();
    const over = new AbortController();
    const patience = this.world.clock.sleep(stopMs, over.signal).catch(() => {}); // all ended in time
    await Promise.race([Promise.all([this.workers.stop(), Promise.allSettled(this.#running)]), patience]);
    over.abort();
    await this.#status.stop();
  }

  readonly #mine = (l: Readonly<Record<string, string>>): boolean => {
    const owner = l[labels.managed];
    return owner !== undefined && (owner === this.settings.nodeName || this.settings.formerNames.includes(owner));
  };

  /** The event stream says what a call has not said yet: ask the runtime now. */
  #suspect(flows: boolean): void {
    if (flows !== (this.runtimeState.down() === undefined)) this.runtimeState.suspect();
  }

  #runtimeChanged(up: boolean): void {
    const { world } = this;
    this.#telling.markAll();
    world.conditionsChanged();
    if (!up) return;
    // what waited for the runtime goes on at once, endings too
    void this.#runtime.askDriver().then(() => this.#mailbox.push({ from: 'sync', uids: this.#instances.uids() })); // it never rejects
  }

  /** What was held back because only the runtime could tell whether it has it already goes on. */
  #firstListed(): void {
    this.config.readFolder().then(
      () => {
        this.#checkReady();
        this.#mailbox.push({ from: 'sync', uids: this.#instances.uids() });
      },
      (e) => this.world.log.warn({ error: describeError(e) }, 'reading the manifests failed'),
    );
  }

  async #syncPod(desired: DesiredPod, status: Parameters<PodSync['syncPod']>[1], signal: AbortSignal): Promise<SyncOutcome> {
    const outcome = await this.#podSync.syncPod(desired, status, signal);
    this.#instances.waits(desired.uid, outcome.retryAfterMs);
    this.#telling.mark([desired.key]);
    await this.#runtime.keepBackoff();
    if (outcome.terminal) this.#renewIfEdited(desired.uid);
    return outcome;
  }

  /** It has ended by itself, and was edited meanwhile: an instance that has ended takes no edit, so a new one runs the wanted work. */
  #renewIfEdited(uid: PodUid): void {
    const pod = this.pods.get(uid);
    if (pod !== undefined && !this.#completions.has(pod)) this.#renew(uid);
  }

  #renew(uid: PodUid): void {
    this.config
      .renewInstance(uid)
      .catch((e) => this.world.log.warn({ uid, error: describeError(e) }, 'a new instance could not be stored'));
  }

  #setDesired(pod: DesiredPod): void {
    this.#instances.set(pod);
    // a label, the source: told with the status there is, also of a pod whose worker has ended
    const status = this.status.get(pod.uid);
    if (status !== undefined && this.#instances.wasTold(pod.uid)) this.status.setPod(pod, status);
  }

  #removeDesired(uid: PodUid): void {
    const pod = this.pods.get(uid);
    this.#instances.remove(uid);
    if (pod !== undefined)
      this.#completions
        .forget(pod.key)
        .catch((e) => this.world.log.warn({ error: describeError(e) }, 'a completion could not be forgotten'));
  }

  #setStatus(desired: DesiredPod, status: PodStatus, ending: { readonly graceSeconds: number } | undefined): void {
    this.status.setPod(desired, status, ending === undefined ? {} : { deletionGraceSeconds: ending.graceSeconds });
    this.#telling.mark([desired.key]);
    if (this.#instances.tell(desired.uid)) this.#checkReady();
  }

  #reject(pod: DesiredPod, reason: string, message: string): void {
    this.#instances.refuse(pod.uid);
    this.#status.event(pod, undefined, 'Warning', reason, message);
    this.#setStatus(pod, rejectedPodStatus(pod, { reason, message }, toRfc3339(this.world.clock.now())), undefined);
  }

  #finished(uid: PodUid): void {
    if (this.pods.get(uid) !== undefined) return;
    const pod = this.#instances.forget(uid);
    this.status.remove(uid);
    if (pod !== undefined) this.#telling.mark([pod.key]);
    this.#upkeep.cleanUp(uid);
    this.#checkReady();
  }

  #keepHouse(): void {
    this.#checkReady();
    this.#upkeep.round();
  }

  /** Not told in this run, and its worker waits for nobody but the first look at the runtime. */
  #isUnseen(pod: DesiredPod | undefined): boolean {
    if (pod === undefined) return !this.pleg.listed();
    if (this.#instances.wasTold(pod.uid)) return false;
    return !this.pleg.listed() || (this.workers.state(pod.uid) === 'waiting' && predecessorsOf(this.pleg.pods(), pod).length === 0);
  }

  /** Ghosts may be cleared when what is desired is known and has been told: a topic must not vanish for a moment. */
  #checkReady(): void {
    if (this.#ready || !this.#upkeep.settled()) return;
    if (this.#instances.uids().some((uid) => !this.#instances.wasTold(uid) && this.workers.state(uid) !== 'waiting')) return;
    this.#ready = true;
    // what was set is told when it is stored: only then is the rest a ghost
    this.status.flush().then(
      () => this.world.broker.setReady(),
      (e) => this.world.log.warn({ error: describeError(e) }, 'statuses cannot be stored'),
    );
  }

  #live(pod: DesiredPod): LivePod {
    return {
      state: this.workers.state(pod.uid),
      status: this.status.get(pod.uid),
      running: this.#cache.get(pod.uid) === undefined ? undefined : { revision: pod.revision, uid: pod.uid },
      blocked: this.status.blocked(pod.uid),
      runtimeDown: this.runtimeState.down(),
      networkNotReady: pod.pod.spec.hostNetwork === true ? undefined : this.runtimeState.networkError(),
      nextRetrySeconds: this.#instances.secondsToRetry(pod.uid),
    };
  }
}
