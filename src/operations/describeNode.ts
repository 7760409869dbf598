// pure
/** The node told in full for a person, in the order of `kubectl describe node`: conditions, amounts, board, pods with what they ask for, events. */
import { quantityMilliValue, quantityValue } from '../api/quantity.ts';
import { podRequest } from '../api/resources.ts';
import type { ToldPod, V1Event } from '../api/status.ts';
import type { NodeObject } from '../node/info.ts';
import { ageText, spanText } from './age.ts';
import { aligned, eventLines, type Line, pairs } from './describe.ts';
import { nodeRow, problemsOf } from './nodeRow.ts';

export interface DescribeNodeFacts {
  readonly node: NodeObject;
  readonly pods: readonly ToldPod[];
  /** Of the node itself. */
  readonly events: readonly V1Event[];
  readonly nowMs: number;
}

export function describeNode({ node, pods, events, nowMs }: DescribeNodeFacts): string {
  const { metadata, status } = node;
  const { capacity = {}, allocatable = {}, nodeInfo, addresses, conditions } = status;
  const plain = Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([name]) => !boardRows.some((r) => r[1] === name)));
  const problems = problemsOf(node);
  const list = (of: Readonly<Record<string, string>>): Line[] => Object.entries(of).map(([name, amount]): Line => [1, name, amount]);
  const alive = pods.filter(({ status: { phase } }) => phase !== 'Succeeded' && phase !== 'Failed');
  const lines: Line[] = [
    [0, 'Name', metadata.name],
    ...pairs('Labels', metadata.labels),
    ...(Object.keys(plain).length > 0 ? pairs('Annotations', plain) : []),
    [0, 'Status', nodeRow(node).status + (problems.length === 0 ? '' : `, and: ${problems.join(', ')}`)],
    [0, 'Addresses'],
    ...addresses.map(({ type, address }): Line => [1, type, address]),
    [0, 'Capacity'],
    ...list(capacity),
    [0, 'Allocatable'],
    ...list(allocatable),
    [0, 'Board'],
    ...boardRows.flatMap(([title, name, shown]): Line[] => {
      const text = metadata.annotations?.[name];
      return text === undefined ? [] : [[1, title, shown?.(text) ?? text]];
    }),
    [0, 'System Info'],
    ...infoRows.flatMap(([title, name]): Line[] => {
      const text = nodeInfo[name] ?? '';
      return text === '' ? [] : [[1, title, text]];
    }),
  ];
  return `${[
    ...aligned(lines),
    ...conditionLines(conditions, nowMs),
    ...podLines(alive, allocatable, nowMs),
    ...eventLines(events, nowMs),
  ].join('\n')}\n`;
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)}Mi`;

/** Annotations with a row of their own. */
const boardRows: readonly (readonly [title: string, annotation: string, shown?: (text: string) => string])[] = [
  ['Model', 'podsched.dev/model'],
  ['Serial', 'podsched.dev/serial'],
  ['CPU Temperature', 'podsched.dev/cpu-temperature', (text) => `${text} °C`],
  ['Power', 'podsched.dev/power'],
  ['Storage', 'podsched.dev/storage'],
  ['Last Reset', 'podsched.dev/reset-reason'],
  ['Page Size', 'podsched.dev/page-size'],
  ['Uptime', 'podsched.dev/uptime-seconds', (text) => spanText(Number(text))],
  ['Load', 'podsched.dev/load'],
  ['Memory Available', 'podsched.dev/memory-available', (text) => mebibytes(quantityValue(text))],
  ['Swap', 'podsched.dev/swap'],
  ['Disk Available', 'podsched.dev/disk-available', (text) => mebibytes(quantityValue(text))],
];

const infoRows: readonly (readonly [title: string, name: string])[] = [
  ['Machine ID', 'machineID'],
  ['System UUID', 'systemUUID'],
  ['Boot ID', 'bootID'],
  ['Kernel Version', 'kernelVersion'],
  ['OS Image', 'osImage'],
  ['Operating System', 'operatingSystem'],
  ['Architecture', 'architecture'],
  ['Container Runtime Version', 'containerRuntimeVersion'],
  ['Agent Version', 'kubeletVersion'],
];

/** A table under a title; the last column is as long as it is. */
function table(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [`${title}:  <none>`];
  const widths = head.map((_, i) => Math.max(...[head, ...rows].map((row) => (row[i] ?? '').length)) + 2);
  const line = (row: readonly string[]): string =>
    `  ${row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join('')}`;
  return [`${title}:`, ...[head, ...rows].map(line)];
}

const conditionLines = (conditions: NodeObject['status']['conditions'], nowMs: number): string[] =>
  table(
    'Conditions',
    ['Type', 'Status', 'Since', 'Reason', 'Message'],
    conditions.map((c) => [c.type, c.status, ageText(c.lastTransitionTime, nowMs), c.reason, c.message.replaceAll('\n', ' ')]),
  );

/** Of the limits only what every container has adds up to one; here, as in kubectl, what there is. */
function limitOf(pod: ToldPod, name: string): number {
  const amount = name === 'cpu' ? quantityMilliValue : quantityValue;
  return pod.spec.containers.reduce((sum, c) => sum + amount(c.resources?.limits?.[name] ?? '0'), 0);
}

function podLines(pods: readonly ToldPod[], allocatable: Readonly<Record<string, string>>, nowMs: number): string[] {
  const cpu = quantityMilliValue(allocatable.cpu ?? '0');
  const memory = quantityValue(allocatable.memory ?? '0');
  const share = (n: number, of: number): string => (of === 0 ? '' : ` (${Math.floor((100 * n) / of)}%)`);
  const cpuText = (milli: number): string => `${milli}m${share(milli, cpu)}`;
  const memoryText = (bytes: number): string => `${mebibytes(bytes)}${share(bytes, memory)}`;
  const rows = pods.map((pod) => ({
    names: [pod.metadata.namespace ?? 'default', pod.metadata.name],
    amounts: [podRequest(pod, 'cpu'), limitOf(pod, 'cpu'), podRequest(pod, 'memory'), limitOf(pod, 'memory')] as const,
    age: ageText(pod.metadata.creationTimestamp ?? pod.status.startTime, nowMs),
  }));
  const total = (i: 0 | 1 | 2 | 3): number => rows.reduce((sum, r) => sum + r.amounts[i], 0);
  const texts = ([a, b, c, d]: readonly [number, number, number, number]): string[] => [
    cpuText(a),
    cpuText(b),
    memoryText(c),
    memoryText(d),
  ];
  return [
    ...table(
      `Pods (${pods.length} of ${allocatable.pods ?? '?'})`,
      ['Namespace', 'Name', 'CPU Requests', 'CPU Limits', 'Memory Requests', 'Memory Limits', 'Age'],
      rows.map((r) => [...r.names, ...texts(r.amounts), r.age]),
    ),
    ...table(
      'Allocated resources',
      ['Resource', 'Requests', 'Limits'],
      [
        ['cpu', cpuText(total(0)), cpuText(total(1))],
        ['memory', memoryText(total(2)), memoryText(total(3))],
      ],
    ),
  ];
}
