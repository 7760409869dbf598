/**
 * The wiring: the only file in which managers meet. It builds them around a world (real or fake) and hands each the functions it asks for.
 * Owns the mailbox and which instances are known; decides nothing.
 */
import { setMaxListeners } from 'node:events';
import type { Admission } from './admission/manager.ts';
import type { DesiredPod } from './api/desired.ts';
import { keyText, type PodUid } from './api/objects.ts';
import { type ObjectLookup, usersOf } from './api/references.ts';
import type { PodStatus } from './api/status.ts';
import { Mailbox } from './async/mailbox.ts';
import type { Config } from './config/manager.ts';
import { ignoredPaths } from './config/view.ts';
import type { PodCache } from './container/cache.ts';
import { Instances } from './instances.ts';
import { buildAdmission } from './kubeletAdmission.ts';
import { buildGates } from './kubeletGates.ts';
import { ImageSide } from './kubeletImages.ts';
import { buildLoop } from './kubeletLoop.ts';
import { PlegSide } from './kubeletPleg.ts';
import { PodSide } from './kubeletPods.ts';
import { ResourceSide } from './kubeletResources.ts';
import { RuntimeSide } from './kubeletRuntime.ts';
import { StatusSide } from './kubeletStatus.ts';
import { buildPodSync, buildWorkers } from './kubeletSteps.ts';
import { TellSide } from './kubeletTelling.ts';
import { buildConfig, buildUpdates, type UpdateParts } from './kubeletUpdates.ts';
import { Upkeep } from './kubeletUpkeep.ts';
import { VerbSide } from './kubeletVerbs.ts';
import { type KubeletSettings, type KubeletWorld, ownedBy } from './kubeletWorld.ts';
import { RuntimeState } from './node/runtimeState.ts';
import type { Pleg } from './pleg/pleg.ts';
import { Completions } from './pod/completions.ts';
import { PodManager } from './pod/manager.ts';
import type { PodWorkers, SyncOutcome } from './pod/workers.ts';
import type { PodSync } from './podsync.ts';
import type { EventRecorder } from './status/events.ts';
import { rejectedPodStatus } from './status/generate.ts';
import type { StatusManager } from './status/manager.ts';
import type { SyncEvent, SyncLoop } from './syncloop.ts';
import type { Updates } from './updates/manager.ts';
import { toRfc3339 } from './world/clock.ts';
import { describeError } from './world/log.ts';

const stopMs = 3_000;

export class Kubelet {
  readonly status: StatusManager;
  readonly events: EventRecorder;
  readonly config: Config;
  readonly pleg: Pleg;
  readonly workers: PodWorkers;
  readonly runtimeState: RuntimeState;
  readonly pods = new PodManager();
  readonly podSide: PodSide;
  readonly admission: Admission;
  readonly gates: ReturnType<typeof buildGates>;
  readonly resources: ResourceSide;
  readonly ears: PlegSide;
  readonly updates: Updates;
  readonly images: ImageSide;
  readonly verbs: VerbSide;

  #instances: Instances;
  #mailbox = new Mailbox<SyncEvent>();
  #cache: PodCache;
  #completions: Completions;
  #runtime: RuntimeSide;
  #status: StatusSide;
  #upkeep: Upkeep;
  #loop: SyncLoop;
  #podSync: PodSync;
  #telling: TellSide;
  #stop = new AbortController();
  #running: Promise<unknown>[] = [];

