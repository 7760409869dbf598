// pure
/**
 * PodschedConfiguration in words: every key with its kind, unit, default, and whether this version acts on it. Where
 * KubeletConfiguration has a key, podsched has its name and unit. One table serves the file, the flags and the environment.
 */
import { type DeviceClasses, defaultDeviceClasses } from './deviceClasses.ts';

export type KeyKind = 'string' | 'bool' | 'int' | 'durationMs' | 'bytes' | 'list' | 'map' | 'lists' | 'policy';

export interface ConfigurationKey {
  readonly kind: KeyKind;
  readonly default: unknown;
  /** Allowed values of a string, or the bounds of a number. */
  readonly oneOf?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** SIGHUP applies it; what else changed waits for a restart. */
  readonly live?: true;
  /** Accepted and checked; nothing in this version acts on it, which is told as a warning. */
  readonly later?: true;
}

const string = (value = '', more: Partial<ConfigurationKey> = {}): ConfigurationKey => ({ kind: 'string', default: value, ...more });
const bool = (value: boolean, more: Partial<ConfigurationKey> = {}): ConfigurationKey => ({ kind: 'bool', default: value, ...more });
const int = (value: number, min: number, max: number, more: Partial<ConfigurationKey> = {}): ConfigurationKey => ({
  kind: 'int',
  default: value,
  min,
  max,
  ...more,
});
const seconds = (value: number, min: number, max: number, more: Partial<ConfigurationKey> = {}): ConfigurationKey => ({
  kind: 'durationMs',
  default: value * 1000,
  min: min * 1000,
  max: max * 1000,
  ...more,
});
const list = (value: readonly string[] = [], more: Partial<ConfigurationKey> = {}): ConfigurationKey => ({
  kind: 'list',
  default: value,
  ...more,
});
const map = (more: Partial<ConfigurationKey> = {}): ConfigurationKey => ({ kind: 'map', default: {}, ...more });
const later = { later: true } as const;

/** By dotted path, in the order of the documentation. */
export const configurationKeys: Readonly<Record<string, ConfigurationKey>> = {
  staticPodPath: string('/etc/podsched'),
  containerRuntimeEndpoint: string('unix:///run/containerd/containerd.sock'),
  cgroupDriver: string('auto', { oneOf: ['auto', 'cgroupfs', 'systemd'] }),
  cgroupRoot: string(),
  cgroupsPerQOS: bool(true),
  maxPods: int(110, 1, 10_000),
  podPidsLimit: int(-1, -1, 4_194_304),
  syncFrequency: seconds(60, 1, 86_400),
  fileCheckFrequency: seconds(20, 1, 86_400),
  nodeStatusUpdateFrequency: seconds(60, 5, 86_400, { live: true }),
  runtimeRequestTimeout: seconds(120, 1, 3600),
  serializeImagePulls: bool(true),
  maxParallelImagePulls: int(0, 0, 100),
  imageGCHighThresholdPercent: int(85, 0, 100, { live: true }),
  imageGCLowThresholdPercent: int(80, 0, 100, { live: true }),
  imageMinimumGCAge: seconds(120, 0, 31_536_000, { live: true }),
  containerLogMaxSize: { kind: 'bytes', default: 5 * 2 ** 20, min: 1024 },
  containerLogMaxFiles: int(3, 2, 100),
  evictionHard: map(),
  evictionSoft: map(),
  evictionSoftGracePeriod: map(),
  evictionMinimumReclaim: map(),
  evictionPressureTransitionPeriod: seconds(300, 0, 86_400),
  systemReserved: map(),
  kubeReserved: map(),
  cpuManagerPolicy: string('none', { oneOf: ['none', 'static'] }),
  reservedSystemCPUs: string(),
  allowedUnsafeSysctls: list(),
  'crashLoopBackOff.maxContainerRestartPeriod': seconds(300, 1, 300),
  seccompDefault: bool(false),
  resolvConf: string('/etc/resolv.conf'),
  clusterDNS: list(),
  clusterDomain: string(),
  shutdownGracePeriod: seconds(0, 0, 86_400, later),
  shutdownGracePeriodCriticalPods: seconds(0, 0, 86_400, later),
  nodeName: string(),
  nodeLabels: map({ live: true }),
  stateDir: string('/var/lib/podsched'),
  runDir: string('/run/podsched'),
  podLogsDir: string('/var/log/pods'),
  strict: bool(false),
  'mqtt.servers': list(),
  'mqtt.embedded.listen': string('127.0.0.1:1883'),
  'mqtt.embedded.passwordFile': string(),
  'mqtt.clientId': string(),
  'mqtt.username': string(),
  'mqtt.passwordFile': string(),
  'mqtt.tls.caFile': string(),
  'mqtt.tls.certFile': string(),
  'mqtt.tls.keyFile': string(),
  'mqtt.insecure': bool(false),
  'mqtt.prefix': string('podsched/v1'),
  'mqtt.keepalive': seconds(30, 5, 3600),
  'mqtt.profile': string('normal', { oneOf: ['normal', 'quiet'] }),
  'mqtt.groups': list([], { live: true }),
  'mqtt.config': bool(true),
  'policy.file': { kind: 'policy', default: { allow: 'all' }, live: true },
  'policy.mqtt': { kind: 'policy', default: {}, live: true },
  devices: { kind: 'lists', default: defaultDeviceClasses, live: true },
  'homeAssistant.enabled': bool(false),
  'homeAssistant.prefix': string('homeassistant'),
  'metrics.listen': string('', later),
  'logging.level': string('info', { oneOf: ['debug', 'info', 'warn', 'error'], live: true }),
  'logging.format': string('auto', { oneOf: ['auto', 'text', 'json', 'journal'] }),
};

