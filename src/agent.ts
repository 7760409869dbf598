/**
 * The agent on a real machine: builds the real world (stores, containerd, broker, folder, socket) around the kubelet wiring, and takes it down
 * again. Owns only what it opened. Stopping the agent stops no pod.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { hostSockets } from './admission/hostSockets.ts';
import { buildAgentImages } from './agentImages.ts';
import { readNode } from './agentNode.ts';
import type { PodschedConfiguration } from './api/configuration.ts';
import { keyText, type PodUid } from './api/objects.ts';
import { expirySeconds, maxRetainedBytes } from './api/topics.ts';
import { MqttBroker } from './broker/client.ts';
import { type EmbeddedBroker, startEmbedded } from './broker/embedded.ts';
import { BrokerSession } from './broker/session.ts';
import { FsFolderReader } from './config/folderReader.ts';
import { isNotFound } from './container/runtime.ts';
import type { ContainerId } from './container/words.ts';
import { checkHealth } from './cri/health.ts';
import { CriRuntime } from './cri/runtime.ts';
import { systemGateFacts, wasSetByTimesyncd } from './gates/facts.ts';
import { Kubelet } from './kubelet.ts';
import { podDns } from './kuberuntime/dns.ts';
import { lastWords } from './kuberuntime/lastWords.ts';
import { LogRotation } from './kuberuntime/logRotation.ts';
import { fsLogFolders } from './kuberuntime/logs.ts';
import { recentHostIps } from './node/addresses.ts';
import { readHostDns, watchHostDns } from './node/hostDns.ts';
import { loadIdentity } from './node/identity.ts';
import { nodeObject } from './node/info.ts';
import type { AgentView, NodeCondition } from './operations/agentView.ts';
import { addEphemeral } from './operations/debug.ts';
import { holdPod } from './operations/hold.ts';
import { imagesView } from './operations/images.ts';
import { openLogs } from './operations/logs.ts';
import { listObjects } from './operations/objects.ts';
import { openStream } from './operations/stream.ts';
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
  });
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
    containers: () => kubelet.containers(),
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
      thermalThrottlePaths: [],
      nodeCpus: cpus().length,
      nodeStorageBytes: node.storageBytes,
      nodeFacts: node.facts,
      hostSockets: () => hostSockets('/proc'),
      conditionsChanged: () => tellInfo(),
    },
    {
      nodeName: identity.nodeName,
      formerNames: identity.formerNames(),
      prefix: config['mqtt.prefix'],
      podLogsDir: config.podLogsDir,
      cgroupDriver: config.cgroupDriver,
      syncFrequencyMs: () => config.syncFrequency,
      maxContainerRestartMs: config['crashLoopBackOff.maxContainerRestartPeriod'],
      serializeImagePulls: config.serializeImagePulls,
      maxParallelImagePulls: config.maxParallelImagePulls,
      strict: () => config.strict,
      allowedUnsafeSysctls: config.allowedUnsafeSysctls,
      clusterDns: config.clusterDNS,
      clusterDomain: config.clusterDomain,
      seccompDefault: config.seccompDefault,
      seccompFolder: join(config.stateDir, 'seccomp'),
      probeScale: config.probeScale,
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
    return [
      // not asked yet is no news: it would come and go at each start
      ...(down === undefined || !runtimeState.asked ? [] : [bad('RuntimeDown', 'RuntimeDown', down)]),
      ...(network === undefined ? [] : [bad('NetworkNotReady', 'NetworkNotReady', network)]),
      ...(fault === undefined ? [] : [bad('ManifestFolderUnreadable', 'SourceUnreadable', fault)]),
      ...(degraded === undefined ? [] : [bad('WatchDegraded', 'WatchDegraded', degraded)]),
      ...(insecure === undefined ? [] : [bad('InsecurePermissions', 'InsecurePermissions', insecure)]),
      ...(filling === undefined ? [] : [bad(filling.type, filling.reason, filling.message)]),
      ...images.conditions().map((c) => bad(c.type, c.type, c.message)),
      ...[...identity.conditions(), ...session.conditions()].map((c) => bad(c.type, c.reason, c.message)),
      ...startConditions,
    ];
  };

  const tellInfo = (): void => {
    const { runtimeState } = kubelet;
    const info = nodeObject({
      name: identity.nodeName,
      labels: config.nodeLabels,
      machine: identity.machine,
      bootId: identity.bootId,
      agentVersion: version,
      architecture: node.architecture,
      kernelVersion: release(),
      runtimeVersion: runtimeState.runtimeVersion() === '' ? '' : `${runtimeState.runtimeName()}://${runtimeState.runtimeVersion()}`,
      addresses: hostIps(),
      conditions: conditions(),
      ...(node.pageBytes !== undefined && { pageBytes: node.pageBytes }),
    });
    const text = JSON.stringify(info);
    if (text === toldInfo) return;
    toldInfo = text;
    const annotations = { ...info.metadata.annotations, 'podsched.dev/boot': String(identity.boot()), 'podsched.dev/seq': String(seq()) };
    const payload = JSON.stringify({ ...info, metadata: { ...info.metadata, annotations } });
    session.tell(session.topics.info, payload, { qos: 1, expirySeconds: expirySeconds.info });
  };

  view = {
    nodeName: identity.nodeName,
    version,
    pods: () => kubelet.status.whole(),
    sync: () => kubelet.status.sync(),
    files: () => kubelet.status.files(),
    events: (filter) => kubelet.events.list(filter),
    conditions,
    health: () => {
      const down = kubelet.runtimeState.down();
      const { fault } = kubelet.config.view().folder;
      const broker = servers.length === 0 || session.connected();
      return [
        { name: 'runtime', ok: down === undefined, message: down ?? 'ok' },
        { name: 'manifests', ok: fault === undefined, message: fault ?? 'ok' },
        { name: 'broker', ok: broker, message: broker ? 'ok' : 'not connected' },
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
    hold: (request) =>
      holdPod(request, {
        isWanted: (key) => kubelet.config.wanted(key) !== undefined,
        hold: (key) => kubelet.updates.hold(key),
        release: (key) => kubelet.updates.release(key),
      }),
    objects: () => listObjects(kubelet.config.view(), (key) => kubelet.config.object(key), kubelet.pods.list()),
    images: imagesView({ gc: kubelet.images.gc, puller: kubelet.images.manager, importer: images.preload }),
    configuration: () => config,
  };

  // without a broker nobody remembers a greater number
  if (servers.length === 0) await identity.adoptBoot(undefined);
  const running = session.run(stop.signal);
  await images.preload.load(); // what is pinned is known before anything may go
  await kubelet.start();
  await images.preload.run(stop.signal);
  const rotating = logRotation.run(stop.signal);
  tellInfo();

  return {
    view,
    reload: (next, conditionsNow) => {
      config = next;
      startConditions = conditionsNow;
      // labels may be others
      kubelet.admission.again();
      kubelet.config.readFolder().catch((e) => log.warn({ error: describeError(e) }, 'reading the manifests failed'));
      tellInfo();
    },
    stop: async () => {
      await kubelet.stop();
      await session.stop();
      stop.abort();
      await Promise.all([running, rotating]);
      runtime.close();
      await embedded?.close();
      await server.close();
    },
  };
}

async function openServers(
  config: PodschedConfiguration,
  log: Log,
): Promise<{ servers: readonly string[]; embedded: EmbeddedBroker | undefined }> {
  if (!config['mqtt.servers'].includes('embedded')) return { servers: config['mqtt.servers'], embedded: undefined };
  const passwordFile = config['mqtt.embedded.passwordFile'];
  const embedded = await startEmbedded({ listen: config['mqtt.embedded.listen'], ...(passwordFile !== '' && { passwordFile }) }, log);
  return { servers: config['mqtt.servers'].map((s) => (s === 'embedded' ? embedded.url : s)), embedded };
}

/** Read anew for each attempt: a renewed certificate or password needs no restart. */
async function credentials(
  config: PodschedConfiguration,
): Promise<Awaited<ReturnType<ConstructorParameters<typeof BrokerSession>[0]['credentials']>>> {
  const file = async (path: string): Promise<Uint8Array | undefined> => (path === '' ? undefined : readFile(path));
  const [password, ca, cert, key] = await Promise.all([
    file(config['mqtt.passwordFile']),
    file(config['mqtt.tls.caFile']),
    file(config['mqtt.tls.certFile']),
    file(config['mqtt.tls.keyFile']),
  ]);
  return {
    ...(config['mqtt.username'] !== '' && { username: config['mqtt.username'] }),
    ...(password && { password: trimEnd(password) }),
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  };
}

/** A password file ends with a newline that is no part of the password. */
const trimEnd = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 10 || bytes[end - 1] === 13)) end--;
  return bytes.subarray(0, end);
};
