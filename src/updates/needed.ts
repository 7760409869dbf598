// pure
/** Which images an edit needs before anything of the running pod is stopped. */
import type { PodEdit } from '../api/edit.ts';
import type { Container, Pod } from '../api/v1.ts';

/** Whether the instance is over, has nothing running that could go on, or runs. */
export type Standing = 'over' | 'down' | 'runs';

/** What an image is asked for: a container, or a volume of an image in the shape of one. */
export type Asker = Pick<Container, 'name' | 'image' | 'imagePullPolicy'>;

/** Of all that would be started: of an edit in place only the containers that change, unless none runs and all are to start. */
export function neededImages({ before, after, effect }: PodEdit, standing: Standing): readonly Asker[] {
  const all = effect === 'replace' || standing !== 'runs';
  const changed = (name: string): boolean => before.containerHashes[name] !== after.containerHashes[name];
  return onlyOnce(askers(after.pod).filter((a) => all || (a.ofContainer && changed(a.name))));
}

/** All that the pod needs to run. */
export const ownImages = (pod: Pod): readonly Asker[] => onlyOnce(askers(pod));

function askers({ spec }: Pod): readonly (Asker & { readonly ofContainer: boolean })[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers].map(({ name, image, imagePullPolicy }) => ({
    name,
    image,
    ...(imagePullPolicy !== undefined && { imagePullPolicy }),
    ofContainer: true,
  }));
  const volumes = (spec.volumes ?? []).flatMap(({ name, image }) => {
    if (image?.reference === undefined) return [];
    const { reference, pullPolicy } = image;
    return [{ name, image: reference, ...(pullPolicy !== undefined && { imagePullPolicy: pullPolicy }), ofContainer: false }];
  });
  return [...containers, ...volumes];
}

/** Two that ask for one image in one way are one. */
function onlyOnce(list: readonly (Asker & { readonly ofContainer: boolean })[]): readonly Asker[] {
  const seen = new Map<string, Asker>();
  for (const { ofContainer: _, ...asker } of list) {
    const id = `${asker.imagePullPolicy ?? ''} ${asker.image}`;
    if (!seen.has(id)) seen.set(id, asker);
  }
  return [...seen.values()];
}
