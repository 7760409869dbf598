/** What the windows of the agent (local API, commands) see of it and may ask of it: each question goes to the room that knows. Owns nothing. */
import type { PodschedConfiguration } from './api/configuration.ts';
import { isNotFound } from './container/runtime.ts';
import type { ContainerId } from './container/words.ts';
import type { CriRuntime } from './cri/runtime.ts';
import type { Kubelet } from './kubelet.ts';
import type { NodeObject } from './node/info.ts';
import type { AgentView, NodeCondition } from './operations/agentView.ts';
import type { BundleDeps, SupportBundles } from './operations/bundle.ts';
import { addEphemeral } from './operations/debug.ts';
import { execCaptured } from './operations/execCaptured.ts';
import { type ImagesDeps, imagesView } from './operations/images.ts';
import { openLogs } from './operations/logs.ts';
import { actOnNode, type NodeActDeps } from './operations/nodeActs.ts';
import { listObjects } from './operations/objects.ts';
import { actOnPod } from './operations/podActs.ts';
import type { StatsView } from './operations/stats.ts';
import { openStream } from './operations/stream.ts';
import type { Clock } from './world/clock.ts';

export interface ViewParts {
  readonly clock: Clock;
  readonly version: string;
  readonly nodeName: string;
  readonly runtime: CriRuntime;
  readonly kubelet: Kubelet;
  readonly conditions: () => NodeCondition[];
  readonly node: () => Promise<NodeObject>;
  readonly stats: StatsView;
  readonly importer: ImagesDeps['importer'];
  readonly configuration: () => PodschedConfiguration;
  /** Whether it is connected; undefined: there is none. */
  readonly broker: (() => boolean) | undefined;
  readonly nodeActs: NodeActDeps;
  /** What of a bundle the view does not have. */
  readonly bundle: Pick<BundleDeps, 'agent' | 'broker' | 'doctor' | 'kernelLines' | 'runtime' | 'pods'>;
}

export function buildView({
  clock,
  version,
  nodeName,
  runtime,
  kubelet,
  conditions,
  node,
  stats,
  importer,
  configuration,
  broker,
  nodeActs,
  bundle,
}: ViewParts): AgentView {
  const view: AgentView = {
    ...{ nodeName, version, conditions, node, stats, configuration },
    pods: () => kubelet.status.whole(),
    sync: () => kubelet.status.sync(),
    files: () => kubelet.status.files(),
    events: (filter) => kubelet.events.list(filter),
    health: () => {
      const down = kubelet.runtimeState.down();
      const { fault } = kubelet.config.view().folder;
      const reached = broker === undefined || broker();
      return [
        { name: 'runtime', ok: down === undefined, message: down ?? 'ok' },
        { name: 'manifests', ok: fault === undefined, message: fault ?? 'ok' },
        { name: 'broker', ok: reached, message: reached ? 'ok' : 'not connected' },
      ];
    },
    logs: (request, signal) =>
      openLogs(request, signal, {
        clock,
        pods: () => kubelet.status.told(),
        logPath: (id) =>
          runtime.containerStatus(id as ContainerId).then(
            (c) => c.logPath,
            (e) => (isNotFound(e) ? undefined : Promise.reject(e)),
          ),
      }),
    stream: (request) => openStream(request, { pods: () => kubelet.status.whole(), runtime }),
    debug: (request) =>
      addEphemeral(request, {
        pods: () => kubelet.status.told(),
        desired: (uid) => kubelet.pods.get(uid),
        add: (uid, container) => kubelet.podSide.addEphemeral(uid, container),
      }),
    execCaptured: (request, signal) => execCaptured(request, { pods: () => kubelet.status.whole(), runtime }, signal),
    act: (request) => actOnPod(request, kubelet.verbs.podActs),
    nodeAct: (request) => actOnNode(request, nodeActs),
    bundle: async (signal) => (await bundles()).make(signal),
    ...(bundle.doctor && { doctor: bundle.doctor }),
    objects: () => listObjects(kubelet.config.view(), (key) => kubelet.config.object(key), kubelet.pods.list()),
    images: imagesView({ gc: kubelet.images.gc, puller: kubelet.images.manager, importer, pins: kubelet.images.pins }),
  };
  let made: Promise<SupportBundles> | undefined;
  const bundles = (): Promise<SupportBundles> => {
    made ??= import('./operations/bundle.ts').then(
      ({ SupportBundles }) =>
        new SupportBundles({
          ...{ clock, nodeName, version, conditions, configuration, node, ...bundle },
          sync: () => view.sync(),
          files: () => view.files(),
          objects: () => view.objects?.() ?? [],
          events: () => view.events({}),
          health: () => view.health(),
          images: async () => (await view.images?.list()) ?? [],
        }),
    );
    return made;
  };
  return view;
}
