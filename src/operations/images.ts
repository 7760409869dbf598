/**
 * The node's images for a person: what is here and why it stays, and what can be done about it. Owns nothing. A refusal is an answer with its
 * code; what could not be had from elsewhere (a registry, an archive) is 502.
 */
import { stat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { fullName } from '../images/fullName.ts';
import type { ImageGc, PruneResult } from '../images/gc.ts';
import type { ImageManager } from '../images/manager.ts';
import type { PersonPins } from '../images/personPins.ts';
import type { Preload } from '../images/preload.ts';
import { codeOf } from '../world/errno.ts';
import { type Answered, refused } from './answered.ts';
import type { Done } from './podActs.ts';

/** One image, as the local API tells it. */
export interface ListedImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  /** By the runtime's figures. */
  readonly sizeBytes: number;
  /** `namespace/pod` of each pod with a container of it, also an ended one. */
  readonly usedBy: readonly string[];
  /** Why it is never removed by itself nor by `prune`: `runtime`, `sandbox`, `pod`, `imported`, `person`. */
  readonly pinned: readonly string[];
}

export interface Pruned extends PruneResult {
  readonly dryRun: boolean;
}

export interface ImportedImages {
  /** Names of what is here now. */
  readonly images: readonly string[];
  /** What else was in the archive, in sentences. */
  readonly problems: readonly string[];
}

export interface ImagesView {
  /** By name. Rejects when the runtime does not answer. */
  list(): Promise<readonly ListedImage[]>;
  /** Rejects when the runtime does not answer. */
  prune(dryRun: boolean): Promise<Answered<Pruned>>;
  /** Resolves when it is here. The signal ends the pull. */
  pull(name: string, signal: AbortSignal): Promise<Answered<{ readonly image: string; readonly id: string }>>;
  /** Takes an archive on this machine in; its images are pinned. The signal ends it. */
  import(path: string, signal: AbortSignal): Promise<Answered<ImportedImages>>;
  /**
   * One that is never removed by itself nor by `prune`, here or not, or no longer such a one: on the card when it resolves. Rejects when it
   * cannot be stored.
   */
  pin(name: string, pinned: boolean): Promise<Answered<Done>>;
}

export interface ImagesDeps {
  readonly gc: Pick<ImageGc, 'list' | 'prune'>;
  readonly puller: Pick<ImageManager, 'pullNow'>;
  readonly importer: Pick<Preload, 'importByHand'>;
  readonly pins: Pick<PersonPins, 'set'>;
}

export function imagesView({ gc, puller, importer, pins }: ImagesDeps): ImagesView {
  return {
    list: async () =>
      (await gc.list()).map(({ id, tags, digests, sizeBytes, usedBy, pins }) => ({ id, tags, digests, sizeBytes, usedBy, pinned: pins })),
    prune: async (dryRun) => {
      const result = await gc.prune(dryRun);
      if (result === undefined)
        return refused(
          409,
          'not yet: the manifests were not read or the runtime was not listed, so nobody can say which images are needed',
        );
      return { ok: true, value: { dryRun, ...result } };
    },
    pull: async (name, signal) => {
      const pulled = await puller.pullNow(name, signal);
      if (pulled.ok) return { ok: true, value: { image: fullName(name) ?? name, id: pulled.image.id } };
      const { reason, message } = pulled;
      if (reason === 'InvalidImageName') return refused(400, message);
      return refused(502, `image "${name}" could not be pulled: ${reason}: ${message}`);
    },
    import: async (path, signal) => {
      const wrong = await wrongArchive(path);
      if (wrong !== undefined) return wrong;
      const result = await importer.importByHand(path, signal);
      return result.ok
        ? { ok: true, value: { images: result.names, problems: result.problems } }
        : refused(502, `it could not be imported: ${result.message}`);
    },
    pin: async (name, pinned) => {
      const outcome = await pins.set(name, pinned);
      switch (outcome) {
        case 'no image name':
          return refused(400, `${JSON.stringify(name.slice(0, 300))} names no image`);
        case 'too many':
          return refused(409, 'too many images are pinned: unpin some');
        case 'already':
          return { ok: true, value: { message: `image ${name} ${pinned ? 'was pinned already' : 'was not pinned by a person'}` } };
        case 'done':
          return { ok: true, value: { message: `image ${name} ${pinned ? 'pinned: it stays until it is unpinned' : 'unpinned'}` } };
        default: {
          const never: never = outcome;
          return never;
        }
      }
    },
  };
}

/** The agent opens it as root: a device or a pipe would act or block. */
async function wrongArchive(path: string): Promise<Answered<never> | undefined> {
  if (!isAbsolute(path) || path.includes('\0')) return refused(400, 'an absolute path of an archive on this machine is meant');
  try {
    const found = await stat(path);
    return found.isFile() ? undefined : refused(400, `${path} is no regular file`);
  } catch (e) {
    return refused(404, `${path} cannot be read: ${codeOf(e)}`);
  }
}
