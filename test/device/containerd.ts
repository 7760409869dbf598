/** A containerd of a test bed's own: everything it writes is in the bed's folder, its bridge and subnet are nobody else's. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sandboxImage } from './images.ts';
import { mustRun } from './process.ts';
import type { BedRecord } from './registry.ts';

export interface BedPaths {
  readonly dir: string;
  readonly root: string;
  readonly state: string;
  readonly socket: string;
  readonly config: string;
  readonly log: string;
  /** Where the runtime keeps the bundle of each running container. */
  readonly bundles: string;
}

export const bedPaths = (dir: string): BedPaths => ({
  dir,
  root: join(dir, 'root'),
  state: join(dir, 'state'),
  socket: join(dir, 'containerd.sock'),
  config: join(dir, 'config.toml'),
  log: join(dir, 'containerd.log'),
  bundles: join(dir, 'state/io.containerd.runtime.v2.task/k8s.io'),
});

/** Overlay on overlay is refused by the kernel (a machine that is itself a container): then plain copies. */
async function snapshotter(dir: string): Promise<string> {
  return (await mustRun('stat', ['-f', '-c', '%T', dir])).trim() === 'overlayfs' ? 'native' : 'overlayfs';
}

const cniBin = (): string => ['/usr/lib/cni', '/opt/cni/bin'].find((dir) => existsSync(join(dir, 'bridge'))) ?? '/usr/lib/cni';

/** Writes config.toml and the CNI network. `restrict_oom_score_adj`: a machine without CAP_SYS_RESOURCE cannot lower it, and then no sandbox starts. */
export async function writeContainerdConfig(record: BedRecord): Promise<void> {
  const paths = bedPaths(record.dir);
  const cni = join(record.dir, 'cni');
  for (const dir of [cni, paths.root, paths.bundles]) mkdirSync(dir, { recursive: true });
  writeFileSync(
    paths.config,
    `version = 2
root = "${paths.root}"
state = "${paths.state}"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
address = "${paths.socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "${sandboxImage.ref}"
restrict_oom_score_adj = true
disable_apparmor = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "${cniBin()}"
conf_dir = "${cni}"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "${await snapshotter(record.dir)}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
Root = "${join(record.dir, 'runc')}"
SystemdCgroup = false
`,
  );
  const network = {
    cniVersion: '0.4.0',
    name: record.network,
    plugins: [
      {
        type: 'bridge',
        bridge: record.bridge,
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir: join(record.dir, 'ipam'),
          ranges: [[{ subnet: record.subnet }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
  writeFileSync(join(cni, '10-bed.conflist'), JSON.stringify(network, undefined, 2));
}

/** The cgroup parents (`/kubepods/besteffort/pod<uid>`) of the containers that run now, read from their bundles. */
export function cgroupParents(bundles: string): string[] {
  let ids: string[];
  try {
    ids = readdirSync(bundles);
  } catch {
    return []; // no container yet
  }
  return ids.flatMap((id) => {
    try {
      const spec = JSON.parse(readFileSync(join(bundles, id, 'config.json'), 'utf8')) as { linux?: { cgroupsPath?: string } };
      const path = spec.linux?.cgroupsPath ?? '';
      return /^\/kubepods(\/burstable|\/besteffort)?\/pod[^/]+\//.test(path) ? [path.slice(0, path.lastIndexOf('/'))] : [];
    } catch {
      return []; // half written or gone: the next look has it
    }
  });
}
