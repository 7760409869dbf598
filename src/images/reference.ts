// pure
/** Image names as Docker's reference grammar has them: which are none, what tag is meant, which registry is asked. */

export type ParsedReference =
  | {
      readonly ok: true;
      /** As written, with `:latest` when it had neither tag nor digest. */
      readonly image: string;
      /** The registry's host, `docker.io` when none is named. */
      readonly registry: string;
    }
  | { readonly ok: false; readonly message: string };

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const domain = new RegExp(`^(?:${label}(?:\\.${label})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?$`);
const component = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const path = new RegExp(`^${component}(?:/${component})*$`);
const tagged = /^(.*?)(?::(\w[\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$/;

const invalid = (image: string, why?: string): ParsedReference => ({
  ok: false,
  message: `couldn't parse image name "${image}": invalid reference format${why === undefined ? '' : `: ${why}`}`,
});

/** What the first part of a name must look like to be a host and not a folder on Docker Hub. */
const isHost = (first: string): boolean => /[.:]/.test(first) || first === 'localhost' || first.toLowerCase() !== first;

/** Reads an image name; the message of a wrong one is the kubelet's. */
export function parseReference(image: string): ParsedReference {
  if (/^[a-f0-9]{64}$/.test(image)) {
    return {
      ok: false,
      message: `couldn't parse image name "${image}": invalid repository name (${image}), cannot specify 64-byte hexadecimal strings`,
    };
  }
  const slash = image.indexOf('/');
  const host = slash > 0 && isHost(image.slice(0, slash)) ? image.slice(0, slash) : undefined;
  const rest = host === undefined ? image : image.slice(slash + 1);
  const [, name = '', tag, digest] = tagged.exec(rest) ?? [];
  const plain = /^[^:@]*/.exec(rest)?.[0] ?? '';
  if (plain.toLowerCase() !== plain) return invalid(image, `repository name (${plain}) must be lowercase`);
  if (!path.test(name) || (host !== undefined && !domain.test(host))) return invalid(image);
  const registry = host === undefined || host === 'index.docker.io' ? 'docker.io' : host;
  if (name.length + registry.length + 1 > 255) {
    return { ok: false, message: `couldn't parse image name "${image}": repository name must not be more than 255 characters` };
  }
  return { ok: true, image: tag === undefined && digest === undefined ? `${image}:latest` : image, registry };
}
