/**
 * Flags, environment and file into one configuration, or every mistake at once with its place.
 *
 * Owns no truth: it is a function of three texts. The order is flag, environment, file, default; maps stand in the file only. What one
 * place says is checked even where another one wins, so that a mistake does not lie in wait.
 */
import { type ConfigurationKey, configurationKeys, type PodschedConfiguration } from './api/configuration.ts';
import { checkConfiguration } from './api/configurationChecks.ts';
import { fileValue, textValue, unknownKey, type Value } from './api/configurationValue.ts';
import { nearest } from './api/nearest.ts';
import type { NodeAmounts } from './api/nodeResources.ts';
import type { Problem } from './api/objects.ts';
import { inFileOrder } from './api/problems.ts';
import { shown } from './api/scalars.ts';
import { parseDocuments, type YamlDocument } from './config/yaml.ts';

export type Settings = Readonly<Record<string, unknown>>;

export interface OptionTexts {
  /** By dotted path, without the dashes. */
  readonly flags: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file?: { readonly path: string; readonly text: string };
  /** What the machine has, where the configuration is for this one. */
  readonly machine?: NodeAmounts;
  /** Typed values that take the place of a file: those of the last good one. */
  readonly settings?: Settings;
}

export interface LoadedOptions {
  /** Absent when there is any problem. */
  readonly config?: PodschedConfiguration;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** What the file sets, by dotted path, as far as it is right. */
  readonly fileSettings: Settings;
  /** What flags and environment set, as far as it is right. */
  readonly overrides: Settings;
  /** The file has not a single word in it (comments do not count), or there is none. */
  readonly empty: boolean;
}

const apiVersion = 'podsched.dev/v1';
const kind = 'PodschedConfiguration';
const paths = Object.keys(configurationKeys);

const envPrefix = 'PODSCHED_';

/** `mqtt.passwordFile` → `PODSCHED_MQTT_PASSWORD_FILE`; a run of capitals is one word (`imageGCHigh…` → `IMAGE_GC_HIGH_…`). */
export const envName = (path: string): string =>
  `${envPrefix}${path
    .replaceAll('.', '_')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z]{2})/g, '$1_$2')
    .toUpperCase()}`;

const plain = (word: string): string => word.toLowerCase().replace(/[-_.]/g, '');

/** The key a flag means: `--mqtt.passwordFile`, also `--mqtt.password-file` and `--run-dir`. */
export const flagPath = (flag: string): string | undefined =>
  Object.hasOwn(configurationKeys, flag) ? flag : paths.find((path) => plain(path) === plain(flag));

/** Reads everything and judges it. Never throws, reads no file and no environment by itself. */
export function loadOptions(texts: OptionTexts): LoadedOptions {
  const file = texts.file === undefined ? noFile(texts.settings ?? {}) : readFile(texts.file);
  const env = readEnv(texts.env);
  const flags = readFlags(texts.flags);
  const overrides = { ...env.values, ...flags.values };
  const values: Record<string, unknown> = {};
  for (const [path, { default: value }] of Object.entries(configurationKeys)) values[path] = value;
  Object.assign(values, file.values, overrides);

  /** A problem of the whole stands where the value was written. */
  const placed = (p: Problem): Problem => {
    const key = paths.find((path) => p.path === path || p.path.startsWith(`${path}.`) || p.path.startsWith(`${path}[`)) ?? p.path;
    if (Object.hasOwn(flags.values, key)) return { ...p, path: `--${p.path}` };
    if (Object.hasOwn(env.values, key)) return { ...p, path: envName(key) };
    return file.placed(p);
  };
  const problems = [...flags.problems, ...env.problems, ...file.problems];
  // a key that is wrong by itself has its default here, which says nothing
  const bad = new Set(problems.map((p) => p.path));
  problems.push(
    ...checkConfiguration(values, texts.machine)
      .map(placed)
      .filter((p) => !bad.has(p.path)),
  );

  const set = { ...file.values, ...overrides };
  const later = Object.keys(set)
    .filter((path) => configurationKeys[path]?.later === true && !same(set[path], configurationKeys[path]?.default))
    .map((path) => placed({ path, expected: 'nothing', got: 'it has no effect in this version' }));
  return {
    ...(problems.length === 0 && { config: values as unknown as PodschedConfiguration }),
    problems: inFileOrder(problems),
    warnings: [...env.warnings, ...later],
    fileSettings: file.values,
    overrides,
    empty: file.empty,
  };
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

interface Part {
  readonly values: Record<string, unknown>;
  readonly problems: Problem[];
}

function take(part: Part, path: string, value: Value): void {
  if ('problems' in value) part.problems.push(...value.problems);
  else part.values[path] = value.value;
}

function readFlags(flags: Readonly<Record<string, string>>): Part {
  const part: Part = { values: {}, problems: [] };
  for (const [flag, text] of Object.entries(flags)) {
    const path = flagPath(flag);
    const key = path === undefined ? undefined : configurationKeys[path];
    if (path === undefined || key === undefined) part.problems.push(unknownKey(`--${flag}`, dashed(nearest(flag, paths))));
    else take(part, path, textValue(`--${path}`, key, text));
  }
  return part;
}

const dashed = (path: string | undefined): string | undefined => (path === undefined ? undefined : `--${path}`);

function readEnv(env: Readonly<Record<string, string | undefined>>): Part & { readonly warnings: Problem[] } {
  const part = { values: {}, problems: [] as Problem[], warnings: [] as Problem[] };
  const known = new Map(paths.map((path) => [envName(path), path]));
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(envPrefix) || text === undefined) continue;
    const path = known.get(name);
    const key = path === undefined ? undefined : configurationKeys[path];
    if (path !== undefined && key !== undefined) {
      take(part, path, textValue(name, key, text));
      continue;
    }
    // the environment belongs to others too: only what looks like a slip of the pen is told
    const close = nearest(
      name.slice(envPrefix.length),
      [...known.keys()].map((known) => known.slice(envPrefix.length)),
    );
    if (close !== undefined) part.warnings.push(unknownKey(name, envPrefix + close));
  }
  return part;
}

