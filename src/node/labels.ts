// pure
/** The labels of the node: those every kubelet gives its node (facts 17.2), and beside them, or over them, those of the configuration. */
export function nodeLabels(o: {
  readonly name: string;
  /** `linux` */
  readonly os: string;
  /** As Kubernetes names it: `arm64`, `amd64`, `arm`. */
  readonly arch: string;
  readonly configured: Readonly<Record<string, string>>;
}): Readonly<Record<string, string>> {
  return { 'kubernetes.io/hostname': o.name, 'kubernetes.io/arch': o.arch, 'kubernetes.io/os': o.os, ...o.configured };
}
