/**
 * The gRPC health check (grpc.health.v1 Health/Check) as a function for the prober (facts 8.5): plain text, no proxy, one connection and one
 * time-out for dial and call. The two messages are so small that they are read and written here. Mirrors kubelet v1.32 pkg/probe/grpc.
 */
import { Client, connectivityState, credentials, type ServiceError, status } from '@grpc/grpc-js';
import type { Clock } from '../world/clock.ts';
import { plainText } from './errors.ts';

export interface HealthCheck {
  readonly host: string;
  readonly port: number;
  /** '': the server as a whole. */
  readonly service: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Health {
  readonly serving: boolean;
  /** Why not, for people; '' when serving. */
  readonly message: string;
  readonly timedOut?: boolean;
}

const options = {
  'grpc.primary_user_agent': 'kube-probe/1.32',
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  // the pool of all channels would keep the connection after the call
  'grpc.use_local_subchannel_pool': 1,
  'grpc.service_config_disable_resolution': 1,
  'grpc.max_receive_message_length': 64 * 1024,
} as const;

const words = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const serving = 1;

/** Resolves with what the server said, or why it could not be asked; rejects only with the signal's reason. */
export async function checkHealth(clock: Clock, o: HealthCheck): Promise<Health> {
  o.signal.throwIfAborted();
  const address = o.host.includes(':') ? `[${o.host}]:${o.port}` : `${o.host}:${o.port}`;
  const client = new Client(address, credentials.createInsecure(), options);
  const over = new AbortController();
  try {
    return await new Promise<Health>((resolve, reject) => {
      const isConnected = () => client.getChannel().getConnectivityState(false) === connectivityState.READY;
      const call = client.makeUnaryRequest(
        '/grpc.health.v1.Health/Check',
        (service: string) => request(service),
        servingStatus,
        o.service,
        (e, answer) => {
          if (e !== null) return resolve({ serving: false, message: failureText(e, address, isConnected()) });
          const said = answer ?? 0;
          resolve({
            serving: said === serving,
            message: said === serving ? '' : `service unhealthy (responded with "${words[said] ?? said}")`,
          });
        },
      );
      o.signal.addEventListener('abort', () => reject(o.signal.reason), { once: true, signal: over.signal });
      // not the call's own deadline, which is a date of the wall clock
      clock.sleep(o.timeoutMs, over.signal).then(
        () => {
          const limit = `${o.timeoutMs / 1000} s`;
          const late = isConnected()
            ? `timeout: health rpc did not complete within ${limit}`
            : `timeout: failed to connect service ${JSON.stringify(address)} within ${limit}`;
          resolve({ serving: false, message: late, timedOut: true });
          call.cancel();
        },
        () => call.cancel(), // answered, or nobody waits any more
      );
    });
  } finally {
    over.abort();
    client.close();
  }
}

function failureText(e: ServiceError, address: string, connected: boolean): string {
  const said = plainText(e.details);
  if (e.code === status.UNIMPLEMENTED)
    return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${said}`;
  if (e.code === status.UNAVAILABLE && !connected) return `error: failed to connect service at ${JSON.stringify(address)}: ${said}`;
  return `error: health rpc probe failed: ${said === '' ? (status[e.code] ?? e.code) : said}`;
}

/** HealthCheckRequest {string service = 1}. */
function request(service: string): Buffer {
  const text = Buffer.from(service);
  return text.length === 0 ? text : Buffer.concat([Buffer.from([0x0a, ...varint(text.length)]), text]);
}

function varint(n: number): number[] {
  return n < 0x80 ? [n] : [(n & 0x7f) | 0x80, ...varint(n >>> 7)];
}

/** HealthCheckResponse {enum status = 1}; what else a server puts beside it is passed over. Throws when it is no message. */
function servingStatus(bytes: Buffer): number {
  let at = 0;
  let found = 0;
  const next = (): number => {
    for (let value = 0, shift = 0; shift < 70; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('the answer is cut off');
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new Error('the answer is no health status');
  };
  while (at < bytes.length) {
    const tag = next();
    const wire = tag & 7;
    if (wire === 0) {
      const value = next();
      if (tag === 0x08) found = value;
    } else if (wire === 2) {
      const length = next();
      at += length;
    } else if (wire === 5) at += 4;
    else if (wire === 1) at += 8;
    else throw new Error('the answer is no health status');
  }
  return found;
}
