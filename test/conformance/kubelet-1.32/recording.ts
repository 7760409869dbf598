/** A recording of kubelet 1.32 and our configs brought to one shape, so that a difference is a difference. */
import type { ContainerConfig, LinuxResources, NamespaceOptions, SandboxConfig, SecurityProfile } from '../../../src/container/runtime.ts';

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Without zero values, as proto3 sends them; keys sorted; env as a set. */
export function normal(value: unknown): Json | undefined {
  if (value === undefined || value === null || value === '' || value === 0 || value === false) return undefined;
  if (Array.isArray(value)) {
    const items = value.map((v) => normal(v) ?? {});
    return items.length === 0 ? undefined : items;
  }
  if (typeof value !== 'object') return value as Json;
  const entries = Object.entries(value)
    .map(([k, v]) => [k, normal(v)] as const)
    .filter((e): e is readonly [string, Json] => e[1] !== undefined)
    .sort(([a], [b]) => a.localeCompare(b));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

const modes = { POD: 0, CONTAINER: 'CONTAINER', NODE: 'NODE', TARGET: 'TARGET' } as const;
const namespaces = (n: NamespaceOptions) => ({ network: modes[n.network], pid: modes[n.pid], ipc: modes[n.ipc], target_id: n.targetId });
const seccomp = (s: SecurityProfile | undefined) => ({ profile_type: s?.type === 'RuntimeDefault' ? 0 : s?.type });
const resources = (r: LinuxResources) => ({
  cpu_period: r.cpuPeriod,
  cpu_quota: r.cpuQuota,
  cpu_shares: r.cpuShares,
  memory_limit_in_bytes: r.memoryLimitBytes,
  oom_score_adj: r.oomScoreAdj,
});
/** Int64Value: 0 is not absent. */
const int64 = (n: number | undefined) => (n === undefined ? undefined : { present: 'yes', value: n });

/** A sandbox config in the recordings' words. */
export const sandboxWords = (c: SandboxConfig): unknown => ({
  metadata: { name: c.name, namespace: c.namespace, uid: c.uid, attempt: c.attempt },
  hostname: c.hostname,
  log_directory: c.logDirectory,
  dns_config: c.dns,
  port_mappings: c.portMappings.map((p) => ({
    protocol: p.protocol === 'TCP' ? 0 : p.protocol,
    container_port: p.containerPort,
    host_port: p.hostPort,
    host_ip: p.hostIp,
  })),
  labels: c.labels,
  annotations: c.annotations,
  linux: {
    cgroup_parent: c.cgroupParent,
    security_context: {
      namespace_options: namespaces(c.namespaces),
      privileged: c.privileged,
      seccomp: seccomp(c.seccomp),
      run_as_user: int64(c.runAsUser),
      run_as_group: int64(c.runAsGroup),
      supplemental_groups: c.supplementalGroups,
      selinux_options: c.seLinux,
    },
    sysctls: c.sysctls,
    resources: resources(c.resources),
  },
});

/** A container config in the recordings' words. */
export const containerWords = (c: ContainerConfig): unknown => ({
  metadata: { name: c.name, attempt: c.attempt },
  image: { image: c.image, user_specified_image: c.userSpecifiedImage },
  command: c.command,
  args: c.args,
  working_dir: c.workingDir,
  envs: [...c.envs].sort((a, b) => a.key.localeCompare(b.key)),
  mounts: c.mounts.map((m) => ({ container_path: m.containerPath, host_path: m.hostPath, readonly: m.readonly })),
  labels: c.labels,
  annotations: c.annotations,
  log_path: c.logPath,
  stdin: c.stdin,
  stdin_once: c.stdinOnce,
  tty: c.tty,
  linux: {
    resources: resources(c.resources),
    security_context: {
      namespace_options: namespaces(c.namespaces),
      run_as_user: int64(c.runAsUser),
      run_as_group: int64(c.runAsGroup),
      run_as_username: c.runAsUserName,
      privileged: c.privileged,
      masked_paths: c.maskedPaths,
      readonly_paths: c.readonlyPaths,
      seccomp: seccomp(c.seccomp),
      apparmor: c.appArmor,
      selinux_options: c.seLinux,
      capabilities: c.capabilities && { add_capabilities: c.capabilities.add, drop_capabilities: c.capabilities.drop },
      supplemental_groups: c.supplementalGroups,
      readonly_rootfs: c.readonlyRootFilesystem,
      no_new_privs: c.noNewPrivileges,
    },
  },
});

/** Every place where two values differ, as `a.b[0].c`. */
export function differences(ours: Json | undefined, theirs: Json | undefined, at = ''): string[] {
  if (typeof ours !== 'object' || typeof theirs !== 'object' || ours === null || theirs === null) {
    return ours === theirs ? [] : [`${at}: ours ${JSON.stringify(ours)}, recorded ${JSON.stringify(theirs)}`];
  }
  const read = (o: Json, k: string) => (o as { [key: string]: Json })[k];
  return [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].flatMap((k) =>
    differences(read(ours, k), read(theirs, k), Array.isArray(ours) ? `${at}[${k}]` : at === '' ? k : `${at}.${k}`),
  );
}
