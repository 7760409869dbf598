/** `get pods|nodes|events|files|images|configmaps|secrets [NAME]`: a table, JSON, YAML or names; once, or again and again with what has changed. */
import { nearest } from '../api/nearest.ts';
import type { SyncStatus } from '../api/payloads.ts';
import type { V1Event } from '../api/status.ts';
import { toYaml } from '../config/yaml.ts';
import { ageText } from '../operations/age.ts';
import { fileRows } from '../operations/fileRows.ts';
import { podRow } from '../operations/podRow.ts';
import { knownObjects, notFoundText } from '../operations/target.ts';
import { harmless } from '../world/terminal.ts';
import type { AgentClient } from './client.ts';
import { CommandError, exitCodes } from './exitCodes.ts';
import { findImages } from './images.ts';
import { findNodes } from './nodes.ts';
import { findObjects } from './objects.ts';
import { tableText } from './table.ts';

export const outputs = ['json', 'yaml', 'wide', 'name'] as const;
export type Output = (typeof outputs)[number];

export interface GetOptions {
  readonly namespace: string;
  readonly allNamespaces: boolean;
  readonly output?: Output;
  readonly watch: boolean;
}

export interface Printer {
  out(text: string): void;
  err(text: string): void;
  nowMs(): number;
  /** Resolves after `ms`. */
  sleep(ms: number): Promise<void>;
}

export interface Item {
  /** As `-o name` prints it. */
  readonly name: string;
  readonly object: unknown;
  readonly row: readonly string[];
}

export interface Found {
  readonly head: readonly string[];
  readonly items: readonly Item[];
  /** Said after the table, on stderr. */
  readonly note?: string;
}

type Kind = 'pods' | 'nodes' | 'events' | 'files' | 'images' | 'configmaps' | 'secrets';
const kinds: Readonly<Record<string, Kind>> = {
  pods: 'pods',
  pod: 'pods',
  po: 'pods',
  nodes: 'nodes',
  node: 'nodes',
  no: 'nodes',
  events: 'events',
  event: 'events',
  ev: 'events',
  files: 'files',
  file: 'files',
  images: 'images',
  image: 'images',
  configmaps: 'configmaps',
  configmap: 'configmaps',
  cm: 'configmaps',
  secrets: 'secrets',
  secret: 'secrets',
};
const watchMs = 1000;

/** `names`: only these; none: all. `pod/web` is written in one word. */
export async function get(what: string, names: readonly string[], o: GetOptions, client: AgentClient, print: Printer): Promise<number> {
  // names of images have slashes of their own
  const [word = '', slashed] = what.split(/\/(.*)/s);
  const kind = Object.hasOwn(kinds, word.toLowerCase()) ? kinds[word.toLowerCase()] : undefined;
  if (kind === undefined) {
    const close = nearest(word, Object.keys(kinds), 1);
    const meant = close === undefined ? '' : `; did you mean ${close}?`;
    throw new CommandError(
      exitCodes.usage,
      `there is no kind ${JSON.stringify(word)}: pods, nodes, events, files, images, configmaps and secrets can be listed${meant}`,
    );
  }
  const wanted = slashed === undefined ? names : [slashed, ...names];
  const look = (): Promise<Found> => find(kind, wanted, o, client, print.nowMs());
  if (o.watch) {
    const changed = await client.follow?.(kind);
    // a burst of changes is one look
    const next = changed === undefined ? () => print.sleep(watchMs) : () => Promise.all([changed(), print.sleep(watchMs)]);
    return watch(look, next, o, print);
  }
  const found = await look();
  if (found.items.length === 0 && (wanted.length === 0 || kind === 'events') && (o.output === undefined || o.output === 'wide')) {
    print.err(
      o.allNamespaces || kind === 'files' || kind === 'images' ? `No ${kind} found.\n` : `No ${kind} found in namespace ${o.namespace}.\n`,
    );
  } else {
    print.out(render(found, o.output, wanted.length === 1 && kind !== 'events'));
  }
  if (found.note !== undefined && (o.output === undefined || o.output === 'wide')) print.err(`${harmless(found.note)}\n`);
  return exitCodes.done;
}

function find(kind: Kind, names: readonly string[], o: GetOptions, client: AgentClient, nowMs: number): Promise<Found> {
  switch (kind) {
    case 'pods':
      return findPods(names, o, client, nowMs);
    case 'nodes':
      return findNodes(names, o, client);
    case 'events':
      return findEvents(names, o, client, nowMs);
    case 'files':
      return findFiles(names, client);
    case 'images':
      return findImages(names, client);
    case 'configmaps':
      return findObjects('ConfigMap', names, o, client, nowMs);
    case 'secrets':
      return findObjects('Secret', names, o, client, nowMs);
  }
}

