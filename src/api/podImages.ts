// pure
/** Every image that a pod names, and who in it does. */
import type { Pod, PullPolicy } from './v1.ts';

export interface ImageUser {
  /** Of the container, or of the volume. */
  readonly name: string;
  /** As written. */
  readonly image: string;
  readonly imagePullPolicy?: PullPolicy;
  /** `added`: an ephemeral container, which is no part of the manifest. */
  readonly of: 'container' | 'added' | 'volume';
}

/** Init, app and ephemeral containers, then volumes of images; who names no image is none of them. */
export function imageUsers({ spec }: Pick<Pod, 'spec'>): ImageUser[] {
  const { initContainers = [], containers, ephemeralContainers = [], volumes = [] } = spec;
  const user = (of: ImageUser['of'], name: string, image: string | undefined, imagePullPolicy: PullPolicy | undefined): ImageUser[] =>
    image ? [{ name, image, ...(imagePullPolicy !== undefined && { imagePullPolicy }), of }] : [];
  return [
    ...[...initContainers, ...containers].flatMap((c) => user('container', c.name, c.image, c.imagePullPolicy)),
    ...ephemeralContainers.flatMap((c) => user('added', c.name, c.image, c.imagePullPolicy)),
    ...volumes.flatMap(({ name, image }) => user('volume', name, image?.reference, image?.pullPolicy)),
  ];
}

/** As written, each once. */
export const podImages = (pod: Pick<Pod, 'spec'>): string[] => [...new Set(imageUsers(pod).map((u) => u.image))];
