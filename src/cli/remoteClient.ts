/**
 * The agent of another machine, asked over the broker: every question is a command to the node itself, so that the answer is of now and the
 * node's policy has the last word. What the node tells by itself (its retained topics) is only listened to for the moment when to ask again.
 */

import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import { parseObject } from '../broker/online.ts';
import type { NodeObject } from '../node/info.ts';
import type { NodeCondition } from '../operations/agentView.ts';
import type { Finding } from '../operations/doctorFinding.ts';
import type { ListedImage, Pruned } from '../operations/images.ts';
import type { ListedObject } from '../operations/objects.ts';
import type { Summary } from '../operations/statsSummary.ts';
import type { NodeUsage, PodUsage } from '../operations/top.ts';
import { longestExecSeconds, outputCapBytes } from '../remote/arguments.ts';
import { bytesOf } from '../remote/chunks.ts';
import type { AgentClient, ContainerName, Followed, LogQuery } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { otherNode } from './nodes.ts';
import type { Answer, RemoteNode } from './remoteNode.ts';

/** A lease is renewed at half its time. */
const leaseSeconds = 60;
const mostEvents = 2000;

export function remoteClient(node: RemoteNode): AgentClient {
  const events = new LiveEvents();
  const items = async <T>(what: string, args: Readonly<Record<string, unknown>> = {}): Promise<readonly T[]> =>
    listOf(await node.json('get', { args: { what, ...args } }), node.name);
  const message = async (answer: Promise<Answer>): Promise<{ readonly message: string }> => {
    const { last, stdout } = await answer;
    return { message: last.message ?? new TextDecoder().decode(stdout) };
  };
  const localOnly = (what: string) => async (): Promise<never> => {
    throw new CommandError(exitCodes.usage, `${what} cannot be done over MQTT: it needs the machine itself`);
  };
  const images = (args: Readonly<Record<string, unknown>>): Promise<unknown> => node.json('images', { args });
  return {
    pods: (namespace) => items<ToldPod>('pods', namespace === undefined ? {} : { namespace }),
    sync: () => items<SyncStatus>('sync'),
    objects: () => items<ListedObject>('objects'),
    files: () => items<FileStatus>('files'),
    events: async ({ namespace, name }) => {
      const args = { ...(namespace !== undefined && { namespace }), ...(name !== undefined && { name }) };
      // while they are followed, those that come are added: nobody need be asked again
      if (!events.live) events.add(listOf<V1Event>(await node.json('events', { args }), node.name));
      if (events.followed) events.live = true;
      return events.list(namespace, name);
    },
    conditions: () => items<NodeCondition>('conditions'),
    configuration: async () => {
      const said = (await node.json('get', { args: { what: 'configuration' } })) as { podschedconfig?: Readonly<Record<string, unknown>> };
      return said.podschedconfig ?? {};
    },
    node: async () => (await node.json('get', { args: { what: 'node' } })) as NodeObject,
    logs: async (of, { follow, ...query }) =>
      // an instance that has ended says no more
      follow === true && query.previous !== true ? followLogs(node, of, { ...query, follow }) : readLogs(node, of, query),
    session: localOnly('a session'),
    captured: async ({ namespace, pod, container, command }) => {
      const target = { namespace, pod, ...(container !== undefined && { container }) };
      const { last, stdout, stderr } = await node.ask('exec', {
        target,
        args: { command, timeoutSeconds: longestExecSeconds, limitBytes: outputCapBytes },
      });
      return { exitCode: last.exitCode ?? 0, stdout, stderr, truncated: last.truncated !== undefined };
    },
    debug: localOnly('debug'),
    act: ({ act, namespace, pod, container, new: anew }) =>
      message(
        node.ask(act, {
          target: { namespace, pod, ...(container !== undefined && { container }) },
          args: anew === true ? { new: true } : {},
        }),
      ),
    nodeAct: ({ act, ...args }) => message(node.ask(act, { args })),
    bundle: () => node.json('bundle'),
    doctor: async () => listOf<Finding>(await node.json('doctor'), node.name),
    topPods: async () => listOf<PodUsage>(await node.json('top', { args: { what: 'pods' } }), node.name),
    topNode: async () => (await node.json('top', { args: { what: 'node' } })) as NodeUsage,
    stats: async () => (await node.json('top', { args: { what: 'summary' } })) as Summary,
    images: async () => listOf<ListedImage>(await images({ do: 'list' }), node.name),
    pruneImages: async (dryRun) => (await images({ do: 'prune', ...(dryRun && { dryRun }) })) as Pruned,
    pullImage: async (image) => (await images({ do: 'pull', image })) as { image: string; id: string },
    pinImage: (image, pinned) => message(node.ask('images', { args: { do: pinned ? 'pin' : 'unpin', image } })),
    importImages: localOnly('importing an archive'),
    describe: async (of) => {
      if (of.kind === 'Node' && of.name !== '' && of.name !== node.name) throw otherNode(of.name, node.name);
      const what =
        of.kind === 'Node' ? { args: { kind: 'node' } } : { target: { namespace: of.namespace, pod: of.name }, args: { kind: 'pod' } };
      return new TextDecoder().decode((await node.ask('describe', what)).stdout);
    },
    why: async ({ kind, namespace, name }, output) => {
      const args = { kind: kind.toLowerCase(), output };
      return new TextDecoder().decode((await node.ask('why', { target: { namespace, pod: name }, args })).stdout);
    },
    follow: (what) => follow(node, what, events),
    close: () => node.remote.close(),
  };
}

