/**
 * The agent on a real machine: builds the real world (stores, containerd, broker, folder, socket) around the kubelet wiring, and takes it down
 * again. Owns only what it opened. Stopping the agent stops no pod.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { hostSockets, socketHolder } from './admission/hostSockets.ts';
import { buildSession, openServers } from './agentBroker.ts';
import { agentConditions } from './agentConditions.ts';
import { systemEviction } from './agentEviction.ts';
import { Fleet } from './agentFleet.ts';
import { buildAgentImages } from './agentImages.ts';
import { ownMemoryLimit, watchOwnMemory } from './agentMemory.ts';
import { readNode } from './agentNode.ts';
import { buildNodeStatus } from './agentNodeStatus.ts';
import { buildRemote } from './agentRemote.ts';
import { buildStats } from './agentStats.ts';
import { buildView } from './agentWindows.ts';
import type { PodschedConfiguration } from './api/configuration.ts';
import { keyText, type PodUid } from './api/objects.ts';
import { expirySeconds, maxRetainedBytes } from './api/topics.ts';
import { systemDeviceFiles } from './cm/deviceFiles.ts';
import { FsFolderReader } from './config/folderReader.ts';
import { checkHealth } from './cri/health.ts';
import { CriRuntime } from './cri/runtime.ts';
import { systemGateFacts } from './gates/facts.ts';
import { Kubelet } from './kubelet.ts';
import { readCmWorld } from './kubeletCm.ts';
import { cpuSettings } from './kubeletCpu.ts';
import { buildPolicy } from './kubeletPolicy.ts';
import { podDns } from './kuberuntime/dns.ts';
import { lastWords } from './kuberuntime/lastWords.ts';
import { LogRotation } from './kuberuntime/logRotation.ts';
import { fsLogFolders } from './kuberuntime/logs.ts';
import { ownAddresses, recentHostIps } from './node/addresses.ts';
import { readHostDns, watchHostDns } from './node/hostDns.ts';
import { loadIdentity } from './node/identity.ts';
import type { AgentView, NodeCondition } from './operations/agentView.ts';
import { startServer } from './server/server.ts';
import { FileStore } from './store/fileStore.ts';
import { VolumeManager } from './volumes/manager.ts';
import { systemMounter } from './volumes/mount.ts';
import { systemClock } from './world/clock.ts';
import { describeError, type Log } from './world/log.ts';

export interface AgentOptions {
  readonly config: PodschedConfiguration;
  readonly log: Log;
  readonly version: string;
  /** Of the start itself: ConfigurationInvalid. */
  readonly conditions: readonly NodeCondition[];
  /** It has become too large, which is told, and should be started anew. */
  readonly outgrown: () => void;
  /** `_config` sets another level than the file. */
  readonly setLevel: (level: PodschedConfiguration['logging.level']) => void;
}

export interface RunningAgent {
  readonly view: AgentView;
  /** Takes over what may change while running. */
  reload(config: PodschedConfiguration, conditions: readonly NodeCondition[]): void;
  /** `offline` is said; pods keep running. */
  stop(): Promise<void>;
}

