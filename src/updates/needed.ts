// pure
/** Which images an edit needs before anything of the running pod is stopped. */
import type { PodEdit } from '../api/edit.ts';
import { type ImageUser, imageUsers } from '../api/podImages.ts';
import type { Pod } from '../api/v1.ts';

/** Whether the instance is over, has nothing running that could go on, or runs. */
export type Standing = 'over' | 'down' | 'runs';

/** What an image is asked for: a container, or a volume of an image in the shape of one. */
export type Asker = Omit<ImageUser, 'of'>;

/** Of all that would be started: of an edit in place only the containers that change, unless none runs and all are to start. */
export function neededImages({ before, after, effect }: PodEdit, standing: Standing): readonly Asker[] {
  const all = effect === 'replace' || standing !== 'runs';
  const changed = (name: string): boolean => before.containerHashes[name] !== after.containerHashes[name];
  return onlyOnce(askers(after.pod).filter((a) => all || (a.of === 'container' && changed(a.name))));
}

/** All that the pod needs to run. */
export const ownImages = (pod: Pod): readonly Asker[] => onlyOnce(askers(pod));

const askers = (pod: Pod): readonly ImageUser[] => imageUsers(pod).filter((u) => u.of !== 'added');

/** Two that ask for one image in one way are one. */
function onlyOnce(list: readonly ImageUser[]): readonly Asker[] {
  const seen = new Map<string, Asker>();
  for (const { of: _, ...asker } of list) {
    const id = `${asker.imagePullPolicy ?? ''} ${asker.image}`;
    if (!seen.has(id)) seen.set(id, asker);
  }
  return [...seen.values()];
}
