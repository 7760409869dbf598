/**
 * One connection to a gRPC server on a Unix socket, spoken with protobuf messages. It fails fast (`unavailable` when nobody listens), and
 * every unary call ends by its deadline. It never reconnects on its own clock: client.ts throws it away and makes a new one.
 */
import type { DescMessage, DescMethodServerStreaming, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type ChannelOptions, Client, credentials, Metadata } from '@grpc/grpc-js';
import { RuntimeError } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { toRuntimeError } from './errors.ts';

/** The longest delay a timer of Node takes: some 24 days. */
const neverMs = 2 ** 31 - 1;

const options: ChannelOptions = {
  // a retry buffer on a stream that never ends only grows
  'grpc.enable_retries': 0,
  // a channel that went idle on a Unix socket must not have to come back; and no timer every half hour
  'grpc.client_idle_timeout_ms': neverMs,
  // a shared pool would hand a new channel the old one's back-off
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc.max_receive_message_length': 16 * 1024 * 1024,
  'grpc.service_config_disable_resolution': 1,
  'grpc.enable_channelz': 0,
};

export class Channel {
  readonly #client: Client;
  #pending = 0;
  #retired = false;

  constructor(
    address: string,
    private readonly clock: Clock,
    more: ChannelOptions = {},
  ) {
    this.#client = new Client(address, credentials.createInsecure(), { ...options, ...more });
  }

  /**
   * One request, one answer. `timeoutMs` is measured on the monotonic clock (a gRPC deadline is a wall-clock date, and a Pi's clock
   * jumps); at its end, and when `signal` fires, the call is cancelled at the server too.
   */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<MessageShape<O>> {
    signal?.throwIfAborted();
    this.#pending += 1;
    const timer = new AbortController();
    try {
      return await new Promise((resolve, reject) => {
        const call = this.#client.makeUnaryRequest(
          pathOf(method),
          bytesOf(method.input),
          (bytes) => fromBinary(method.output, bytes),
          create(method.input, request),
          inNamespace,
          (e, answer) => {
            if (answer !== undefined && e === null) resolve(answer);
            else reject(toRuntimeError(e, method.name));
          },
        );
        const giveUp = (reason: unknown) => {
          reject(reason);
          call.cancel();
        };
        signal?.addEventListener('abort', () => giveUp(signal.reason), { once: true, signal: timer.signal });
        this.clock.sleep(timeoutMs, timer.signal).then(
          () => giveUp(new RuntimeError('deadlineExceeded', `${method.name}: no answer in ${timeoutMs / 1000} s`)),
          () => undefined, // answered in time
        );
      });
    } finally {
      timer.abort(answered);
      this.#pending -= 1;
      this.#closeWhenDone();
    }
  }

  /** One request and answers without end. Resolves when `signal` fires; rejects when the server ends it or goes away. */
  async stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    onMessage: (m: MessageShape<O>) => void,
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return;
    const over = new AbortController();
    this.#pending += 1;
    try {
      await new Promise<void>((resolve, reject) => {
        const call = this.#client.makeServerStreamRequest(
          pathOf(method),
          bytesOf(method.input),
          (bytes: Buffer) => fromBinary(method.output, bytes),
          create(method.input, request),
          inNamespace,
        );
        call.on('data', (m: MessageShape<O>) => {
          try {
            onMessage(m);
          } catch (e) {
            reject(toRuntimeError(e, method.name));
            call.cancel();
          }
        });
        // stays attached to the end: a cancelled call still reports CANCELLED
        call.on('error', (e) => reject(toRuntimeError(e, method.name)));
        call.on('end', () => reject(new RuntimeError('unavailable', `${method.name}: the runtime ended the stream`)));
        const stop = () => {
          resolve();
          call.cancel();
        };
        signal.addEventListener('abort', stop, { once: true, signal: over.signal });
      });
    } finally {
      over.abort(answered);
      this.#pending -= 1;
      this.#closeWhenDone();
    }
  }

  /** No new calls come; those under way end as they would, then the connection goes. */
  retire(): void {
    this.#retired = true;
    this.#closeWhenDone();
  }

  #closeWhenDone(): void {
    if (this.#retired && this.#pending === 0) this.#client.close();
  }
}

/** containerd's own services ask for it; CRI has none. */
const inNamespace = new Metadata();
inNamespace.set('containerd-namespace', 'k8s.io');

/** One object for all: an abort reason of its own would cost a stack trace per call. */
const answered = new Error('answered');

const pathOf = (method: { readonly parent: { readonly typeName: string }; readonly name: string }): string =>
  `/${method.parent.typeName}/${method.name}`;

const bytesOf =
  <D extends DescMessage>(schema: D) =>
  (message: MessageShape<D>): Buffer => {
    const bytes = toBinary(schema, message);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
