// pure
/**
 * Where the keys of a TOML file stand, so that one value can be changed and every other byte stays. It is no TOML reader: values are told from
 * one another only as far as strings, brackets and comments go, and what it does not understand ends in `unclear`.
 */

/** `key = value` with all its tables: `plugins`, `io.containerd.grpc.v1.cri`, `sandbox_image`. */
export interface TomlKey {
  readonly path: readonly string[];
  /** How much of the path the line itself names: 1 unless it is a dotted key. */
  readonly ownLength: number;
  /** Of the value in the text. */
  readonly from: number;
  readonly to: number;
  readonly indent: string;
}

export interface TomlTable {
  readonly path: readonly string[];
  /** Behind the header's line. */
  readonly end: number;
  readonly indent: string;
  /** `[[…]]` */
  readonly isArray: boolean;
}

export interface TomlPlaces {
  readonly keys: readonly TomlKey[];
  readonly tables: readonly TomlTable[];
  /** The first line that was not understood, counted from 1. */
  readonly unclear?: number;
}

const part = /[ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[ \t]*/y;

/** A dotted name from `at`; undefined: there is none. An escape in a quoted part is beyond what is understood here. */
function readPath(text: string, at: number): { readonly path: string[]; readonly end: number } | undefined {
  const path: string[] = [];
  let end = at;
  for (;;) {
    part.lastIndex = end;
    const m = part.exec(text);
    if (m === null || m[1]?.includes('\\') === true) return undefined;
    path.push(m[1] ?? m[2] ?? m[3] ?? '');
    end = part.lastIndex;
    if (text[end] !== '.') return { path, end };
    end++;
  }
}

const strings = ['"""', "'''", '"', "'"] as const;

/** Behind the string that begins at `at`; -1: it does not end. */
function endOfString(text: string, at: number): number {
  const quote = strings.find((q) => text.startsWith(q, at)) ?? '"';
  for (let i = at + quote.length; i < text.length; i++) {
    if (quote[0] === '"' && text[i] === '\\') i++;
    else if (text.startsWith(quote, i)) {
      let end = i + quote.length;
      // up to two quotes may stand right before the three that end it
      while (quote.length === 3 && text[end] === quote[0]) end++;
      return end;
    } else if (quote.length === 1 && text[i] === '\n') return -1;
  }
  return -1;
}

/** Behind the value that begins at `at`, without what follows it on its line; -1: it does not end. */
function endOfValue(text: string, at: number): number {
  let depth = 0;
  let end = at;
  for (let i = at; i < text.length; i++) {
    const c = text[i];
    if (c === '"' || c === "'") {
      i = endOfString(text, i) - 1;
      if (i < 0) return -1;
      end = i + 1;
    } else if (c === '#') {
      if (depth === 0) return end;
      i = lineEnd(text, i) - 1;
    } else if (c === '\n') {
      if (depth === 0) return end;
    } else if (c !== ' ' && c !== '\t' && c !== '\r') {
      if (c === '[' || c === '{') depth++;
      if (c === ']' || c === '}') depth--;
      if (depth < 0) return -1;
      end = i + 1;
    }
  }
  return depth === 0 ? end : -1;
}

const lineEnd = (text: string, at: number): number => {
  const found = text.indexOf('\n', at);
  return found < 0 ? text.length : found;
};
const isRest = (text: string): boolean => /^[ \t\r]*(#[^\n]*)?$/.test(text);

/** The places of all keys and tables. */
export function tomlPlaces(text: string): TomlPlaces {
  const keys: TomlKey[] = [];
  const tables: TomlTable[] = [];
  let table: readonly string[] = [];
  const unclear = (at: number): TomlPlaces => ({ keys, tables, unclear: text.slice(0, at).split('\n').length });
  let at = 0;
  while (at < text.length) {
    const indent = /^[ \t]*/.exec(text.slice(at, lineEnd(text, at)))?.[0] ?? '';
    const begin = at + indent.length;
    const end = lineEnd(text, at);
    if (isRest(text.slice(at, end))) {
      at = end + 1;
    } else if (text[begin] === '[') {
      const isArray = text[begin + 1] === '[';
      const named = readPath(text, begin + (isArray ? 2 : 1));
      const close = isArray ? ']]' : ']';
      if (named === undefined || !text.startsWith(close, named.end) || !isRest(text.slice(named.end + close.length, end)))
        return unclear(at);
      table = named.path;
      tables.push({ path: table, end: Math.min(end + 1, text.length), indent, isArray });
      at = end + 1;
    } else {
      const named = readPath(text, begin);
      if (named === undefined || text[named.end] !== '=') return unclear(at);
      const from = named.end + 1 + (/^[ \t]*/.exec(text.slice(named.end + 1, end))?.[0].length ?? 0);
      const to = endOfValue(text, from);
      if (to <= from || !isRest(text.slice(to, lineEnd(text, to)))) return unclear(at);
      keys.push({ path: [...table, ...named.path], ownLength: named.path.length, from, to, indent });
      at = lineEnd(text, to) + 1;
    }
  }
  return { keys, tables };
}