  constructor(
    private readonly world: KubeletWorld,
    settings: KubeletSettings,
  ) {
    setMaxListeners(0, this.#stop.signal); // each part hears of the end
    const { clock, log, runtime } = world;
    const mine = ownedBy(settings);
    const wake = (uids: readonly PodUid[]) => this.#mailbox.push({ from: 'sync', uids });
    this.#instances = new Instances(clock, this.pods);
    this.podSide = new PodSide(world, {
      statusOf: (uid) => this.#cache.get(uid),
      event: (pod, container, type, reason, message) => this.#status.quote(pod, container, type, reason, message),
      starting: (id) => this.#runtime.manager.isStarting(id),
      changed: (uid) => this.#probed(uid),
      added: (uid) => {
        for (const pod of this.pods.list()) if (pod.uid === uid) this.#setDesired(pod);
        wake([uid]);
      },
      known: () => this.#instances.list(),
    });
    this.#status = new StatusSide(world, settings, {
      known: (uid) => this.#instances.get(uid),
      probes: (desired) => this.podSide.probes.view(desired),
      objects: this.#objects,
      ignored: ({ key, source }) => ignoredPaths(this.config.view(), key, source),
      recursiveReadOnly: (handler) => this.recursiveReadOnly(handler),
      staleImages: (uid) => this.images.manager.stale(uid),
      goneDevices: (uid) => this.resources.devices.gone(uid),
      unenforced: (desired) => this.resources.cm?.manager.podProblem(desired),
      runtimeName: () => this.runtimeState.runtimeName(),
    });
    this.status = this.#status.manager;
    this.events = this.#status.events;
    this.#completions = new Completions({ log, store: world.stateStore });
    this.runtimeState = new RuntimeState({ clock, log, runtime, changed: (up) => this.#runtimeChanged(up) });
    this.ears = new PlegSide(world, {
      mine,
      emit: (event) => {
        this.#mailbox.push({ from: 'pleg', event });
        this.podSide.look(event.uid);
        this.#podSync.news(event.uid);
      },
      firstListed: () => this.#firstListed(),
      suspect: (flows) => this.#suspect(flows),
      event: (pod, container, reason, message) => this.#status.event(pod, container, 'Warning', reason, message),
    });
    this.#cache = this.ears.cache;
    this.pleg = this.ears.pleg;
    const parts: UpdateParts = {
      pods: this.pods,
      config: () => this.config,
      admission: () => this.admission,
      pleg: () => this.pleg,
      workers: () => this.workers,
      completions: () => this.#completions,
      runtime: () => this.#runtime,
      images: () => this.images.manager,
      status: () => this.status,
      telling: () => this.#status,
      statusOf: (uid) => this.#cache.get(uid),
      emit: (update) => this.#mailbox.push({ from: 'config', update }),
    };
    this.admission = buildAdmission(world, {
      ...parts,
      instances: this.#instances,
      reject: (pod, reason, message) => this.#reject(pod, reason, message),
      setStatus: (pod, status) => this.#setStatus(pod, status, undefined),
      readmit: (uid) => this.#mailbox.push({ from: 'admit', uids: [uid] }),
      resources: () => this.resources,
    });
    this.updates = buildUpdates(world, parts);
    this.verbs = new VerbSide({ ...parts, updates: () => this.updates, wake, mark: (keys) => this.#telling.mark(keys) });
    this.config = buildConfig(world, settings, parts, this.updates, {
      changed: (keys) => {
        this.#telling.mark(keys);
        const users = usersOf(keys, this.pods.list());
        if (users.length > 0) wake(users);
        this.#telling.markFiles();
        world.conditionsChanged();
        this.#telling.checkReady();
      },
    });
    this.images = new ImageSide(world, settings, {
      config: () => this.config,
      instances: this.#instances,
      events: this.events,
      event: (pod, container, type, reason, message) => this.#status.event(pod, container, type, reason, message),
      objects: this.#objects,
      desired: (uid) => this.pods.get(uid),
      staleChanged: (uid) => wake([uid]),
      mine,
      settled: () => this.#upkeep.settled(),
    });
    this.resources = new ResourceSide(world, settings, {
      ...{ ...parts, wake, instances: this.#instances, events: this.events },
      containers: () => this.ears.containers(),
      imageGc: () => this.images.gc,
      setStatus: (pod, status) => this.#setStatus(pod, status, undefined),
    });
    this.#runtime = new RuntimeSide(world, settings, {
      images: this.images,
      ...{ devices: this.resources.devices, cpus: this.resources.cpus, restarts: this.verbs.restarts },
      event: (pod, container, type, reason, message) => this.#status.event(pod, container, type, reason, message),
      exitSeenAt: (id) => this.pleg.exitSeenAt(id),
      acted: (uid, id) => this.pleg.expectEvent(id, uid),
      desired: (uid) => this.pods.get(uid),
      liveness: (id) => this.podSide.probes.liveness(id),
      startup: (id) => this.podSide.probes.startup(id),
      postStartEnded: (uid) => this.podSide.probes.look(uid),
      objects: this.#objects,
      mine,
    });
    this.gates = buildGates(world, { pods: this.pods, status: this.#status, wake, devices: this.resources.devices });
    this.#podSync = buildPodSync(world, {
      gates: this.gates,
      status: this.#status,
      setStatus: (desired, status, ending) => this.#setStatus(desired, status, ending),
      completions: this.#completions,
      runtime: this.#runtime,
      runtimeState: this.runtimeState,
      cache: this.#cache,
      probes: this.podSide.probes,
      renew: (uid) => this.#renew(uid),
      waits: (uid, ms) => this.#instances.waits(uid, ms),
      desired: (uid) => this.pods.get(uid),
      ...(this.resources.cm && { cgroups: this.resources.cm.manager }),
    });
    this.workers = buildWorkers(world, settings, {
      status: this.#status,
      cache: this.#cache,
      pleg: this.pleg,
      podSync: this.#podSync,
      syncPod: (desired, status, signal) => this.#syncPod(desired, status, signal),
      ended: (uid) => this.resources.ended(uid),
      condemned: (uid) => this.resources.eviction?.pods.condemned(uid),
      evictionEnded: (uid) => this.resources.eviction?.pods.ended(uid),
      effectivePod: (uid) => this.pods.get(uid),
      onFinished: (uid) => this.#mailbox.push({ from: 'finished', uid }),
    });
    this.#upkeep = new Upkeep(world, {
      config: this.config,
      pleg: this.pleg,
      workers: this.workers,
      pods: this.pods,
      instances: this.#instances,
      isAdmitted: (uid) => this.admission.isAdmitted(uid),
      completions: this.#completions,
      runtime: this.#runtime,
      imageGc: this.images.gc,
      retain: (known) => {
        this.status.removeOrphans(known);
        this.podSide.retain(known);
        this.gates.retain(known);
        this.resources.retain(known);
      },
      due: () => this.#mailbox.push({ from: 'housekeeping' }),
      tellLost: (key, lost) => this.#telling.tellLost(key, lost),
    });
    this.#telling = new TellSide(world, {
      ...{ config: this.config, pleg: this.pleg, workers: this.workers },
      instances: this.#instances,
      status: this.status,
      runtimeState: this.runtimeState,
      statusOf: (uid) => this.#cache.get(uid),
      ...{ settled: () => this.#upkeep.settled(), stops: this.updates.stops },
    });
    this.#loop = buildLoop(world, {
      pods: {
        set: (pod) => this.#setDesired(pod),
        remove: (uid) => this.#removeDesired(uid),
        get: (uid) => this.#instances.get(uid),
      },
      ...{ workers: this.workers, admission: this.admission, telling: this.#telling, upkeep: this.#upkeep },
      applied: (pod) => this.podSide.ephemeral.applied(pod),
      edited: (uid) => this.#renewIfEdited(uid),
      reject: (pod, reason, message) => this.#reject(pod, reason, message),
      finished: (uid) => this.#finished(uid),
    });
  }

  /** Reads what is stored, then runs everything until `stop`. Resolves when the loop runs. */
  async start(): Promise<void> {
    const { signal } = this.#stop;
    const stored = [this.#status, this.#completions, this.#runtime, this.podSide, this.gates, this.resources, this.updates, this.images];
    await Promise.all(stored.map((part) => part.load()));
    await this.config.load();
    this.#telling.mark(this.#instances.keys());
    const parts = [this.ears, this.runtimeState, this.config, this.resources];
    this.#running = [this.#loop.run(this.#mailbox, signal), ...parts.map((part) => part.run(signal))];
    this.#upkeep.start();
  }

  /** Ends the agent's own work; pods go on. What became of a call that hangs is for the next agent to find: nobody waits for it. */
  async stop(): Promise<void> {
    this.#stop.abort();
    const parts = [this.#upkeep, this.admission, this.updates, this.images.manager, this.ears, this.resources, this.#podSync];
    for (const part of parts) part.stop();
    const over = new AbortController();
    const patience = this.world.clock.sleep(stopMs, over.signal).catch(() => {}); // all ended in time
    await Promise.race([Promise.all([this.workers.stop(), Promise.allSettled(this.#running)]), patience]);
    over.abort();
    await Promise.all([this.#status.stop(), this.podSide.stop(), this.gates.flush(), this.resources.flush()]);
  }

  /** What any pod waits for may be here: each is looked at. */
  wakeAll(): void {
    this.#mailbox.push({ from: 'sync', uids: this.#instances.uids() });
  }

  /** Whether a handler of the runtime (`''`: the default one) mounts read-only all the way down. */
  recursiveReadOnly(handler: string): boolean {
    return this.#runtime.recursiveReadOnly(handler);
  }

  readonly #objects: ObjectLookup = (kind, namespace, name, source) => this.config.objectFor(keyText({ kind, namespace, name }), source);

  /** The event stream says what a call has not said yet: ask the runtime now. */
  #suspect(flows: boolean): void {
    if (flows !== (this.runtimeState.down() === undefined)) this.runtimeState.suspect();
  }

  #runtimeChanged(up: boolean): void {
    const { world } = this;
    this.#telling.markAll();
    world.conditionsChanged();
    if (!up) return;
    void world.archives?.runtimeUp(this.#stop.signal); // it never rejects
    this.resources.runtimeUp();
    this.updates.runtimeKnown();
    // what waited for the runtime goes on at once, endings too
    void this.#runtime.ask().then(() => this.wakeAll()); // it never rejects
  }

  /** What was held back because only the runtime could tell whether it has it already goes on. */
  #firstListed(): void {
    this.#mailbox.push({ from: 'config', update: { op: 'ADD', pods: this.admission.takeDeferred() } });
    this.updates.runtimeKnown();
    this.config.readFolder().then(
      () => {
        this.#telling.checkReady();
        // a round that came before could not tell what is nobody's
        this.#upkeep.soon();
        this.wakeAll();
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

  /** A pod that is being ended is only told of what its probes find. */
  #probed(uid: PodUid): void {
    const [known, runtime] = [this.#instances.get(uid), this.#cache.get(uid)];
    this.#podSync.news(uid);
    if (this.workers.state(uid) !== 'terminating') this.#mailbox.push({ from: 'sync', uids: [uid] });
    else if (known !== undefined && runtime !== undefined) this.#podSync.tellEnding(known, runtime);
  }

  #setDesired(wanted: DesiredPod): void {
    const pod = this.podSide.ephemeral.applied(wanted);
    this.#instances.set(pod);
    // also of one that waits for the first look at the runtime
    this.#telling.mark([pod.key]);
    // a label, the source: told with the status there is, also of a pod whose worker has ended
    const status = this.status.get(pod.uid);
    if (status !== undefined && this.#instances.wasTold(pod.uid)) this.status.setPod(pod, status);
  }

  #removeDesired(uid: PodUid): void {
    const pod = this.pods.get(uid);
    this.#instances.remove(uid);
    this.admission.forget(uid);
    if (pod !== undefined)
      this.#completions
        .forget(pod.key)
        .catch((e) => this.world.log.warn({ error: describeError(e) }, 'a completion could not be forgotten'));
  }

  #setStatus(desired: DesiredPod, status: PodStatus, ending: { readonly graceSeconds: number } | undefined): void {
    this.status.setPod(desired, status, ending === undefined ? {} : { deletionGraceSeconds: ending.graceSeconds });
    this.#telling.mark([desired.key]);
    this.updates.seen(desired, status);
    this.gates.told(desired.key);
    if (this.#instances.tell(desired.uid)) this.#telling.checkReady();
  }

  #reject(pod: DesiredPod, reason: string, message: string): void {
    this.#status.event(pod, undefined, 'Warning', reason, message);
    this.#setStatus(pod, rejectedPodStatus(pod, { reason, message }, toRfc3339(this.world.clock.now())), undefined);
  }

  #finished(uid: PodUid): void {
    if (this.pods.get(uid) !== undefined) return;
    const pod = this.#instances.forget(uid);
    this.admission.forget(uid);
    this.status.remove(uid);
    if (pod !== undefined) this.#telling.mark([pod.key]);
    this.#upkeep.cleanUp(uid);
    this.#telling.checkReady();
  }
}
