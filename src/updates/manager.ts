/**
 * Updates of running pods: what an edit waits for after admission, what is held, and what goes back by itself.
 *
 * Owns the pulls made for edits, the time that a revision has to become Ready, and the holds set by command. Never stops or starts a pod and
 * stores no object: it answers config, which asks before anything is stopped, and tells it what to judge again or to give up.
 * Admission first: for what has no room nothing is pulled. Whoever waits for an image stays as it is, which may take room from another: so
 * admission is asked again without those, until nobody new has to wait.
 * A hold keeps everything: edits wait, and a rollback too. The kubelet has none of this (behaviour 6 and 7).
 */
import type { DesiredPod, PodUpdate } from '../api/desired.ts';
import type { EditVerdict, PodEdit } from '../api/edit.ts';
import type { ApiObject, KeyText } from '../api/objects.ts';
import { holdAnnotation, isHeldByAnnotation } from '../api/rollback.ts';
import type { PodStatus } from '../api/status.ts';
import { Holds } from './holds.ts';
import { Prefetch, type PrefetchDeps } from './prefetch.ts';
import { Steady } from './steady.ts';
import { Trials, type TrialsDeps } from './trials.ts';

export interface UpdatesDeps extends Omit<PrefetchDeps, 'judgeAgain'>, Omit<TrialsDeps, 'store' | 'isHeld' | 'isReady' | 'isWinner'> {
  readonly stateStore: TrialsDeps['store'];
  readonly runStore: TrialsDeps['store'];
  readonly admit: (edits: readonly PodEdit[]) => ReadonlyMap<KeyText, EditVerdict>;
  /** What is wanted of a key; undefined: nobody wants it. */
  readonly wanted: (key: KeyText) => { readonly object: ApiObject; readonly revision: string } | undefined;
  /** All edits that wait are judged again, and these objects. */
  readonly judgeAgain: (keys: readonly KeyText[]) => Promise<void>;
  /** A given-up revision is tried once more; false: none was given up. */
  readonly tryAgain: (key: KeyText) => Promise<boolean>;
  readonly markGood: (key: KeyText, revision: string) => Promise<void>;
  /** The containers there are were made of this very definition. */
  readonly isMadeOf: (desired: DesiredPod) => boolean;
  readonly failed: (e: unknown) => void;
}

export interface Released {
  /** A hold by command was taken away. */
  readonly hold: boolean;
  /** A revision that was given up is tried again. */
  readonly rollback: boolean;
  /** It is held by its annotation, which only the manifest can take away. */
  readonly stillHeld: boolean;
}

export class Updates {
  readonly #holds: Holds;
  readonly #prefetch: Prefetch;
  readonly #trials: Trials;
  readonly #steady: Steady;
  #swept = false;

