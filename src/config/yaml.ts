/**
 * The door of the yaml package: texts in, plain values with places out, and values back to text.
 *
 * The parser only builds trees, with every scalar a text (schema "failsafe"); what a scalar means is decided here, as goyaml decides it for
 * Kubernetes (behaviour 12). Nothing a file holds may stall or end the agent: what would cost too much is refused before it is parsed.
 */
import {
  Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  visit,
} from 'yaml';
import type { Problem } from '../api/objects.ts';
import { resolvePlain, resolveTagged } from './scalar.ts';
import { isMergeKey, maxDepth, type Place, Tree } from './yamlTree.ts';

export interface YamlDocument {
  /** Counted from 0 over all documents of the text, empty ones too. */
  readonly index: number;
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Where a field stands (1-based); where a field is missing, the nearest thing above it. */
  at(path: string): Place | undefined;
}

export interface ParsedDocuments {
  /** Whole documents; an empty one has the value null. */
  readonly documents: readonly YamlDocument[];
  /** Documents with problems, and what could be read of them. */
  readonly broken: readonly YamlDocument[];
  readonly problems: readonly Problem[];
}

/** A text shorter than this cannot be nested deep enough to hurt, whatever it is: it is parsed without a look at its tokens. */
const harmlessLength = 512;
/** 240 pods of 60 lines; a quarter of a second of parsing. ConfigMaps with long texts have few tokens. */
const maxTokens = 100_000;
const maxProblems = 3;

const broken = (problem: Problem): ParsedDocuments => ({ documents: [], broken: [], problems: [problem] });

/** All documents of a text. Never throws. */
export function parseDocuments(text: string): ParsedDocuments {
  const lines = new LineCounter();
  const placeOf = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const early = controlCharacter(text) ?? (text.length > harmlessLength ? tooMuch(text) : undefined);
  if (early !== undefined) return broken(early);
  try {
    const parsed = parseAllDocuments(text, {
      schema: 'failsafe',
      uniqueKeys: false,
      merge: false,
      resolveKnownTags: false,
      prettyErrors: false,
      lineCounter: lines,
      logLevel: 'silent',
    });
    const out = { documents: [] as YamlDocument[], broken: [] as YamlDocument[], problems: [] as Problem[] };
    if (!Array.isArray(parsed)) return out;
    for (const [index, doc] of parsed.entries()) {
      const tree = new Tree(placeOf);
      const root = doc.contents as Node | null;
      const value = tree.convert(root);
      const problems = [...doc.errors.slice(0, maxProblems).map((e) => syntaxProblem(e, placeOf)), ...tree.problems];
      const document = { index, value, problems, at: (path: string) => findPlace(root, path, tree, placeOf) };
      (problems.length === 0 ? out.documents : out.broken).push(document);
      out.problems.push(...problems);
    }
    return out;
  } catch (e) {
    if (e instanceof RangeError) return broken({ path: '', expected: `at most ${maxDepth} levels`, got: 'more' });
    return broken({ path: '', expected: 'YAML', got: e instanceof Error ? e.message : String(e) });
  }
}

function syntaxProblem(
  e: { readonly code: ErrorCode; readonly message: string; readonly pos: readonly [number, number] },
  placeOf: (offset: number) => Place,
): Problem {
  return { path: '', expected: expectedBy(e.code), got: withoutQuote(e.message), ...placeOf(e.pos[0]) };
}

/** The parser's words without what they quote of the text: it may be a password that was not quoted. The place is told beside it. */
const withoutQuote = (message: string): string =>
  message.replace(/(: | escape sequence ).*$/s, (_, sign: string) => sign.replace(/[: ]+$/, ''));

const expectedBy = (code: ErrorCode): string => {
  if (code === 'TAB_AS_INDENT') return 'spaces as indent';
  return code === 'BAD_INDENT' ? 'an even indent' : 'YAML';
};

/** goyaml refuses control characters; so a binary file is told as one. */
function controlCharacter(text: string): Problem | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them
  const at = text.search(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/);
  if (at < 0) return undefined;
  const before = text.slice(0, at).split('\n');
  const code = text.charCodeAt(at).toString(16).padStart(2, '0');
  return {
    path: '',
    expected: 'text',
    got: `the control character 0x${code}`,
    line: before.length,
    column: (before.at(-1)?.length ?? 0) + 1,
  };
}

