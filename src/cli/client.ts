/**
 * The agent as the commands ask it, whichever way leads there: its socket (here), or a broker (remoteClient.ts). Every question rejects with
 * CommandError: what the agent refuses with its words, and a clear word when nobody answers.
 */
import { join } from 'node:path';
import { configurationKeys } from '../api/configuration.ts';
import { socketName } from '../api/configurationChecks.ts';
import type { FileStatus, SyncStatus } from '../api/payloads.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import type { EphemeralContainer } from '../api/v1.ts';
import { upgradeHeaders } from '../cri/streaming.ts';
import type { NodeObject } from '../node/info.ts';
import type { NodeCondition } from '../operations/agentView.ts';
import type { Finding } from '../operations/doctorFinding.ts';
import type { ExecAnswer, ExecRequest } from '../operations/execCaptured.ts';
import type { ImportedImages, ListedImage, Pruned } from '../operations/images.ts';
import type { NodeActRequest } from '../operations/nodeActs.ts';
import type { ListedObject } from '../operations/objects.ts';
import type { Done, PodActRequest } from '../operations/podActs.ts';
import type { Summary } from '../operations/statsSummary.ts';
import type { Target } from '../operations/target.ts';
import type { NodeUsage, PodUsage } from '../operations/top.ts';
import { envName, loadOptions } from '../options.ts';
import { defaultConfigFile, readConfigFile } from './configFile.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { answered, get, parts, post, type Session, whole } from './socket.ts';