  constructor(private readonly deps: UpdatesDeps) {
    this.#holds = new Holds({ log: deps.log, store: deps.stateStore });
    this.#prefetch = new Prefetch({ ...deps, judgeAgain: () => this.#judgeAgain([]) });
    this.#steady = new Steady(deps.clock, (desired) => this.#good(desired));
    this.#trials = new Trials({
      ...deps,
      store: deps.runStore,
      isReady: (key, revision) => this.#steady.has(key, revision),
      isHeld: (key) => {
        const wanted = deps.wanted(key);
        return wanted !== undefined && this.heldBy(key, wanted.object) !== undefined;
      },
      isWinner: (key, revision) => deps.wanted(key)?.revision === revision,
    });
  }

  /** What earlier agents left; before any pod is known. */
  async load(): Promise<void> {
    await Promise.all([this.#holds.load(), this.#trials.load()]);
  }

  /** Each call with all edits that are to be carried out or wait, held ones left out: by key, what is not simply carried out. */
  async judge(edits: readonly PodEdit[]): Promise<ReadonlyMap<KeyText, EditVerdict>> {
    const waiting = new Map<KeyText, EditVerdict>();
    const passed = new Set<KeyText>();
    for (;;) {
      const asked = edits.filter((e) => !waiting.has(e.after.key));
      const verdicts = this.deps.admit(asked);
      const open = asked.filter(({ effect, after: { key } }) => {
        return (effect === 'update' || effect === 'replace') && !verdicts.has(key) && !passed.has(key);
      });
      if (open.length === 0) {
        this.#prefetch.retain(new Set([...waiting.keys(), ...passed]));
        return new Map([...verdicts, ...waiting]);
      }
      await Promise.all(
        open.map(async (edit) => {
          const verdict = await this.#prefetch.judge(edit);
          if (verdict === undefined) passed.add(edit.after.key);
          else waiting.set(edit.after.key, verdict);
        }),
      );
    }
  }

  /** Who holds it, in words; undefined: nobody. */
  heldBy(key: KeyText, wanted: ApiObject): string | undefined {
    const by = [
      ...(isHeldByAnnotation(wanted.metadata.annotations) ? [`its annotation ${holdAnnotation}`] : []),
      ...(this.#holds.has(key) ? ['the command podsched hold'] : []),
    ];
    return by.length === 0 ? undefined : `held by ${by.join(' and ')}`;
  }

  /** What config sends out: what was to be pulled for it is decided, and a new revision has its time from now on. */
  carriedOut({ op, pods }: PodUpdate): void {
    for (const pod of pods) {
      this.#prefetch.forget(pod.key);
      if (op === 'REMOVE') this.#steady.lost(pod.key);
      else this.#trials.begun(pod);
    }
  }

  /** What is said of the pod now. */
  seen(desired: DesiredPod, status: PodStatus): void {
    this.#prefetch.look(desired);
    this.#count(desired, status);
    this.#trials.seen(desired);
  }

  #count(desired: DesiredPod, status: PodStatus): void {
    const { key, revision } = desired;
    if (this.deps.isGood(key, revision)) return;
    const ready = status.phase === 'Running' && status.conditions?.find((c) => c.type === 'Ready')?.status === 'True';
    const counts = (ready || status.phase === 'Succeeded') && this.deps.isMadeOf(desired);
    if (counts && ready) {
      this.#steady.seen(desired);
      return;
    }
    const lost = this.#steady.lost(key);
    if (counts) this.#good(desired);
    else if (lost) this.#trials.look(key);
  }

  /** The runtime answers again, or was listed. */
  runtimeKnown(): void {
    this.#prefetch.lookAtAll();
  }

  /** Objects came, went or changed; `known`: some source names it. Only once the sources were read is what nobody names gone. */
  objectsChanged(keys: readonly KeyText[], o: { readonly ready: boolean; readonly known: (key: KeyText) => boolean }): void {
    this.#prefetch.objectsChanged(keys);
    if (!o.ready || (this.#swept && keys.every(o.known))) return;
    this.#swept = true;
    this.#trials.retain(o.known);
    void this.#holds.retain(o.known); // it never rejects
  }

  /** On the card when it resolves. False: the command held it already. Rejects when it cannot be stored. */
  async hold(key: KeyText): Promise<boolean> {
    const held = await this.#holds.hold(key);
    if (held) this.#judgeAgain([key]);
    return held;
  }

  /** Edits go on, and a revision that was given up is tried again. Rejects when it cannot be stored. */
  async release(key: KeyText): Promise<Released> {
    const hold = await this.#holds.release(key);
    let rollback = false;
    try {
      rollback = await this.deps.tryAgain(key);
    } finally {
      // also when the card is full: what was held goes on
      await this.deps.judgeAgain([key]);
      this.#trials.look(key);
    }
    return { hold, rollback, stillHeld: isHeldByAnnotation(this.deps.wanted(key)?.object.metadata.annotations) };
  }

  stop(): void {
    this.#prefetch.stop();
    this.#trials.stop();
    this.#steady.stop();
  }

  #good({ key, revision }: DesiredPod): void {
    this.deps.markGood(key, revision).then(() => this.#trials.look(key), this.deps.failed);
  }

  #judgeAgain(keys: readonly KeyText[]): void {
    this.deps.judgeAgain(keys).catch(this.deps.failed);
  }
}
