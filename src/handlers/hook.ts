/**
 * One lifecycle hook: postStart or preStop, by exec, httpGet or sleep (facts 7.3). Mirrors kubelet v1.32 lifecycle/handlers.go. When and how
 * long a hook runs, and what its failure means, is the caller's business: it gives the signal. No error of its own repeats a command, its output or
 * a URL's path: they may hold secrets, and the error is told in the pod's status.
 */
import type { Container, HTTPGetAction, LifecycleHandler } from '../api/v1.ts';
import { orAbort } from '../async/abort.ts';
import type { Clock } from '../world/clock.ts';
import { describeError } from '../world/log.ts';
import { httpGet } from './http.ts';
import { hostPort, PlainHttpAnswer } from './netErrors.ts';
import { resolvePort } from './ports.ts';

export interface HookRun {
  /** Whose ports a port's name is looked up in. */
  readonly container: Pick<Container, 'name' | 'ports'>;
  /** Addresses of the pod as the runtime says now; those of the host in its network. Asked only by an httpGet without a host. */
  readonly podIps: () => Promise<readonly string[]>;
  /** Runs a command in the container, without a time-out of its own (CRI: 0), and yields its exit code. */
  readonly exec: (command: readonly string[], signal: AbortSignal) => Promise<number>;
  readonly clock: Clock;
  /** Tells a warning about the hook, as an event. */
  readonly warn: (reason: string, message: string) => void;
  /** Ends the hook: it has no time-out of its own. */
  readonly signal: AbortSignal;
}

const userAgent = 'kube-lifecycle/1.32';

/** Runs a hook to its end. Rejects with why it failed, or with the signal's reason. */
export async function runHook(handler: LifecycleHandler, o: HookRun): Promise<void> {
  o.signal.throwIfAborted();
  const { exec, httpGet: get, sleep, tcpSocket } = handler;
  if (exec !== undefined) return runCommand(exec.command ?? [], o);
  if (get !== undefined) return request(get, o);
  if (sleep !== undefined) return o.clock.sleep(sleep.seconds * 1000, o.signal);
  throw new Error(tcpSocket === undefined ? 'invalid handler: the hook does nothing' : 'invalid handler: tcpSocket was never a hook');
}

/** Its argv is taken as written: hooks expand no `$(VAR)`. */
async function runCommand(command: readonly string[], o: HookRun): Promise<void> {
  const exitCode = await orAbort(o.exec(command, o.signal), o.signal);
  if (exitCode !== 0) throw new Error(`the command of the hook ended with exit code ${exitCode}`);
}

/** Any status is success: only what keeps an answer from coming is a failure. */
async function request(get: HTTPGetAction, o: HookRun): Promise<void> {
  const port = resolvePort(get.port, o.container);
  const host = get.host || (await orAbort(o.podIps(), o.signal))[0];
  if (host === undefined) throw new Error('the pod has no address for an http hook without a host');
  const headers = get.httpHeaders ?? [];
  const scheme = get.scheme?.toLowerCase() === 'https' ? 'https' : 'http';
  const asked = { scheme, host, port, path: get.path ?? '/', headers, userAgent, signal: o.signal } as const;
  try {
    await httpGet(asked);
  } catch (e) {
    if (!(e instanceof PlainHttpAnswer)) throw failure(e, asked);
    // what was meant for TLS is not shown to who listens on the way
    const plain = { ...asked, scheme: 'http', headers: headers.filter((h) => h.name.toLowerCase() !== 'authorization') } as const;
    await httpGet(plain).catch((second) => {
      throw failure(second, asked);
    });
    o.warn('LifecycleHTTPFallback', `the https hook at ${hostPort(host, port)} was answered in plain http and sent again over http`);
  }
}

/** An abort stays what it is; of the rest what the network said, without the URL. */
function failure(
  e: unknown,
  { host, port, signal }: { readonly host: string; readonly port: number; readonly signal: AbortSignal },
): unknown {
  if (signal.aborted) return signal.reason;
  const said = describeError(e).replace(/^Get "(?:[^"\\]|\\.)*": /, '');
  return new Error(`the http hook at ${hostPort(host, port)} got no answer: ${said}`);
}
