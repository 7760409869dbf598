/** A TCP connection as a probe: it stands, and is closed at once (facts 8.5). */
import { connect } from 'node:net';
import { connectionText, HandlerTimeout, hostPort } from './netErrors.ts';

/** Resolves when `host` accepts on `port`. Rejects with what the network said, with HandlerTimeout, or with the signal's reason. */
export function tcpConnect(host: string, port: number, timeoutMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const socket = connect({ host, port });
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
      socket.destroy();
      settle();
    };
    const stop = () => end(() => reject(signal?.reason));
    const timer = setTimeout(() => end(() => reject(new HandlerTimeout(`dial tcp ${hostPort(host, port)}`, timeoutMs))), timeoutMs);
    signal?.addEventListener('abort', stop, { once: true });
    socket.once('connect', () => end(resolve));
    // stays attached: a destroyed socket may still report
    socket.on('error', (cause) => end(() => reject(new Error(connectionText(cause, host, port)))));
  });
}