interface FilePart extends Part {
  readonly empty: boolean;
  readonly placed: (p: Problem) => Problem;
}

const noFile = (settings: Settings): FilePart => ({
  values: Object.fromEntries(Object.entries(settings).filter(([path, value]) => fits(configurationKeys[path], value))),
  problems: [],
  empty: true,
  placed: (p) => p,
});

/** A stored value is of the type that this version wants (another version may have stored it). */
const fits = (key: ConfigurationKey | undefined, value: unknown): boolean =>
  key !== undefined && typeof value === typeof key.default && Array.isArray(value) === Array.isArray(key.default);

function readFile({ path: name, text }: { readonly path: string; readonly text: string }): FilePart {
  const parsed = parseDocuments(text);
  const [document, ...more] = [...parsed.documents, ...parsed.broken].filter((d) => d.value !== null || d.problems.length > 0);
  const placed = (p: Problem): Problem => ({ ...p, file: name, ...document?.at(p.path) });
  const part: FilePart = {
    values: {},
    problems: parsed.problems.map((p) => ({ ...p, file: name })),
    empty: document === undefined && parsed.problems.length === 0,
    placed,
  };
  if (document === undefined) return part;
  for (const other of more) {
    part.problems.push({ path: '', expected: 'one document', got: `document ${other.index + 1}`, file: name, ...other.at('') });
  }
  const found = readTree(document);
  // of a document that is no YAML only what can be read counts, not what it seems to be
  if (document.problems.length === 0) part.problems.push(...found.problems.map(placed));
  Object.assign(part.values, found.values);
  return part;
}

function readTree(document: YamlDocument): Part {
  const part: Part = { values: {}, problems: [] };
  const walk = (value: unknown, at: string): void => {
    if (value === null || value === undefined) return; // nothing written: the default
    if (typeof value !== 'object' || Array.isArray(value)) {
      part.problems.push({ path: at, expected: 'a mapping', got: shown(value) });
      return;
    }
    for (const [name, below] of Object.entries(value)) {
      const path = at === '' ? name : `${at}.${name}`;
      const key = name.includes('.') || !Object.hasOwn(configurationKeys, path) ? undefined : configurationKeys[path];
      if (at === '' && (name === 'apiVersion' || name === 'kind')) checkHead(part, name, below);
      else if (key !== undefined) {
        if (below !== null) take(part, path, fileValue(path, key, below));
      } else if (!name.includes('.') && paths.some((known) => known.startsWith(`${path}.`))) walk(below, path);
      else part.problems.push(unknownKey(path, nearestKey(at, name)));
    }
  };
  walk(document.value, '');
  return part;
}

function checkHead(part: Part, name: 'apiVersion' | 'kind', value: unknown): void {
  const expected = name === 'kind' ? kind : apiVersion;
  if (value !== null && value !== expected) part.problems.push({ path: name, expected, got: shown(value) });
}

/** A slip of the pen among its neighbours, else the same word at another place, else what is nearest anywhere. */
function nearestKey(at: string, name: string): string | undefined {
  const start = at === '' ? '' : `${at}.`;
  const neighbours = new Set(paths.filter((p) => p.startsWith(start)).map((p) => p.slice(start.length).split('.')[0] ?? ''));
  const close = nearest(name, neighbours);
  if (close !== undefined) return start + close;
  const last = name.split('.').at(-1) ?? name;
  return paths.find((p) => p === name || p.split('.').at(-1) === last) ?? nearest(`${start}${name}`, paths);
}
