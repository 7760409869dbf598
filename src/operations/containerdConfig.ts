// pure
/**
 * The one setting of containerd that podsched changes: the image that sandboxes are made of. Everything else in the file stays byte for byte;
 * where that cannot be had, the answer is what a person should write. Versions 2 (containerd 1.x) and 3 (containerd 2.x) of the file.
 */
import { type TomlPlaces, tomlPlaces } from './tomlPlaces.ts';

/** Where the setting stands, by version of the file. */
const settings: Readonly<Record<number, { readonly table: readonly string[]; readonly key: string; readonly lines: readonly string[] }>> = {
  2: {
    table: ['plugins', 'io.containerd.grpc.v1.cri'],
    key: 'sandbox_image',
    lines: ['[plugins."io.containerd.grpc.v1.cri"]', '  sandbox_image = '],
  },
  3: {
    table: ['plugins', 'io.containerd.cri.v1.images', 'pinned_images'],
    key: 'sandbox',
    lines: ["[plugins.'io.containerd.cri.v1.images'.pinned_images]", '  sandbox = '],
  },
};
/** Plugins by which the runtime speaks to us. */
const criPlugins = ['cri', 'io.containerd.grpc.v1.cri'];

export interface ConfigView {
  /** Of the file; 1 where it does not say. */
  readonly version: number;
  /** As the file sets it; undefined: it does not. */
  readonly sandboxImage?: string;
  readonly syncFs?: boolean;
  /** The file turns CRI off, as Docker's package does. */
  readonly criDisabled: boolean;
  /** Other files are read with it, and win. */
  readonly imports: boolean;
  readonly unclear?: number;
}

const same = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((p, i) => p === b[i]);
const startsWith = (path: readonly string[], head: readonly string[]): boolean =>
  head.length <= path.length && head.every((p, i) => p === path[i]);

function valueAt(text: string, places: TomlPlaces, path: readonly string[]): string | undefined {
  const key = places.keys.find((k) => same(k.path, path));
  return key === undefined ? undefined : text.slice(key.from, key.to);
}

/** A string on one line, without escapes; undefined: something else. */
const plainString = (value: string | undefined): string | undefined => {
  const m = /^(?:"([^"\\\n]*)"|'([^'\n]*)')$/.exec(value ?? '');
  return m?.[1] ?? m?.[2];
};

/** What the file says of what podsched cares for. */
export function readConfig(text: string): ConfigView {
  const places = tomlPlaces(text);
  const version = Number(valueAt(text, places, ['version']) ?? 1);
  const setting = settings[version];
  const sandboxImage = setting && plainString(valueAt(text, places, [...setting.table, setting.key]));
  const syncFs = valueAt(text, places, [...(setting?.table.slice(0, 2) ?? []), 'image_pull_with_sync_fs']);
  const disabled = valueAt(text, places, ['disabled_plugins']) ?? '';
  return {
    version,
    ...(sandboxImage !== undefined && { sandboxImage }),
    ...(syncFs !== undefined && { syncFs: syncFs === 'true' }),
    criDisabled: criPlugins.some((name) => new RegExp(`["']${name.replaceAll('.', '\\.')}["']`).test(disabled.replaceAll(/#.*$/gm, ''))),
    imports: /["']/.test((valueAt(text, places, ['imports']) ?? '').replaceAll(/#.*$/gm, '')),
    ...(places.unclear !== undefined && { unclear: places.unclear }),
  };
}

/** The folder of images and containers. */
export const dataRoot = (text: string): string => plainString(valueAt(text, tomlPlaces(text), ['root'])) || '/var/lib/containerd';

/** The lines that set it, for a person or for a file that has none of them. */
export const sandboxImageLines = (version: number, image: string): readonly string[] => {
  const [header, key] = (settings[version] ?? settings[2])?.lines ?? [];
  return [header ?? '', `${key}"${image}"`];
};

export type ConfigEdit =
  | { readonly ok: true; readonly text: string }
  /** Why this file is left to a person. */
  | { readonly ok: false; readonly why: string };

/** The text with the image set, and nothing else changed. */
export function setSandboxImage(text: string, image: string): ConfigEdit {
  const view = readConfig(text);
  const setting = settings[view.version];
  if (view.unclear !== undefined) return { ok: false, why: `line ${view.unclear} is not understood` };
  if (setting === undefined) return { ok: false, why: `its version is ${view.version}; 2 and 3 are known` };
  if (view.imports) return { ok: false, why: 'it imports other files, which may set the same' };
  const edited = edit(text, setting, image);
  // what was written must be what is read
  if (edited !== undefined && readConfig(edited).sandboxImage === image) return { ok: true, text: edited };
  return { ok: false, why: `${setting.table.join('.')} is written in a way that is not understood` };
}

function edit(text: string, { table, key, lines }: NonNullable<(typeof settings)[number]>, image: string): string | undefined {
  const places = tomlPlaces(text);
  const path = [...table, key];
  const value = `"${image}"`;
  // a table that is a value itself (`plugins = { … }`), or one of many (`[[plugins]]`), takes no further line
  if (places.keys.some((k) => k.path.length < path.length && startsWith(path, k.path))) return undefined;
  if (places.tables.some((t) => t.isArray && startsWith(path, t.path))) return undefined;
  const found = places.keys.filter((k) => startsWith(k.path, path));
  const [only] = found;
  if (only !== undefined) {
    if (found.length > 1 || !same(only.path, path) || plainString(text.slice(only.from, only.to)) === undefined) return undefined;
    return text.slice(0, only.from) + value + text.slice(only.to);
  }
  const newline = text.includes('\r\n') ? '\r\n' : '\n';
  const headers = places.tables.filter((t) => same(t.path, table));
  const [header] = headers;
  if (headers.length > 1) return undefined;
  if (header !== undefined) {
    const neighbour = places.keys.find((k) => k.from >= header.end && same(k.path.slice(0, -1), table));
    const line = `${neighbour?.indent ?? `${header.indent}  `}${key} = ${value}${newline}`;
    const before = text.slice(0, header.end);
    return before + (before.endsWith('\n') ? '' : newline) + line + text.slice(header.end);
  }
  // a table that dotted keys made must not be opened a second time
  if (places.keys.some((k) => startsWith(k.path, table) && k.path.length - k.ownLength < table.length)) return undefined;
  const gap = text === '' ? '' : text.endsWith('\n') ? newline : newline + newline;
  return `${text}${gap}${lines[0]}${newline}${lines[1]}${value}${newline}`;
}
