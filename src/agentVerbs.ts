/**
 * The agent's half of what a person may ask of the node: the light, the doctor, the bundle, and leaving the fleet. Owns the light while it
 * blinks. What is seldom asked for is loaded when it is.
 */
import type { PodschedConfiguration } from './api/configuration.ts';
import type { CriRuntime } from './cri/runtime.ts';
import type { Kubelet } from './kubelet.ts';
import type { BundleDeps } from './operations/bundle.ts';
import type { Finding } from './operations/doctorFinding.ts';
import { Identify } from './operations/identify.ts';
import type { NodeActDeps } from './operations/nodeActs.ts';
import type { Clock } from './world/clock.ts';
import { describeError, type Log } from './world/log.ts';
import type { Store } from './world/store.ts';

export interface AgentVerbParts {
  readonly clock: Clock;
  readonly log: Log;
  /** runDir. */
  readonly runStore: Store;
  readonly nodeName: string;
  readonly runtime: CriRuntime;
  readonly kubelet: () => Kubelet;
  readonly config: () => PodschedConfiguration;
  /** Policy and keys.d once more. Rejects never. */
  readonly readKeys: () => Promise<void>;
  /** Of the agent's own process. */
  readonly bootId: string;
  readonly boot: () => number;
  /** The broker; left out: there is none. */
  readonly broker?: {
    /** Everything is told once more. */
    resync(): void;
    /** Numbers and troubles of the connection, for a bundle. */
    describe(): object;
    /** Desired topics are read once more. */
    readAgain?(): void;
    /** What is stored of topics goes, and with it the pods that came by them; the number of objects. */
    forgetAll?(): Promise<number>;
    /** Own topics are cleared, and the connection is left for good. */
    leave?(): Promise<void>;
  };
  /** What only a lost checkpoint keeps may go. False: nothing was lost. Left out: nothing is ever lost. */
  readonly forgetLost?: () => Promise<boolean>;
}

/** The answer to who asked goes out first. */
const leaveAfterMs = 5_000;

export class AgentVerbs {
  readonly identify: Identify;
  #stop = new AbortController();

  constructor(private readonly parts: AgentVerbParts) {
    const { clock, log, runStore: store } = parts;
    this.identify = new Identify({ clock, log, store, sysRoot: '/sys' });
  }

  /** Puts back the light that a killed agent left. Never rejects. */
  load(): Promise<void> {
    return this.identify.load();
  }

  /** The light is as it was when it resolves. Never rejects. */
  stop(): Promise<void> {
    this.#stop.abort();
    return this.identify.stop();
  }

  nodeActs(): NodeActDeps {
    const { nodeName, kubelet, broker, forgetLost } = this.parts;
    return {
      nodeName,
      readSources: async () => {
        await this.parts.readKeys();
        broker?.readAgain?.();
        await kubelet().config.readFolder();
      },
      tellAll: () => {
        kubelet().status.retell();
        broker?.resync();
      },
      forgetLost: async () => (await forgetLost?.()) === true,
      blink: (seconds) => this.identify.blink(seconds),
      decommission: async () => {
        if (broker?.forgetAll === undefined || broker.leave === undefined) return undefined;
        const objects = await broker.forgetAll();
        this.#leave(() => broker.leave?.() ?? Promise.resolve());
        return objects;
      },
    };
  }

  async doctor(): Promise<readonly Finding[]> {
    const { runtime, config } = this.parts;
    const [{ examine }, { systemDoctorDeps }] = await Promise.all([
      import('./operations/doctor.ts'),
      import('./operations/doctorSystem.ts'),
    ]);
    const { containerRuntimeEndpoint: endpoint, staticPodPath: manifests, stateDir, podLogsDir } = config();
    const isHere = async (image: string): Promise<boolean> => (await runtime.images.imageStatus(image)) !== undefined;
    const containerdConfig = '/etc/containerd/config.toml';
    return examine(await systemDoctorDeps({ runtime, isHere, endpoint, containerdConfig, manifests, stateDir, podLogsDir }));
  }

  /** The parts of a bundle that the view does not have. */
  bundleParts(): Pick<BundleDeps, 'agent' | 'broker' | 'doctor' | 'kernelLines' | 'runtime' | 'pods'> {
    const { runtime, broker, bootId, boot, kubelet } = this.parts;
    return {
      runtime,
      pods: () => kubelet().status.told(),
      agent: () => ({
        ...{ pid: process.pid, node: process.version, arch: process.arch, bootId, boot: boot() },
        uptimeSeconds: Math.round(process.uptime()),
        memory: process.memoryUsage(),
      }),
      ...(broker && { broker: () => broker.describe() }),
      doctor: () => this.doctor(),
      kernelLines: async (signal) => (await import('./operations/kernelLines.ts')).kernelLines('/dev/kmsg', signal),
    };
  }

  #leave(leave: () => Promise<void>): void {
    const { clock, log } = this.parts;
    clock
      .sleep(leaveAfterMs, this.#stop.signal)
      .then(leave)
      .catch((e) => {
        if (!this.#stop.signal.aborted) log.error({ error: describeError(e) }, 'the topics of this node could not be cleared');
      });
  }
}
