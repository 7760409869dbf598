/**
 * The wiring's half that takes away: what nobody's is, and what may go when. Owns when housekeeping is due; asks the rooms to remove.
 * What is unknown is nobody's only when the sources were read and the runtime was listed.
 */
import { type KeyText, keyText, type PodUid } from './api/objects.ts';
import { Deadlines } from './async/deadlines.ts';
import type { Config } from './config/manager.ts';
import { annotations, type RuntimePod } from './container/words.ts';
import { Housekeeping } from './housekeeping.ts';
import type { ImageGc } from './images/gc.ts';
import type { Instances } from './instances.ts';
import type { RuntimeSide } from './kubeletRuntime.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import type { Pleg } from './pleg/pleg.ts';
import type { Completions } from './pod/completions.ts';
import type { PodManager } from './pod/manager.ts';
import type { PodWorkers } from './pod/workers.ts';
import { after } from './world/clock.ts';
import { describeError } from './world/log.ts';

const soonMs = 2_000;
const periodMs = 60_000;
/**
 * What an agent that was killed had asked of the runtime may still end after this one has listed it, and no event tells of a container that was
 * only made: all is listed once more, that long after the start.
 */
const lateMs = 10_000;

/** Its sandboxes say that a manifest file wanted it. */
const isOfFile = ({ sandboxes }: RuntimePod): boolean =>
  sandboxes.some((s) => s.annotations[annotations.source]?.startsWith('file:') === true);

export interface UpkeepParts {
  readonly config: Config;
  readonly pleg: Pleg;
  readonly workers: PodWorkers;
  readonly pods: PodManager;
  readonly instances: Instances;
  /** It was let onto the node, so it may have a worker. */
  readonly isAdmitted: (uid: PodUid) => boolean;
  readonly completions: Completions;
  readonly runtime: RuntimeSide;
  readonly imageGc: Pick<ImageGc, 'due' | 'collect'>;
  /** Statuses, probe results and folders of pods that are neither wanted nor ending go. */
  readonly retain: (known: ReadonlySet<PodUid>) => void;
  /** A pod runs on for want of a checkpoint, or does not any more. */
  readonly tellLost: (key: KeyText, lost: boolean) => void;
  /** It is time for a round. */
  readonly due: () => void;
}

export class Upkeep {
  #housekeeping: Housekeeping;
  /** Changes without a pause put off what comes soon after them, never the regular round, nor what is tried again. */
  #due: Deadlines<'soon' | 'regular' | 'again' | 'late'>;
  /** How often in a row something could not be removed. */
  #left = 0;
  /** Told as what a lost checkpoint keeps. */
  #lost: ReadonlySet<KeyText> = new Set();

