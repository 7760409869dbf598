// pure
/** A pod told in full for a person, in the order of `kubectl describe pod`, with where it comes from and its events. */
import type { SyncStatus } from '../api/payloads.ts';
import { problemText } from '../api/problems.ts';
import type { ContainerState, ToldPod, V1ContainerStatus, V1Event } from '../api/status.ts';
import type { Container } from '../api/v1.ts';
import { ageText } from './age.ts';
import { podStatusText } from './podRow.ts';

export interface DescribeFacts {
  readonly pod?: ToldPod;
  readonly sync?: SyncStatus;
  /** Of this pod only. */
  readonly events: readonly V1Event[];
  readonly nowMs: number;
}

/** One line: how deep it stands, its name, its value; without a value it is a heading. */
export type Line = readonly [depth: number, name: string, value?: string];

/** One of pod and sync is there: a refused object has no pod, a pod that ends may have no source. */
export function describePod({ pod, sync, events, nowMs }: DescribeFacts): string {
  const lines: Line[] = pod === undefined ? [] : podLines(pod, sync);
  if (pod === undefined && sync !== undefined) {
    lines.push([0, 'Name', sync.object.name], [0, 'Namespace', sync.object.namespace], [0, 'Status', 'no pod']);
  }
  if (sync !== undefined) lines.push(...syncLines(sync));
  return `${[...aligned(lines), ...eventLines(events, nowMs)].join('\n')}\n`;
}

/** The values under one heading begin in one column, and those of the top in theirs. */
export function aligned(lines: readonly Line[]): string[] {
  const head = ([depth, name]: Line): string => (name === '' ? '' : `${'  '.repeat(depth)}${name}:`);
  let width = topWidth;
  return lines.map((line, i) => {
    const [depth, , value] = line;
    if (depth === 0) {
      const next = lines.findIndex((l, j) => j > i && l[0] === 0);
      const below = lines.slice(i + 1, next < 0 ? undefined : next).filter((l) => l[2] !== undefined);
      width = Math.max(0, ...below.map((l) => head(l).length));
    }
    return value === undefined ? head(line) : `${head(line).padEnd(depth === 0 ? topWidth : width)}  ${value}`;
  });
}

const topWidth = 'Annotations:'.length;

/** One pair in a line, as kubectl has it. */
export const pairs = (name: string, of: Readonly<Record<string, string>> | undefined): Line[] => {
  const [first = '<none>', ...more] = Object.entries(of ?? {}).map(([k, v]) => `${k}=${v.replaceAll('\n', ' ')}`);
  return [[0, name, first], ...more.map((pair): Line => [0, '', pair])];
};

function podLines(pod: ToldPod, sync: SyncStatus | undefined): Line[] {
  const { metadata, spec, status } = pod;
  const shown = Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([k]) => !internal.has(k)));
  const lines: Line[] = [
    [0, 'Name', metadata.name],
    [0, 'Namespace', metadata.namespace ?? 'default'],
    [0, 'UID', metadata.uid ?? '<none>'],
    [0, 'Node', [spec.nodeName ?? '<none>', status.hostIP].filter((part) => part !== undefined).join('/')],
    [0, 'Source', metadata.annotations?.['podsched.dev/source'] ?? sync?.desired?.source ?? '<none>'],
    [0, 'Revision', metadata.annotations?.['podsched.dev/revision'] ?? '<none>'],
    [0, 'Start Time', status.startTime ?? '<none>'],
    ...pairs('Labels', metadata.labels),
    ...pairs('Annotations', shown),
    [0, 'Status', podStatusText(pod)],
  ];
  if (metadata.deletionTimestamp !== undefined) {
    lines.push([0, 'Terminating', `until ${metadata.deletionTimestamp} (grace ${metadata.deletionGracePeriodSeconds ?? 0} s)`]);
  }
  if (status.reason !== undefined) lines.push([0, 'Reason', status.reason]);
  if (status.message !== undefined) lines.push([0, 'Message', status.message]);
  lines.push([0, 'IP', status.podIP ?? '<none>'], [0, 'QoS Class', status.qosClass ?? '<none>']);
  lines.push(...containerSection('Init Containers', spec.initContainers ?? [], status.initContainerStatuses ?? []));
  lines.push(...containerSection('Containers', spec.containers, status.containerStatuses ?? []));
  lines.push([0, 'Conditions']);
  for (const c of status.conditions ?? []) {
    const why = [c.reason, c.message].filter((part) => part !== undefined && part !== '').join(': ');
    lines.push([1, c.type, why === '' ? c.status : `${c.status} (${why})`]);
  }
  return lines;
}

