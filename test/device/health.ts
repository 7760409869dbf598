/** A gRPC health server of the test itself, which a pod on the host's network has as its own. Reads and writes the two small messages by hand. */
import { Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';

export interface HealthServer {
  readonly port: number;
  /** What the next checks are answered. */
  serving: boolean;
  /** Names of services that were asked for. */
  readonly asked: ReadonlySet<string>;
  end(): void;
}

const [SERVING, NOT_SERVING] = [1, 2];

const service: ServiceDefinition = {
  check: {
    path: '/grpc.health.v1.Health/Check',
    requestStream: false,
    responseStream: false,
    // one text (field 1) in, one small number (field 1) out
    requestSerialize: (text: string) => Buffer.from(text),
    requestDeserialize: (bytes: Buffer) => bytes.subarray(2).toString('utf8'),
    responseSerialize: (status: number) => Buffer.from([8, status]),
    responseDeserialize: (bytes: Buffer) => bytes[1],
  },
};

export async function startHealthServer(): Promise<HealthServer> {
  const server = new Server();
  const asked = new Set<string>();
  let serving = false;
  server.addService(service, {
    check: (call: { request: string }, answer: (e: null, status: number) => void) => {
      asked.add(call.request);
      answer(null, serving ? SERVING : NOT_SERVING);
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('0.0.0.0:0', ServerCredentials.createInsecure(), (e, bound) => (e === null ? resolve(bound) : reject(e))),
  );
  return {
    port,
    asked,
    get serving() {
      return serving;
    },
    set serving(now) {
      serving = now;
    },
    end: () => server.forceShutdown(),
  };
}
