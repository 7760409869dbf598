/**
 * From the tree of one YAML document to plain values, with Kubernetes' meaning of scalars (scalar.ts), merge keys, aliases that are paid
 * for, and duplicate keys refused. Remembers where an alias led, so that a field path can be found again.
 */
import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type Scalar as ScalarNode, type YAMLMap } from 'yaml';
import type { Problem } from '../api/objects.ts';
import { resolvePlain, resolveTagged, type Scalar } from './scalar.ts';

/** Deeper than any manifest; far from what a stack bears. */
export const maxDepth = 100;
/** What aliases repeat counts as if it were written out, against the size a file may have: characters, and 16 a value. */
const maxAliasWeight = 1 << 20;
const weightOfValue = 16;
/** Of a key in a path that is told. */
const longestKey = 200;
/** Beyond these one more says nothing new. */
const maxProblems = 20;

interface Anchor {
  readonly node: Node;
  done?: { readonly value: unknown; readonly weight: number };
}

export type Place = { readonly line: number; readonly column: number };

export class Tree {
  readonly problems: Problem[] = [];
  readonly targets = new Map<Alias, Node>();
  #anchors = new Map<string, Anchor>();
  #weight = 0;
  #aliasWeight = 0;

  constructor(private readonly placeOf: (offset: number) => Place) {}

  /** The plain value of a document's root. Problems are collected; the value is then only good for finding out what it was meant to be. */
  convert(root: Node | null): unknown {
    return root === null ? null : this.#value(root, '', 0);
  }