/** Shown in lines of their own. */
const internal: ReadonlySet<string> = new Set(['podsched.dev/source', 'podsched.dev/revision', 'podsched.dev/boot', 'podsched.dev/seq']);

function containerSection(title: string, containers: readonly Container[], statuses: readonly V1ContainerStatus[]): Line[] {
  if (containers.length === 0) return [];
  return [
    [0, title],
    ...containers.flatMap((c) =>
      containerLines(
        c,
        statuses.find((s) => s.name === c.name),
      ),
    ),
  ];
}

function containerLines(c: Container, s: V1ContainerStatus | undefined): Line[] {
  const lines: Line[] = [
    [1, c.name],
    [2, 'Image', c.image ?? '<none>'],
  ];
  const ports = c.ports?.map((p) => `${p.containerPort}/${p.protocol ?? 'TCP'}${p.hostPort === undefined ? '' : ` (host ${p.hostPort})`}`);
  if (ports !== undefined && ports.length > 0) lines.push([2, 'Ports', ports.join(', ')]);
  const amounts = (of: Readonly<Record<string, string | number>> | undefined): string =>
    Object.entries(of ?? {})
      .map(([k, v]) => `${k} ${v}`)
      .join(', ');
  if (c.resources?.limits !== undefined) lines.push([2, 'Limits', amounts(c.resources.limits)]);
  if (c.resources?.requests !== undefined) lines.push([2, 'Requests', amounts(c.resources.requests)]);
  if (s === undefined) return [...lines, [2, 'State', 'Waiting']];
  lines.push([2, 'Container ID', s.containerID ?? '<none>'], [2, 'Image ID', s.imageID === '' ? '<none>' : s.imageID]);
  lines.push(...stateLines('State', s.state));
  if (s.lastState.terminated !== undefined) lines.push(...stateLines('Last State', s.lastState));
  lines.push([2, 'Ready', s.ready ? 'True' : 'False'], [2, 'Restart Count', String(s.restartCount)]);
  return lines;
}

function stateLines(title: string, { waiting, running, terminated }: ContainerState): Line[] {
  if (running !== undefined)
    return [
      [2, title, 'Running'],
      [3, 'Started', running.startedAt],
    ];
  if (terminated !== undefined) {
    return [
      [2, title, 'Terminated'],
      ...optional(3, 'Reason', terminated.reason),
      ...optional(3, 'Message', terminated.message),
      [3, 'Exit Code', String(terminated.exitCode)],
      ...optional(3, 'Started', terminated.startedAt),
      ...optional(3, 'Finished', terminated.finishedAt),
    ];
  }
  return [[2, title, 'Waiting'], ...optional(3, 'Reason', waiting?.reason), ...optional(3, 'Message', waiting?.message)];
}

const optional = (depth: number, name: string, value: string | undefined): Line[] =>
  value === undefined || value === '' ? [] : [[depth, name, value.replaceAll('\n', ' ')]];

function syncLines(sync: SyncStatus): Line[] {
  const lines: Line[] = [[0, 'Sync', `${sync.phase} (${sync.reason}): ${sync.message}`]];
  if (sync.nextRetrySeconds !== undefined) lines.push([1, 'Next try', `within ${sync.nextRetrySeconds} s`]);
  for (const s of sync.sources) {
    const revision = s.revision === undefined ? '' : ` revision ${s.revision}`;
    const said = s.message === '' || s.reason === s.phase ? '' : ` (${s.reason}): ${s.message}`;
    lines.push([1, s.source, `${s.phase}${revision}${said}`]);
    for (const p of s.problems) lines.push([2, 'Problem', problemText(p)]);
  }
  return lines;
}

/** The section of events, with how long ago each was last seen. */
export function eventLines(events: readonly V1Event[], nowMs: number): string[] {
  if (events.length === 0) return [`${'Events:'.padEnd(topWidth)}  <none>`];
  const rows = events.map((e) => {
    const times = e.count > 1 ? ` (x${e.count} over ${ageText(e.firstTimestamp, nowMs)})` : '';
    return [e.type, e.reason, `${ageText(e.lastTimestamp, nowMs)}${times}`, e.message.replaceAll('\n', ' ')] as const;
  });
  const width = (i: 0 | 1 | 2, least: number): number => Math.max(least, ...rows.map((r) => r[i].length)) + 2;
  const [a, b, c] = [width(0, 4), width(1, 6), width(2, 3)];
  const row = (r: readonly [string, string, string, string]): string => `  ${r[0].padEnd(a)}${r[1].padEnd(b)}${r[2].padEnd(c)}${r[3]}`;
  return ['Events:', row(['Type', 'Reason', 'Age', 'Message']), ...rows.map(row)];
}
