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
import { credentials, openServers } from './agentBroker.ts';
import { systemEviction } from './agentEviction.ts';
import { buildAgentImages } from './agentImages.ts';
import { ownMemoryLimit, watchOwnMemory } from './agentMemory.ts';
import { readNode } from './agentNode.ts';
import { buildNodeStatus } from './agentNodeStatus.ts';
import { buildStats } from './agentStats.ts';
import { buildView } from './agentWindows.ts';
import type { PodschedConfiguration } from './api/configuration.ts';
import { keyText, type PodUid } from './api/objects.ts';
import { expirySeconds, maxRetainedBytes } from './api/topics.ts';
import { MqttBroker } from './broker/client.ts';
import { BrokerSession } from './broker/session.ts';
import { systemDeviceFiles } from './cm/deviceFiles.ts';
import { FsFolderReader } from './config/folderReader.ts';
import { checkHealth } from './cri/health.ts';
import { CriRuntime } from './cri/runtime.ts';
import { systemGateFacts, wasSetByTimesyncd } from './gates/facts.ts';
import { Kubelet } from './kubelet.ts';
import { readCmWorld } from './kubeletCm.ts';
import { cpuSettings } from './kubeletCpu.ts';
import { podDns } from './kuberuntime/dns.ts';
import { lastWords } from './kuberuntime/lastWords.ts';
import { LogRotation } from './kuberuntime/logRotation.ts';
import { fsLogFolders } from './kuberuntime/logs.ts';
import { recentHostIps } from './node/addresses.ts';
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
  const heartbeatSeconds = () => (config['mqtt.profile'] === 'quiet' ? 900 : Math.round(config.nodeStatusUpdateFrequency / 1000));
  const session = new BrokerSession({
    clock,
    log,
    broker: new MqttBroker(),
    servers,
    identity,
    prefix: config['mqtt.prefix'],
    clientId: config['mqtt.clientId'] || `podsched-${identity.nodeName}-${identity.machine}`,
    credentials: () => credentials(config),
    keepaliveSeconds: config['mqtt.profile'] === 'quiet' ? 600 : Math.round(config['mqtt.keepalive'] / 1000),
    heartbeatSeconds,
    random: Math.random,
    agentVersion: version,
    clockSynced: wasSetByTimesyncd,
    seq,
    insecure: config['mqtt.insecure'],
    report: ({ topic, message }) =>
      kubelet.events.event({ kind: 'Node', namespace: 'default', name: identity.nodeName }, 'Warning', 'NotTold', `${topic}: ${message}`),
    onHeartbeat: () => tellInfo(),
    onBootAdopted: () => {
      kubelet.status.retell();
      toldInfo = '';
      tellInfo();
    },
  });

  const node = await readNode({
    nodeName: identity.nodeName,
    maxPods: config.maxPods,
    podLogsDir: config.podLogsDir,
    labels: () => config.nodeLabels,
    configuration: config,
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
    checkPath: (desired, path) => kubelet.gates.checkPath(desired, path),
    runtimeVersion: () => ({ name: kubelet.runtimeState.runtimeName(), version: kubelet.runtimeState.runtimeVersion() }),
    seLinux: () => existsSync('/sys/fs/selinux/enforce'),
    lives: async (uid) =>
      (await runtime.listSandboxes(uid)).some((s) => s.state === 'ready') ||
      (await runtime.listContainers(uid)).some((c) => c.state === 'running' || c.state === 'unknown'),
  });
  watchHostDns(config.resolvConf, { clock, onChange: () => void volumes.resolvChanged() }, stop.signal);
  const logRotation = new LogRotation({
    clock,
    log,
    runtime,
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
    event: (type, reason, message) =>
      kubelet.events.event({ kind: 'Node', namespace: 'default', name: identity.nodeName }, type, reason, message),
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
      logFolders: fsLogFolders(config.podLogsDir),
      volumes,
      gates: systemGateFacts(clock, systemMounter.mountPoints),
      grpcCheck: (check) => checkHealth(clock, check),
      lastWords: (status) => lastWords(status, node.pageBytes),
      podNews: () => logRotation.look(),
      broker: {
        tell: (topic, payload, { expirySeconds }) => session.tell(topic, payload, { qos: 1, expirySeconds }),
        send: (topic, payload, { expirySeconds }) => session.send(topic, payload, { qos: 1, expirySeconds }),
        setReady: () => session.setReady(),
        maxBytes: () => maxRetainedBytes,
      },
      random: Math.random,
      newUid: () => randomUUID() as PodUid,
      bootId: identity.bootId,
      boot: () => identity.boot(),
      seq,
      hostDns,
      hostIps,
      nodeMemoryBytes: totalmem(),
      hugepageSizes: node.hugepageSizes,
      countsSwap: node.countsSwap,
      thermalThrottlePaths: node.thermalThrottlePaths,
      nodeCpus: cpus().length,
      nodeStorageBytes: node.storageBytes,
      nodeFacts: node.facts,
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

  const conditions = (): NodeCondition[] => {
    const bad = (type: string, reason: string, message: string): NodeCondition => ({ type, status: 'True', reason, message });
    const { runtimeState } = kubelet;
    const down = runtimeState.down();
    const network = down === undefined ? runtimeState.networkError() : undefined;
    const { fault, degraded, insecure } = kubelet.config.view().folder;
    const filling = kubelet.images.gc.condition();
    const unwatched = [degraded, kubelet.resources.devices.condition()?.message].filter((text) => text !== undefined).join('; ');
    return [
      // not asked yet is no news: it would come and go at each start
      ...(down === undefined || !runtimeState.asked ? [] : [bad('RuntimeDown', 'RuntimeDown', down)]),
      ...(network === undefined ? [] : [bad('NetworkNotReady', 'NetworkNotReady', network)]),
      ...(fault === undefined ? [] : [bad('ManifestFolderUnreadable', 'SourceUnreadable', fault)]),
      ...(unwatched === '' ? [] : [bad('WatchDegraded', 'WatchDegraded', unwatched)]),
      ...(insecure === undefined ? [] : [bad('InsecurePermissions', 'InsecurePermissions', insecure)]),
      ...(filling === undefined ? [] : [bad(filling.type, filling.reason, filling.message)]),
      ...(kubelet.resources.cm?.manager.nodeProblems() ?? []).map((c) => bad(c.type, c.reason, c.message)),
      ...images.conditions().map((c) => bad(c.type, c.type, c.message)),
      ...[...identity.conditions(), ...session.conditions()].map((c) => bad(c.type, c.reason, c.message)),
      ...startConditions,
    ];
  };

  const nodeStatus = buildNodeStatus({
    ...{ clock, log, node, identity, version, hostIps },
    store: runStore,
    stateDir: config.stateDir,
    podLogsDir: config.podLogsDir,
    labels: () => config.nodeLabels,
    images: () => runtime.images.listImages(),
    heartbeatMs: () => heartbeatSeconds() * 1000,
    runtimeState: () => kubelet.runtimeState,
    others: conditions,
    pressures: () => kubelet.resources.eviction?.manager.conditions() ?? [],
    devices: () => kubelet.resources.deviceCounts(),
    event: (type, reason, message) =>
      kubelet.events.event({ kind: 'Node', namespace: 'default', name: identity.nodeName }, type, reason, message),
    changed: () => tellInfo(),
  });

  const tellInfo = (): void => {
    const info = nodeStatus.told();
    const text = JSON.stringify(info);
    if (text === toldInfo) return;
    toldInfo = text;
    const annotations = { ...info.metadata.annotations, 'podsched.dev/boot': String(identity.boot()), 'podsched.dev/seq': String(seq()) };
    const payload = JSON.stringify({ ...info, metadata: { ...info.metadata, annotations } });
    session.tell(session.topics.info, payload, { qos: 1, expirySeconds: expirySeconds.info });
  };

  const windows = buildView({
    ...{ clock, version, runtime, kubelet },
    conditions: () => [...conditions(), ...nodeStatus.board()],
    node: () => nodeStatus.whole(),
    stats: buildStats({
      ...{ clock, runtime },
      nodeName: identity.nodeName,
      pods: () => kubelet.status.whole(),
      usage: kubelet.resources.usage(),
      probeCosts: (id) => kubelet.podSide.probes.costs(id),
      allocatable: node.allocatable,
      stateDir: config.stateDir,
      podLogsDir: config.podLogsDir,
      roots: { proc: '/proc', sys: '/sys', etc: '/etc', run: '/run' },
    }),
    nodeName: identity.nodeName,
    importer: images.preload,
    configuration: () => config,
    broker: servers.length === 0 ? undefined : () => session.connected(),
  });

  // without a broker nobody remembers a greater number
  if (servers.length === 0) await identity.adoptBoot(undefined);
  await nodeStatus.load(); // before anything of it is told
  const running = session.run(stop.signal);
  await images.preload.load(); // what is pinned is known before anything may go
  await kubelet.start();
  // what an earlier agent said is read: before that the windows would show less than there is
  view = windows;
  await images.preload.run(stop.signal);
  const rotating = logRotation.run(stop.signal);
  const watching = nodeStatus.run(stop.signal);
  const weighing = watchOwnMemory(
    {
      ...{ clock, log, limitBytes: ownMemoryLimit(totalmem()) },
      rssBytes: () => process.memoryUsage.rss(),
      tooLarge: (message) => {
        log.error({}, message);
        kubelet.events.event({ kind: 'Node', namespace: 'default', name: identity.nodeName }, 'Warning', 'AgentTooLarge', message);
        o.outgrown();
      },
    },
    stop.signal,
  );
  tellInfo();

  return {
    view,
    reload: (next, conditionsNow) => {
      config = next;
      startConditions = conditionsNow;
      // labels may be others
      kubelet.admission.again();
      kubelet.resources.devices.freed();
      kubelet.config.readFolder().catch((e) => log.warn({ error: describeError(e) }, 'reading the manifests failed'));
      tellInfo();
    },
    stop: async () => {
      await kubelet.stop();
      await session.stop();
      stop.abort();
      await Promise.all([running, rotating, watching, weighing]);
      runtime.close();
      await embedded?.close();
      await server.close();
    },
  };
}
