// pure
/** What each path of the local API answers. Kubernetes' shapes where Kubernetes has one, and `v1 Status` for what cannot be answered. */
import type { AgentView } from '../operations/agentView.ts';

export interface Answer {
  readonly code: number;
  /** A text is sent as it is, anything else as JSON. */
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const words: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  413: 'RequestEntityTooLarge',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
};

/** `v1 Status` of a failure. */
export function failure(code: number, message: string, headers?: Readonly<Record<string, string>>): Answer {
  const reason = words[code] ?? 'InternalError';
  return {
    code,
    body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code },
    ...(headers && { headers }),
  };
}

/** There is nobody yet who could answer. */
export const starting = failure(503, 'the agent is starting', { 'retry-after': '1' });

interface Filter {
  readonly namespace?: string;
  readonly name?: string;
}

const list = (apiVersion: string, kind: string, items: readonly unknown[]): Answer => ({
  code: 200,
  body: { kind, apiVersion, metadata: {}, items },
});

const fits = (f: Filter, o: { readonly namespace?: string; readonly name: string }): boolean =>
  (f.namespace === undefined || f.namespace === (o.namespace ?? 'default')) && (f.name === undefined || f.name === o.name);

const routes: Readonly<Record<string, (view: AgentView, filter: Filter) => Answer>> = {
  '/healthz': (view) => health(view),
  '/pods': (view, f) =>
    list(
      'v1',
      'PodList',
      view.pods().filter((p) => fits(f, p.metadata)),
    ),
  '/sync': (view, f) =>
    list(
      'podsched.dev/v1',
      'SyncStatusList',
      view.sync().filter((s) => fits(f, s.object)),
    ),
  '/objects': (view, f) =>
    list(
      'podsched.dev/v1',
      'ObjectList',
      (view.objects?.() ?? []).filter((o) => fits(f, o.metadata)),
    ),
  '/files': (view, f) =>
    list(
      'podsched.dev/v1',
      'FileStatusList',
      view.files().filter((s) => f.name === undefined || f.name === s.file),
    ),
  '/events': (view, f) => list('v1', 'EventList', view.events(f)),
  '/conditions': (view) => list('podsched.dev/v1', 'ConditionList', view.conditions()),
  '/configz': (view) => ({ code: 200, body: { podschedconfig: view.configuration() } }),
  '/version': (view) => ({ code: 200, body: { version: view.version, nodeName: view.nodeName } }),
};

/** 200 `ok`, or 503 with one line for each check, as the kubelet words them. */
function health(view: AgentView): Answer {
  const checks = view.health();
  if (checks.every((c) => c.ok)) return { code: 200, body: 'ok' };
  const lines = checks.map((c) => (c.ok ? `[+]${c.name} ok` : `[-]${c.name} failed: ${c.message}`));
  return { code: 503, body: `${lines.join('\n')}\nhealthz check failed\n` };
}

/** What is answered elsewhere: bytes that flow, and what changes something. */
const others = [
  '/livez',
  '/containerLogs/{ns}/{pod}/{container}',
  '/exec/{ns}/{pod}/{container}',
  '/attach/{ns}/{pod}/{container}',
  '/debug/{ns}/{pod}',
  '/restart/{ns}/{pod}',
  '/stop/{ns}/{pod}',
  '/start/{ns}/{pod}',
  '/hold/{ns}/{pod}',
  '/release/{ns}/{pod}',
  '/rollback/{ns}/{pod}',
  '/resync',
  '/identify',
  '/decommission',
  '/bundle',
  '/node',
  '/stats/summary',
  '/top/pods',
  '/top/node',
  '/images',
  '/images/prune',
  '/images/pull',
  '/images/import',
  '/images/pin',
  '/images/unpin',
];

/** The answer to one request. `view` is undefined while the agent starts. */
export function answer(view: AgentView | undefined, method: string, target: string): Answer {
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (route === undefined && path !== '/livez') {
    return failure(404, `there is no ${path.slice(0, 200)}; there are ${[...others, ...Object.keys(routes)].join(', ')}`);
  }
  if (method !== 'GET' && method !== 'HEAD') return failure(405, `${path} is read with GET`, { allow: 'GET, HEAD' });
  // alive as soon as it answers
  if (route === undefined) return { code: 200, body: 'ok' };
  if (view === undefined) return starting;
  const parameters = new URLSearchParams(query < 0 ? '' : target.slice(query + 1));
  const namespace = parameters.get('namespace');
  const name = parameters.get('name');
  return route(view, { ...(namespace !== null && { namespace }), ...(name !== null && { name }) });
}
