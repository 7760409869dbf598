/**
 * A command in a running container whose output is waited for and given whole: for windows without a session. No shell, no input; the output
 * is cut at a limit, and the time has one. Mirrors kubelet v1.32 RunInContainer (CRI ExecSync).
 */
import type { PodUid } from '../api/objects.ts';
import type { ToldPod } from '../api/status.ts';
import { isNotFound, type Runtime, RuntimeError } from '../container/runtime.ts';
import { type Answered, askedFor, refused } from './answered.ts';
import { sessionContainer, statusOf } from './logTarget.ts';

export interface ExecRequest {
  readonly namespace: string;
  readonly pod: string;
  /** Left out: the one that the manifest names as default, or the first. */
  readonly container?: string;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** From 1 to 3600; when they are over, the command is killed. */
  readonly timeoutSeconds: number;
  /** Of both outputs together. */
  readonly limitBytes: number;
}

export interface ExecAnswer {
  readonly exitCode: number;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** It said more than the limit lets through. */
  readonly truncated: boolean;
}

export interface ExecDeps {
  readonly pods: () => readonly ToldPod[];
  readonly runtime: Pick<Runtime, 'listContainers' | 'execSync'>;
}

const mostSeconds = 3600;
const mostWords = 1000;
const mostCommandBytes = 64 << 10;
/** What a runtime gives at most. */
const mostBytes = 16 << 20;

/** Resolves at the end of the command. Rejects when the runtime cannot be asked. The signal ends the waiting, not the command. */
export async function execCaptured(request: ExecRequest, { pods, runtime }: ExecDeps, signal?: AbortSignal): Promise<Answered<ExecAnswer>> {
  const { namespace, command, timeoutSeconds, limitBytes } = request;
  const wrong = wrongRequest(request);
  if (wrong !== undefined) return refused(400, wrong);
  const asked = askedFor(pods(), namespace, request.pod);
  if (!asked.ok) return asked;
  const pod = asked.value;
  const { phase } = pod.status;
  if (phase === 'Succeeded' || phase === 'Failed')
    return refused(409, `cannot exec into a container in a completed pod; current phase is ${phase}`);
  const picked = sessionContainer(pod, request.container);
  if (!picked.ok) return picked;
  const { name } = picked.value;
  const running = (await runtime.listContainers(pod.metadata.uid as PodUid))
    .filter((c) => c.name === name && c.state === 'running')
    .sort((a, b) => b.attempt - a.attempt)[0];
  if (running === undefined) {
    const state = statusOf(pod.status, name)?.state;
    return refused(
      409,
      `container "${name}" does not run (${state?.waiting?.reason ?? state?.terminated?.reason ?? 'it has not started'})`,
    );
  }
  try {
    const { exitCode, stdout, stderr } = await runtime.execSync(running.id, command, timeoutSeconds, signal);
    // what went wrong is said at the end of the errors, so that they have their place first
    const errors = stderr.subarray(0, limitBytes);
    const out = stdout.subarray(0, Math.max(0, limitBytes - errors.length));
    const truncated = errors.length < stderr.length || out.length < stdout.length;
    return { ok: true, value: { exitCode, stdout: out, stderr: errors, truncated } };
  } catch (e) {
    if (isNotFound(e)) return refused(409, `container "${name}" ended meanwhile`);
    if (e instanceof RuntimeError && e.code === 'deadlineExceeded')
      return refused(409, `the command did not end within ${timeoutSeconds} s, and was killed`);
    // no such program, not executable: the runtime's words
    if (e instanceof RuntimeError && e.code === 'unknown') return refused(409, `the command could not be run: ${e.message}`);
    throw e;
  }
}

function wrongRequest({ command, timeoutSeconds, limitBytes }: ExecRequest): string | undefined {
  if (command.length === 0 || command[0] === '') return 'command: expected the name of a program first';
  if (command.length > mostWords || command.reduce((bytes, word) => bytes + Buffer.byteLength(word), 0) > mostCommandBytes)
    return `command: expected at most ${mostWords} words and ${mostCommandBytes} bytes`;
  // an argument of a program ends with a NUL: there is none inside
  if (command.some((word) => word.includes('\0'))) return 'command: expected no NUL in it';
  if (!Number.isInteger(timeoutSeconds) || timeoutSeconds < 1 || timeoutSeconds > mostSeconds)
    return `timeoutSeconds: expected an integer from 1 to ${mostSeconds}`;
  if (!Number.isInteger(limitBytes) || limitBytes < 1 || limitBytes > mostBytes)
    return `limitBytes: expected an integer from 1 to ${mostBytes}`;
  return undefined;
}
