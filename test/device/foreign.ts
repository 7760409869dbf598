/** Containers that somebody else made in the same containerd: in another namespace, in CRI's own without a label, and a pod of another agent. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PodUid } from '../../src/api/objects.ts';
import { labels } from '../../src/container/words.ts';
import { CriRuntime } from '../../src/cri/runtime.ts';
import { silentLog } from '../../src/world/log.ts';
import { containerConfig, sandboxConfig } from '../fakes/runtimeConfigs.ts';
import type { Bed } from './bed.ts';
import { busybox1, imageArchive } from './images.ts';
import { mustRun, run } from './process.ts';

export interface Foreigners {
  /** One line for each that runs: where it is, its id, and its process. */
  running(): Promise<string[]>;
  remove(): Promise<void>;
}

const namespaces = ['k8s.io', 'somebody-else'] as const;
const id = 'foreign';

export async function startForeigners(bed: Bed): Promise<Foreigners> {
  const snapshotter = /snapshotter = "(\w+)"/.exec(readFileSync(join(bed.dir, 'config.toml'), 'utf8'))?.[1] ?? 'overlayfs';
  const ctr = (namespace: string, ...args: string[]) => mustRun('ctr', ['-a', bed.socket, '-n', namespace, ...args]);
  await ctr('somebody-else', 'images', 'import', '--snapshotter', snapshotter, await imageArchive(busybox1));
  for (const namespace of namespaces)
    await ctr(namespace, 'run', '-d', '--snapshotter', snapshotter, busybox1.ref, id, '/bin/sleep', '2147483647');

  const cri = new CriRuntime({ endpoint: bed.endpoint, log: silentLog });
  const others: string[] = [];
  for (const [name, own] of [
    ['kubelets', {}],
    ['neighbours', { [labels.managed]: 'another-node' }],
  ] as const) {
    const uid = randomUUID() as PodUid;
    const pod = sandboxConfig(name, {
      uid,
      labels: own,
      logDirectory: join(bed.dir, 'logs', name),
      cgroupParent: `/kubepods/besteffort/pod${uid}`,
    });
    const sandbox = await cri.runSandbox(pod, '');
    const container = await cri.createContainer(sandbox, containerConfig(pod, 'main', { labels: own }), pod);
    await cri.startContainer(container);
    others.push(sandbox, container);
  }
  cri.close();
  return {
    running: async () => {
      const lines: string[] = [];
      for (const namespace of namespaces) {
        for (const line of (await ctr(namespace, 'tasks', 'ls')).split('\n')) {
          const [task = '', pid, state] = line.trim().split(/\s+/);
          if (state === 'RUNNING' && (task === id || others.includes(task))) lines.push(`${namespace} ${task} ${pid}`);
        }
      }
      return lines.sort();
    },
    remove: async () => {
      for (const namespace of namespaces) {
        await run('ctr', ['-a', bed.socket, '-n', namespace, 'tasks', 'kill', '--signal', 'SIGKILL', id]);
        await run('ctr', ['-a', bed.socket, '-n', namespace, 'tasks', 'delete', '--force', id]);
        await run('ctr', ['-a', bed.socket, '-n', namespace, 'containers', 'delete', id]);
      }
    },
  };
}