/** Looks at the tokens of a long text, which is cheap, before building a tree of them, which is not. */
function tooMuch(text: string): Problem | undefined {
  let tokens = 0;
  let line = 1;
  let flow = 0;
  let inLine = 0;
  for (const token of new Lexer().lex(text)) {
    if (++tokens > maxTokens)
      return { path: '', expected: `at most ${maxTokens} words and signs in one file`, got: 'more', line, column: 1 };
    if (token === '[' || token === '{') flow++;
    else if (token === ']' || token === '}') flow = Math.max(0, flow - 1);
    else if (token === '-' || token === '?') inLine++;
    if (flow > maxDepth || inLine > maxDepth) return { path: '', expected: `at most ${maxDepth} levels`, got: 'more', line, column: 1 };
    if (token.includes('\n')) {
      line += token.split('\n').length - 1;
      if (flow === 0) inLine = 0;
    }
  }
  return undefined;
}

/** Follows a field path through maps, lists, aliases and merge keys, as far as it goes. */
function findPlace(root: Node | null, path: string, tree: Tree, placeOf: (offset: number) => Place): Place | undefined {
  const target = (node: unknown): unknown => (isAlias(node) ? tree.targets.get(node) : node);
  const keyText = (key: unknown): string | undefined => {
    const k = target(key);
    if (!isScalar(k) || typeof k.value !== 'string') return undefined;
    const meaning = k.tag !== undefined ? resolveTagged(k.tag, k.value) : k.type === 'PLAIN' ? resolvePlain(k.value) : undefined;
    return meaning === undefined ? k.value : meaning.is === 'int' ? meaning.text : String(meaning.value);
  };
  /** The pair of `map` whose key stands at the beginning of `rest`; the longest key wins, since keys may hold dots. */
  const findPair = (map: unknown, rest: string): { pair: Pair; rest: string } | undefined => {
    const m = target(map);
    if (!isMap(m)) return undefined;
    let best: { pair: Pair; rest: string } | undefined;
    for (const pair of m.items) {
      const key = keyText(pair.key);
      if (key === undefined || isMergeKey(pair.key)) continue;
      const left = afterKey(rest, key);
      if (left !== undefined && (best === undefined || left.length <= best.rest.length)) best = { pair, rest: left };
    }
    if (best !== undefined) return best;
    for (const pair of m.items.filter((p) => isMergeKey(p.key))) {
      const value = target(pair.value);
      for (const source of isSeq(value) ? value.items : [value]) {
        const found = findPair(source, rest);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  let node: unknown = target(root);
  let offset = root?.range?.[0];
  let rest = path;
  while (rest !== '') {
    const item = /^\[(\d+)\]/.exec(rest);
    if (isSeq(node) && item !== null) {
      const next = node.items[Number(item[1])];
      if (next === undefined) break;
      rest = rest.slice(item[0].length);
      node = next;
      offset = (next as Node).range?.[0] ?? offset;
      node = target(node);
      continue;
    }
    const found = findPair(node, rest);
    if (found === undefined) break;
    rest = found.rest;
    const value = found.pair.value as Node | null;
    // a field with a scalar is shown at the scalar, one with more below it at its name
    const place = isScalar(value) && value.source !== '' ? value : (found.pair.key as Node);
    offset = place.range?.[0] ?? offset;
    node = target(value);
  }
  return offset === undefined ? undefined : placeOf(offset);
}

/** What of a path is left behind `key`; undefined when the path does not begin with it. */
function afterKey(path: string, key: string): string | undefined {
  for (const written of [`[${key}]`, `[${JSON.stringify(key)}]`, `.${key}`, key]) {
    if (!path.startsWith(written)) continue;
    const left = path.slice(written.length);
    if (left === '' || left.startsWith('.') || left.startsWith('[')) return left;
  }
  return undefined;
}

/** A value as YAML that means the same to this reader, to Kubernetes and to a YAML 1.2 reader: what either could take for something else is quoted. */
export function toYaml(value: unknown): string {
  const doc = new Document(value, { schema: 'core', aliasDuplicateObjects: false });
  visit(doc, {
    Scalar(_, node) {
      if (typeof node.value !== 'string') return;
      if (resolvePlain(node.value).is !== 'string' || node.value === '<<' || /^[-+.0-9]/.test(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return doc.toString({ lineWidth: 0 });
}
