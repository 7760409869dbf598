/** The log of a container: chosen from what is told of its pod, its file as the runtime names it. */
import type { ToldPod } from '../api/status.ts';
import type { Clock } from '../world/clock.ts';
import { openLogStream } from './logFollow.ts';
import type { LogRequest } from './logRequest.ts';
import { instanceRuns, type Picked, pickContainer, runtimeId, selectInstance } from './logTarget.ts';
import { findPod } from './target.ts';

export interface LogDeps {
  readonly clock: Clock;
  readonly pods: () => readonly ToldPod[];
  /** The log file of a container of the runtime; undefined: it has no such container. */
  readonly logPath: (containerId: string) => Promise<string | undefined>;
}

/** Chunks of the log. Whoever gets them reads them to the end, or ends them: a file is open. */
export type LogAnswer = Picked<AsyncGenerator<Uint8Array, void>>;

/** Rejects when the runtime cannot be asked or the file cannot be read. The signal ends the stream. */
export async function openLogs(request: LogRequest, signal: AbortSignal, { clock, pods, logPath }: LogDeps): Promise<LogAnswer> {
  const { namespace, container, previous, follow, timestamps, tailLines, sinceSeconds, limitBytes } = request;
  const missing = (message: string): LogAnswer => ({ ok: false, code: 404, message });
  const find = (): ToldPod | undefined => findPod(pods(), { kind: 'Pod', namespace, name: request.pod });
  const pod = find();
  if (pod === undefined) return missing(`pod "${request.pod}" not found in namespace "${namespace}"`);
  const picked = pickContainer(pod, container);
  if (!picked.ok) return picked;
  const chosen = selectInstance(pod, container, previous);
  if (!chosen.ok) return chosen;

  const path = await logPath(runtimeId(chosen.value));
  if (path === undefined || path === '')
    return missing(`container "${container}" in pod "${request.pod}" has ended and its log was removed`);
  // people ask for seconds of the clock on the wall, by which the runtime stamps its lines
  const sinceNanos =
    request.sinceNanos ?? (sinceSeconds === undefined ? undefined : BigInt(Math.floor(clock.now()) - sinceSeconds * 1000) * 1_000_000n);
  const stream = await openLogStream({
    path,
    follow,
    timestamps,
    ...(tailLines !== undefined && { tail: tailLines }),
    ...(sinceNanos !== undefined && { sinceNanos }),
    ...(limitBytes !== undefined && { limitBytes }),
    running: () => instanceRuns(find(), container, chosen.value),
    clock,
    signal,
  });
  return stream === undefined ? missing(`container "${container}" in pod "${request.pod}" has no log file`) : { ok: true, value: stream };
}
