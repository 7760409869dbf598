/**
 * Pull before stop: an edit waits until every image of the new revision is here, while the old one goes on. Owns the pulls that are made for
 * edits, and what the last one of each said. A new edit, a removal or the way back ends the pull; a failed one is tried again when its
 * back-off is over. Never stops, starts or stores anything, and knows no policy: that is the image manager's.
 * An instance that is over, or of which nothing runs and an own image is missing, has nothing to lose: its edit goes on at once.
 * The kubelet stops a static pod first and pulls then (behaviour 6).
 */

import type { DesiredPod } from '../api/desired.ts';
import type { EditVerdict, PodEdit } from '../api/edit.ts';
import type { KeyText } from '../api/objects.ts';
import { usersOf } from '../api/references.ts';
import { Deadlines } from '../async/deadlines.ts';
import type { EnsureResult } from '../container/ensureResult.ts';
import { after, type Clock } from '../world/clock.ts';
import { describeError } from '../world/log.ts';
import { type Asker, neededImages, ownImages, type Standing } from './needed.ts';

export interface PrefetchDeps {
  readonly clock: Clock;
  /** Whether the node has it, as it is written; rejects when the runtime does not say. */
  readonly imageHere: (image: string) => Promise<boolean>;
  /** Policy, credentials, back-off and events as at a start. Rejects only when the signal is aborted. */
  readonly ensureImage: (desired: DesiredPod, asker: Asker, signal: AbortSignal) => Promise<EnsureResult>;
  readonly standing: (instance: DesiredPod) => Standing;
  /** There is news of an edit that waits: it is to be judged again. */
  readonly judgeAgain: () => void;
}

interface Told {
  readonly reason: string;
  readonly message: string;
}

interface Fetch {
  readonly edit: PodEdit;
  readonly images: readonly Asker[];
  readonly stop: AbortController;
  standing: Standing;
  state: 'unknown' | 'pulling' | 'failed' | 'here';
  told: Told;
  /** What it is pulled with is different since the pull began: a failure of this one says nothing. */
  stale: boolean;
  /** Of the pull under way. */
  pulling: Promise<void> | undefined;
}

/** A look at what is here, or at a registry that is only asked whether it has something newer, is waited for so long. */
const patienceMs = 1_000;
/** The runtime did not say what it has. */
const lookAgainMs = 5_000;
/** However short a back-off has become. */
const leastWaitMs = 1_000;
/** An image that no pull can bring may come another way. */
const hopelessAgainMs = 60_000;

export class Prefetch {
  #fetches = new Map<KeyText, Fetch>();
  #due: Deadlines<KeyText>;
  #stopped = false;

  constructor(private readonly deps: PrefetchDeps) {
    this.#due = new Deadlines(deps.clock, (key) => this.#again(key));
  }