/** The rows of a list as the local API shapes it. */
function listOf<T>(value: unknown, node: string): readonly T[] {
  if (Array.isArray(value)) return value as readonly T[];
  const items = typeof value === 'object' && value !== null ? (value as { readonly items?: unknown }).items : undefined;
  if (Array.isArray(items)) return items as readonly T[];
  throw new CommandError(exitCodes.failed, `the answer of node "${node}" is no list`);
}

/** Events by name: those that were asked for and those that came since. */
class LiveEvents {
  followed = false;
  /** They are followed, and what was before that has been asked for. */
  live = false;
  #known = new Map<string, V1Event>();

  add(events: readonly V1Event[]): void {
    for (const event of events) {
      const key = `${event.metadata.namespace}/${event.metadata.name}`;
      this.#known.delete(key);
      this.#known.set(key, event);
    }
    for (const key of this.#known.keys()) {
      if (this.#known.size <= mostEvents) break;
      this.#known.delete(key);
    }
  }

  list(namespace: string | undefined, name: string | undefined): readonly V1Event[] {
    return [...this.#known.values()]
      .filter((e) => namespace === undefined || e.metadata.namespace === namespace)
      .filter((e) => name === undefined || e.involvedObject.name === name)
      .sort((a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp));
  }
}

const isEvent = (o: Readonly<Record<string, unknown>> | undefined): boolean =>
  o?.kind === 'Event' &&
  typeof (o.metadata as { name?: unknown } | undefined)?.name === 'string' &&
  typeof (o.involvedObject as { kind?: unknown } | undefined)?.kind === 'string';

/** Hears what the node tells of `what`; the function resolves at the next of it. */
async function follow(node: RemoteNode, what: Followed, events: LiveEvents): Promise<() => Promise<void>> {
  const own = `${node.remote.prefix}/nodes/${node.name}`;
  const filters: Readonly<Record<Followed, readonly string[]>> = {
    pods: [`${own}/pods/+/+`, `${own}/sync/+/+`],
    nodes: [`${own}/info`],
    events: [`${own}/events/+`],
    files: [`${own}/sync/+/+`],
    images: [`${own}/pods/+/+`],
    configmaps: [`${own}/sync/+/+`],
    secrets: [`${own}/sync/+/+`],
  };
  let news = new AbortController();
  if (what === 'events') events.followed = true;
  await node.remote.listen(filters[what], ({ payload, retain }) => {
    if (retain) return; // what was before the first look is in it
    if (what === 'events') {
      const event = parseObject(payload);
      if (isEvent(event)) events.add([event as unknown as V1Event]);
    }
    news.abort();
  });
  return async () => {
    while (!news.signal.aborted) await node.remote.wait(600_000, news.signal);
    news = new AbortController();
  };
}

async function* readLogs(
  node: RemoteNode,
  { namespace, pod, container }: ContainerName,
  query: LogQuery,
): AsyncGenerator<Uint8Array, void> {
  let cut: string | undefined;
  for await (const { data, truncated } of node.replies('logs', { target: { namespace, pod, container }, args: { ...query } })) {
    cut = truncated;
    yield data;
  }
  if (cut !== undefined && query.limitBytes === undefined)
    throw new CommandError(exitCodes.failed, `the log was cut ${cut}: --tail or --since ask for less of it`);
}

/** Lines as the node tells them while a lease runs, which is renewed for as long as somebody reads. */
async function* followLogs(node: RemoteNode, of: ContainerName, query: LogQuery): AsyncGenerator<Uint8Array, void> {
  const { namespace, pod, container } = of;
  const target = { namespace, pod, container };
  const lines: LogLines[] = [];
  let news = new AbortController();
  const stop = await node.remote.listen([node.topics.logs(namespace, pod)], ({ payload }) => {
    const heard = parseLogLines(payload);
    if (heard === undefined || heard.container !== container) return;
    lines.push(heard);
    news.abort();
  });
  try {
    await node.ask('logs', { target, args: { ...query, leaseSeconds } });
    const { clock } = node.remote;
    let renewAt = clock.monotonic() + leaseSeconds * 500;
    for (;;) {
      for (let next = lines.shift(); next !== undefined; next = lines.shift()) {
        if (next.dropped !== undefined) yield Buffer.from(`[${next.dropped} lines left out: they came too fast]\n`);
        yield next.data;
        if (!next.last || next.reason === 'LeaseEnded') continue;
        if (next.reason === 'LogFailed') throw new CommandError(exitCodes.failed, `the log ended: ${next.message ?? 'it cannot be read'}`);
        return;
      }
      news = new AbortController();
      const left = renewAt - clock.monotonic();
      if (left > 0) await node.remote.wait(left, news.signal);
      else {
        await node.ask('logs', { target, args: { follow: true, leaseSeconds, tailLines: 0 } });
        renewAt = clock.monotonic() + leaseSeconds * 500;
      }
    }
  } finally {
    await stop();
  }
}

interface LogLines {
  readonly container: string;
  readonly data: Uint8Array;
  readonly last: boolean;
  readonly dropped?: number;
  readonly reason?: string;
  readonly message?: string;
}

function parseLogLines(payload: Uint8Array): LogLines | undefined {
  const o = parseObject(payload);
  if (o === undefined || typeof o.container !== 'string' || typeof o.data !== 'string') return undefined;
  const last = (o.chunk as { readonly last?: unknown } | undefined)?.last === true;
  return {
    container: o.container,
    data: bytesOf({ data: o.data, encoding: o.encoding }),
    last,
    ...(typeof o.dropped === 'number' && { dropped: o.dropped }),
    ...(typeof o.reason === 'string' && { reason: o.reason }),
    ...(typeof o.message === 'string' && { message: o.message }),
  };
}