/** Rejects with AlreadyRunning when another agent answers on the socket, and when a store or the embedded broker cannot be opened. */
export async function startAgent(o: AgentOptions): Promise<RunningAgent> {
  const { log, version } = o;
  let { config, conditions: startConditions } = o;
  const clock = systemClock;
  for (const dir of [config.runDir, config.stateDir, config.podLogsDir]) await mkdir(dir, { recursive: true, mode: 0o750 });

  const stateStore = new FileStore(join(config.stateDir, 'state'), { durable: true });
  const runStore = new FileStore(join(config.runDir, 'state'), { durable: false });
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // each part hears of the end
  const runtime = new CriRuntime({ endpoint: config.containerRuntimeEndpoint, requestTimeoutMs: config.runtimeRequestTimeout, log, clock });

  let view: AgentView | undefined;
  let toldInfo = '';
  /** What `info` tells may be another thing. */
  let news = (): void => {};
  // bound first: it is what keeps a second agent away
  const server = await startServer({ socketPath: join(config.runDir, 'podsched.sock'), agent: () => view, log });
  const identity = await loadIdentity({
    store: stateStore,
    log,
    configuredName: config.nodeName,
    roots: { proc: '/proc', sys: '/sys' },
    randomMachine: () => randomBytes(6).toString('hex'),
    randomBootId: randomUUID,
  });

  let lastSeq = 0;
  const seq = (): number => {
    lastSeq = Math.max(lastSeq + 1, Math.floor(clock.monotonic() * 1000));
    return lastSeq;
  };
  const { servers, embedded } = await openServers(config, log);
  const nodeEvent = (type: 'Normal' | 'Warning', reason: string, message: string): void =>
    kubelet.events.event({ kind: 'Node', namespace: 'default', name: identity.nodeName }, type, reason, message);
  const remote = buildRemote({
    ...{ clock, log, store: stateStore, nodeName: identity.nodeName },
    config: () => config,
    session: () => session,
    commands: () => fleet.commands,
    homeAssistant: () => fleet.homeAssistant,
    configChanged: () => setFromAfar(),
  });
  const labels = (): Readonly<Record<string, string>> => ({ ...config.nodeLabels, ...remote.source?.config()?.labels });
  const groups = (): readonly string[] => remote.source?.groups() ?? config['mqtt.groups'];
  const policy = await buildPolicy({
    ...{ clock, log, stateStore },
    settings: () => config,
    receiver: () => ({ node: identity.nodeName, groups: groups() }),
    keyProblems: () => news(),
  });
  const heartbeatSeconds = () =>
    remote.source?.config()?.heartbeatSeconds ??
    (config['mqtt.profile'] === 'quiet' ? 900 : Math.round(config.nodeStatusUpdateFrequency / 1000));
  const session = buildSession({
    ...{ clock, log, config, servers, identity, seq, heartbeatSeconds, agentVersion: version, event: nodeEvent },
    inbox: remote.inbox,
    onHeartbeat: () => {
      tellInfo();
      fleet.heartbeat();
      moved();
    },
    onSettled: () => fleet.heartbeat(),
    onBootAdopted: () => {
      kubelet.status.retell();
      fleet.retell();
      toldInfo = '';
      tellInfo();
    },
  });

  const node = await readNode({
    ...{ nodeName: identity.nodeName, labels, configuration: config },
    ...{ maxPods: config.maxPods, podLogsDir: config.podLogsDir },
  });
  const cgroups = await readCmWorld(node, config.containerRuntimeEndpoint);
  const hostIps = recentHostIps(clock);
  const hostDns = () => readHostDns(config.resolvConf);
  const volumes = new VolumeManager({
    clock,
    log,
    podsDir: join(config.stateDir, 'pods'),
    mounter: systemMounter,
    nodeMemoryBytes: totalmem(),
    dnsOf: ({ pod }) => podDns(pod, { hostDns: hostDns(), clusterDns: config.clusterDNS, clusterDomain: config.clusterDomain }).dns,
    hostsFile: '/etc/hosts',
    clusterDomain: config.clusterDomain,
    nodeCpus: cpus().length,
    nodeStorageBytes: node.storageBytes,
    objects: (kind, namespace, name, source) => kubelet.config.objectFor(keyText({ kind, namespace, name }), source),
    recursiveReadOnly: (handler) => kubelet.recursiveReadOnly(handler),
    rootOf: (desired, path) => policy.rootOf(desired, path),
    checkPath: async (desired, path) => {
      await policy.checkPath(desired, path);
      await kubelet.gates.checkPath(desired, path);
    },
    runtimeVersion: () => ({ name: kubelet.runtimeState.runtimeName(), version: kubelet.runtimeState.runtimeVersion() }),
    seLinux: () => existsSync('/sys/fs/selinux/enforce'),
    lives: async (uid) =>
      (await runtime.listSandboxes(uid)).some((s) => s.state === 'ready') ||
      (await runtime.listContainers(uid)).some((c) => c.state === 'running' || c.state === 'unknown'),
  });
  const moved = (): void => session.addressesAre(ownAddresses());
  watchHostDns(config.resolvConf, { clock, onChange: () => void volumes.resolvChanged().then(moved) }, stop.signal);
  const logRotation = new LogRotation({
    ...{ clock, log, runtime },
    maxSizeBytes: () => config.containerLogMaxSize,
    maxFiles: () => config.containerLogMaxFiles,
    containers: () => kubelet.ears.containers(),
  });
  const images = buildAgentImages({
    ...{ clock, log, runtime, stateStore },
    stateDir: config.stateDir,
    runDir: config.runDir,
    configDir: config.staticPodPath,
    runtimeEndpoint: config.containerRuntimeEndpoint,
    event: nodeEvent,
    conditionsChanged: () => tellInfo(),
    imported: () => kubelet.wakeAll(),
  });
  const folder = new FsFolderReader(config.staticPodPath, { clock, pollMs: () => config.fileCheckFrequency });
  const kubelet = new Kubelet(
    {
      clock,
      log,
      runtime,
      ...images.world,
      folder,
      stateStore,
      runStore,
      ...(remote.source && { remote: remote.source }),
      policy: policy.gate,
      logFolders: fsLogFolders(config.podLogsDir),
      volumes,
      gates: systemGateFacts(clock, systemMounter.mountPoints),
      grpcCheck: (check) => checkHealth(clock, check),
      lastWords: (status) => lastWords(status, node.pageBytes),
      podNews: () => logRotation.look(),
      broker: {
        tell: (topic, payload, { expirySeconds }) => {
          session.tell(topic, payload, { qos: 1, expirySeconds });
          fleet.changed();
        },
        send: (topic, payload, { expirySeconds }) => session.send(topic, payload, { qos: 1, expirySeconds }),
        setReady: () => {
          session.setReady();
          fleet.ready();
        },
        maxBytes: () => maxRetainedBytes,
      },
      random: Math.random,
      newUid: () => randomUUID() as PodUid,
      bootId: identity.bootId,
      boot: () => identity.boot(),
      seq,
      hostDns,
      hostIps,
      ...{ hugepageSizes: node.hugepageSizes, countsSwap: node.countsSwap, thermalThrottlePaths: node.thermalThrottlePaths },
      ...{ nodeMemoryBytes: totalmem(), nodeCpus: cpus().length, nodeStorageBytes: node.storageBytes, nodeFacts: node.facts },
      hostSockets: () => hostSockets('/proc'),
      socketHolder: (socket) => socketHolder('/proc', socket),
      conditionsChanged: () => tellInfo(),
      deviceFiles: systemDeviceFiles(),
      cgroups,
      cpus: cpuSettings(config, cgroups.facts, '/sys'),
      eviction: systemEviction(config, '/proc'),
    },
    {
      nodeName: identity.nodeName,
      formerNames: identity.formerNames(),
      prefix: config['mqtt.prefix'],
      podLogsDir: config.podLogsDir,
      cgroupDriver: config.cgroupDriver,
      cgroupRoot: config.cgroupRoot,
      cgroupsPerQos: config.cgroupsPerQOS,
      podPidsLimit: config.podPidsLimit,
      syncFrequencyMs: () => config.syncFrequency,
      maxContainerRestartMs: config['crashLoopBackOff.maxContainerRestartPeriod'],
      serializeImagePulls: config.serializeImagePulls,
      maxParallelImagePulls: config.maxParallelImagePulls,
      strict: () => config.strict,
      allowedUnsafeSysctls: config.allowedUnsafeSysctls,
      deviceClasses: () => config.devices,
      clusterDns: config.clusterDNS,
      clusterDomain: config.clusterDomain,
      seccompDefault: config.seccompDefault,
      seccompFolder: join(config.stateDir, 'seccomp'),
      nodeValues: node.values,
      imageGc: () => ({
        highPercent: config.imageGCHighThresholdPercent,
        lowPercent: config.imageGCLowThresholdPercent,
        minimumAgeMs: config.imageMinimumGCAge,
      }),
    },
  );

  const conditions = (): NodeCondition[] =>
    agentConditions({
      kubelet,
      images: () => images.conditions(),
      identity: () => identity.conditions(),
      session: () => session.conditions(),
      more: () =>
        policy.keys
          .problems()
          .map(({ file, message }) => ({ type: 'KeysUnreadable', reason: 'KeysUnreadable', message: `${file}: ${message}` })),
      start: () => startConditions,
    });

  const nodeStatus = buildNodeStatus({
    ...{ clock, log, node, identity, version, hostIps },
    store: runStore,
    stateDir: config.stateDir,
    podLogsDir: config.podLogsDir,
    labels,
    images: () => runtime.images.listImages(),
    heartbeatMs: () => heartbeatSeconds() * 1000,
    runtimeState: () => kubelet.runtimeState,
    others: conditions,
    pressures: () => kubelet.resources.eviction?.manager.conditions() ?? [],
    devices: () => kubelet.resources.deviceCounts(),
    event: nodeEvent,
    changed: () => tellInfo(),
    fleet: () => ({ groups: groups(), sealingKey: policy.sealingKey(), config: remote.source?.config() }),
  });

  const tellInfo = (): void => {
    const info = nodeStatus.told();
    const text = JSON.stringify(info);
    if (text === toldInfo) return;
    toldInfo = text;
    fleet.changed();
    const annotations = { ...info.metadata.annotations, 'podsched.dev/boot': String(identity.boot()), 'podsched.dev/seq': String(seq()) };
    const payload = JSON.stringify({ ...info, metadata: { ...info.metadata, annotations } });
    session.tell(session.topics.info, payload, { qos: 1, expirySeconds: expirySeconds.info });
  };

  const stats = buildStats({
    ...{ clock, runtime },
    nodeName: identity.nodeName,
    pods: () => kubelet.status.whole(),
    usage: kubelet.resources.usage(),
    probeCosts: (id) => kubelet.podSide.probes.costs(id),
    ...{ allocatable: node.allocatable, stateDir: config.stateDir, podLogsDir: config.podLogsDir },
    roots: { proc: '/proc', sys: '/sys', etc: '/etc', run: '/run' },
  });
  const readKeys = async (): Promise<void> => {
    try {
      if (await policy.reload()) await kubelet.config.policyChanged();
    } catch (e) {
      log.warn({ error: describeError(e) }, 'policy and keys could not be read again');
    }
  };
  const allConditions = (): NodeCondition[] => [...conditions(), ...nodeStatus.board()];
  const fleet = new Fleet({
    ...{ clock, log, version, identity, seq, stateStore, runStore, runtime, session, remote, policy, kubelet, nodeStatus, stats },
    ...{ heartbeatSeconds, event: nodeEvent, conditions: allConditions, readKeys },
    ...{ config: () => config, view: () => view },
  });
  /** What `_config` sets counts from now on, over the file. */
  const setFromAfar = (): void => {
    o.setLevel(remote.source?.config()?.logLevel ?? config['logging.level']);
    session.heartbeatChanged();
    // labels may be others
    kubelet.admission.again();
    kubelet.resources.devices.freed();
    remote.source?.settingsChanged();
    kubelet.config.readFolder().catch((e) => log.warn({ error: describeError(e) }, 'reading the manifests failed'));
    fleet.changed();
    tellInfo();
  };
  const windows = buildView({
    ...{ clock, version, runtime, kubelet, stats, nodeName: identity.nodeName, conditions: allConditions },
    node: () => nodeStatus.whole(),
    ...{ nodeActs: fleet.verbs.nodeActs(), bundle: fleet.verbs.bundleParts(), importer: images.preload },
    configuration: () => config,
    broker: servers.length === 0 ? undefined : () => session.connected(),
  });

  // without a broker nobody remembers a greater number
  if (servers.length === 0) await identity.adoptBoot(undefined);
  await nodeStatus.load(); // before anything of it is told
  news = tellInfo;
  await fleet.load();
  await images.preload.load(); // what is pinned is known before anything may go
  await kubelet.start();
  fleet.start();
  // what is stored of topics is read: what a resumed session brings first is not lost, and groups are those that `_config` set
  remote.start();
  const running = session.run(stop.signal);
  // what an earlier agent said is read: before that the windows would show less than there is
  view = windows;
  await images.preload.run(stop.signal);
  const rotating = logRotation.run(stop.signal);
  const watching = nodeStatus.run(stop.signal);
  const tooLarge = (message: string): void => {
    log.error({}, message);
    nodeEvent('Warning', 'AgentTooLarge', message);
    o.outgrown();
  };
  const weighing = watchOwnMemory(
    { clock, log, limitBytes: ownMemoryLimit(totalmem()), rssBytes: process.memoryUsage.rss, tooLarge },
    stop.signal,
  );
  tellInfo();

  return {
    view,
    reload: (next, conditionsNow) => {
      config = next;
      startConditions = conditionsNow;
      void readKeys(); // it never rejects
      setFromAfar();
    },
    stop: async () => {
      await kubelet.stop();
      remote.source?.stop();
      await fleet.stop();
      await session.stop();
      stop.abort();
      await Promise.all([running, rotating, watching, weighing]);
      runtime.close();
      await embedded?.close();
      await server.close();
    },
  };
}
