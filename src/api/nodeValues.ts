// pure
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of manifests, not templates
/**
 * `${NODE.name}` and its sisters in string values, replaced by what this node is, so that one manifest serves a fleet (behaviour 14). Values
 * are data: what is put in stays inside its string, whatever it holds, and is not looked at again. Keys are never touched, nor is what
 * holds bytes (base64) or tells of a status. Addresses are no part of it: they change while an object stays.
 */
import { entryPath, fieldPath, itemPath } from './fieldPath.ts';
import { nearest } from './nearest.ts';
import type { Problem } from './objects.ts';

/** What a node is called and made of. What is not known of a board (a virtual machine has no serial number) is left out. */
export interface NodeValues {
  readonly name: string;
  /** As Go and image indexes call it: arm64, amd64, arm. */
  readonly arch?: string;
  readonly model?: string;
  readonly serial?: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Substituted {
  /** The very same value when there was nothing to replace. */
  readonly value: unknown;
  /** References that nothing here answers; they stay in the value as they are. */
  readonly problems: readonly Problem[];
  /** Of a manifest judged elsewhere than on its node: references that are likely to be meant otherwise. */
  readonly doubts: readonly Problem[];
  /** Paths of the strings that held a reference. */
  readonly places: ReadonlySet<string>;
}

const own = ['name', 'arch', 'model', 'serial'] as const;
const isOwn = (name: string): name is (typeof own)[number] => own.some((o) => o === name);
const begin = '${NODE.';
const reference = /\$?\$\{NODE\.([^}]*)(\}?)/g;
/** More than this put in, and a file under its limit would become one over it. */
const mostAdded = 1 << 20;

/** One name looked up: its value, or the problem of it. */
type Answer = string | Pick<Problem, 'expected' | 'nearest'>;

/**
 * Replaces every reference in the string values of one object. Where nothing is known of a node (`node` undefined), every well-formed
 * reference stands for a word made of its name: that is for judging a manifest elsewhere than on its node.
 */
export function substituteNode(value: unknown, node: NodeValues | undefined): Substituted {
  const problems: Problem[] = [];
  const doubts: Problem[] = [];
  const places = new Set<string>();
  const answer = node === undefined ? placeholder : (name: string): Answer => answerOf(name, node);
  let added = 0;

  const text = (written: string, path: string): string => {
    if (!written.includes(begin)) return written;
    return written.replace(reference, (whole: string, name: string, end: string) => {
      if (whole.startsWith('$$')) return whole.slice(1);
      places.add(path);
      const found: Answer = end === '' ? { expected: 'a } behind the name' } : answer(name);
      if (typeof found !== 'string') {
        problems.push({ path, ...found, got: shown(whole) });
        return whole;
      }
      const doubt = node === undefined ? doubtOf(name) : undefined;
      if (doubt !== undefined) doubts.push({ path, ...doubt, got: shown(whole) });
      added += found.length;
      if (added <= mostAdded) return found;
      if (added - found.length <= mostAdded) problems.push({ path, expected: `at most ${mostAdded} characters put in`, got: 'more' });
      return '';
    });
  };

  const walk = (from: unknown, path: string): unknown => {
    if (typeof from === 'string') return text(from, path);
    if (typeof from !== 'object' || from === null) return from;
    if (Array.isArray(from)) {
      const items = from.map((item: unknown, i) => walk(item, itemPath(path, i)));
      return items.every((item, i) => item === from[i]) ? from : items;
    }
    const entries = Object.entries(from);
    const walked = entries.map(([key, inner]): [string, unknown] => {
      const at = pathOf(path, key);
      return [key, at === 'status' || holdsBytes(from, path, key) ? inner : walk(inner, at)];
    });
    // fromEntries takes `__proto__` for a key like any other
    return walked.every(([, inner], i) => inner === entries[i]?.[1]) ? from : Object.fromEntries(walked);
  };

  return { value: walk(value, ''), problems, doubts, places };
}

/** Fields whose entries have names of the user's own. */
const maps = /(^|\.)(labels|annotations|data|stringData|nodeSelector|limits|requests|matchLabels)$/;
const pathOf = (path: string, key: string): string => (maps.test(path) ? entryPath(path, key) : fieldPath(path, key));

const holdsBytes = (object: object, path: string, key: string): boolean =>
  path === '' && (key === 'binaryData' || (key === 'data' && 'kind' in object && object.kind === 'Secret'));

/** A value may be a secret by mistake: of what follows an unclosed bracket only its beginning is repeated. */
const shown = (whole: string): string => (whole.endsWith('}') && whole.length <= 100 ? whole : `${begin}…`);

function answerOf(name: string, node: NodeValues): Answer {
  const value = isOwn(name) ? node[name] : Object.hasOwn(node.labels, name) ? node.labels[name] : undefined;
  if (value !== undefined) return value;
  if (isOwn(name)) return { expected: `a node that has a ${name === 'serial' ? 'serial number' : name} to tell` };
  const close = nearest(name, [...own, ...Object.keys(node.labels)]);
  return { expected: known(name), ...(close !== undefined && { nearest: `${begin}${close}}` }) };
}

const address = /^(host|pod|node)?[-_.]?(ip|ips|addr|address|addresses)$/i;
const known = (name: string): string =>
  `name, arch, model, serial or a label of the node${address.test(name) ? ' (an address changes: take a fieldRef to status.hostIP)' : ''}`;

const label = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** What a name may stand for anywhere: a word that is right in names, labels and images. */
function placeholder(name: string): Answer {
  if (name === 'arch') return 'arm64';
  return label.test(name) ? name.toLowerCase().replace(/[^a-z0-9]+/g, '-') : { expected: known(name) };
}

/** A slip of the pen in one of the four names that every node has, or an address; both may be labels all the same. */
function doubtOf(name: string): Pick<Problem, 'expected' | 'nearest'> | undefined {
  if (isOwn(name)) return undefined;
  const close = nearest(name, own);
  if (close === undefined && !address.test(name)) return undefined;
  return { expected: known(name), ...(close !== undefined && { nearest: `${begin}${close}}` }) };
}
