/**
 * Startup, liveness and readiness probes of all pods. Owns the workers (one per container id and type) and, in results.ts, what they found.
 * It starts with the pod's first sync, follows the runtime's news (`look`), and asks by one timer for everything. Never kills, never tells:
 * a changed result is a cause for the pod's next sync. Mirrors kubelet v1.32 prober/ (facts section 8), with these differences: no clock of
 * people decides (a delay counts from when the start was seen), results outlive the agent, a first turn comes at its moment and not at a
 * tick, exec probes are few at a time and become rarer while they only time out, and a failure is not told of a container that has ended.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import type { Container } from '../api/v1.ts';
import { Deadlines } from '../async/deadlines.ts';
import type { ProbeResult, ProbeView } from '../container/probes.ts';
import { isNotFound } from '../container/runtime.ts';
import type { ContainerId, ContainerStatus } from '../container/words.ts';
import { after, type Monotonic } from '../world/clock.ts';
import { type AttemptDeps, attempt, type Outcome } from './attempt.ts';
import { costOf, counted, type ProbeCost, type Tally } from './cost.ts';
import type { ProbeManagerDeps } from './deps.ts';
import { Results } from './results.ts';
import { Slots } from './slots.ts';
import { firstState, type ProbeType, probeOf, probeTypes, timing } from './turn.ts';
import { isOtherDefinition, probed, probeView } from './view.ts';
import { outcomeEvent, type Said, slowedEvent, startupHint } from './words.ts';
import { ProbeWorker, type Subject, type WorkerHost } from './worker.ts';

/** From a process's end until the runtime mostly shows it. */
const endKnownMs = 500;
/** A runtime that hangs must not hold up what a probe found; where many pods end at once it is slow and not stuck. */
const answerMs = { ending: 10_000, living: 1000 };

interface Seen {
  readonly id: ContainerId;
  /** As it was when this id was first seen. */
  readonly container: Container;
  readonly workers: Map<ProbeType, ProbeWorker>;
  readonly costs: Map<ProbeType, Tally>;
  /** An earlier agent started it. */
  readonly adopted: boolean;
  /** Its probes have begun. They wait for the end of its postStart hook. */
  begun: boolean;
}

interface ProbedPod {
  desired: DesiredPod;
  readonly seen: Map<string, Seen>;
  ending: boolean;
}

const typesOf = (container: Container): readonly ProbeType[] => probeTypes.filter((type) => probeOf(container, type) !== undefined);

export class ProbeManager {
  #pods = new Map<PodUid, ProbedPod>();
  #owner = new Map<ContainerId, ProbedPod>();
  #results: Results;
  #due: Deadlines<ProbeWorker>;
  #attempt: AttemptDeps;
  #host: WorkerHost;
  #startedAt: Monotonic | undefined;

  constructor(private readonly deps: ProbeManagerDeps) {
    this.#results = new Results(deps);
    this.#due = new Deadlines(deps.clock, (worker) => worker.turn());
    this.#attempt = { ...deps, slots: new Slots(deps.maxExecProbes, deps.clock) };
    this.#host = {
      clock: deps.clock,
      plan: (worker, at) => (at === undefined ? this.#due.delete(worker) : this.#due.set(worker, at)),
      started: ({ id, container }) => container.startupProbe === undefined || this.#results.get(id, 'startup') === 'success',
      ask: (subject, timeoutMs, signal) => this.#ask(subject, timeoutMs, signal),
      over: (subject, news) => this.#over(subject, news),
      heard: (subject, outcome) => this.#say(subject, outcomeEvent(subject.type, outcome)),
      stored: (subject, result) => this.#stored(subject, result),
      slowed: (subject, timeouts, periodMs) => this.#say(subject, slowedEvent(subject.type, timeouts, periodMs)),
    };
  }

  /** What an earlier agent of this boot found; the agent's start is now. Never rejects. */
  async load(): Promise<void> {
    this.#startedAt = this.deps.clock.monotonic();
    await this.#results.load();
  }

  /** The pod is synced: its containers are probed from when they run. Again with another definition: it holds from a container's next start. */
  addPod(desired: DesiredPod): void {
    const known = this.#pods.get(desired.uid);
    if (known !== undefined) known.desired = desired;
    else this.#pods.set(desired.uid, { desired, seen: new Map(), ending: false });
    this.#look(desired.uid, known === undefined);
  }

  /** The runtime has news of this pod. */
  look(uid: PodUid): void {
    this.#look(uid, false);
  }

