/**
 * The agent's images on this machine: the door to containerd for them, registry credentials, archives, and the image of sandboxes. Owns
 * nothing; images/ does.
 */
import { join } from 'node:path';
import type { CriRuntime } from './cri/runtime.ts';
import { CredentialsFolder } from './images/credentialsFolder.ts';
import { DiskSync, flushFilesystem, pullsToDisk } from './images/diskSync.ts';
import { diskUse } from './images/diskUse.ts';
import type { Importer } from './images/importer.ts';
import { kernelPlatform } from './images/kernelPlatform.ts';
import { Preload } from './images/preload.ts';
import { SandboxImage } from './images/sandboxImage.ts';
import type { KubeletWorld } from './kubeletWorld.ts';
import { logEnd } from './kuberuntime/lastWords.ts';
import type { Clock } from './world/clock.ts';
import type { Log } from './world/log.ts';
import type { Store } from './world/store.ts';

export interface AgentImagesDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly runtime: CriRuntime;
  readonly stateStore: Store;
  readonly stateDir: string;
  readonly runDir: string;
  /** The folder that has `credentials.d`. */
  readonly configDir: string;
  readonly runtimeEndpoint: string;
  /** Of the node. */
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
  readonly conditionsChanged: () => void;
  /** Images came from archives: pods may wait for them. */
  readonly imported: () => void;
}

export interface AgentImages {
  readonly world: Required<Pick<KubeletWorld, 'images' | 'content' | 'credentials' | 'diskUse' | 'archives' | 'logEnd'>> &
    Pick<KubeletWorld, 'nodePlatform'>;
  readonly preload: Preload;
  /** What is not as it should be, by the type of its condition. */
  conditions(): readonly { readonly type: string; readonly message: string }[];
}

/** As containerd's file names the image of sandboxes; undefined: it does not. */
async function inConfiguration(): Promise<string | undefined> {
  const { readConfig } = await import('./operations/containerdConfig.ts');
  const { readConfigFile } = await import('./operations/containerdConfigFile.ts');
  return readConfig((await readConfigFile('/etc/containerd/config.toml')) ?? '').sandboxImage;
}

export function buildAgentImages(deps: AgentImagesDeps): AgentImages {
  const { clock, log, runtime, event, conditionsChanged: changed } = deps;
  const { images } = runtime;
  const node = kernelPlatform();
  const credentials = new CredentialsFolder({ log, dir: join(deps.configDir, 'credentials.d'), onProblems: changed });
  const disk = new DiskSync({ clock, log, images, flush: flushFilesystem });
  let importer: Promise<Importer> | undefined;
  // most nodes never import anything
  const importFile: Importer['importFile'] = async (path, o) => {
    importer ??= import('./images/importer.ts').then(
      ({ Importer }) =>
        new Importer({
          ...{ clock, log, images, content: images, node },
          socket: deps.runtimeEndpoint.replace(/^unix:\/\//, ''),
          snapshotter: () => runtime.snapshotter(),
          flush: () => disk.sync(),
        }),
    );
    return (await importer).importFile(path, o);
  };
  const sandboxImage = new SandboxImage({
    ...{ clock, log, images, importFile, event, changed },
    runDir: deps.runDir,
    // containerd 2 does not tell: its configuration does, where it names one
    sandboxImage: async () => (await runtime.sandboxImage()) ?? (await inConfiguration()),
  });
  const preload = new Preload({
    ...{ clock, log, images, content: images, importFile, sandboxImage, event, changed },
    folder: join(deps.stateDir, 'images'),
    store: deps.stateStore,
    imported: deps.imported,
  });
  return {
    world: {
      images: pullsToDisk(images, disk),
      content: images,
      credentials,
      diskUse,
      logEnd,
      archives: {
        settled: (signal) => preload.settled(signal),
        sandboxSettled: (signal) => sandboxImage.settled(signal),
        runtimeUp: (signal) => preload.runtimeUp(signal),
        imported: () => preload.imported(),
        importAgain: (name, signal) => preload.importAgain(name, signal),
      },
      ...(node && { nodePlatform: node }),
    },
    preload,
    conditions: () => {
      const all = [
        { type: 'CredentialsInvalid', message: credentials.trouble() },
        { type: 'ImportFailed', message: preload.condition() },
        { type: 'SandboxImageMissing', message: sandboxImage.condition() },
      ];
      return all.flatMap(({ type, message }) => (message === undefined ? [] : [{ type, message }]));
    },
  };
}