async function findPods(names: readonly string[], o: GetOptions, client: AgentClient, nowMs: number): Promise<Found> {
  const [all, sync] = await Promise.all([client.pods(), client.sync()]);
  const here = all.filter((p) => o.allNamespaces || (p.metadata.namespace ?? 'default') === o.namespace);
  const pods = here.filter((p) => names.length === 0 || names.includes(p.metadata.name));
  const name = names.find((n) => !pods.some((p) => p.metadata.name === n));
  if (name !== undefined) {
    const refused = sync.find(
      (s) => s.object.kind === 'Pod' && s.object.name === name && (o.allNamespaces || s.object.namespace === o.namespace),
    );
    const text =
      refused === undefined
        ? notFoundText({ kind: 'Pod', namespace: o.namespace, name }, knownObjects(sync, all))
        : `pod "${name}" has not been started: ${refused.phase} (${refused.reason}); podsched why ${name} says more`;
    throw new CommandError(exitCodes.notFound, text);
  }
  const wide = o.output === 'wide';
  const note =
    names.length === 0
      ? podless(
          sync,
          here.map((p) => `${p.metadata.namespace ?? 'default'}/${p.metadata.name}`),
          o,
        )
      : undefined;
  return {
    head: [
      ...(o.allNamespaces ? ['NAMESPACE'] : []),
      ...['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE'],
      ...(wide ? ['IP', 'NODE', 'SOURCE', 'REVISION'] : []),
    ],
    items: pods.map((pod) => {
      const r = podRow(pod, nowMs);
      return {
        name: `pod/${r.name}`,
        object: pod,
        row: [
          ...(o.allNamespaces ? [r.namespace] : []),
          ...[r.name, r.ready, r.status, r.restarts, r.age],
          ...(wide ? [r.ip, r.node, r.source, r.revision] : []),
        ],
      };
    }),
    ...(note !== undefined && { note }),
  };
}

/** Pods that sources name and that have no pod to show: the ones a person looks for in vain. */
function podless(sync: readonly SyncStatus[], shown: readonly string[], o: GetOptions): string | undefined {
  const missing = sync
    .filter(({ object }) => object.kind === 'Pod' && (o.allNamespaces || object.namespace === o.namespace))
    .filter(({ object }) => !shown.includes(`${object.namespace}/${object.name}`));
  if (missing.length === 0) return undefined;
  const names = missing.map((s) => `${s.object.name} (${s.phase}: ${s.reason})`);
  return `Without a pod: ${names.join(', ')}. podsched why NAME says more.`;
}

async function findEvents(names: readonly string[], o: GetOptions, client: AgentClient, nowMs: number): Promise<Found> {
  const all = await client.events(o.allNamespaces ? {} : { namespace: o.namespace });
  const events = all.filter((e) => names.length === 0 || names.includes(e.involvedObject.name));
  const age = (e: V1Event): string => {
    const last = ageText(e.lastTimestamp, nowMs);
    return e.count > 1 ? `${last} (x${e.count} over ${ageText(e.firstTimestamp, nowMs)})` : last;
  };
  return {
    head: [...(o.allNamespaces ? ['NAMESPACE'] : []), 'LAST SEEN', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'],
    items: events.map((e) => {
      const about = `${e.involvedObject.kind.toLowerCase()}/${e.involvedObject.name}`;
      return {
        name: `event/${e.metadata.name}`,
        object: e,
        row: [...(o.allNamespaces ? [e.metadata.namespace] : []), age(e), e.type, e.reason, about, e.message],
      };
    }),
  };
}

async function findFiles(names: readonly string[], client: AgentClient): Promise<Found> {
  const [sync, files] = await Promise.all([client.sync(), client.files()]);
  const all = fileRows(sync, files);
  const rows = all.filter((r) => names.length === 0 || names.includes(r.file));
  const name = names.find((n) => !rows.some((r) => r.file === n));
  if (name !== undefined) {
    const close = nearest(name, new Set(all.map((r) => r.file)));
    const meant = close === undefined ? '' : `; did you mean ${close}?`;
    throw new CommandError(exitCodes.notFound, `no manifest file ${JSON.stringify(name)} is known${meant}`);
  }
  return {
    head: ['FILE', 'OBJECT', 'STATE', 'REASON', 'MESSAGE'],
    items: rows.map((r) => ({
      name: `file/${r.file}`,
      object: r,
      row: [r.file, r.object === '' ? '<none>' : r.object, r.state, r.reason, r.message],
    })),
  };
}

/** `single`: one object stands for itself, in no list. */
export function render({ head, items }: Found, output: Output | undefined, single: boolean): string {
  const objects = items.map((i) => i.object);
  const whole = single && objects.length === 1 ? objects[0] : { apiVersion: 'v1', kind: 'List', metadata: {}, items: objects };
  switch (output) {
    case 'json':
      return `${JSON.stringify(whole, null, 2)}\n`;
    case 'yaml':
      return toYaml(whole);
    case 'name':
      return [...new Set(items.map((i) => `${harmless(i.name)}\n`))].join('');
    case 'wide':
    case undefined:
      return `${tableText(
        head,
        items.map((i) => i.row),
      )}\n`;
  }
}

/** Prints the table once and then, after each `next`, each row that has become another, until the process is ended. What goes is told once. */
export async function watch(
  look: () => Promise<Found>,
  next: () => Promise<unknown>,
  o: Pick<GetOptions, 'output'>,
  print: Printer,
): Promise<number> {
  const shown = new Map<string, string>();
  for (let first = true; ; first = false) {
    const { head, items } = await look();
    const changed = items.filter((item) => shown.get(keyOf(item)) !== JSON.stringify(item.object));
    for (const item of changed) shown.set(keyOf(item), JSON.stringify(item.object));
    const gone = [...shown.keys()].filter((key) => !items.some((item) => keyOf(item) === key));
    for (const key of gone) shown.delete(key);
    if (changed.length > 0) {
      const text = render({ head, items: changed }, o.output, true);
      const table = o.output === undefined || o.output === 'wide';
      print.out(table && !first ? text.slice(text.indexOf('\n') + 1) : text);
    }
    for (const key of gone) print.err(`${harmless(key)} is gone\n`);
    await next();
  }
}

const keyOf = (item: Item): string => {
  const metadata = (item.object as { readonly metadata?: { readonly namespace?: string } }).metadata;
  return `${metadata?.namespace === undefined ? '' : `${metadata.namespace}/`}${item.name}`;
};
