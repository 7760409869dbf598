/**
 * Updates of running pods: what an edit waits for after admission, what is held, and what goes back by itself.
 *
 * Owns the pulls made for edits, the time that a revision has to become Ready, and the holds and stops set by command. Never stops or starts a
 * pod and stores no object: it answers config, which asks before anything is stopped, tells it what to judge again or to give up, and sends on
 * what comes from it, without what is stopped.
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
import { Stops } from './stops.ts';
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
  /** `byPerson`: also from a revision that is good itself, to the one that was before it. */
  readonly wayBack: (key: KeyText, revision: string, byPerson?: boolean) => string | undefined;
  readonly giveUp: (key: KeyText, revision: string, message: string, byPerson?: boolean) => Promise<void>;
  /** The object goes on as a new instance; nothing happens when it has none yet. Rejects when it cannot be stored. Left out: nothing does. */
  readonly renew?: (key: KeyText) => Promise<void>;
  /** What is to be run, ended and told from now on. Left out: nobody hears. */
  readonly emit?: (update: PodUpdate) => void;
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

/** What going back by command came to. `now`: it is carried out, and held; else it waits for what any edit waits for. */
export type TurnedBack =
  | { readonly back: true; readonly from: string; readonly to: string; readonly now: boolean }
  | { readonly back: false; readonly message: string };

export class Updates {
  readonly stops: Stops;
  /** Going back by command, which no hold puts off. */
  readonly #turning = new Set<KeyText>();
  readonly #holds: Holds;
  readonly #prefetch: Prefetch;
  readonly #trials: Trials;
  readonly #steady: Steady;
  #swept = false;

  constructor(private readonly deps: UpdatesDeps) {
    this.#holds = new Holds({ log: deps.log, store: deps.stateStore });
    this.stops = new Stops({ log: deps.log, store: deps.stateStore });
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
    await Promise.all([this.#holds.load(), this.stops.load(), this.#trials.load()]);
  }

  /** Each call with all edits that are to be carried out or wait, held ones left out: by key, what is not simply carried out. */
  async judge(all: readonly PodEdit[]): Promise<ReadonlyMap<KeyText, EditVerdict>> {
    // nothing of what is stopped runs: its edits need no room and no image before it is started
    const edits = all.filter((e) => !this.stops.has(e.after.key));
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
    if (this.#turning.has(key)) return undefined;
    const by = [
      ...(isHeldByAnnotation(wanted.metadata.annotations) ? [`its annotation ${holdAnnotation}`] : []),
      ...(this.#holds.has(key) ? ['the command podsched hold'] : []),
    ];
    return by.length === 0 ? undefined : `held by ${by.join(' and ')}`;
  }

  /** What config sends out, without what is stopped. */
  pass(update: PodUpdate): void {
    const passed = this.stops.pass(update);
    if (passed !== undefined) this.#send(passed);
  }

  /** What is sent on: what was to be pulled for it is decided, and a new revision has its time from now on. */
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
    void this.#holds.retain(o.known); // these two never reject
    void this.stops.retain(o.known);
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

  /** It ends by its grace, and stays away. On the card when it resolves. False: it was stopped already. Rejects when it cannot be stored. */
  async stopPod(key: KeyText): Promise<boolean> {
    const removed = await this.stops.stop(key);
    if (removed === undefined) return false;
    this.#trials.forget(key);
    for (const update of removed) this.#send(update);
    return true;
  }

  /** It runs again, as a new instance. False: it was not stopped. Rejects when it cannot be stored. */
  startPod(key: KeyText): Promise<boolean> {
    return this.stops.start(key, async () => this.deps.renew?.(key));
  }

  /** The last good revision runs again, and stays until it is released. Rejects when it cannot be stored. */
  async turnBack(key: KeyText): Promise<TurnedBack> {
    const [wanted, sent] = [this.deps.wanted(key), this.stops.sent(key)];
    if (wanted === undefined || sent === undefined) return { back: false, message: 'does not run here' };
    const { revision: from } = wanted;
    if (sent.revision !== from)
      return {
        back: false,
        message: `runs revision ${sent.revision}, and the newer one, ${from}, does not run: podsched hold keeps it so`,
      };
    const to = this.deps.wayBack(key, from, true);
    if (to === undefined) return { back: false, message: `has no other revision that is known to have been Ready: ${from} goes on` };
    this.#turning.add(key);
    try {
      await this.deps.giveUp(
        key,
        from,
        `revision ${from} was rolled back by the command podsched rollback; revision ${to} runs again`,
        true,
      );
    } finally {
      this.#turning.delete(key);
    }
    this.#trials.forget(key);
    const now = this.stops.sent(key)?.revision === to;
    if (now) await this.hold(key);
    return { back: true, from, to, now };
  }

  stop(): void {
    this.#prefetch.stop();
    this.#trials.stop();
    this.#steady.stop();
  }

  #send(update: PodUpdate): void {
    this.carriedOut(update);
    this.deps.emit?.(update);
  }

  #good({ key, revision }: DesiredPod): void {
    this.deps.markGood(key, revision).then(() => this.#trials.look(key), this.deps.failed);
  }

  #judgeAgain(keys: readonly KeyText[]): void {
    this.deps.judgeAgain(keys).catch(this.deps.failed);
  }
}
