// pure
/**
 * Which images must stay although nothing runs from them: what could not be pulled again when it is needed. Names are compared as containerd
 * spells them, by tag, by digest and by id; an image that has several names is pinned by any of them.
 */
import type { ImageInfo } from '../container/runtime.ts';
import { fullName } from './fullName.ts';

/**
 * `runtime`: the runtime itself says so; `sandbox`: every pod needs it; `pod`: a pod names it; `imported`: it came as a file; `person`: somebody
 * wants it to stay.
 */
export type PinReason = 'runtime' | 'sandbox' | 'pod' | 'imported' | 'person';

export interface PinSources {
  /** As the runtime's configuration names it; undefined: it does not tell. */
  readonly sandboxImage: string | undefined;
  /** What any known pod names: running, waiting, stopped, blocked, rolled back from. */
  readonly known: Iterable<string>;
  readonly imported: Iterable<string>;
  /** Pinned by command. Left out: none are. */
  readonly person?: Iterable<string> | undefined;
}

/** Where the runtime does not tell its sandbox image, an image of such a name is taken for it. */
const looksLikePause = (name: string): boolean => /(^|\/)[a-z0-9-]*pause[a-z0-9-]*(?=[:@]|$)/.test(name);

/** The names that an image answers to, in containerd's spelling, its id among them. */
export function namesOf({ id, tags, digests }: Pick<ImageInfo, 'id' | 'tags' | 'digests'>): string[] {
  return [id, ...tags, ...digests].map((name) => fullName(name) ?? name);
}

/** Why each image stays, by image id; an image that nothing pins is not in it. */
export function pinsOf(
  images: readonly ImageInfo[],
  { sandboxImage, known, imported, person = [] }: PinSources,
): ReadonlyMap<string, readonly PinReason[]> {
  const idsByName = new Map<string, Set<string>>();
  for (const image of images) for (const name of namesOf(image)) idsByName.set(name, (idsByName.get(name) ?? new Set()).add(image.id));
  const pins = new Map<string, Set<PinReason>>();
  const pin = (id: string, reason: PinReason): unknown => pins.set(id, (pins.get(id) ?? new Set()).add(reason));
  const pinNamed = (text: string, reason: PinReason): void => {
    for (const id of idsByName.get(fullName(text) ?? text) ?? []) pin(id, reason);
  };

  for (const { id, pinned } of images) if (pinned) pin(id, 'runtime');
  if (sandboxImage !== undefined) pinNamed(sandboxImage, 'sandbox');
  else for (const { id, tags, digests } of images) if ([...tags, ...digests].some(looksLikePause)) pin(id, 'sandbox');
  for (const text of known) pinNamed(text, 'pod');
  for (const text of imported) pinNamed(text, 'imported');
  for (const text of person) pinNamed(text, 'person');
  return new Map([...pins].map(([id, reasons]) => [id, [...reasons]]));
}
