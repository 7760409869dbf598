// pure
/** What devices mean to a pod: which it asks for, which container may have or take over one, and the words for what it waits for. */

import type { DesiredPod } from '../api/desired.ts';
import { type DeviceClasses, podDevices } from '../api/deviceClasses.ts';
import { isSidecar } from '../api/resources.ts';
import type { Container, EphemeralContainer } from '../api/v1.ts';
import { waitFor } from '../api/waitFor.ts';
import type { RunnableImage } from '../container/runtime.ts';
import type { Choice, Holder } from './deviceChoice.ts';
import type { Member } from './deviceScan.ts';

/** What a pod asks for, and what its gates wait for. */
export function classesOf({ pod }: DesiredPod): ReadonlySet<string> {
  const gates = waitFor(pod).gates.flatMap((gate) => (gate.kind === 'device' ? [gate.name] : []));
  return new Set([...podDevices(pod).keys(), ...gates]);
}

/** It is the container's own, or was an init container's that has done its work. */
export function isFree({ uid, container, running }: Holder, desired: DesiredPod, name: string): boolean {
  if (uid !== desired.uid || container === name) return uid === desired.uid;
  const init = desired.pod.spec.initContainers?.find((c) => c.name === container);
  return running === undefined && init !== undefined && !isSidecar(init);
}

/** An app container of a pod that may begin again, or a sidecar: what runs once has done half of its work. */
export function mayRestart({ pod }: DesiredPod, name: string): boolean {
  if (pod.spec.initContainers?.some((c) => c.name === name && isSidecar(c))) return true;
  return pod.spec.restartPolicy !== 'Never' && pod.spec.containers.some((c) => c.name === name);
}

/** Members of its group may read and write it. Root's group is given to nobody: it opens more than a device. */
export const opensToGroup = ({ gid, mode }: Member): boolean => gid !== 0 && (mode & 0o60) === 0o60;

/** Who a container's processes are: by the manifest, else by its image. undefined: the image is not known here, and may say anything. */
export function userOf(
  { pod }: Pick<DesiredPod, 'pod'>,
  container: Container | EphemeralContainer,
  image?: Pick<RunnableImage, 'uid' | 'username'>,
): number | string | undefined {
  const user = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  if (user !== undefined || image === undefined) return user;
  return image.uid ?? (image.username === '' || image.username === 'root' ? 0 : image.username);
}

/** What this user, unless it is root, may not open. */
export function closedMembers(
  user: number | string | undefined,
  { securityContext }: Pick<Container, 'securityContext'>,
  members: readonly Member[],
): readonly Member[] {
  if (user === 0 || securityContext?.privileged === true) return [];
  return members.filter((m) => !opensToGroup(m) && (m.mode & 0o6) !== 0o6);
}

export const closedText = ({ node, mode, gid }: Member, user: number | string | undefined): string =>
  `${node} has mode ${mode.toString(8).padStart(4, '0')} and group ${gid}: user ${user} may not open it`;

/** Why a container waits. */
export function waitingText(
  { deviceClass, count, present, pods }: Extract<Choice, { readonly ok: false }>,
  classes: DeviceClasses,
): string {
  if (present === 0) return `${count} wanted: ${absentText(deviceClass, classes)}`;
  const [are, used] = [present === 1 ? 'is' : 'are', pods.length === 0 ? '' : `, used by pod ${pods.join(' and ')}`];
  return `${count} of device class ${deviceClass} wanted: ${present} ${are} there${used} (${globsOf(deviceClass, classes)})`;
}

/** Why a class has no device, for a person: it is not configured, or nothing is at its paths. */
export function absentText(deviceClass: string, classes: DeviceClasses): string {
  const globs = globsOf(deviceClass, classes);
  if (globs === '') return `the configuration has no device class ${deviceClass}`;
  return `no device of class ${deviceClass} is there (${globs})`;
}

const globsOf = (deviceClass: string, classes: DeviceClasses): string =>
  Object.hasOwn(classes, deviceClass) ? (classes[deviceClass] ?? []).join(', ') : '';
