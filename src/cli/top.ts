/** `top pods` and `top node`: what is used now, in the columns of kubectl top; with `--probes` what it costs to ask the probes. */
import { quantityMilliValue, quantityValue } from '../api/quantity.ts';
import type { Amounts, NodeUsage, PodUsage } from '../operations/top.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { type Found, type Item, type Output, type Printer, render } from './get.ts';
import { otherNode } from './nodes.ts';

export interface TopPodsOptions {
  readonly namespace: string;
  readonly allNamespaces?: true;
  /** A row for each container. */
  readonly containers?: true;
  /** The greatest first; else by namespace and name. */
  readonly sortBy?: 'cpu' | 'memory';
  /** What the probes cost, a row for each; the costliest first. */
  readonly probes?: true;
  readonly output?: Output;
  readonly watch?: true;
}

export interface TopNodeOptions {
  readonly output?: Output;
  readonly watch?: true;
}

type TopClient = Pick<AgentClient, 'topPods' | 'topNode' | 'stats' | 'pods'>;

/** The agent measures over the time between two questions, so shorter would only be noise. */
const watchMs = 2000;
const mebibyte = 2 ** 20;
const unknown = '<unknown>';
const none = '<none>';

/** Billionths are rounded up to thousandths, as kubectl does. */
const cpuText = (cpu: string | undefined, missing = unknown): string => (cpu === undefined ? missing : `${quantityMilliValue(cpu)}m`);
const memoryText = (memory: string | undefined, missing = unknown): string => (memory === undefined ? missing : mib(quantityValue(memory)));
const mib = (bytes: number): string => `${Math.floor(bytes / mebibyte)}Mi`;

/** Whole percent, never rounded up. */
const percent = (part: number | undefined, whole: number): string =>
  part === undefined ? unknown : whole > 0 ? `${Math.floor((part / whole) * 100)}%` : none;

const ofCpu = (a: Amounts): number | undefined => (a.cpu === undefined ? undefined : quantityMilliValue(a.cpu));
const ofMemory = (a: Amounts): number | undefined => (a.memory === undefined ? undefined : quantityValue(a.memory));

