// pure
/**
 * The annotations `podsched.dev/wait-for` and `podsched.dev/wait-timeout`: what must be so before a pod is started. A list with commas of
 * `pod/<namespace>/<name>=Ready`, `mount:/path`, `device:<class>`, `time-sync` and `network` (behaviour.md 26).
 */
import { unknownClass } from './deviceClasses.ts';
import { entryPath } from './fieldPath.ts';
import { wrongLabel, wrongSubdomain } from './names.ts';
import { nearest } from './nearest.ts';
import { type KeyText, keyText, type Problem } from './objects.ts';
import { parseDuration } from './quantity.ts';
import { shown } from './scalars.ts';
import type { ObjectMeta, Pod } from './v1.ts';

export type Gate =
  | { readonly kind: 'pod'; readonly key: KeyText }
  /** Absolute, without a `/` at its end. */
  | { readonly kind: 'mount'; readonly path: string }
  | { readonly kind: 'device'; readonly name: string }
  | { readonly kind: 'time-sync' }
  | { readonly kind: 'network' };

/** An entry that is no gate: what was expected, the entry, what was meant. */
export type GateMistake = Pick<Problem, 'expected' | 'got' | 'nearest'>;

export interface WaitFor {
  readonly gates: readonly Gate[];
  /** The pod starts anyway this long after it was first held; absent: never. */
  readonly timeoutMs?: number;
}

const forKey = 'podsched.dev/wait-for';
const timeoutKey = 'podsched.dev/wait-timeout';
const mostGates = 32;
const longestTimeoutMs = 7 * 86_400_000;
const heads = ['pod', 'mount', 'device', 'time-sync', 'network'] as const;
const forms = 'pod/<namespace>/<name>=Ready, mount:/path, time-sync, network or device:<class>';

/** The gates of a list, each once, and every entry that is none. An empty list has none of both. */
export function parseGates(text: string): { readonly gates: readonly Gate[]; readonly mistakes: readonly GateMistake[] } {
  const gates = new Map<string, Gate>();
  const mistakes: GateMistake[] = [];
  if (text.trim() === '') return { gates: [], mistakes };
  const entries = text.split(',').map((entry) => entry.trim());
  if (entries.length > mostGates) return { gates: [], mistakes: [{ expected: `at most ${mostGates} gates`, got: `${entries.length}` }] };
  for (const entry of entries) {
    const read = readGate(entry);
    if ('expected' in read) mistakes.push(read);
    else gates.set(gateText(read), read);
  }
  return { gates: [...gates.values()], mistakes };
}

function readGate(entry: string): Gate | GateMistake {
  const wrong = (expected: string, meant?: string): GateMistake => ({
    expected,
    got: entry === '' ? 'nothing between two commas' : shown(entry),
    ...(meant !== undefined && { nearest: meant }),
  });
  if (entry === 'time-sync' || entry === 'network') return { kind: entry };
  const [, head = '', rest = ''] = /^([^:/=]*)(.*)$/s.exec(entry) ?? [];
  switch (head) {
    case 'mount':
      return readMount(rest, wrong);
    case 'pod':
      return readPod(rest, wrong);
    case 'device': {
      const name = rest.slice(1);
      if (rest.startsWith(':') && wrongLabel(name) === undefined) return { kind: 'device', name };
      return wrong('device: and the class of a device, such as device:camera');
    }
    default: {
      const close = entry.startsWith('/') ? undefined : nearest(head, heads);
      // /mnt/ssd alone can mean one thing only
      return wrong(forms, entry.startsWith('/') ? `mount:${entry}` : close && meantBy(close, rest));
    }
  }
}

const meantBy = (head: string, rest: string): string => {
  switch (head) {
    case 'mount':
    case 'device':
      return `${head}:${rest.replace(/^:/, '')}`;
    case 'pod':
      return `pod${rest}`;
    default:
      return head;
  }
};

type Wrong = (expected: string, meant?: string) => GateMistake;

function readMount(rest: string, wrong: Wrong): Gate | GateMistake {
  const path = rest.slice(1);
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  const plain = `/${parts.join('/')}`;
  const expected = 'mount: and an absolute path without .., such as mount:/mnt/ssd';
  if (path.includes('\0') || parts.includes('..') || parts.length === 0) return wrong(expected);
  if (!rest.startsWith(':') || !path.startsWith('/')) return wrong(expected, `mount:${rest.startsWith('/') ? rest : plain}`);
  return { kind: 'mount', path: plain };
}

