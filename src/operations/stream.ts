/**
 * Where a session with a container is served: found in the runtime by pod and container, the running one. Mirrors kubelet v1.32 GetExec and
 * GetAttach (facts 18). Owns nothing.
 */
import { containerNamed } from '../api/containers.ts';
import type { PodUid } from '../api/objects.ts';
import type { ToldPod } from '../api/status.ts';
import { isNotFound, type Runtime, type Streams, type StreamTarget } from '../container/runtime.ts';
import { type Answered, askedFor, refused } from './answered.ts';
import { statusOf } from './logTarget.ts';
import type { StreamRequest } from './streamRequest.ts';

export interface StreamDeps {
  /** Whole pods: whether a container has a terminal stands in its spec. */
  readonly pods: () => readonly ToldPod[];
  readonly runtime: Pick<Runtime, 'listContainers'> & Streams;
}

/** Rejects when the runtime cannot be asked. */
export async function openStream(request: StreamRequest, { pods, runtime }: StreamDeps): Promise<Answered<StreamTarget>> {
  const { namespace, container, command, stdin, stdout } = request;
  const asked = askedFor(pods(), namespace, request.pod);
  if (!asked.ok) return asked;
  const pod = asked.value;
  const missing = (why: string): Answered<never> => refused(404, `container not found ("${container}")${why}`);
  const containers = await runtime.listContainers(pod.metadata.uid as PodUid);
  const running = containers.filter((c) => c.name === container && c.state === 'running').sort((a, b) => b.attempt - a.attempt)[0];
  if (running === undefined) {
    const state = statusOf(pod.status, container)?.state;
    if (state === undefined) return missing('');
    return missing(`: it does not run (${state.waiting?.reason ?? state.terminated?.reason ?? 'it has not started'})`);
  }
  try {
    if (request.kind === 'exec') {
      const { stderr, tty } = request;
      return { ok: true, value: await runtime.execTarget(running.id, command, { stdin, stdout, stderr, tty }) };
    }
    const made = containerNamed(pod.spec, container);
    const tty = made?.tty === true;
    if (request.tty !== tty)
      return refused(400, tty ? 'tty: expected true, as the container has a terminal' : 'tty: the container has none');
    if (stdin && made?.stdin !== true) return refused(400, `stdin: container "${container}" takes no input (spec.stdin)`);
    return { ok: true, value: await runtime.attachTarget(running.id, { stdin, stdout, stderr: request.stderr && !tty, tty }) };
  } catch (e) {
    // it ended meanwhile
    if (isNotFound(e)) return missing('');
    throw e;
  }
}
