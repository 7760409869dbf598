/**
 * Revisions that ask for a rollback and have not been Ready yet: each has until its time is over. Owns since when each runs, in memory and in
 * runDir, so that an agent's restart gives nobody more time; a new boot counts anew. One rollback for each try of a revision: what was given
 * up is no winner that runs, so nobody tries it here again. Never stops or starts anything.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { KeyText, PodUid } from '../api/objects.ts';
import { rollbackMs } from '../api/rollback.ts';
import { Deadlines } from '../async/deadlines.ts';
import { after, type Clock, type Monotonic } from '../world/clock.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { judgeTrial, noWayBackText, rolledBackText } from './trial.ts';

export interface TrialsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir: losing it is never an error. */
  readonly store: Store;
  /** It is what is wanted of this key: no old one that goes on while something newer waits. */
  readonly isWinner: (key: KeyText, revision: string) => boolean;
  readonly isGood: (key: KeyText, revision: string) => boolean;
  /** It is Ready now, and not good yet; when that ends, one way or the other, it is to be looked at. */
  readonly isReady: (key: KeyText, revision: string) => boolean;
  /** This instance was refused since it is meant for another node. */
  readonly isElsewhere: (uid: PodUid) => boolean;
  readonly isHeld: (key: KeyText) => boolean;
  /** What a rollback of it would go back to. */
  readonly wayBack: (key: KeyText, revision: string) => string | undefined;
  /** Why it is not Ready, in words; '' when nobody knows. */
  readonly why: (key: KeyText) => string;
  /** Rejects when it cannot be stored. */
  readonly giveUp: (key: KeyText, revision: string, message: string) => Promise<void>;
  readonly event: (desired: DesiredPod, type: 'Warning', reason: string, message: string) => void;
}

interface Trial {
  readonly desired: DesiredPod;
  readonly since: Monotonic;
  readonly periodMs: number;
  /** An earlier agent began it. */
  readonly takenOver: boolean;
  /** Not judged before that; undefined: nobody has seen yet how it is. */
  notBefore: Monotonic | undefined;
  /** That there is no way back was told. */
  told: boolean;
}

interface Stored {
  readonly revision: string;
  readonly since: number;
  readonly told?: boolean;
}

const prefix = 'trials/';
/** So long the probes have to find out what became of it while no agent was there. */
const foundMs = 30_000;
/** What could not be stored is tried again. */
const againMs = 10_000;

const isStored = (v: unknown): v is Stored =>
  typeof v === 'object' && v !== null && typeof (v as Stored).revision === 'string' && typeof (v as Stored).since === 'number';

export class Trials {
  #trials = new Map<KeyText, Trial>();
  /** What an earlier agent of this boot knew. */
  #earlier = new Map<KeyText, Stored>();
  #due: Deadlines<KeyText>;
  #writing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: TrialsDeps) {
    this.#due = new Deadlines(deps.clock, (key) => this.look(key));
  }

  async load(): Promise<void> {
    const { store, log } = this.deps;
    try {
      for (const name of await store.list(prefix)) {
        const value = await store.get(name).catch(() => undefined); // it counts anew
        if (isStored(value)) this.#earlier.set(name.slice(prefix.length) as KeyText, value);
      }
    } catch (e) {
      log.warn({ error: describeError(e) }, 'since when updates run cannot be read');
    }
  }

  /** This revision is what is to run from now on; the same one again keeps its time, as long as it is the same instance. */
  begun(desired: DesiredPod): void {
    const { key, revision } = desired;
    const periodMs = rollbackMs(desired.pod.metadata.annotations);
    if (periodMs === undefined || !this.deps.isWinner(key, revision) || this.deps.isGood(key, revision)) {
      this.forget(key);
      return;
    }
    const before = this.#trials.get(key);
    const earlier = before === undefined ? this.#earlier.get(key) : { ...before, revision: before.desired.revision };
    this.#earlier.delete(key);
    const isSame = earlier?.revision === revision && (before === undefined || before.desired.uid === desired.uid);
    const known = isSame ? earlier : undefined;
    const since = (known?.since ?? this.deps.clock.monotonic()) as Monotonic;
    const takenOver = before === undefined && known !== undefined;
    const notBefore = isSame ? before?.notBefore : undefined;
    const trial: Trial = { desired, since, periodMs, takenOver, notBefore, told: known?.told === true };
    this.#trials.set(key, trial);
    if (known === undefined) this.#keep(key, trial);
    this.look(key);
  }

  /** How it is now is known, for the first time in this agent's life: before that nothing is given up. */
  seen({ key, uid, revision }: DesiredPod): void {
    const trial = this.#trials.get(key);
    if (trial === undefined || trial.notBefore !== undefined || trial.desired.uid !== uid || trial.desired.revision !== revision) return;
    const now = this.deps.clock.monotonic();
    trial.notBefore = trial.takenOver ? after(now, foundMs) : now;
    this.look(key);
  }

  /** Something that counts for it is different, or its time is over. */
  look(key: KeyText): void {
    const trial = this.#trials.get(key);
    if (trial?.notBefore === undefined) return;
    const { deps } = this;
    const { desired, since, periodMs, notBefore } = trial;
    const { revision } = desired;
    const step = judgeTrial({
      ...{ since, periodMs, notBefore, now: deps.clock.monotonic() },
      good: deps.isGood(key, revision),
      ready: deps.isReady(key, revision),
      elsewhere: deps.isElsewhere(desired.uid),
      held: deps.isHeld(key),
      wayBack: deps.wayBack(key, revision),
    });
    switch (step.do) {
      case 'end':
        this.forget(key);
        return;
      case 'wait':
        this.#due.set(key, step.until);
        return;
      case 'hold':
        return;
      case 'stay':
        if (trial.told) return;
        trial.told = true;
        this.#keep(key, trial);
        deps.event(desired, 'Warning', 'NoRollback', noWayBackText(revision, periodMs, deps.why(key)));
        return;
      case 'rollback':
        this.#giveUp(key, trial, rolledBackText(revision, step.to, periodMs, deps.why(key)));
    }
  }

  /** It is Ready, gone, or not what is wanted. */
  forget(key: KeyText): void {
    this.#due.delete(key);
    const known = this.#trials.delete(key);
    if (this.#earlier.delete(key) || known) this.#write(() => this.deps.store.remove(prefix + key));
  }

  /** What an earlier agent knew of objects that are gone. */
  retain(known: (key: KeyText) => boolean): void {
    for (const key of [...this.#trials.keys(), ...this.#earlier.keys()]) if (!known(key)) this.forget(key);
  }

  stop(): void {
    this.#due.stop();
  }

  #giveUp(key: KeyText, trial: Trial, message: string): void {
    const { clock, log, giveUp } = this.deps;
    giveUp(key, trial.desired.revision, message).then(
      () => {
        if (this.#trials.get(key) === trial) this.forget(key);
      },
      (e) => {
        log.error({ key, error: describeError(e) }, 'a rollback cannot be stored');
        this.#due.set(key, after(clock.monotonic(), againMs));
      },
    );
  }

  #keep(key: KeyText, { desired: { revision }, since, told }: Trial): void {
    this.#write(() => this.deps.store.put(prefix + key, { revision, since, ...(told && { told }) } satisfies Stored));
  }

  /** One after the other, so that the newest stays; a full runDir is no trouble of a pod. */
  #write(act: () => Promise<void>): void {
    this.#writing = this.#writing
      .then(act)
      .catch((e) => this.deps.log.warn({ error: describeError(e) }, 'since when an update runs cannot be stored'));
  }
}
