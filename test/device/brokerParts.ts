/** What a test starts, ended in reverse order whatever becomes of it. */
import { startTcpProxy, type TcpProxy } from './tcpProxy.ts';

export interface Part {
  stop(): Promise<unknown>;
}

export type Keep = <T extends Part>(part: T) => T;

/** Runs `act`; each part it keeps is stopped afterwards, the last one first. */
export async function withParts(act: (keep: Keep) => Promise<void>): Promise<void> {
  const parts: Part[] = [];
  try {
    await act((part) => {
      parts.push(part);
      return part;
    });
  } finally {
    for (const part of parts.reverse()) await part.stop();
  }
}

/** A proxy before this port that takes MQTT packets apart; `tls`: there are none to be seen. */
export async function startProxy(
  port: number,
  keep: Keep,
  o: { readonly tls?: boolean } = {},
): Promise<TcpProxy & { readonly url: string }> {
  const proxy = await startTcpProxy(port, { mqtt: o.tls !== true });
  keep({ stop: () => proxy.close() });
  return Object.assign(proxy, { url: `mqtt://127.0.0.1:${proxy.port}` });
}