export interface ContainerName {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** `v1 PodLogOptions`. */
export interface LogQuery {
  readonly follow?: true;
  readonly previous?: true;
  readonly timestamps?: true;
  readonly tailLines?: number;
  readonly sinceSeconds?: number;
  readonly sinceTime?: string;
  readonly limitBytes?: number;
}

/** What can be followed. */
export type Followed = 'pods' | 'nodes' | 'events' | 'files' | 'images' | 'configmaps' | 'secrets';

export interface AgentClient {
  pods(namespace?: string): Promise<readonly ToldPod[]>;
  sync(): Promise<readonly SyncStatus[]>;
  /** ConfigMaps and Secrets. */
  objects(): Promise<readonly ListedObject[]>;
  files(): Promise<readonly FileStatus[]>;
  events(filter: { readonly namespace?: string; readonly name?: string }): Promise<readonly V1Event[]>;
  conditions(): Promise<readonly NodeCondition[]>;
  configuration(): Promise<Readonly<Record<string, unknown>>>;
  /** The node as it is now. */
  node(): Promise<NodeObject>;
  /** The log as it comes. The iteration rejects when the connection breaks before the end. */
  logs(of: ContainerName, query: LogQuery): Promise<AsyncIterable<Uint8Array>>;
  /** A connection upgraded to a session, and what came with the answer. */
  session(path: string): Promise<Session>;
  /** A command run to its end, what it said captured: the way where no session can be had. Absent: `session` is the way. */
  captured?(command: Pick<ExecRequest, 'namespace' | 'pod' | 'container' | 'command'>): Promise<ExecAnswer>;
  /** One more container in a pod; as the agent has taken it. */
  debug(pod: { readonly namespace: string; readonly name: string }, container: EphemeralContainer): Promise<EphemeralContainer>;
  /** Resolves when it is on the card; containers end and start after that. */
  act(request: PodActRequest): Promise<Done>;
  /** resync, identify, decommission. */
  nodeAct(request: NodeActRequest): Promise<Done>;
  /** The support bundle, redacted. */
  bundle(): Promise<unknown>;
  /** What the node's own doctor finds now. Absent: the machine is looked at by this process. */
  doctor?(): Promise<readonly Finding[]>;
  /** What runs of pods, and what it uses; measured at the question. */
  topPods(): Promise<readonly PodUsage[]>;
  topNode(): Promise<NodeUsage>;
  /** The same as the kubelet tells it, and what probes cost; no disk is looked at. */
  stats(): Promise<Summary>;
  images(): Promise<readonly ListedImage[]>;
  pruneImages(dryRun: boolean): Promise<Pruned>;
  /** Resolves when it is here, however long that takes. */
  pullImage(image: string): Promise<{ readonly image: string; readonly id: string }>;
  /** An image that is never removed by itself, or no longer such a one. */
  pinImage(image: string, pinned: boolean): Promise<Done>;
  /** `path`: of a file on this machine, absolute. */
  importImages(path: string): Promise<ImportedImages>;
  /** The text of a description, made by the node itself. Absent: it is made here, of what the node says. */
  describe?(of: { readonly kind: 'Pod' | 'Node'; readonly namespace: string; readonly name: string }): Promise<string>;
  /** The same of a reason, for people or as JSON. */
  why?(of: Target, output: 'text' | 'json'): Promise<string>;
  /** Listens to what changes; the function resolves at the next change. Absent: one has to look again and again. */
  follow?(what: Followed): Promise<() => Promise<void>>;
  /** Ends what it holds open. Absent: it holds nothing. */
  close?(): Promise<void>;
}

export interface WhereOptions {
  readonly runDir?: string;
  readonly config?: string;
}

/** The socket of the agent that is meant: `--run-dir`, environment, configuration file, default; the first that says something. */
export async function socketPath(o: WhereOptions, env: Readonly<Record<string, string | undefined>>): Promise<string> {
  return join(String(await agentSetting('runDir', o, env)), socketName);
}

/** A setting as the agent of this machine has it: option, environment, configuration file, default; the first that says something. */
export async function agentSetting(
  key: 'runDir' | 'staticPodPath',
  o: WhereOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const named = (key === 'runDir' ? o.runDir : undefined) ?? env[envName(key)];
  if (named !== undefined && named !== '') return named;
  const read = await readConfigFile(o.config ?? defaultConfigFile);
  if (!read.ok && o.config !== undefined) throw new CommandError(exitCodes.usage, `${o.config}: ${read.problem.got}`);
  const inFile = read.ok && read.file !== undefined ? loadOptions({ flags: {}, env: {}, file: read.file }).fileSettings[key] : undefined;
  return String(inFile ?? configurationKeys[key]?.default);
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** With what is said of it; `true` is written 1, as in every question of ours that is no one of Kubernetes. */
function queryText(query: Query): string {
  const said = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === false ? [] : [[name, value === true ? '1' : String(value)]],
  );
  return said.length === 0 ? '' : `?${new URLSearchParams(said)}`;
}

const pathOf = (...names: readonly string[]): string => `/${names.map(encodeURIComponent).join('/')}`;

export function agentClient(socket: string): AgentClient {
  const items = async <T>(path: string): Promise<readonly T[]> => ((await get(socket, path)) as { readonly items: readonly T[] }).items;
  return {
    pods: (namespace) => items(`/pods${queryText({ namespace })}`),
    sync: () => items('/sync'),
    objects: () => items('/objects'),
    files: () => items('/files'),
    events: ({ namespace, name }) => items(`/events${queryText({ namespace, name })}`),
    conditions: () => items('/conditions'),
    configuration: async () =>
      ((await get(socket, '/configz')) as { readonly podschedconfig: Readonly<Record<string, unknown>> }).podschedconfig,
    node: async () => (await get(socket, '/node')) as NodeObject,
    logs: async ({ namespace, pod, container }, query) => {
      const path = `${pathOf('containerLogs', namespace, pod, container)}${queryText({ ...query })}`;
      return parts(socket, await answered(socket, { path }));
    },
    session: async (path) => {
      const answer = await answered(socket, { path, method: 'POST', headers: upgradeHeaders });
      if ('head' in answer) return answer;
      answer.destroy();
      throw new CommandError(exitCodes.failed, `the agent on ${socket} did not open a session`);
    },
    debug: async ({ namespace, name }, container) => {
      const answer = await answered(socket, { path: pathOf('debug', namespace, name), method: 'POST', body: JSON.stringify(container) });
      return JSON.parse(await whole(socket, answer)) as EphemeralContainer;
    },
    act: async ({ act, namespace, pod, container, new: anew }) =>
      (await post(socket, `${pathOf(act, namespace, pod)}${queryText({ container, new: anew })}`)) as Done,
    nodeAct: async ({ act, ...query }) => (await post(socket, `/${act}${queryText(query)}`)) as Done,
    bundle: async () => JSON.parse(await whole(socket, await answered(socket, { path: '/bundle', patient: true }))),
    topPods: () => items('/top/pods'),
    topNode: async () => (await get(socket, '/top/node')) as NodeUsage,
    stats: async () => (await get(socket, '/stats/summary?only_cpu_and_memory=true')) as Summary,
    images: () => items('/images'),
    pruneImages: async (dryRun) => (await post(socket, `/images/prune${queryText({ dryRun })}`)) as Pruned,
    pullImage: async (image) => (await post(socket, `/images/pull${queryText({ image })}`)) as { image: string; id: string },
    pinImage: async (image, pinned) => (await post(socket, `/images/${pinned ? 'pin' : 'unpin'}${queryText({ image })}`)) as Done,
    importImages: async (path) => (await post(socket, `/images/import${queryText({ path })}`)) as ImportedImages,
  };
}