/** `names`: only these; none: all. */
export async function topPods(names: readonly string[], o: TopPodsOptions, client: TopClient, print: Printer): Promise<number> {
  const wanted = names.map((name) => name.replace(/^(?:pods?|po)\//, ''));
  if (o.probes === true) return repeated(o, print, () => topProbes(wanted, o, client, print));
  return repeated(o, print, async () => {
    const all = (await client.topPods()).filter((p) => o.allNamespaces === true || p.metadata.namespace === o.namespace);
    const pods = all.filter((p) => wanted.length === 0 || wanted.includes(p.metadata.name));
    const missing = wanted.find((name) => !pods.some((p) => p.metadata.name === name));
    if (missing !== undefined) throw await notMeasured(missing, o, client);
    if (pods.length === 0 && (o.output === undefined || o.output === 'wide')) {
      print.err(`No running pods found${o.allNamespaces === true ? '' : ` in namespace ${o.namespace}`}.\n`);
      return;
    }
    print.out(render(podRows(sorted(pods, o.sortBy), o), o.output, wanted.length === 1));
  });
}

async function topProbes(wanted: readonly string[], o: TopPodsOptions, client: TopClient, print: Printer): Promise<void> {
  const all = (await client.stats()).pods.filter(({ podRef }) => o.allNamespaces === true || podRef.namespace === o.namespace);
  const pods = all.filter(({ podRef }) => wanted.length === 0 || wanted.includes(podRef.name));
  const missing = wanted.find((name) => !pods.some(({ podRef }) => podRef.name === name));
  if (missing !== undefined) throw await notMeasured(missing, o, client);
  const rows = pods.flatMap(({ podRef, containers }) =>
    containers.flatMap(({ name, probes = [] }) => probes.map((cost) => ({ metadata: podRef, container: name, ...cost }))),
  );
  if (rows.length === 0 && (o.output === undefined || o.output === 'wide')) {
    print.err(`No probe has been asked yet${o.allNamespaces === true ? '' : ` in namespace ${o.namespace}`}.\n`);
    return;
  }
  const head = [...(o.allNamespaces === true ? ['NAMESPACE'] : []), 'POD', 'CONTAINER', 'PROBE', 'HANDLER', 'COUNT', 'MEAN', 'PER MINUTE'];
  const items = rows
    .sort((a, b) => b.perMinuteMs - a.perMinuteMs)
    .map((cost): Item => {
      const { metadata, container, probe, handler, count, meanMs, perMinuteMs } = cost;
      const { namespace, name } = metadata;
      return {
        name: `pod/${name}`,
        object: { apiVersion: 'podsched.dev/v1', kind: 'ProbeUsage', ...cost },
        row: [
          ...(o.allNamespaces === true ? [namespace] : []),
          ...[name, container, probe, handler, String(count), msText(meanMs), msText(perMinuteMs)],
        ],
      };
    });
  print.out(render({ head, items }, o.output, false));
}

/** What takes less than 10 ms is told with a tenth. */
const msText = (ms: number): string => `${ms < 10 ? ms : Math.round(ms)}ms`;

async function notMeasured(name: string, o: TopPodsOptions, client: TopClient): Promise<CommandError> {
  const known = (await client.pods(o.allNamespaces === true ? undefined : o.namespace)).find((p) => p.metadata.name === name);
  return known === undefined
    ? new CommandError(exitCodes.notFound, `pod "${name}" not found${o.allNamespaces === true ? '' : ` in namespace "${o.namespace}"`}`)
    : new CommandError(
        exitCodes.failed,
        `nothing of pod "${name}" runs (${known.status.phase}), so it uses nothing; podsched why ${name} says more`,
      );
}

const sorted = (pods: readonly PodUsage[], by: TopPodsOptions['sortBy']): PodUsage[] => {
  const amount = by === 'cpu' ? ofCpu : ofMemory;
  const descending = (a: { readonly usage: Amounts }, b: { readonly usage: Amounts }): number =>
    (amount(b.usage) ?? 0) - (amount(a.usage) ?? 0);
  if (by === undefined) return [...pods];
  return pods.map((p) => ({ ...p, containers: [...p.containers].sort(descending) })).sort(descending);
};

function podRows(pods: readonly PodUsage[], o: TopPodsOptions): Found {
  const wide = o.output === 'wide';
  const place = o.allNamespaces === true ? ['NAMESPACE'] : [];
  const figures = (usage: Amounts, limits: Amounts = {}): string[] => [
    ...[cpuText(usage.cpu), memoryText(usage.memory)],
    ...(wide ? [cpuText(limits.cpu, none), memoryText(limits.memory, none), percent(ofMemory(usage), ofMemory(limits) ?? 0)] : []),
  ];
  const head = [
    ...place,
    ...(o.containers === true ? ['POD'] : []),
    ...['NAME', 'CPU(cores)', 'MEMORY(bytes)'],
    ...(wide ? ['CPU LIMIT', 'MEMORY LIMIT', 'MEMORY%'] : []),
  ];
  const items = pods.flatMap((pod): Item[] => {
    const { namespace, name } = pod.metadata;
    const before = o.allNamespaces === true ? [namespace] : [];
    const item = (row: readonly string[]): Item => ({ name: `pod/${name}`, object: pod, row: [...before, ...row] });
    // objects and names are of pods, whatever the rows are of
    const byContainer = o.containers === true && (o.output === undefined || wide);
    return byContainer
      ? pod.containers.map((c) => item([name, c.name, ...figures(c.usage, c.limits)]))
      : [item([name, ...figures(pod.usage, pod.limits)])];
  });
  return { head, items };
}

/** `name`: an agent knows itself alone, and another name is another machine's. */
export async function topNode(name: string | undefined, o: TopNodeOptions, client: TopClient, print: Printer): Promise<number> {
  return repeated(o, print, async () => {
    const node = await client.topNode();
    const asked = name?.replace(/^(?:nodes?|no)\//, '') ?? node.metadata.name;
    if (asked !== node.metadata.name) throw otherNode(asked, node.metadata.name);
    print.out(render(nodeRows(node, o), o.output, true));
  });
}

function nodeRows(node: NodeUsage, o: TopNodeOptions): Found {
  const { usage, allocatable, temperatureCelsius, disk, swap } = node;
  const { name } = node.metadata;
  const row = [
    ...[name, cpuText(usage.cpu), percent(ofCpu(usage), ofCpu(allocatable) ?? 0)],
    ...[memoryText(usage.memory), percent(ofMemory(usage), ofMemory(allocatable) ?? 0)],
    ...(o.output === 'wide'
      ? [
          temperatureCelsius === undefined ? none : `${temperatureCelsius.toFixed(1)}C`,
          disk === undefined ? unknown : `${mib(disk.usedBytes)}/${mib(disk.capacityBytes)}`,
          disk === undefined ? unknown : percent(disk.usedBytes, disk.capacityBytes),
          swap === undefined ? none : `${mib(swap.usedBytes)}/${mib(swap.totalBytes)}`,
        ]
      : []),
  ];
  return {
    head: [
      ...['NAME', 'CPU(cores)', 'CPU%', 'MEMORY(bytes)', 'MEMORY%'],
      ...(o.output === 'wide' ? ['TEMPERATURE', 'DISK', 'DISK%', 'SWAP'] : []),
    ],
    items: [{ name: `node/${name}`, object: node, row }],
  };
}

/** Once, or with `watch` again and again, whole: every figure is another each time. */
async function repeated(o: { readonly watch?: true }, print: Printer, once: () => Promise<void>): Promise<number> {
  for (;;) {
    await once();
    if (o.watch !== true) return exitCodes.done;
    await print.sleep(watchMs);
  }
}