/** The configuration as the wiring reads it. */
export interface PodschedConfiguration {
  readonly staticPodPath: string;
  readonly containerRuntimeEndpoint: string;
  readonly cgroupDriver: 'auto' | 'cgroupfs' | 'systemd';
  /** Where the pods' cgroups begin; '' or `/`: at the top. */
  readonly cgroupRoot: string;
  readonly cgroupsPerQOS: boolean;
  /** Processes of one pod; -1: no limit. */
  readonly podPidsLimit: number;
  readonly maxPods: number;
  readonly syncFrequency: number;
  readonly fileCheckFrequency: number;
  readonly nodeStatusUpdateFrequency: number;
  readonly runtimeRequestTimeout: number;
  readonly serializeImagePulls: boolean;
  /** 0: no limit. */
  readonly maxParallelImagePulls: number;
  /** 100: no image is removed by itself. */
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  readonly imageMinimumGCAge: number;
  /** Signals with their amounts as written (evictionThresholds.ts); empty: scaled to the board. */
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionSoft: Readonly<Record<string, string>>;
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
  readonly evictionPressureTransitionPeriod: number;
  /** Bytes. */
  readonly containerLogMaxSize: number;
  readonly containerLogMaxFiles: number;
  readonly 'crashLoopBackOff.maxContainerRestartPeriod': number;
  readonly cpuManagerPolicy: 'none' | 'static';
  /** A list such as `0-1,3`. */
  readonly reservedSystemCPUs: string;
  readonly allowedUnsafeSysctls: readonly string[];
  readonly seccompDefault: boolean;
  readonly resolvConf: string;
  readonly clusterDNS: readonly string[];
  readonly clusterDomain: string;
  readonly nodeName: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly stateDir: string;
  readonly runDir: string;
  readonly podLogsDir: string;
  readonly strict: boolean;
  readonly 'mqtt.servers': readonly string[];
  readonly 'mqtt.embedded.listen': string;
  readonly 'mqtt.embedded.passwordFile': string;
  readonly 'mqtt.clientId': string;
  readonly 'mqtt.username': string;
  readonly 'mqtt.passwordFile': string;
  readonly 'mqtt.tls.caFile': string;
  readonly 'mqtt.tls.certFile': string;
  readonly 'mqtt.tls.keyFile': string;
  readonly 'mqtt.insecure': boolean;
  readonly 'mqtt.prefix': string;
  readonly 'mqtt.keepalive': number;
  readonly 'mqtt.profile': 'normal' | 'quiet';
  readonly 'mqtt.groups': readonly string[];
  /** Desired state and commands are taken from the broker. */
  readonly 'mqtt.config': boolean;
  /** As checked; policy/policy.ts reads it. */
  readonly 'policy.file': unknown;
  readonly 'policy.mqtt': unknown;
  readonly 'homeAssistant.enabled': boolean;
  readonly 'homeAssistant.prefix': string;
  readonly devices: DeviceClasses;
  readonly 'logging.level': 'debug' | 'info' | 'warn' | 'error';
  readonly 'logging.format': 'auto' | 'text' | 'json' | 'journal';
  /** Every key by dotted path, those above included. */
  readonly [key: string]: unknown;
}