  /** undefined: all is here, or there is nothing to lose. Within a second or so. */
  async judge(edit: PodEdit): Promise<EditVerdict | undefined> {
    const { key } = edit.after;
    const standing = this.deps.standing(edit.before);
    if (standing === 'over' || (standing === 'down' && (await this.#lacksOwn(edit.before)))) {
      this.forget(key);
      return undefined;
    }
    const fetch = this.#fetchOf(edit, neededImages(edit, standing), standing);
    if (fetch.state === 'unknown') await this.#begin(key, fetch);
    // it may have been forgotten meanwhile: then nobody waits for this answer
    return fetch.state === 'here' ? undefined : { act: 'block', ...fetch.told };
  }

  /** What is not among these waits no more. */
  retain(waiting: ReadonlySet<KeyText>): void {
    for (const key of this.#fetches.keys()) if (!waiting.has(key)) this.forget(key);
  }

  /** Ends its pull. */
  forget(key: KeyText): void {
    this.#fetches.get(key)?.stop.abort();
    this.#fetches.delete(key);
    this.#due.delete(key);
  }

  /** Something of the running instance is different: whether it has anything to lose may be, too. */
  look(instance: DesiredPod): void {
    const fetch = this.#fetches.get(instance.key);
    if (fetch !== undefined && this.deps.standing(instance) !== fetch.standing) this.deps.judgeAgain();
  }

  /** Objects came, went or changed: with another pull secret a registry may say yes. */
  objectsChanged(keys: readonly KeyText[]): void {
    for (const [key, fetch] of this.#fetches) {
      if (usersOf(keys, [fetch.edit.after]).length === 0) continue;
      if (fetch.pulling !== undefined) fetch.stale = true;
      else this.#again(key);
    }
  }

  /** The runtime answers again, or was listed. */
  lookAtAll(): void {
    if (this.#fetches.size > 0) this.deps.judgeAgain();
  }

  /** Nothing is pulled any more, for a step of config that is still under way neither. */
  stop(): void {
    this.#stopped = true;
    this.#due.stop();
    for (const fetch of this.#fetches.values()) fetch.stop.abort();
  }

  #fetchOf(edit: PodEdit, images: readonly Asker[], standing: Standing): Fetch {
    const { key, revision } = edit.after;
    const before = this.#fetches.get(key);
    const covers = (a: Asker): boolean =>
      before?.images.some((b) => a.image === b.image && a.imagePullPolicy === b.imagePullPolicy) === true;
    if (
      before !== undefined &&
      before.edit.after.revision === revision &&
      before.edit.after.uid === edit.after.uid &&
      images.every(covers)
    ) {
      before.standing = standing;
      return before;
    }
    this.forget(key);
    const message = `it is not known yet whether the images of revision ${revision} are here`;
    const fetch: Fetch = {
      ...{ edit, images, standing, stop: new AbortController(), stale: false, pulling: undefined },
      state: 'unknown',
      told: { reason: 'PullingImage', message },
    };
    if (this.#stopped) fetch.stop.abort();
    this.#fetches.set(key, fetch);
    return fetch;
  }

  /** Looks at what is here, and pulls what is not; what can be known at once is known when it resolves. */
  async #begin(key: KeyText, fetch: Fetch): Promise<void> {
    const over = new AbortController();
    const patience = this.deps.clock.sleep(patienceMs, over.signal).then(
      () => 'late' as const,
      () => 'late' as const, // it was answered in time
    );
    try {
      const looked = this.#missing(fetch.images).catch((e) => describeError(e));
      const missing = await Promise.race([looked, patience]);
      if (this.#fetches.get(key) !== fetch) return;
      if (missing === 'late' || typeof missing === 'string') {
        const why = missing === 'late' ? 'the runtime does not answer' : missing;
        const message = `it is not known whether the images of revision ${fetch.edit.after.revision} are here: ${why}`;
        fetch.told = { reason: 'PullingImage', message };
        this.#due.set(key, after(this.deps.clock.monotonic(), lookAgainMs));
        return;
      }
      if (missing.length === 0 && !fetch.images.some((a) => a.imagePullPolicy === 'Always')) {
        fetch.state = 'here';
        return;
      }
      const pulled = this.#pull(key, fetch, missing);
      if (missing.length === 0) await Promise.race([pulled, patience]);
    } finally {
      over.abort();
    }
  }

  /** An image that is here is not asked for again, but by `Always`. */
  #pull(key: KeyText, fetch: Fetch, missing: readonly Asker[]): Promise<void> {
    if (fetch.stop.signal.aborted) return Promise.resolve();
    const wanted = fetch.images.filter((a) => a.imagePullPolicy === 'Always' || missing.includes(a));
    const [first] = wanted;
    if (fetch.state !== 'failed' && first !== undefined) fetch.told = pullingText(first, fetch.edit);
    fetch.state = 'pulling';
    fetch.stale = false;
    fetch.pulling = this.#pullAll(key, fetch, wanted).finally(() => {
      fetch.pulling = undefined;
    });
    return fetch.pulling;
  }

  async #pullAll(key: KeyText, fetch: Fetch, wanted: readonly Asker[]): Promise<void> {
    const { clock, ensureImage, judgeAgain } = this.deps;
    const { signal } = fetch.stop;
    let retried = fetch.told.reason !== 'PullingImage';
    for (const asker of wanted) {
      if (!retried) fetch.told = pullingText(asker, fetch.edit);
      let result: EnsureResult;
      try {
        result = await ensureImage(fetch.edit.after, asker, signal);
      } catch (e) {
        if (signal.aborted) return;
        result = { ok: false, reason: 'ErrImagePull', message: describeError(e) };
      }
      if (signal.aborted) return;
      if (result.ok) {
        retried = false;
        continue;
      }
      fetch.state = 'failed';
      fetch.told = { reason: result.reason, message: result.message };
      const waitMs = fetch.stale ? leastWaitMs : Math.max(leastWaitMs, result.waitMs ?? hopelessAgainMs);
      this.#due.set(key, after(clock.monotonic(), waitMs));
      judgeAgain();
      return;
    }
    fetch.state = 'here';
    judgeAgain();
  }

  /** The moment for another look, or another pull. What it said last is told until it says something else. */
  #again(key: KeyText): void {
    const fetch = this.#fetches.get(key);
    if (fetch === undefined || fetch.pulling !== undefined) return;
    if (fetch.state === 'unknown') this.deps.judgeAgain();
    if (fetch.state !== 'failed') return;
    fetch.pulling = this.#missing(fetch.images)
      .catch(() => fetch.images) // the image manager says what is wrong
      .then((missing) => (fetch.stop.signal.aborted ? undefined : this.#pull(key, fetch, missing)));
  }

  async #missing(images: readonly Asker[]): Promise<readonly Asker[]> {
    const here = await Promise.all(images.map((a) => this.deps.imageHere(a.image)));
    return images.filter((_, i) => !here[i]);
  }

  /** It cannot start by itself. While the runtime does not say, it may. */
  async #lacksOwn({ pod }: DesiredPod): Promise<boolean> {
    const over = new AbortController();
    const patience = this.deps.clock.sleep(patienceMs, over.signal).then(
      () => [],
      () => [],
    );
    const looked = this.#missing(ownImages(pod)).catch(() => []);
    const missing = await Promise.race([looked, patience]);
    over.abort();
    return missing.length > 0;
  }
}

const pullingText = ({ name, image }: Asker, { after: { revision } }: PodEdit): Told => ({
  reason: 'PullingImage',
  message: `image "${image}" of ${name} is being pulled for revision ${revision}`,
});
