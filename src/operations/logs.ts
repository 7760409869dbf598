/** The log of a container: chosen from what is told of its pod, its file as the runtime names it. */
import type { ToldPod } from '../api/status.ts';
import type { Clock } from '../world/clock.ts';
import { type Answered, askedFor, refused } from './answered.ts';
import { openLogStream } from './logFollow.ts';
import type { LogRequest } from './logRequest.ts';
import { instanceRuns, pickContainer, runtimeId, selectInstance } from './logTarget.ts';

export interface LogDeps {
  readonly clock: Clock;
  readonly pods: () => readonly ToldPod[];
  /** The log file of a container of the runtime; undefined: it has no such container. */
  readonly logPath: (containerId: string) => Promise<string | undefined>;
}

/** Chunks of the log. Whoever gets them reads them to the end, or ends them: a file is open. */
export type LogAnswer = Answered<AsyncGenerator<Uint8Array, void>>;

/** Rejects when the runtime cannot be asked or the file cannot be read. The signal ends the stream. */
export async function openLogs(request: LogRequest, signal: AbortSignal, { clock, pods, logPath }: LogDeps): Promise<LogAnswer> {
  const { namespace, container, previous, follow, timestamps, tailLines, sinceSeconds, limitBytes } = request;
  const missing = (why: string): LogAnswer => refused(404, `container "${container}" in pod "${request.pod}" ${why}`);
  const find = (): Answered<ToldPod> => askedFor(pods(), namespace, request.pod);
  const found = find();
  if (!found.ok) return found;
  const pod = found.value;
  const picked = pickContainer(pod, container);
  if (!picked.ok) return picked;
  const chosen = selectInstance(pod, container, previous);
  if (!chosen.ok) return chosen;

  const path = await logPath(runtimeId(chosen.value));
  if (path === undefined || path === '') return missing('has ended and its log was removed');
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
    running: () => {
      const now = find();
      return now.ok && instanceRuns(now.value, container, chosen.value);
    },
    clock,
    signal,
  });
  return stream === undefined ? missing('has no log file') : { ok: true, value: stream };
}
