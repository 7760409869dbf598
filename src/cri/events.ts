/**
 * "Look at this": the runtime's event stream as RuntimeEvents. containerd's own event service where it answers (it tells a start within
 * milliseconds, and to any number of readers), else CRI's GetContainerEvents, else `unimplemented` and the caller polls.
 */
import { fromBinary } from '@bufbuild/protobuf';
import type { RuntimeEvent } from '../container/runtime.ts';
import { RuntimeError } from '../container/runtime.ts';
import type { Clock } from '../world/clock.ts';
import type { Channel } from './channel.ts';
import { eventTopic } from './convert.ts';
import { AnyContainerEventSchema, type Envelope, Events, TaskExitSchema } from './gen/containerd_pb.ts';
import { type ContainerEventResponse, RuntimeService } from './gen/cri_pb.ts';
import { Settle, type Shown } from './settle.ts';

const filters = ['namespace==k8s.io,topic~="^/tasks/(start|exit|oom)$"', 'namespace==k8s.io,topic=="/containers/delete"'];

export interface EventsDeps {
  readonly clock: Clock;
  /** This call's own; retired at its end. */
  readonly channel: Channel;
  readonly shown: (id: string) => Promise<Shown>;
  readonly readyTimeoutMs: number;
}

/** Reads events until `signal` fires (resolves) or the stream breaks (rejects). `onReady` when they flow. */
export async function watchEvents(
  deps: EventsDeps,
  onEvent: (e: RuntimeEvent) => void,
  onReady: () => void,
  signal: AbortSignal,
): Promise<void> {
  const { channel } = deps;
  // the caller's signal lives as long as the agent: nothing of a broken stream may stay attached to it
  const over = new AbortController();
  const stop = () => over.abort();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    await containerdEvents(deps, onEvent, onReady, over.signal).catch((e) => {
      if (!(e instanceof RuntimeError) || e.code !== 'unimplemented') throw e;
      return criEvents(deps, onEvent, onReady, over.signal);
    });
  } catch (e) {
    if (!signal.aborted) throw e;
  } finally {
    signal.removeEventListener('abort', stop);
    over.abort();
    channel.retire();
  }
}

function containerdEvents(deps: EventsDeps, emit: (e: RuntimeEvent) => void, onReady: () => void, signal: AbortSignal): Promise<void> {
  const settle = new Settle({ clock: deps.clock, shown: deps.shown, emit, signal });
  const onMessage = (envelope: Envelope) => {
    const event = containerdEvent(envelope);
    if (event !== undefined) settle.tell(event);
  };
  return readable(deps, onReady, signal, deps.channel.stream(Events.method.subscribe, { filters }, onMessage, signal));
}

/** These come after the runtime has taken note: they would carry the new status. */
function criEvents(deps: EventsDeps, emit: (e: RuntimeEvent) => void, onReady: () => void, signal: AbortSignal): Promise<void> {
  const onMessage = (m: ContainerEventResponse) => emit({ containerId: m.containerId, topic: eventTopic(m.containerEventType) });
  return readable(deps, onReady, signal, deps.channel.stream(RuntimeService.method.getContainerEvents, {}, onMessage, signal));
}

/**
 * A stream says nothing when it begins. Calls that were sent after it on the same connection, and are answered while the stream lives, show
 * that the server has taken it up: two of them, since the first answer may overtake a refusal.
 */
async function readable(deps: EventsDeps, onReady: () => void, signal: AbortSignal, stream: Promise<void>): Promise<void> {
  const ask = () => deps.channel.unary(RuntimeService.method.version, {}, deps.readyTimeoutMs, signal);
  let alive = true;
  const lives = stream.finally(() => {
    alive = false;
  });
  const ready = ask()
    .then(ask)
    .then(() => {
      if (alive) onReady();
    });
  await Promise.all([lives, ready]);
}

/** undefined: an exec inside a container, or a topic that tells nothing of it. */
export function containerdEvent({ topic, event }: Envelope): RuntimeEvent | undefined {
  const bytes = event?.value ?? new Uint8Array();
  switch (topic) {
    case '/tasks/exit': {
      const { containerId, id } = fromBinary(TaskExitSchema, bytes);
      return id === containerId ? { containerId, topic: 'exit' } : undefined;
    }
    case '/tasks/start':
      return { containerId: fromBinary(AnyContainerEventSchema, bytes).containerId, topic: 'start' };
    case '/tasks/oom':
      return { containerId: fromBinary(AnyContainerEventSchema, bytes).containerId, topic: 'oom' };
    case '/containers/delete':
      return { containerId: fromBinary(AnyContainerEventSchema, bytes).containerId, topic: 'delete' };
    default:
      return undefined;
  }
}
