/**
 * Self-repair of images whose files a power cut left empty (damaged.ts has the signs). containerd takes a snapshot that is recorded for
 * whole, so that a pull or an import on top changes nothing: only what was let go of is fetched anew. Owns which images were repaired in this
 * boot: each is, once.
 *
 * The order, which carries safety: nothing is removed before its source has shown that it is there. An archive is imported on top first
 * (which reads all of it), else the name is pulled again: with the content still here that fetches nothing, but the registry has to answer,
 * know the image and take the credentials. Then it is written down, the records of ended containers go, then all names of the image, and with
 * the last one the runtime drops the snapshots and blobs that no other image has. Then it is fetched. If that fails, the image is missing,
 * and is pulled like any other that is missing.
 *
 * It removes only ended containers of ours; where anything else uses the image, or nothing has it, or it is the sandbox image or of another
 * platform, it only tells. What the image shares with others stays with them; only images that fail again after their repair are let go of
 * together, once for each that comes to them.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { Container } from '../api/v1.ts';
import { isAbort } from '../async/abort.ts';
import type { EnsureResult } from '../container/ensureResult.ts';
import type { ContentStore, ImageInfo, ImageService, Runtime } from '../container/runtime.ts';
import { type ContainerId, type ContainerStatus, labels, type Container as Made } from '../container/words.ts';
import { describeError, type Log } from '../world/log.ts';
import type { Store } from '../world/store.ts';
import { damageSign, mayBeDamage } from './damaged.ts';
import { fullName } from './fullName.ts';
import { namesOf, pinsOf } from './pins.ts';
import { type NodePlatform, platformProblem } from './platform.ts';
import { PullQueue } from './queue.ts';

export interface ImageRepairDeps {
  readonly log: Log;
  /** runDir: what is in it ends with the boot. */
  readonly store: Store;
  readonly images: Pick<ImageService, 'imageStatus'>;
  readonly content: Pick<ContentStore, 'dropImage'>;
  readonly runtime: Pick<Runtime, 'listContainers' | 'removeContainer'>;
  /** The end of a container's log, '' for none. */
  readonly logEnd: (logPath: string) => Promise<string>;
  readonly mine: (labels: Readonly<Record<string, string>>) => boolean;
  /** What the runtime makes sandboxes of; undefined: it does not tell. */
  readonly sandboxImage: () => Promise<string | undefined>;
  readonly nodePlatform: NodePlatform;
  /** ImageManager.ensure. */
  readonly ensure: (desired: DesiredPod, container: Container, signal: AbortSignal) => Promise<EnsureResult>;
  /** Imports the archive that has this image; false: there is none, or it failed. Left out: there are no archives. */
  readonly reimport?: (name: string, signal: AbortSignal) => Promise<boolean>;
  readonly event: (pod: DesiredPod, container: string, type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

/** One repair, as its steps share it. */
interface Case {
  readonly desired: DesiredPod;
  readonly container: Container;
  readonly image: ImageInfo;
  /** What was seen, in the words of the log. */
  readonly sign: string;
  readonly signal: AbortSignal;
}

type Source =
  | { readonly from: 'registry' }
  | { readonly from: 'archive'; readonly name: string }
  | { readonly from: 'nowhere'; readonly why: string };

const key = 'image-repairs';

export class ImageRepair {
  #repaired = new Set<string>();
  /** Records that a repair took away: whoever still has them in hand speaks of the image as it was. */
  #removed = new Set<ContainerId>();
  /** Those that failed again after their repair, which is told once: an image that is at fault itself fails for ever. */
  #failedAgain = new Set<string>();
  /** Those of them that were let go of together with others. */
  #joined = new Set<string>();
  /** The names of the image that is being replaced now. */
  #busy = new Set<string>();
  #turns = new PullQueue(1);

  constructor(private readonly deps: ImageRepairDeps) {}

  /** What was repaired in this boot. Never rejects. */
  async load(): Promise<void> {
    try {
      const stored = await this.deps.store.get(key);
      if (Array.isArray(stored)) for (const id of stored) if (typeof id === 'string') this.#repaired.add(id);
    } catch (e) {
      this.deps.log.warn({ error: describeError(e) }, 'which images were repaired cannot be read');
    }
  }

  /** Resolves when this image (as a manifest names it) is not being replaced; at once for all others. Rejects with the signal's reason. */
  async settled(image: string, signal: AbortSignal): Promise<void> {
    if (this.#busy.has(fullName(image) ?? image)) await this.#turns.run(async () => {}, signal);
  }

  /**
   * The container is about to be started again after it ended as `ended` says: when that shows a damaged image, the image is replaced first.
   * True: records were removed. Rejects only when `signal` is aborted; what could not be done is told by an event, and the start goes on as
   * it would have.
   */
  async repair(desired: DesiredPod, container: Container, ended: ContainerStatus, signal: AbortSignal): Promise<boolean> {
    if (!mayBeDamage(ended)) return false;
    const sign = damageSign({
      exitCode: ended.exitCode,
      message: ended.message,
      log: ended.logPath === '' ? '' : await this.deps.logEnd(ended.logPath).catch(() => ''), // no log, no sign
      mounts: ended.mounts.map((m) => m.containerPath),
      ...(container.workingDir && { workingDir: container.workingDir }),
    });
    if (sign === undefined) return false;
    try {
      await this.#turns.run(() => this.#examine(desired, container, ended, sign, signal), signal);
    } catch (e) {
      if (signal.aborted || isAbort(e)) throw signal.reason ?? e;
      this.deps.log.warn({ pod: desired.name, image: container.image, error: describeError(e) }, 'an image could not be repaired');
      this.#tell(desired, container, 'ImageRepairFailed', `${seems(container, sign)}; it could not be replaced: ${describeError(e)}`);
    }
    return this.#removed.has(ended.id);
  }

  async #examine(desired: DesiredPod, container: Container, ended: ContainerStatus, sign: string, signal: AbortSignal): Promise<void> {
    const { deps } = this;
    if (this.#removed.has(ended.id)) return;
    const image = await deps.images.imageStatus(container.image);
    const failed = await deps.images.imageStatus(ended.imageRef || ended.image);
    // gone, or another image under that name: what is started next is not what failed
    if (image === undefined || image.id !== failed?.id || !this.#isForThisNode(image)) return;
    const c: Case = { desired, container, image, sign, signal };
    if (this.#repaired.has(image.id)) return this.#again(c);
    await this.#attempt(c, []);
  }

  /**
   * It was replaced in this boot, and what was fetched fails in the same way. When another image did so too, the damage may be in a layer that
   * both have, and that each kept there for the other: then they are let go of together, once.
   */
  async #again(c: Case): Promise<void> {
    const { desired, container, image, sign } = c;
    const isNews = !this.#failedAgain.has(image.id);
    this.#failedAgain.add(image.id);
    if (this.#joined.has(image.id)) return;
    const alike: ImageInfo[] = [];
    for (const id of this.#failedAgain) {
      const other = id === image.id ? undefined : await this.deps.images.imageStatus(id);
      // one that runs is whole, and what it has is, too
      if (other !== undefined && (await this.#reasonToKeep([other])) === undefined) alike.push(other);
    }
    if (alike.length > 0) return this.#attempt(c, alike);
    if (!isNews) return;
    const text = `${seems(container, sign)}, and its repair was tried once already in this boot: the image itself is at fault (a script without #!), or a layer that it shares with another image`;
    this.#tell(desired, container, 'ImageRepairFailed', text);
  }

  /** `alike`: images that are let go of with it, and are fetched by those who want them. */
  async #attempt(c: Case, alike: readonly ImageInfo[]): Promise<void> {
    const { image, container, desired, sign } = c;
    const keep = await this.#reasonToKeep([image, ...alike]);
    if (keep !== undefined) return this.#keep(c, keep);
    const source = await this.#source(c);
    if (source.from === 'nowhere') return this.#keep(c, source.why);
    // a tag that has moved on: the pull that asked for it has brought the new image already
    const now = await this.deps.images.imageStatus(container.image);
    if (now !== undefined && now.id !== image.id) {
      const text = `${seems(container, sign)}; the registry has a newer one under this name, which is used from now on`;
      return this.#tell(desired, container, 'ImageRepaired', text);
    }
    await this.#replace(c, source, alike);
  }

  #keep({ desired, container, sign }: Case, why: string): void {
    this.#tell(desired, container, 'ImageRepairFailed', `${seems(container, sign)}; it is kept, because ${why}`);
  }

  /** One that does not say for what it was built may just be for something else. */
  #isForThisNode({ platform }: ImageInfo): boolean {
    return platform !== undefined && platformProblem(platform, this.deps.nodePlatform) === undefined;
  }

  async #reasonToKeep(images: readonly ImageInfo[]): Promise<string | undefined> {
    const { deps } = this;
    const pins = pinsOf(images, { sandboxImage: await deps.sandboxImage(), known: [], imported: [] });
    if ([...pins.values()].some((reasons) => reasons.includes('sandbox'))) return 'sandboxes are made of it';
    for (const record of await this.#usersOf(images)) {
      const who = `container ${record.labels[labels.containerName] ?? record.name} of pod ${record.labels[labels.podName] ?? '(none)'}`;
      if (!deps.mine(record.labels)) return `${who}, which is not podsched’s, was made from it`;
      if (record.state !== 'exited') return `${who} runs from it`;
    }
    return undefined;
  }

  async #usersOf(images: readonly ImageInfo[]): Promise<Made[]> {
    const names = new Set<string>(images.flatMap((image) => [...namesOf(image), image.id]));
    return (await this.deps.runtime.listContainers()).filter((r) => names.has(r.imageRef) || names.has(fullName(r.image) ?? r.image));
  }

  /** Where it can be had again, shown by having it again. */
  async #source({ desired, container, image, signal }: Case): Promise<Source> {
    const { reimport, ensure } = this.deps;
    for (const name of reimport === undefined ? [] : [...image.tags, ...image.digests])
      if (await reimport?.(name, signal)) return { from: 'archive', name };
    if (container.imagePullPolicy === 'Never') return { from: 'nowhere', why: 'its pull policy is Never and no archive has it' };
    const pulled = await ensure(desired, { ...container, imagePullPolicy: 'Always' }, signal);
    if (!pulled.ok) return { from: 'nowhere', why: `it cannot be pulled again now: ${pulled.message}` };
    if (pulled.stale !== undefined) return { from: 'nowhere', why: `its registry has not answered: ${pulled.stale}` };
    return { from: 'registry' };
  }

  async #replace(c: Case, source: Exclude<Source, { readonly from: 'nowhere' }>, alike: readonly ImageInfo[]): Promise<void> {
    const { image, desired, container, sign, signal } = c;
    const all = [image, ...alike];
    for (const name of all.flatMap(namesOf)) this.#busy.add(name);
    try {
      const before = this.#repaired.has(image.id);
      await this.#remember(image.id);
      // a container may have been started from it while its source was asked
      const keep = await this.#reasonToKeep(all);
      if (keep !== undefined) {
        if (!before) await this.#forget(image.id);
        return this.#keep(c, keep);
      }
      if (alike.length > 0) this.#joined.add(image.id);
      await this.#remove(all);
      const failed = await this.#fetch(c, source);
      // a pod that may not pull has no other way to its image
      for (const { tags } of alike) for (const tag of tags) if (await this.deps.reimport?.(tag, signal)) break;
      if (failed === undefined) {
        this.deps.log.warn({ pod: desired.name, image: container.image, sign }, 'a damaged image was replaced');
        const how = source.from === 'archive' ? 'imported again from its archive' : 'pulled again';
        const what =
          alike.length > 0
            ? `it and what may share the damage (${alike.map(shown).join(', ')}) were removed, and it was`
            : 'it was removed and';
        return this.#tell(desired, container, 'ImageRepaired', `${seems(container, sign, 'was')}; ${what} ${how}`);
      }
      const text = `${seems(container, sign, 'was')}; it was removed and cannot be fetched yet, which is tried again: ${failed}`;
      this.#tell(desired, container, 'ImageRepairFailed', text);
    } finally {
      this.#busy.clear();
    }
  }

  /** Records first: an ended container holds the snapshots below its own. */
  async #remove(all: readonly ImageInfo[]): Promise<void> {
    const { runtime, content, images } = this.deps;
    for (const { id } of await this.#usersOf(all)) {
      this.#removed.add(id);
      await runtime.removeContainer(id);
    }
    // the id is a name of its own in containerd; each removal waits until what nobody holds any more is gone
    for (const name of all.flatMap(namesOf)) await content.dropImage(name);
    for (const { id } of all)
      if ((await images.imageStatus(id)) !== undefined) throw new Error('the runtime still has it after its removal');
  }

  /** Why it could not be fetched; undefined: it is here. */
  async #fetch({ desired, container, signal }: Case, source: Exclude<Source, { readonly from: 'nowhere' }>): Promise<string | undefined> {
    try {
      if (source.from === 'archive') return (await this.deps.reimport?.(source.name, signal)) ? undefined : 'its archive is gone';
      const pulled = await this.deps.ensure(desired, { ...container, imagePullPolicy: 'Always' }, signal);
      if (!pulled.ok) return pulled.message;
      return pulled.stale;
    } catch (e) {
      if (signal.aborted || isAbort(e)) throw e;
      return describeError(e);
    }
  }

  /** Before anything is removed: an agent that is killed meanwhile does not begin again. */
  async #remember(id: string): Promise<void> {
    this.#repaired.add(id);
    await this.#store();
  }

  async #forget(id: string): Promise<void> {
    this.#repaired.delete(id);
    await this.#store();
  }

  async #store(): Promise<void> {
    try {
      await this.deps.store.put(key, [...this.#repaired]);
    } catch (e) {
      // remembered for as long as this agent runs
      this.deps.log.warn({ error: describeError(e) }, 'which images were repaired cannot be stored');
    }
  }

  #tell(desired: DesiredPod, container: Container, reason: 'ImageRepaired' | 'ImageRepairFailed', message: string): void {
    this.deps.event(desired, container.name, 'Warning', reason, message);
  }
}

const shown = ({ id, tags, digests }: ImageInfo): string => tags[0] ?? digests[0] ?? id;

const seems = (container: Container, sign: string, verb: 'is' | 'was' = 'is'): string =>
  `Image "${container.image}" ${verb} damaged (${sign}), as after a power cut`;
