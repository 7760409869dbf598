// pure
/**
 * Will containerd give pods a network? It takes the first file of its folder (a broken one stands in the way of all others), and the programs
 * that the file names from its own list of folders; each distribution has another list, which is what goes wrong most. Mirrors containerd's go-cni as of 1.6 to 2.1.
 */
import { advice, type Finding, ok, wrong } from './doctorFinding.ts';
import { tomlPlaces } from './tomlPlaces.ts';

export interface CniSettings {
  readonly confDir: string;
  /** As containerd's file sets them; undefined: it does not, and what holds is in the program. */
  readonly binDirs: readonly string[] | undefined;
  /** How a person sets it, in the words of this version of the file. */
  readonly setting: { readonly table: string; readonly line: (dir: string) => string };
}

const tables: Readonly<
  Record<number, { readonly path: readonly string[]; readonly text: string; readonly line: (dir: string) => string }>
> = {
  1: { path: ['plugins', 'cri', 'cni'], text: '[plugins.cri.cni]', line: (dir) => `bin_dir = "${dir}"` },
  2: {
    path: ['plugins', 'io.containerd.grpc.v1.cri', 'cni'],
    text: '[plugins."io.containerd.grpc.v1.cri".cni]',
    line: (dir) => `bin_dir = "${dir}"`,
  },
  3: {
    path: ['plugins', 'io.containerd.cri.v1.runtime', 'cni'],
    text: "[plugins.'io.containerd.cri.v1.runtime'.cni]",
    line: (dir) => `bin_dirs = ["${dir}"]`,
  },
};

/** Where programs lie when containerd's file does not say: as built by its authors, and by Debian. */
const usualBinDirs = ['/opt/cni/bin', '/usr/lib/cni'] as const;
const usualConfDir = '/etc/cni/net.d';

/** What containerd's file says of networks; `undefined`: there is no file. */
export function cniSettings(toml: string | undefined): CniSettings {
  const text = toml ?? '';
  const { keys } = tomlPlaces(text);
  const value = (path: readonly string[]): string | undefined => {
    const key = keys.find((k) => k.path.length === path.length && k.path.every((p, i) => p === path[i]));
    return key === undefined ? undefined : text.slice(key.from, key.to);
  };
  // without a file, containerd 1 and 2 both take the newest they know; the words of 2 are understood by both
  const table = tables[Number(value(['version']) ?? (toml === undefined ? 2 : 1))] ?? tables[2];
  const path = table?.path ?? [];
  const many = strings(value([...path, 'bin_dirs']));
  const one = strings(value([...path, 'bin_dir']));
  const dirs = many.length > 0 ? many : one;
  return {
    confDir: strings(value([...path, 'conf_dir']))[0] ?? usualConfDir,
    binDirs: dirs.length > 0 ? dirs : undefined,
    setting: { table: table?.text ?? '', line: table?.line ?? ((dir) => dir) },
  };
}

/** Every string in a value, without escapes; empty ones are none. */
const strings = (value = ''): string[] =>
  [...value.matchAll(/"([^"\\\n]*)"|'([^'\n]*)'|#.*$/gm)].map((m) => m[1] ?? m[2] ?? '').filter((s) => s !== '');

/** Every folder in which programs are to be looked for. */
export const cniBinDirs = ({ binDirs }: CniSettings): readonly string[] => [...new Set([...(binDirs ?? []), ...usualBinDirs])];

export interface CniSeen {
  readonly settings: CniSettings;
  /** Files of `confDir` with their texts, in any order; undefined: there is no such folder. */
  readonly files: readonly { readonly name: string; readonly text: string }[] | undefined;
  /** The programs in each of `cniBinDirs`. */
  readonly programs: Readonly<Record<string, readonly string[]>>;
  /** What the runtime says; undefined: it does not answer. */
  readonly network: { readonly ready: boolean; readonly message: string } | undefined;
  /** containerd's. */
  readonly configFile: string;
}

/** More than a network has, and enough to look at. */
const mostPlugins = 64;

/** Names of the programs that a network needs; undefined: this is no network. A list of them in a file that is not named .conflist is none. */
function pluginsOf({ name, text }: { readonly name: string; readonly text: string }): string[] | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { plugins } = (parsed ?? {}) as { plugins?: unknown };
  const listed = name.endsWith('.conflist') ? plugins : [parsed];
  if (!Array.isArray(listed) || listed.length === 0) return undefined;
  const all = listed.slice(0, mostPlugins) as ({ type?: unknown; ipam?: { type?: unknown } | null } | null)[];
  if (all.some((p) => typeof p?.type !== 'string' || p.type === '')) return undefined;
  const ipams = all.map((p) => p?.ipam?.type).filter((type) => typeof type === 'string' && type !== '');
  return [...new Set([...all.map((p) => p?.type), ...ipams])] as string[];
}

const name = 'cni';
const install = 'apt-get install containernetworking-plugins';
const restart = 'systemctl restart containerd (pods keep running)';

/** The first thing that keeps pods from a network, or that nothing does. */
export function cniFinding(seen: CniSeen): Finding {
  const { settings, files, network } = seen;
  const { confDir } = settings;
  const [first] = (files ?? []).filter((f) => /\.(conf|conflist|json)$/.test(f.name)).sort((a, b) => (a.name < b.name ? -1 : 1));
  if (first === undefined) {
    const what = files === undefined ? `${confDir} does not exist` : `there is no network in ${confDir}`;
    return wrong(
      name,
      `${what}: only pods with hostNetwork start`,
      `Put a network there, as podsched's 10-podsched.conflist, and: ${install}`,
    );
  }
  const plugins = pluginsOf(first);
  const file = `${confDir}/${first.name}`;
  if (plugins === undefined) {
    return wrong(
      name,
      `${file} is no network, and containerd takes the first file of the folder: only pods with hostNetwork start`,
      `Repair it, or move it away, then: ${restart}`,
    );
  }
  // containerd makes the loopback of every pod with a program too
  const missing = missingPrograms([...plugins, 'loopback'], seen);
  if (missing !== undefined) return missing;
  if (network?.ready === false) {
    return wrong(
      name,
      `${file} has what it needs, and the runtime has no network: ${network.message}`,
      `journalctl -u containerd, then: ${restart}`,
    );
  }
  const [, second] = (files ?? []).filter((f) => /\.(conf|conflist|json)$/.test(f.name));
  const told = `${file} (${plugins.join(', ')})`;
  return second === undefined
    ? ok(name, told)
    : advice(name, `${told} is taken, and no other file of ${confDir}`, 'If another network is meant: its name must be the first of all.');
}

function missingPrograms(needed: readonly string[], { settings, programs, configFile }: CniSeen): Finding | undefined {
  const has = (dir: string, program: string): boolean =>
    (Object.hasOwn(programs, dir) ? programs[dir] : undefined)?.includes(program) === true;
  const used = settings.binDirs ?? usualBinDirs;
  const missing = needed.filter((program) => !used.some((dir) => has(dir, program)));
  if (missing.length === 0) return undefined;
  const message = `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not in ${used.join(' or ')}, where containerd looks for them: only pods with hostNetwork start`;
  const elsewhere = usualBinDirs.find((dir) => !used.includes(dir) && missing.every((program) => has(dir, program)));
  if (elsewhere === undefined) return wrong(name, message, install);
  const { table, line } = settings.setting;
  return wrong(name, message, `They are in ${elsewhere}. In ${configFile}, below ${table}: ${line(elsewhere)} and then: ${restart}`);
}
