/**
 * What each verb does: a question to the agent's view, the same one that the local API and the commands ask, and its answer in the words of
 * this room. Owns nothing. Loaded with the first command that is run.
 */
import { join } from 'node:path';
import type { Verb } from '../api/verbs.ts';
import type { AgentView, PodActRequest } from '../operations/agentView.ts';
import { type Answered, askedFor } from '../operations/answered.ts';
import { nanosOf } from '../operations/criLog.ts';
import { describePod } from '../operations/describe.ts';
import { describeNode } from '../operations/describeNode.ts';
import type { LogRequest } from '../operations/logRequest.ts';
import { pickContainer } from '../operations/logTarget.ts';
import { findPod, isTarget, knownObjects, notFoundText, type Target as ObjectTarget } from '../operations/target.ts';
import { why, whyText } from '../operations/why.ts';
import type { Clock } from '../world/clock.ts';
import type { LogFollows } from './follow.ts';
import { shortPod } from './shortPod.ts';
import type { Args, Asked, Body, Done, Outcome, Refusal } from './words.ts';

export interface VerbDeps {
  readonly view: AgentView;
  readonly clock: Clock;
  readonly follows: Pick<LogFollows, 'follow'>;
}

type Run = (asked: Asked, deps: VerbDeps, signal: AbortSignal) => Promise<Outcome>;

const refuse = (reason: string, message: string): Refusal => ({ status: 'error', reason, message });
const done = (body: Body, more: Omit<Done, 'status' | 'body'> = {}): Done => ({ status: 'ok', body, ...more });
const json = (value: unknown): Done => done({ json: value });

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  404: 'NotFound',
  409: 'Conflict',
  422: 'NotValid',
  429: 'Busy',
  502: 'Unavailable',
  503: 'Unavailable',
};
const refusal = ({ code, message }: Extract<Answered<never>, { ok: false }>): Refusal => refuse(reasons[code] ?? 'InternalError', message);

const notHere = (what: string): Refusal => refuse('Unavailable', `this agent does not look after ${what}`);

const listOf = (apiVersion: string, kind: string, items: readonly unknown[]): Done => json({ kind, apiVersion, metadata: {}, items });

interface Filter {
  readonly namespace?: string;
  readonly name?: string;
}

const text = (args: Args, name: string): string | undefined => (typeof args[name] === 'string' ? args[name] : undefined);
const number = (args: Args, name: string): number | undefined => (typeof args[name] === 'number' ? args[name] : undefined);

/** Arguments before the target. */
function filterOf({ args, target }: Asked): Filter {
  const namespace = text(args, 'namespace') ?? target.namespace;
  const name = text(args, 'name') ?? target.pod;
  return { ...(namespace !== undefined && { namespace }), ...(name !== undefined && { name }) };
}

const fits = (f: Filter, o: { readonly namespace?: string; readonly name: string }): boolean =>
  (f.namespace === undefined || f.namespace === (o.namespace ?? 'default')) && (f.name === undefined || f.name === o.name);

const podOf = ({ target: { namespace = 'default', pod = '' } }: Asked): { readonly namespace: string; readonly pod: string } => ({
  namespace,
  pod,
});

const get: Run = async (asked, { view }) => {
  const f = filterOf(asked);
  const what = text(asked.args, 'what') ?? 'pods';
  switch (what) {
    case 'sync': {
      const items = view.sync().filter((s) => fits(f, s.object));
      return listOf('podsched.dev/v1', 'SyncStatusList', items);
    }
    case 'objects': {
      const items = (view.objects?.() ?? []).filter((o) => fits(f, o.metadata));
      return listOf('podsched.dev/v1', 'ObjectList', items);
    }
    case 'files': {
      const items = view.files().filter((s) => f.name === undefined || f.name === s.file);
      return listOf('podsched.dev/v1', 'FileStatusList', items);
    }
    case 'events':
      return listOf('v1', 'EventList', view.events(f));
    case 'conditions':
      return listOf('podsched.dev/v1', 'ConditionList', view.conditions());
    case 'node':
      return view.node === undefined ? notHere('the node') : json(await view.node());
    case 'images':
      return view.images === undefined ? notHere('images') : listOf('podsched.dev/v1', 'ImageList', await view.images.list());
    case 'configuration':
      return json({ podschedconfig: view.configuration() });
    case 'version':
      return json({ version: view.version, nodeName: view.nodeName });
    default: {
      const items = view.pods().filter((p) => fits(f, p.metadata));
      return listOf('v1', 'PodList', items.map(shortPod));
    }
  }
};

