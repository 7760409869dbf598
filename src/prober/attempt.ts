/**
 * One probe of one container: the handler is run, and its end put into words (facts 8.5). A time-out is a failure for every kind of
 * handler; an error is what says nothing of the container (the runtime does not answer, a port that is not named).
 */
import type { Container, HTTPGetAction, Probe } from '../api/v1.ts';
import { expand } from '../container/expand.ts';
import { type ExecResult, type Runtime, RuntimeError } from '../container/runtime.ts';
import type { ContainerId } from '../container/words.ts';
import { httpGet } from '../handlers/http.ts';
import { HandlerTimeout } from '../handlers/netErrors.ts';
import { resolvePort } from '../handlers/ports.ts';
import { tcpConnect } from '../handlers/tcp.ts';
import type { Clock } from '../world/clock.ts';
import { describeError } from '../world/log.ts';
import type { Slots } from './slots.ts';

/** The gRPC health check; it resolves with what came of it, also when the server cannot be reached. */
export type GrpcCheck = (o: {
  readonly host: string;
  readonly port: number;
  readonly service: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}) => Promise<{ readonly serving: boolean; readonly message: string; readonly timedOut?: boolean }>;

export interface AttemptDeps {
  readonly clock: Clock;
  readonly runtime: Pick<Runtime, 'execSync'>;
  readonly grpcCheck: GrpcCheck;
  readonly slots: Slots;
}

export interface Target {
  readonly id: ContainerId;
  readonly container: Container;
  readonly probe: Probe;
  /** The pod's address. */
  readonly ip: string | undefined;
  readonly timeoutMs: number;
}

export interface Outcome {
  /** `warning` counts as success; `error` is not counted. */
  readonly kind: 'success' | 'warning' | 'failure' | 'error';
  readonly output: string;
  readonly timedOut: boolean;
  /** What it took, without waiting for its turn. */
  readonly ms: number;
}

type Answer = Pick<Outcome, 'kind' | 'output'> & { readonly timedOut?: boolean };

const userAgent = 'kube-probe/1.32';
/** One for all: what is made of a list is kept with it. */
const noHeaders: NonNullable<HTTPGetAction['httpHeaders']> = [];
const maxOutputBytes = 10 * 1024;

/** Never rejects; after an abort its outcome means nothing. */
export async function attempt(deps: AttemptDeps, target: Target, signal: AbortSignal): Promise<Outcome> {
  let begun = deps.clock.monotonic();
  const run = (): Promise<Answer> => {
    const { exec } = target.probe;
    if (exec === undefined) return network(deps, target, signal);
    return deps.slots.run(signal, () => {
      begun = deps.clock.monotonic();
      return command(deps, target, exec.command ?? [], signal);
    });
  };
  const answer = await run().catch((e): Answer => ({ kind: 'error', output: describeError(e) }));
  return { timedOut: false, ...answer, ms: deps.clock.monotonic() - begun };
}

async function command(deps: AttemptDeps, target: Target, argv: readonly string[], signal: AbortSignal): Promise<Answer> {
  // as it is written in the manifest: what comes from elsewhere is empty here
  const literal = new Map((target.container.env ?? []).map(({ name, value = '' }) => [name, value]));
  const expanded = argv.map((arg) => expand(arg, (name) => literal.get(name)));
  const seconds = Math.ceil(target.timeoutMs / 1000);
  try {
    const result = await deps.runtime.execSync(target.id, expanded, seconds, signal);
    return { kind: result.exitCode === 0 ? 'success' : 'failure', output: outputText(result) };
  } catch (e) {
    // the command is not told: a password of the environment may stand in it
    if (e instanceof RuntimeError && e.code === 'deadlineExceeded')
      return { kind: 'failure', output: `command timed out after ${seconds}s`, timedOut: true };
    throw e;
  }
}

const outputText = ({ stdout, stderr }: ExecResult): string =>
  Buffer.concat([stdout.subarray(0, maxOutputBytes), stderr.subarray(0, maxOutputBytes)])
    .subarray(0, maxOutputBytes)
    .toString();

async function network(deps: AttemptDeps, target: Target, signal: AbortSignal): Promise<Answer> {
  const { probe, container, timeoutMs } = target;
  try {
    if (probe.httpGet !== undefined) return await http(target, probe.httpGet, signal);
    if (probe.tcpSocket !== undefined) {
      const port = resolvePort(probe.tcpSocket.port, container);
      return await reached(tcpConnect(probe.tcpSocket.host || addressOf(target), port, timeoutMs, signal));
    }
    if (probe.grpc !== undefined) {
      const { port, service = '' } = probe.grpc;
      const { serving, message, timedOut = false } = await deps.grpcCheck({ host: addressOf(target), port, service, timeoutMs, signal });
      return { kind: serving ? 'success' : 'failure', output: message, timedOut };
    }
  } catch (e) {
    if (e instanceof NetworkFailure) return { kind: 'failure', output: e.message, timedOut: e.cause instanceof HandlerTimeout };
    throw e;
  }
  throw new Error(`the probe of container ${container.name} has no handler`);
}

/** What the network said: it is of the container's, not of ours. */
class NetworkFailure extends Error {}

const asFailure = (cause: unknown): never => {
  throw new NetworkFailure(describeError(cause), { cause });
};

async function reached(connection: Promise<void>): Promise<Answer> {
  await connection.catch(asFailure);
  return { kind: 'success', output: '' };
}

async function http(target: Target, action: HTTPGetAction, signal: AbortSignal): Promise<Answer> {
  const port = resolvePort(action.port, target.container);
  const request = {
    scheme: action.scheme === 'HTTPS' ? 'https' : 'http',
    host: action.host || addressOf(target),
    port,
    path: action.path ?? '',
    headers: action.httpHeaders ?? noHeaders,
    userAgent,
    timeoutMs: target.timeoutMs,
    signal,
  } as const;
  const { status, body } = await httpGet(request).catch(asFailure);
  if (status >= 200 && status < 300) return { kind: 'success', output: body };
  if (status >= 300 && status < 400) return { kind: 'warning', output: `answered with status ${status}, which is not followed: ${body}` };
  return { kind: 'failure', output: `HTTP probe failed with statuscode: ${status}` };
}

function addressOf({ ip }: Target): string {
  if (ip === undefined) throw new Error('the pod has no address yet');
  return ip;
}
