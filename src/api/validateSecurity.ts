// pure
/**
 * Validation of security contexts, of the pod and of containers (kubelet v1.32 validatePodSpecSecurityContext, ValidateSecurityContext).
 * podsched's own: capabilities are known by name, since the runtime drops a name it does not know without a word.
 */
import { entryPath, itemPath } from './fieldPath.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';
import { shown } from './scalars.ts';
import { dottedSysctl, sysctlProblem } from './sysctls.ts';
import type { AppArmorProfile, Capabilities, PodSpec, SeccompProfile, SecurityContext } from './v1.ts';

export const appArmorAnnotation = 'container.apparmor.security.beta.kubernetes.io/';

const largestId = 2 ** 31 - 1;

/** Capabilities of Linux, without `CAP_`. */
const capabilities: readonly string[] = (
  'AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK ' +
  'IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP ' +
  'SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME ' +
  'SYS_TTY_CONFIG WAKE_ALARM'
).split(' ');

const idProblem = (id: number | undefined, path: string): Problem[] =>
  id === undefined || (id >= 0 && id <= largestId) ? [] : [{ path, expected: `an id from 0 to ${largestId}`, got: String(id) }];

/** Every mistake of the pod's own security context. `allowed`: allowedUnsafeSysctls. */
export function validatePodSecurity(spec: Partial<PodSpec>, allowed: readonly string[]): Problem[] {
  const context = spec.securityContext ?? {};
  const path = 'spec.securityContext';
  const problems = (['runAsUser', 'runAsGroup', 'fsGroup'] as const).flatMap((field) => idProblem(context[field], `${path}.${field}`));
  (context.supplementalGroups ?? []).forEach((id, i) => {
    problems.push(...idProblem(id, itemPath(`${path}.supplementalGroups`, i)));
  });
  const pod = { hostNetwork: spec.hostNetwork === true, hostIPC: spec.hostIPC === true };
  const first = new Map<string, string>();
  (context.sysctls ?? []).forEach(({ name }, i) => {
    if (name === undefined) return; // told already
    const at = `${itemPath(`${path}.sysctls`, i)}.name`;
    const wrong = sysctlProblem(name, pod, allowed);
    const before = first.get(dottedSysctl(name));
    if (wrong !== undefined) problems.push({ path: at, ...wrong, got: shown(name) });
    else if (before !== undefined) problems.push({ path: at, expected: `another sysctl than ${before}`, got: shown(name) });
    else first.set(dottedSysctl(name), at);
  });
  return [...problems, ...validateProfiles(context, path)];
}

/** Every mistake of a container's security context. */
export function validateContainerSecurity(context: SecurityContext, path: string): Problem[] {
  const problems = (['runAsUser', 'runAsGroup'] as const).flatMap((field) => idProblem(context[field], `${path}.${field}`));
  problems.push(...validateCapabilities(context.capabilities ?? {}, `${path}.capabilities`));
  if (context.privileged === true && context.allowPrivilegeEscalation === false)
    problems.push({ path: `${path}.allowPrivilegeEscalation`, expected: 'true or absent, since privileged is true', got: 'false' });
  if (context.procMount === 'Unmasked')
    problems.push({ path: `${path}.procMount`, expected: 'Default, since the pod has the users of the host (hostUsers)', got: 'Unmasked' });
  return [...problems, ...validateProfiles(context, path)];
}

/** A profile as the annotation of old times has it: `runtime/default`, `unconfined`, `localhost/<name>`; undefined for anything else. */
export function annotatedProfile(value: string): AppArmorProfile | undefined {
  if (value === 'runtime/default') return { type: 'RuntimeDefault' };
  if (value === 'unconfined') return { type: 'Unconfined' };
  const name = value.startsWith('localhost/') ? value.slice('localhost/'.length) : '';
  return name === '' ? undefined : { type: 'Localhost', localhostProfile: name };
}

/** Every mistake of the annotations that give containers an AppArmor profile. */
export function validateAppArmorAnnotations(annotations: Readonly<Record<string, string>>, spec: Partial<PodSpec>): Problem[] {
  const all = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const names = all.flatMap((c) => c.name ?? []);
  return Object.entries(annotations).flatMap(([key, value]) => {
    if (!key.startsWith(appArmorAnnotation)) return [];
    const path = entryPath('metadata.annotations', key);
    const name = key.slice(appArmorAnnotation.length);
    if (!names.includes(name)) {
      const close = nearest(name, names);
      const meant = close === undefined ? {} : { nearest: appArmorAnnotation + close };
      return [{ path, expected: 'the name of a container of this pod after the /', got: shown(name), ...meant }];
    }
    const profile = annotatedProfile(value);
    if (profile === undefined) return [{ path, expected: 'runtime/default, unconfined or localhost/<name>', got: shown(value) }];
    const own = all.find((c) => c.name === name)?.securityContext?.appArmorProfile;
    if (own === undefined || (own.type === profile.type && (own.localhostProfile ?? '') === (profile.localhostProfile ?? ''))) return [];
    return [{ path, expected: 'the same profile as securityContext.appArmorProfile of the container, or nothing', got: shown(value) }];
  });
}

function validateCapabilities(given: Capabilities, path: string): Problem[] {
  const problems: Problem[] = [];
  for (const list of ['add', 'drop'] as const) {
    (given[list] ?? []).forEach((name, i) => {
      const upper = name.toUpperCase();
      if (upper === 'ALL' || capabilities.includes(upper)) return;
      const bare = upper.replace(/^CAP_/, '');
      const close = capabilities.includes(bare) ? bare : nearest(bare, [...capabilities, 'ALL']);
      const expected = 'a capability without CAP_, such as NET_ADMIN, or ALL';
      problems.push({ path: itemPath(`${path}.${list}`, i), expected, got: shown(name), ...(close !== undefined && { nearest: close }) });
    });
  }
  return problems;
}

function validateProfiles(
  { seccompProfile, appArmorProfile }: { readonly seccompProfile?: SeccompProfile; readonly appArmorProfile?: AppArmorProfile },
  path: string,
): Problem[] {
  return [
    ...validateProfile(seccompProfile, `${path}.seccompProfile`, (name) =>
      name.startsWith('/') || name.split('/').includes('..') ? 'a path below the seccomp folder of stateDir, without ..' : undefined,
    ),
    ...validateProfile(appArmorProfile, `${path}.appArmorProfile`, (name) =>
      name !== name.trim() || name.length > 4095 ? 'the name of a profile, without blanks around it' : undefined,
    ),
  ];
}

function validateProfile(
  profile: Partial<SeccompProfile | AppArmorProfile> | undefined,
  path: string,
  wrongName: (name: string) => string | undefined,
): Problem[] {
  const name = profile?.localhostProfile;
  const at = `${path}.localhostProfile`;
  if (profile?.type === 'Localhost') {
    if ((name ?? '').trim() === '') return [{ path: at, expected: 'a name, since type is Localhost', got: 'nothing' }];
    const wrong = wrongName(name ?? '');
    return wrong === undefined ? [] : [{ path: at, expected: wrong, got: shown(name) }];
  }
  if (name === undefined || profile?.type === undefined) return [];
  return [{ path: at, expected: `absent: it goes with type Localhost, not ${profile.type}`, got: shown(name) }];
}
