// pure
/** One spelling for the many of an image's name: the one under which containerd lists it. */
import { parseReference } from './reference.ts';

/**
 * `busybox` → `docker.io/library/busybox:latest`; a name with a digest loses its tag, as it does in containerd; an id in either spelling
 * becomes `sha256:…`. undefined: it names no image.
 */
export function fullName(text: string): string | undefined {
  const id = /^(?:sha256:)?([0-9a-f]{64})$/.exec(text)?.[1];
  if (id !== undefined) return `sha256:${id}`;
  const parsed = parseReference(text);
  if (!parsed.ok) return undefined;
  const { image, registry } = parsed;
  const bare = image.startsWith(`${registry}/`) ? image.slice(registry.length + 1) : image.replace(/^index\.docker\.io\//, '');
  const path = registry === 'docker.io' && !bare.includes('/') ? `library/${bare}` : bare;
  return `${registry}/${withoutTag(path)}`;
}

function withoutTag(path: string): string {
  const at = path.indexOf('@');
  return at < 0 ? path : `${path.slice(0, at).replace(/:[^/:]*$/, '')}${path.slice(at)}`;
}
