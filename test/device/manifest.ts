/** Manifests as data, and the few things that containers of tests do. */

export type Fields = Readonly<Record<string, unknown>>;

export interface ContainerText {
  readonly name: string;
  readonly [field: string]: unknown;
}

export interface PodText {
  readonly metadata: { readonly name: string; readonly [field: string]: unknown };
  readonly spec: {
    readonly containers: readonly ContainerText[];
    readonly initContainers?: readonly ContainerText[];
    readonly [field: string]: unknown;
  };
}

/** Ends at once when it is asked to. */
export const serve = ['sh', '-c', "trap 'exit 0' TERM; sleep 2147483647 & wait"] as const;
/** Does not hear TERM. */
export const deaf = ['sh', '-c', "trap '' TERM; while true; do sleep 1; done"] as const;
/** Works for `seconds`, then ends with `code`. */
export const exit = (code: number, seconds = 0): string[] => ['sh', '-c', `${seconds > 0 ? `sleep ${seconds}; ` : ''}exit ${code}`];

export const container = (name: string, command: readonly string[] = serve, more: Fields = {}): ContainerText => ({
  name,
  image: 'localhost/busybox:1',
  command,
  ...more,
});

/** A pod with a grace of 2 s. One container named `main` that serves, unless told otherwise. */
export const pod = (name: string, spec: Fields = {}, metadata: Fields = {}): PodText => ({
  metadata: { name, ...metadata },
  spec: { terminationGracePeriodSeconds: 2, containers: [container('main')], ...spec },
});

/** JSON is YAML too. */
export const manifest = (of: PodText): string => JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...of }, undefined, 2);