  #problem(path: string, node: Node | undefined, expected: string, got: string): undefined {
    if (this.problems.length >= maxProblems) return undefined;
    const offset = node?.range?.[0];
    this.problems.push({ path, expected, got, ...(offset === undefined ? {} : this.placeOf(offset)) });
    return undefined;
  }

  #value(node: Node, path: string, depth: number): unknown {
    if (depth > maxDepth) return this.#problem(path, node, `at most ${maxDepth} levels`, 'more');
    if (isAlias(node)) return this.#alias(node, path);
    const anchor: Anchor | undefined = 'anchor' in node && node.anchor ? { node } : undefined;
    if (anchor !== undefined) this.#anchors.set((node as { anchor: string }).anchor, anchor);
    const before = this.#weight;
    this.#weight += weightOfValue;
    const value = this.#plain(node, path, depth);
    if (anchor !== undefined) anchor.done = { value, weight: this.#weight - before };
    return value;
  }

  #plain(node: Node, path: string, depth: number): unknown {
    if (isMap(node)) return this.#map(node, path, depth);
    if (isSeq(node)) return node.items.map((item, i) => this.#value(item as Node, `${path}[${i}]`, depth + 1));
    return this.#scalar(node as ScalarNode, path)?.value;
  }

  #alias(node: Alias, path: string): unknown {
    const anchor = this.#anchors.get(node.source);
    // a password that begins with * and has no quotes: nothing of it is told
    if (anchor === undefined)
      return this.#problem(path, node, 'an anchor written before (a text that begins with * needs quotes)', 'an alias that has none');
    if (anchor.done === undefined) return this.#problem(path, node, 'a value that ends', `*${node.source}, which contains itself`);
    this.targets.set(node, anchor.node);
    this.#weight += anchor.done.weight;
    this.#aliasWeight += anchor.done.weight;
    if (this.#aliasWeight > maxAliasWeight) {
      return this.#problem(path, node, 'aliases that repeat at most 1 MiB', `*${node.source}, with which they repeat more`);
    }
    return anchor.done.value;
  }

  #scalar(node: ScalarNode, path: string): Scalar | undefined {
    const text = typeof node.value === 'string' ? node.value : '';
    this.#weight += text.length;
    let scalar: Scalar | undefined;
    if (node.tag !== undefined && node.tag !== '!') scalar = resolveTagged(node.tag, text);
    else scalar = node.type === 'PLAIN' && node.tag === undefined ? resolvePlain(text) : { is: 'string', value: text };
    if (scalar === undefined)
      return this.#problem(path, node, `what ${node.tag?.replace(/^tag:yaml\.org,2002:/, '!!')} names`, 'something else');
    if (scalar.is === 'float' && !Number.isFinite(scalar.value)) {
      return this.#problem(path, node, 'a number (quote it if it is a text)', 'one without an end');
    }
    return scalar;
  }

  #map(map: YAMLMap, path: string, depth: number): unknown {
    const own: Record<string, unknown> = {};
    const merged: Record<string, unknown> = {};
    const seen = new Map<string, Node | undefined>();
    for (const pair of map.items as Pair<Node | null, Node | null>[]) {
      if (isMergeKey(pair.key)) {
        this.#merge(pair.value, merged, path, depth);
        continue;
      }
      const key = this.#key(pair.key, path);
      if (key === undefined) continue;
      const at = joinPath(path, key);
      this.#weight += key.length;
      if (seen.has(key)) this.#duplicate(at, seen.get(key), pair.key ?? undefined);
      else seen.set(key, pair.key ?? undefined);
      setOwn(own, key, pair.value === null ? null : this.#value(pair.value, at, depth + 1));
    }
    for (const [key, value] of Object.entries(merged)) if (!seen.has(key)) setOwn(own, key, value);
    return own;
  }

  #duplicate(path: string, first: Node | undefined, second: Node | undefined): void {
    const lineOf = (n: Node | undefined): number | string => (n?.range ? this.placeOf(n.range[0]).line : '?');
    this.#problem(path, second, 'each key once', `twice: line ${lineOf(first)} and line ${lineOf(second)}`);
  }

  #key(node: Node | null, path: string): string | undefined {
    if (node === null) return this.#problem(path, undefined, 'a key', 'none');
    const target = isAlias(node) ? this.#anchors.get(node.source)?.node : node;
    if (!isScalar(target))
      return this.#problem(path, node, 'a text as key', isMap(target) ? 'a map' : isSeq(target) ? 'a list' : 'an unknown alias');
    if (target === node && target.anchor) this.#anchors.set(target.anchor, { node, done: { value: target.value, weight: 0 } });
    const scalar = this.#scalar(target, path);
    if (scalar === undefined) return undefined;
    if (scalar.is === 'null') return this.#problem(path, node, 'a text as key', 'null');
    return scalar.is === 'int' ? scalar.text : String(scalar.value);
  }

  /** The keys of `<<`: of several maps the earlier one wins; the map's own keys win over all, wherever they stand. */
  #merge(node: Node | null, into: Record<string, unknown>, path: string, depth: number): void {
    const sources = isSeq(node) ? (node.items as Node[]) : [node];
    for (const source of sources) {
      const value = source === null ? null : this.#value(source, path, depth + 1);
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        if (value !== undefined) this.#problem(path, source ?? undefined, 'a map, or a list of maps, to merge', 'something else');
        continue;
      }
      for (const [key, v] of Object.entries(value)) if (!Object.hasOwn(into, key)) setOwn(into, key, v);
    }
  }
}

export const isMergeKey = (key: unknown): boolean =>
  isScalar(key) && key.value === '<<' && ((key.type === 'PLAIN' && key.tag === undefined) || key.tag === 'tag:yaml.org,2002:merge');

/** Assigns as data: a key named `__proto__` is a key like any other. */
function setOwn(o: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(o, key, { value, enumerable: true, writable: true, configurable: true });
  else o[key] = value;
}

/** A field path as kubectl writes it; a key that is no plain word stands in brackets. */
function joinPath(path: string, whole: string): string {
  // each problem below it repeats it
  const key = whole.length > longestKey ? `${whole.slice(0, longestKey)}…` : whole;
  if (!/^[A-Za-z0-9_-]+$/.test(key)) return `${path}[${key}]`;
  return path === '' ? key : `${path}.${key}`;
}