  constructor(
    private readonly world: KubeletWorld,
    private readonly parts: UpkeepParts,
  ) {
    const { pods, pleg, workers, runtime } = parts;
    this.#due = new Deadlines(world.clock, (why) => {
      if (why === 'late')
        void parts.pleg.relist().then(parts.due, parts.due); // PLEG has logged why not
      else parts.due();
    });
    this.#housekeeping = new Housekeeping({
      ready: () => this.#foldersSettled(),
      desired: () => pods.list(),
      runtimePods: () => pleg.pods().filter((p) => !this.#isHeld(p)),
      workers,
      isRefused: (uid) => !parts.isAdmitted(uid),
      // what is held back runs on, on its own folder
      retain: (known) => parts.retain(new Set([...known, ...pleg.pods().flatMap((p) => (this.#isHeld(p) ? p.uid : []))])),
      collectContainers: () => this.#collect(),
      collectBackoff: () => runtime.backoff.collect(),
      report: (e) => world.log.warn({ error: describeError(e) }, 'housekeeping could not finish'),
    });
  }

  start(): void {
    this.soon();
    const now = this.world.clock.monotonic();
    this.#due.set('regular', after(now, periodMs));
    this.#due.set('late', after(now, lateMs));
  }

  stop(): void {
    this.#due.stop();
  }

  /** Something changed: a round follows when it has settled. */
  soon(): void {
    this.#due.set('soon', after(this.world.clock.monotonic(), soonMs));
  }

  round(): void {
    this.#due.delete('soon');
    this.#due.set('regular', after(this.world.clock.monotonic(), periodMs));
    this.#housekeeping.run();
    this.#tellLost();
    if (this.parts.imageGc.due()) void this.parts.imageGc.collect(); // it never rejects
  }

  /** Sources were read, the runtime was listed, and nothing is held back for either: what is unknown now is nobody's. */
  settled(): boolean {
    return this.#foldersSettled() && this.parts.config.ready();
  }

  /** As far as files go: with a lost checkpoint a broker that does not answer holds back what came from it, and nobody else. */
  #foldersSettled(): boolean {
    const { config, pleg } = this.parts;
    return config.ready('file') && pleg.listed() && !config.view().objects.some((o) => o.pending?.reason === 'RuntimeDown');
  }

  /** What only a lost checkpoint knew is told for as long as it runs on. */
  #tellLost(): void {
    const { config, pleg, pods, tellLost } = this.parts;
    const held = config.ready() || !pleg.listed() ? [] : pleg.pods().filter((p) => pods.get(p.uid) === undefined && !isOfFile(p));
    const now = new Set(held.map(({ namespace, name }) => keyText({ kind: 'Pod', namespace, name })));
    for (const key of now) if (!this.#lost.has(key) && !config.has(key)) tellLost(key, true);
    for (const key of this.#lost) if (!now.has(key)) tellLost(key, false);
    this.#lost = now;
  }

  /** The dead of one pod: all of a pod that is nobody's, else those beyond the newest of a name. */
  cleanUp(uid: PodUid): void {
    const { pods, pleg, runtime } = this.parts;
    const removeAll = this.#isNobodys(uid);
    if (!removeAll && pods.get(uid) === undefined) return;
    void runtime.collectPod(uid, removeAll).then((clean) => {
      if (!clean) this.#somethingLeft();
      pleg.look(uid);
    }); // it never rejects
  }

  /** The runtime was busy, or another's removal under way: it is tried again after 2 s, then twice as long, not only at the next regular round. */
  #somethingLeft(): void {
    this.#due.setEarlier('again', after(this.world.clock.monotonic(), Math.min(soonMs * 2 ** this.#left++, periodMs)));
  }

  /** No manifest, no worker, nobody who may still claim it: asked anew at each removal, for a pass takes long and pods come meanwhile. */
  #isNobodys(uid: PodUid): boolean {
    const { instances, workers, pleg } = this.parts;
    const unknown = instances.get(uid) === undefined && workers.state(uid) === undefined;
    return unknown && this.#foldersSettled() && !pleg.pods().some((p) => p.uid === uid && this.#isHeld(p));
  }

  /**
   * It runs on although nobody names it: an object that could not be accepted yet (a full card) has this name and may go on as this instance; or
   * what was accepted is lost, and the topics from which it may have come were not heard to their end.
   */
  #isHeld(pod: RuntimePod): boolean {
    const { config } = this.parts;
    const { namespace, name } = pod;
    if (!config.ready() && !isOfFile(pod)) return true;
    const { objects } = config.view();
    return objects.some((o) => o.pending !== undefined && o.uid === undefined && o.key === `Pod/${namespace}/${name}`);
  }

  async #collect(): Promise<void> {
    const { pleg, runtime, completions, pods, config } = this.parts;
    const listed = pleg.pods();
    const clean = await runtime.gc.collect(listed, { keepPerName: 1, mayRemoveContent: (uid) => this.#isNobodys(uid) });
    if (clean) this.#left = 0;
    else this.#somethingLeft();
    const ids = new Set<string>(listed.flatMap((p) => [...p.sandboxes, ...p.containers].map((r) => r.id)));
    await runtime.adoption.retain(ids);
    await runtime.restartOnChange.retain(ids);
    if (!config.ready()) return;
    for (const key of completions.keys()) if (pods.byKey(key) === undefined && !config.has(key)) await completions.forget(key);
  }
}
