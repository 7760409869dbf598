/** `get images` and `images list|pull|import|prune`: the node's images, in the manner of crictl. */
import { resolve } from 'node:path';
import { fullName } from '../images/fullName.ts';
import { sizeText } from '../images/sizeText.ts';
import type { ListedImage, Pruned } from '../operations/images.ts';
import { harmless } from '../world/terminal.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import type { Found, Printer } from './get.ts';

const shortId = (id: string): string => id.replace(/^sha256:/, '').slice(0, 12);
/** A digest in a name is cut as an id is. */
const shortDigest = (name: string): string => name.replace(/@sha256:([0-9a-f]{12})[0-9a-f]*$/, '@sha256:$1');

function nameOf({ tags, digests }: Pick<ListedImage, 'tags' | 'digests'>): string {
  if (tags.length > 0) return tags.join(', ');
  return digests.length > 0 ? digests.map(shortDigest).join(', ') : '<none>';
}

/** By any name or spelling of it, by id, or by the beginning of an id (at least four digits, as crictl takes it). */
function isNamed({ id, tags, digests }: ListedImage, text: string): boolean {
  const full = fullName(text) ?? text;
  if (full === id || tags.includes(full) || digests.includes(full)) return true;
  return /^(sha256:)?[0-9a-f]{4,64}$/.test(text) && id.replace(/^sha256:/, '').startsWith(text.replace(/^sha256:/, ''));
}

/** The rows of `get images`. */
export async function findImages(names: readonly string[], client: Pick<AgentClient, 'images'>): Promise<Found> {
  const all = await client.images();
  const missing = names.find((name) => !all.some((image) => isNamed(image, name)));
  if (missing !== undefined) throw new CommandError(exitCodes.notFound, `image ${JSON.stringify(missing)} is not on this node`);
  const images = all.filter((image) => names.length === 0 || names.some((name) => isNamed(image, name)));
  return {
    head: ['NAME', 'IMAGE ID', 'SIZE', 'USED BY', 'PINNED'],
    items: images.map((image) => ({
      name: `image/${image.tags[0] ?? image.digests[0] ?? image.id}`,
      object: image,
      row: [
        nameOf(image),
        shortId(image.id),
        sizeText(image.sizeBytes),
        image.usedBy.length === 0 ? '<none>' : image.usedBy.join(', '),
        image.pinned.length === 0 ? '<none>' : image.pinned.join(', '),
      ],
    })),
  };
}

/** Pulls each, one after the other; the first that cannot be pulled ends it. */
export async function pullImages(names: readonly string[], client: Pick<AgentClient, 'pullImage'>, print: Printer): Promise<number> {
  for (const name of names) {
    const { image, id } = await client.pullImage(name);
    print.out(`${harmless(image)} is here (${shortId(id)})\n`);
  }
  return exitCodes.done;
}

/** Imports each archive; the agent opens the files, so a name is of this machine and counts from here. Ends with 1 when not all of one is here. */
export async function importImages(files: readonly string[], client: Pick<AgentClient, 'importImages'>, print: Printer): Promise<number> {
  let code: number = exitCodes.done;
  for (const file of files) {
    const { images, problems } = await client.importImages(resolve(file));
    for (const image of images) print.out(`${harmless(image)} imported\n`);
    for (const problem of problems) print.err(`${harmless(file)}: ${harmless(problem)}\n`);
    if (problems.length > 0 || images.length === 0) code = exitCodes.failed;
  }
  return code;
}

/** Removes what nobody needs and says what it was; with `dryRun` only says it. Ends with 1 when something could not be removed. */
export async function pruneImages(dryRun: boolean, client: Pick<AgentClient, 'pruneImages'>, print: Printer): Promise<number> {
  const result = await client.pruneImages(dryRun);
  const line = (image: Pruned['removed'][number]): string =>
    `${image.names.length === 0 ? shortId(image.id) : image.names.map(shortDigest).join(', ')} (${sizeText(image.sizeBytes)})`;
  for (const image of result.removed) print.out(`${dryRun ? 'would remove' : 'removed'} ${harmless(line(image))}\n`);
  for (const image of result.failed) print.err(`${harmless(image.message)}\n`);
  if (result.removed.length === 0 && result.failed.length === 0) print.err('Every image is used or pinned: nothing to remove.\n');
  else if (dryRun) print.out(`Would free ${sizeText(result.freedBytes)}.\n`);
  else print.out(`Freed ${sizeText(result.freedBytes)}.\n`);
  if (dryRun && result.offline && result.removed.length > 0)
    print.err('Nothing can be pulled now: what is removed cannot come back before the registry or the network does.\n');
  return result.failed.length === 0 ? exitCodes.done : exitCodes.failed;
}
