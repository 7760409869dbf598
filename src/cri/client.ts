/**
 * Calls to the runtime's socket over whatever containerd does: absent, stale, restarted. Owns the one channel in use. A channel whose call
 * found nobody, or got no answer, takes no further calls: the next call connects anew, at once, with no back-off between.
 */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { ChannelOptions } from '@grpc/grpc-js';
import { RuntimeError } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import { Channel } from './channel.ts';

export class CriClient {
  #channel: Channel | undefined;
  #closed = false;
  readonly #address: string;

  constructor(
    /** `unix:///run/containerd/containerd.sock`, or the path alone. */
    endpoint: string,
    private readonly clock: Clock,
    private readonly channelOptions: ChannelOptions = {},
  ) {
    this.#address = `unix:${endpoint.replace(/^unix:(?:\/\/)?/, '')}`;
  }

  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    timeoutMs: number,
    signal?: AbortSignal,
    /** `alone`: that this call took too long says nothing of the connection. */
    late: 'suspect' | 'alone' = 'suspect',
  ): Promise<MessageShape<O>> {
    if (this.#closed) throw new RuntimeError('unavailable', 'the connection to the runtime was closed');
    this.#channel ??= this.newChannel();
    const channel = this.#channel;
    try {
      return await channel.unary(method, request, timeoutMs, signal);
    } catch (e) {
      if (e instanceof RuntimeError && (e.code === 'unavailable' || (e.code === 'deadlineExceeded' && late === 'suspect')))
        this.#drop(channel);
      throw e;
    }
  }

  /** A connection of its own, for a stream: it goes with the stream, so that nothing of a broken one stays. The caller retires it. */
  newChannel(): Channel {
    return new Channel(this.#address, this.clock, this.channelOptions);
  }

  /** Calls under way end as they would; new ones are refused. */
  close(): void {
    this.#closed = true;
    if (this.#channel !== undefined) this.#drop(this.#channel);
  }

  #drop(channel: Channel): void {
    if (this.#channel === channel) this.#channel = undefined;
    channel.retire();
  }
}