  /** The app containers are about to be killed: nothing judges them any more. Readiness goes on. */
  stopLivenessAndStartup(uid: PodUid): void {
    const pod = this.#pods.get(uid);
    if (pod === undefined) return;
    pod.ending = true;
    for (const { name } of pod.desired.pod.spec.containers) {
      const workers = pod.seen.get(name)?.workers;
      for (const type of ['liveness', 'startup'] as const) workers?.get(type)?.stop();
    }
  }

  /** Nothing of it runs any more; what was found is forgotten. */
  removePod(uid: PodUid): void {
    const pod = this.#pods.get(uid);
    for (const seen of pod?.seen.values() ?? []) this.#end(seen);
    this.#pods.delete(uid);
    this.#results.dropPod(uid);
  }

  /** Housekeeping: nobody knows the others any more. */
  retain(known: ReadonlySet<PodUid>): void {
    for (const uid of new Set([...this.#pods.keys(), ...this.#results.uids()])) if (!known.has(uid)) this.removePod(uid);
  }

  /** undefined: nobody has seen this container. */
  liveness(id: ContainerId): ProbeResult | undefined {
    return this.#results.get(id, 'liveness');
  }

  startup(id: ContainerId): ProbeResult | undefined {
    return this.#results.get(id, 'startup');
  }

  /** Of this container's probes, those that this agent has asked. */
  costs(id: ContainerId): readonly ProbeCost[] {
    const seen = [...(this.#owner.get(id)?.seen.values() ?? [])].find((s) => s.id === id);
    const now = this.deps.clock.monotonic();
    return [...(seen?.costs ?? [])].flatMap(([type, tally]) => {
      const probe = seen && probeOf(seen.container, type);
      return probe === undefined ? [] : [costOf(type, probe, tally, now)];
    });
  }

  /** For the pod's status. */
  view(desired: DesiredPod): ProbeView {
    return probeView({
      desired,
      seen: (name, id) => {
        const seen = this.#pods.get(desired.uid)?.seen.get(name);
        return seen?.id === id ? seen?.container : undefined;
      },
      record: (id) => this.deps.statusOf(desired.uid)?.containers.find((c) => c.id === id),
      found: (id, type) => this.#results.found(id, type),
    });
  }

  stop(): void {
    for (const pod of this.#pods.values()) for (const seen of pod.seen.values()) for (const worker of seen.workers.values()) worker.stop();
    this.#due.stop();
  }

  /** What was found is stored when it resolves. */
  flush(): Promise<void> {
    return this.#results.flush();
  }

  /** `first`: what runs at the pod's first sync of this agent was started before. */
  #look(uid: PodUid, first: boolean): void {
    const pod = this.#pods.get(uid);
    if (pod === undefined) return;
    const status = this.deps.statusOf(uid);
    const records = status?.containers ?? [];
    // of what an earlier agent knew, the newest of each name is left
    if (first && status !== undefined)
      this.#results.keep(uid, (id) => records.find((r) => r.name === records.find((of) => of.id === id)?.name)?.id === id);
    for (const container of probed(pod.desired)) {
      // the newest stands first
      const record = records.find((r) => r.name === container.name);
      const before = pod.seen.get(container.name);
      if (before !== undefined && before.id !== record?.id) this.#replaced(pod, container.name, before, record);
      if (record === undefined) continue;
      // what another definition made is about to be replaced: these probes are not meant for it
      const isMeant = record.state === 'running' && !isOtherDefinition(record, pod.desired);
      const starting = this.deps.starting?.(record.id) === true;
      const seen = pod.seen.get(container.name) ?? (isMeant ? this.#see(pod, container, record, first && !starting) : undefined);
      if (seen?.begun === false && record.state === 'running' && !starting) this.#begin(pod, seen);
      for (const worker of seen?.workers.values() ?? []) {
        if (record.state === 'running') worker.wake();
        else worker.rest();
      }
    }
  }

  /** The container's id changed, or the runtime does not show it any more. */
  #replaced(pod: ProbedPod, name: string, before: Seen, record: ContainerStatus | undefined): void {
    if (record === undefined) {
      for (const worker of before.workers.values()) worker.rest();
      return;
    }
    this.#end(before);
    this.#results.drop(before.id);
    pod.seen.delete(name);
  }

  #end(seen: Seen): void {
    for (const worker of seen.workers.values()) worker.stop();
    this.#owner.delete(seen.id);
  }

  /** From now on it is judged by these probes, also when the pod is edited before the first of them is asked. */
  #see(pod: ProbedPod, container: Container, record: ContainerStatus, first: boolean): Seen | undefined {
    const types = typesOf(container);
    if (types.length === 0) return undefined;
    const { clock } = this.deps;
    // a start in the future is a clock that was wrong: it counts from now
    const ranMs = first && record.startedAt !== undefined ? Math.max(0, clock.now() - record.startedAt) : 0;
    const adopted = first || this.#results.seenAt(record.id) !== undefined;
    this.#results.begin(pod.desired.uid, record.id, types, after(clock.monotonic(), -ranMs), adopted);
    const seen: Seen = { id: record.id, container, workers: new Map(), costs: new Map(), adopted, begun: false };
    pod.seen.set(container.name, seen);
    this.#owner.set(record.id, pod);
    return seen;
  }

  #begin(pod: ProbedPod, seen: Seen): void {
    seen.begun = true;
    const { id, container, adopted } = seen;
    const now = this.deps.clock.monotonic();
    // a delay counts from the end of the hook
    if (!adopted) this.#results.setSeenAt(id, now);
    const startedAt = this.#results.seenAt(id) ?? now;
    for (const type of typesOf(container)) {
      const probe = probeOf(container, type);
      if (probe === undefined || (pod.ending && type !== 'readiness')) continue;
      const { periodMs } = timing(probe);
      // probes of all pods at one moment are a burst: after the agent's start they are spread over a period
      const spread = adopted || now - (this.#startedAt ?? now) < periodMs;
      const notBefore = spread ? after(now, this.deps.random() * periodMs) : now;
      const subject: Subject = { id, container, type, probe, startedAt, notBefore };
      seen.workers.set(type, new ProbeWorker(this.#host, subject, firstState(type, this.#results.found(id, type))));
    }
  }

  async #ask(subject: Subject, timeoutMs: number, signal: AbortSignal): Promise<Outcome> {
    const pod = this.#owner.get(subject.id)?.desired;
    const ips = pod?.pod.spec.hostNetwork === true ? this.deps.hostIps() : pod && this.deps.statusOf(pod.uid)?.ips;
    const { id, container, probe, type } = subject;
    const outcome = await attempt(this.#attempt, { id, container, probe, ip: ips?.[0], timeoutMs }, signal);
    const costs = this.#owner.get(id)?.seen.get(container.name)?.costs;
    // what was cut off may have waited for its turn all the time
    if (!signal.aborted) costs?.set(type, counted(costs.get(type), this.deps.clock.monotonic(), outcome.ms));
    return outcome;
  }

  /**
   * A failure that is none: the container has ended, and the news of it are on their way. Asked for a first failure and for all of a pod that
   * ends, so that what fails for hours costs no second call each time.
   */
  async #over({ id }: Subject, news: boolean): Promise<boolean> {
    const ending = this.#owner.get(id)?.ending === true;
    if (!news && !ending) return false;
    const { clock, runtime } = this.deps;
    // a process is gone a little before the runtime knows it
    if (ending) await clock.sleep(endKnownMs);
    const timer = new AbortController();
    const patience = clock.sleep(ending ? answerMs.ending : answerMs.living, timer.signal).then(
      () => false,
      () => false,
    );
    try {
      return await Promise.race([runtime.containerStatus(id).then(({ state }) => state !== 'running'), patience]);
    } catch (e) {
      // a runtime that does not answer has not said that it is over
      return isNotFound(e);
    } finally {
      timer.abort();
    }
  }

  #stored(subject: Subject, result: 'success' | 'failure'): void {
    const { id, type, container } = subject;
    const pod = this.#owner.get(id);
    if (pod === undefined) return;
    if (type === 'liveness' && result === 'success') this.#results.setAnswered(id);
    if (!this.#results.set(id, type, result)) return;
    if (type === 'liveness' && result === 'failure' && container.startupProbe === undefined && !this.#results.hasAnswered(id))
      this.#say(subject, startupHint(container.name));
    // what waited for the start goes on
    if (type === 'startup') for (const worker of pod.seen.get(container.name)?.workers.values() ?? []) worker.wake();
    // stored before it is told: what was told is never unknown to the next agent
    void this.#results.flush().then(() => this.deps.changed(pod.desired.uid)); // it never rejects
  }

  #say({ id, container }: Subject, said: Said | undefined): void {
    const pod = this.#owner.get(id)?.desired;
    // an id would make every text its own
    if (pod !== undefined && said !== undefined)
      this.deps.event(pod, container.name, 'Warning', said.reason, said.message.replaceAll(id, container.name));
  }
}
