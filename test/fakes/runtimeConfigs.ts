/** Sandbox and container configs for tests, with everything filled in. */
import type { PodUid } from '../../src/api/objects.ts';
import type { ContainerConfig, SandboxConfig } from '../../src/container/runtime.ts';
import { labels } from '../../src/container/words.ts';

/** A pod sandbox of `name` in `default`; `uid` defaults to one made of the name. */
export function sandboxConfig(name: string, o: Partial<SandboxConfig> = {}): SandboxConfig {
  const uid = o.uid ?? (`uid-${name}` as PodUid);
  const namespace = o.namespace ?? 'default';
  return {
    name,
    namespace,
    uid,
    attempt: 0,
    hostname: name,
    logDirectory: `/var/log/pods/${namespace}_${name}_${uid}`,
    dns: { servers: [], searches: [], options: [] },
    portMappings: [],
    annotations: {},
    cgroupParent: '',
    privileged: false,
    namespaces: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' },
    resources: {},
    ...o,
    labels: { [labels.podName]: name, [labels.podNamespace]: namespace, [labels.podUid]: uid, ...o.labels },
  };
}

/** A container of `pod` that sleeps. */
export function containerConfig(pod: SandboxConfig, name: string, o: Partial<ContainerConfig> = {}): ContainerConfig {
  const attempt = o.attempt ?? 0;
  return {
    name,
    attempt,
    image: 'localhost/busybox:1',
    userSpecifiedImage: 'localhost/busybox:1',
    command: ['/bin/sleep', '100000'],
    args: [],
    workingDir: '',
    envs: [],
    mounts: [],
    annotations: {},
    logPath: `${name}/${attempt}.log`,
    stdin: false,
    stdinOnce: false,
    tty: false,
    resources: {},
    privileged: false,
    namespaces: pod.namespaces,
    maskedPaths: [],
    readonlyPaths: [],
    ...o,
    labels: {
      [labels.podName]: pod.name,
      [labels.podNamespace]: pod.namespace,
      [labels.podUid]: pod.uid,
      [labels.containerName]: name,
      ...o.labels,
    },
  };
}