const describe: Run = async (asked, { view, clock }) => {
  const nowMs = clock.now();
  if (asked.args.kind === 'node') {
    if (view.node === undefined) return notHere('the node');
    const events = view.events({}).filter((e) => e.involvedObject.kind === 'Node');
    return done({ text: describeNode({ node: await view.node(), pods: view.pods().map(shortPod), events, nowMs }) });
  }
  if (asked.target.pod === undefined) return refuse('TargetRequired', 'a pod is described: target.pod must name it');
  const { namespace, pod: name } = podOf(asked);
  const target: ObjectTarget = { kind: 'Pod', namespace, name };
  const pod = findPod(view.pods(), target);
  const sync = view.sync().find((s) => isTarget(target, s.object));
  if (pod === undefined && sync === undefined) return notFound(target, view);
  const events = view.events({ namespace, name }).filter((e) => e.involvedObject.kind === 'Pod');
  return done({ text: describePod({ ...(pod && { pod: shortPod(pod) }), ...(sync && { sync }), events, nowMs }) });
};

const notFound = (target: ObjectTarget, view: AgentView): Refusal =>
  refuse('NotFound', notFoundText(target, knownObjects(view.sync(), view.pods())));

const kinds: Readonly<Record<string, ObjectTarget['kind']>> = { pod: 'Pod', configmap: 'ConfigMap', secret: 'Secret' };

const explain: Run = async (asked, { view }) => {
  const { namespace, pod: name } = podOf(asked);
  const target: ObjectTarget = { kind: kinds[text(asked.args, 'kind') ?? 'pod'] ?? 'Pod', namespace, name };
  const answer = why(target, { pods: view.pods(), sync: view.sync(), files: view.files(), conditions: view.conditions() });
  if (answer === undefined) return notFound(target, view);
  if (asked.args.output === 'json') return json(answer);
  const { staticPodPath } = view.configuration();
  return done({ text: whyText(answer, typeof staticPodPath === 'string' ? join(staticPodPath, '/') : '') });
};

const top: Run = async (asked, { view: { stats } }) => {
  if (stats === undefined) return notHere('what is used');
  switch (asked.args.what) {
    case 'node':
      return json(await stats.topNode());
    case 'summary':
      return json(await stats.summary('cpuAndMemory'));
    default: {
      const f = filterOf(asked);
      const items = (await stats.topPods()).filter((p) => fits(f, p.metadata));
      return listOf('podsched.dev/v1', 'PodUsageList', items);
    }
  }
};

/** Of a log that nobody bounded otherwise. */
const tailByDefault = 1000;
const tailOfFollowers = 10;

const logs: Run = async (asked, { view, follows }, signal) => {
  const { args, who } = asked;
  const { namespace, pod: name } = podOf(asked);
  const pod = askedFor(view.pods(), namespace, name);
  if (!pod.ok) return refusal(pod);
  const picked = pickContainer(pod.value, asked.target.container);
  if (!picked.ok) return refusal(picked);
  const since = text(args, 'sinceTime');
  const sinceNanos = since === undefined ? undefined : nanosOf(since);
  if (since !== undefined && sinceNanos === undefined)
    return refuse('BadArguments', 'args.sinceTime: expected a time such as 2026-01-01T00:00:00Z');
  const sinceSeconds = number(args, 'sinceSeconds');
  const follow = args.follow === true;
  const bounded = sinceSeconds !== undefined || sinceNanos !== undefined;
  const tailLines = number(args, 'tailLines') ?? (bounded ? undefined : follow ? tailOfFollowers : tailByDefault);
  const request: LogRequest = {
    namespace,
    pod: name,
    container: picked.value,
    follow,
    previous: args.previous === true,
    timestamps: args.timestamps === true,
    ...(tailLines !== undefined && { tailLines }),
    ...(sinceSeconds !== undefined && { sinceSeconds }),
    ...(sinceNanos !== undefined && { sinceNanos }),
  };
  if (!follow) {
    const opened = await view.logs(request, signal);
    return opened.ok ? done({ bytes: opened.value, capBytes: number(args, 'limitBytes') ?? 0 }) : refusal(opened);
  }
  const lease = number(args, 'leaseSeconds') ?? 0;
  const followed = await follows.follow({ namespace, pod: name, container: picked.value }, who.requester ?? '', lease, (ends) =>
    view.logs(request, ends),
  );
  if (!followed.ok) return refusal(followed);
  const { topic, container, lease: is } = followed.value;
  const message =
    is === 'ended' ? `container ${container} is not followed any more` : `lines of container ${container} come on ${topic} for ${lease} s`;
  return done({ json: followed.value }, { message });
};