function readPod(rest: string, wrong: Wrong): Gate | GateMistake {
  const expected = 'pod/<namespace>/<name>=Ready';
  const [, path = '', state] = /^([^=]*)(?:=(.*))?$/s.exec(rest) ?? [];
  const parts = path.replace(/^[:/]/, '').split('/');
  // a name alone is of the namespace that everything is in
  const [namespace = '', name = ''] = parts.length === 1 ? ['default', ...parts] : parts;
  if (parts.length > 2 || wrongLabel(namespace) !== undefined || wrongSubdomain(name) !== undefined) return wrong(expected);
  if (state !== 'Ready' || parts.length !== 2 || !path.startsWith('/')) return wrong(expected, `pod/${namespace}/${name}=Ready`);
  return { kind: 'pod', key: keyText({ kind: 'Pod', namespace, name }) };
}

/** As it stands in the list. */
export function gateText(gate: Gate): string {
  switch (gate.kind) {
    case 'pod':
      return `pod${gate.key.slice('Pod'.length)}=Ready`;
    case 'mount':
      return `mount:${gate.path}`;
    case 'device':
      return `device:${gate.name}`;
    case 'time-sync':
    case 'network':
      return gate.kind;
  }
}

/** Over 0, at most a week; undefined when it is not. */
function parseTimeout(text: string): number | undefined {
  const ms = parseDuration(text.trim());
  return ms !== undefined && ms > 0 && ms <= longestTimeoutMs ? ms : undefined;
}

const none: WaitFor = { gates: [] };

/** What the pod waits for. An entry that is no gate is left out: validation refuses it, but a stored object may come from another version. */
export function waitFor({ metadata: { annotations = {} } }: Pick<Pod, 'metadata'>): WaitFor {
  const text = annotations[forKey];
  if (text === undefined) return none;
  const timeoutMs = parseTimeout(annotations[timeoutKey] ?? '');
  return { gates: parseGates(text).gates, ...(timeoutMs !== undefined && { timeoutMs }) };
}

/** The pods that a pod waits for. */
export const podsWaitedFor = (pod: Pick<Pod, 'metadata'>): KeyText[] =>
  waitFor(pod).gates.flatMap((gate) => (gate.kind === 'pod' ? [gate.key] : []));

/** Every mistake of the two annotations. `deviceClasses`: those of the configuration; absent: nobody knows them. */
export function validateWaitFor({ name, namespace, annotations = {} }: Partial<ObjectMeta>, deviceClasses?: readonly string[]): Problem[] {
  const problems: Problem[] = [];
  const text = annotations[forKey];
  const path = entryPath('metadata.annotations', forKey);
  if (text !== undefined) {
    const { gates, mistakes } = parseGates(text);
    problems.push(...mistakes.map((mistake) => ({ path, ...mistake })));
    for (const gate of gates) {
      const wrong = gate.kind === 'device' ? unknownClass(gate.name, deviceClasses) : undefined;
      if (wrong === undefined) continue;
      const meant = wrong.nearest === undefined ? undefined : `device:${wrong.nearest}`;
      problems.push({ path, expected: wrong.expected, got: gateText(gate), ...(meant !== undefined && { nearest: meant }) });
    }
    const own = name === undefined ? undefined : keyText({ kind: 'Pod', namespace: namespace || 'default', name });
    const itself = gates.find((gate) => gate.kind === 'pod' && gate.key === own);
    if (itself !== undefined) problems.push({ path, expected: 'other pods than this one', got: gateText(itself) });
  }
  const timeout = annotations[timeoutKey];
  if (timeout !== undefined && parseTimeout(timeout) === undefined) {
    const expected = 'a duration over 0 and of at most a week, such as 2m';
    problems.push({ path: entryPath('metadata.annotations', timeoutKey), expected, got: shown(timeout) });
  }
  return problems;
}

/** The way from `start` along `next` back to it, its first name not repeated; undefined: there is none. The shortest. */
export function cycleThrough(start: KeyText, next: (key: KeyText) => readonly KeyText[]): KeyText[] | undefined {
  const from = new Map<KeyText, KeyText>();
  const queue: KeyText[] = [start];
  for (const key of queue) {
    for (const to of next(key)) {
      if (to === start) {
        const way = [key];
        for (let back = from.get(key); back !== undefined; back = from.get(back)) way.unshift(back);
        return way;
      }
      if (from.has(to)) continue;
      from.set(to, key);
      queue.push(to);
    }
  }
  return undefined;
}
