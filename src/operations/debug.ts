/**
 * One more container in a running pod, to look with. Mirrors what the API server does with a pod's ephemeralcontainers; the kubelet refuses
 * them for static pods, having nowhere to keep them.
 */
import type { DesiredPod } from '../api/desired.ts';
import type { PodUid } from '../api/objects.ts';
import { problemText, withoutValue } from '../api/problems.ts';
import type { ToldPod } from '../api/status.ts';
import type { EphemeralContainer } from '../api/v1.ts';
import { validateEphemeral } from '../api/validateEphemeral.ts';
import { type Answered, askedFor, pathParts, refused } from './answered.ts';

export interface DebugRequest {
  readonly namespace: string;
  readonly pod: string;
  /** A `v1 EphemeralContainer`, as it came. */
  readonly container: unknown;
}

export interface DebugDeps {
  readonly pods: () => readonly ToldPod[];
  /** The instance as it is wanted now; undefined: nobody wants it any more. */
  readonly desired: (uid: PodUid) => DesiredPod | undefined;
  /** Stores it, then has it started. Rejects when it cannot be stored. */
  readonly add: (uid: PodUid, container: EphemeralContainer) => Promise<void>;
}

const prefix = '/debug/';

/** Whether the path is one of ephemeral containers. */
export const asksForDebug = (path: string): boolean => path.startsWith(prefix);

/** The pod of a path for which `asksForDebug`. */
export const debuggedPod = (path: string): Answered<Pick<DebugRequest, 'namespace' | 'pod'>> =>
  pathParts(path, prefix, ['namespace', 'pod']);

/** The container as it was accepted, with its defaults. Rejects when it cannot be stored. */
export async function addEphemeral(request: DebugRequest, { pods, desired, add }: DebugDeps): Promise<Answered<EphemeralContainer>> {
  const { namespace, pod: name } = request;
  const asked = askedFor(pods(), namespace, name);
  if (!asked.ok) return asked;
  const pod = asked.value;
  const wanted = desired(pod.metadata.uid as PodUid);
  if (wanted === undefined || pod.metadata.deletionTimestamp !== undefined) return refused(409, `pod "${name}" is being removed`);
  const { phase } = pod.status;
  if (phase === 'Succeeded' || phase === 'Failed') return refused(409, `pod "${name}" has ended; current phase is ${phase}`);
  const valid = validateEphemeral(request.container, wanted.pod);
  if (!valid.ok) return refused(422, valid.problems.map((p) => problemText(withoutValue(p, false))).join('; '));
  await add(wanted.uid, valid.container);
  return { ok: true, value: valid.container };
}
