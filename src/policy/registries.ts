// pure
/** Which registry and repository an image's name means, for `registries` and `digestOnly`. Docker Hub's short names are spelled out. */

/** What the first part of a name must look like to be a host and no folder on Docker Hub. */
const isHost = (first: string): boolean => /[.:[]/.test(first) || first === 'localhost' || first.toLowerCase() !== first;

const hubNames: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);
const hostOf = (host: string): string => (hubNames.has(host.toLowerCase()) ? 'docker.io' : host.toLowerCase());

const isId = (image: string): boolean => /^(sha256:)?[0-9a-f]{64}$/.test(image);

/**
 * `busybox:1` → `docker.io/library/busybox`, `ghcr.io/me/app@sha256:…` → `ghcr.io/me/app`. undefined: an id of what lies on the node, which
 * no registry answers for.
 */
export function repositoryOf(image: string): string | undefined {
  if (isId(image)) return undefined;
  const slash = image.indexOf('/');
  const first = slash > 0 ? image.slice(0, slash) : '';
  const host = first !== '' && isHost(first) ? hostOf(first) : 'docker.io';
  const rest = first !== '' && isHost(first) ? image.slice(slash + 1) : image;
  const path = withoutTag(rest);
  return `${host}/${host === 'docker.io' && !path.includes('/') ? `library/${path}` : path}`;
}

/** A name without its digest and its tag. */
function withoutTag(name: string): string {
  const at = name.indexOf('@');
  const tagged = at < 0 ? name : name.slice(0, at);
  const colon = tagged.lastIndexOf(':');
  return colon > tagged.lastIndexOf('/') ? tagged.slice(0, colon) : tagged;
}

/** An entry of `registries` as it is compared: the host in one spelling, no slash at the end. */
export function cleanRegistry(entry: string): string {
  const [host = '', ...path] = entry.replace(/\/+$/, '').split('/');
  return [hostOf(host), ...path].join('/');
}

/** Whether an image comes from one of the registries, or from a folder or repository of one. */
export function isFrom(image: string, registries: readonly string[]): boolean {
  const repository = repositoryOf(image);
  return repository !== undefined && registries.some((entry) => repository === entry || repository.startsWith(`${entry}/`));
}

const digest = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;

/** Whether an image's name says which bytes are meant. */
export const namesDigest = (image: string): boolean =>
  isId(image) || (image.includes('@') && digest.test(image.slice(image.indexOf('@') + 1)));