const exec: Run = async (asked, { view }, signal) => {
  const { args, target } = asked;
  const answer = await view.execCaptured(
    {
      ...podOf(asked),
      ...(target.container !== undefined && { container: target.container }),
      command: Array.isArray(args.command) ? (args.command as readonly string[]) : [],
      timeoutSeconds: number(args, 'timeoutSeconds') ?? 0,
      limitBytes: number(args, 'limitBytes') ?? 0,
    },
    signal,
  );
  if (!answer.ok) return refusal(answer);
  const { exitCode, stdout, stderr, truncated } = answer.value;
  return done({ output: { stdout, stderr } }, { exitCode, ...(truncated && { truncated: 'it said more than limitBytes' }) });
};

const act =
  (verb: PodActRequest['act']): Run =>
  async (asked, { view }) => {
    const { args, target } = asked;
    const answer = await view.act({
      act: verb,
      ...podOf(asked),
      ...(verb === 'restart' && target.container !== undefined && { container: target.container }),
      ...(args.new === true && { new: true }),
    });
    return said(answer);
  };

const said = (answer: Answered<{ readonly message: string }>): Outcome =>
  answer.ok ? { status: 'ok', message: answer.value.message } : refusal(answer);

const images: Run = async ({ args }, { view }, signal) => {
  const { images: of } = view;
  if (of === undefined) return notHere('images');
  const image = text(args, 'image') ?? '';
  const given = <T>(kind: string, answer: Answered<T>): Outcome =>
    answer.ok ? json({ kind, apiVersion: 'podsched.dev/v1', metadata: {}, ...answer.value }) : refusal(answer);
  switch (args.do) {
    case 'pull':
      return given('ImagePull', await of.pull(image, signal));
    case 'prune':
      return given('ImagePrune', await of.prune(args.dryRun === true));
    case 'pin':
    case 'unpin':
      return said(await of.pin(image, args.do === 'pin'));
    default:
      return listOf('podsched.dev/v1', 'ImageList', await of.list());
  }
};

const runs: Readonly<Record<Verb, Run>> = {
  get,
  describe,
  why: explain,
  events: async (asked, { view }) => listOf('v1', 'EventList', view.events(filterOf(asked))),
  top,
  doctor: async (_, { view }) =>
    view.doctor === undefined ? notHere('the machine') : listOf('podsched.dev/v1', 'FindingList', await view.doctor()),
  identify: async ({ args }, { view }) => said(await view.nodeAct({ act: 'identify', seconds: number(args, 'seconds') ?? 1 })),
  logs,
  exec,
  restart: act('restart'),
  stop: act('stop'),
  start: act('start'),
  hold: act('hold'),
  release: act('release'),
  rollback: act('rollback'),
  resync: async ({ args }, { view }) => said(await view.nodeAct({ act: 'resync', ...(args.forgetLost === true && { forgetLost: true }) })),
  images,
  bundle: async (_, { view }, signal) => {
    const answer = await view.bundle(signal);
    return answer.ok ? json(answer.value) : refusal(answer);
  },
  decommission: async ({ args }, { view }) => said(await view.nodeAct({ act: 'decommission', confirm: text(args, 'confirm') ?? '' })),
};

/** Rejects when the runtime, a file or a store does not answer. The signal ends what can be ended. */
export const runVerb = (asked: Asked, deps: VerbDeps, signal: AbortSignal): Promise<Outcome> => runs[asked.verb](asked, deps, signal);
