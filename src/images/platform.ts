// pure
/**
 * Whether an image is for this node. A single image is pulled whatever it was built for, and only its start would say so ("exec format error"):
 * the runtime picks by platform in an index alone. What is not known is allowed: old images do not say which ARM they are for.
 */
import type { ImagePlatform } from '../container/runtime.ts';

export interface NodePlatform extends ImagePlatform {
  /** A 64-bit kernel that also runs programs of its 32-bit ancestor (arm on arm64, 386 on amd64). */
  readonly runs32bit?: () => boolean;
  /** The kernel hands programs of this architecture (Go's word) to an emulator. */
  readonly emulates?: (architecture: string) => boolean;
}

const ancestors: Readonly<Record<string, string>> = { arm64: 'arm', amd64: '386' };

/** `v7` → 7; NaN: not known. */
const version = (variant: string | undefined): number => Number(/^v?(\d+)/.exec(variant ?? '')?.[1] ?? Number.NaN);

/** What is wrong, as `image amd64, node arm64`; undefined: it can run here, as far as anybody knows. */
export function platformProblem(image: ImagePlatform | undefined, node: NodePlatform | undefined): string | undefined {
  if (image === undefined || node === undefined) return undefined;
  const problem = `image ${platformText(image, node)}, node ${platformText(node, image)}`;
  if (image.os !== node.os) return problem;
  const { architecture } = image;
  if (architecture === node.architecture) {
    // only ARM's variants are each other's superset; of others the runtime knows more than we do
    return architecture === 'arm' && version(image.variant) > version(node.variant) ? problem : undefined;
  }
  if (ancestors[node.architecture] === architecture && node.runs32bit?.() === true) return undefined;
  return node.emulates?.(architecture) === true ? undefined : problem;
}

/** The shortest words that tell the two apart: `amd64`, `arm/v7`, `windows/amd64`. */
function platformText(one: ImagePlatform, other: ImagePlatform): string {
  const { os, architecture, variant } = one;
  const shown = architecture === 'arm' && variant !== undefined ? `${architecture}/${variant}` : architecture;
  return os === other.os ? shown : `${os}/${shown}`;
}
