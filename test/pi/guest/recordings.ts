/** What a kubelet wrote into cgroups on such a machine, as the host put it beside us: a table of cgroup, file and value. */
import { read } from './machine.ts';

export type Values = Readonly<Record<string, string>>;

export interface Recording {
  /** By the path below /sys/fs/cgroup with `<uid>` in it, of slices: one set of values. */
  readonly slices: ReadonlyMap<string, Values>;
  /** By the path of the slice: the values of its sandbox and of its container. */
  readonly scopes: ReadonlyMap<string, { readonly sandbox: Values; readonly container: Values }>;
}

/** The recording with the systemd driver. Rows of one cgroup stand together; a cgroup that begins again (`cpu.weight`) is another one. */
export function recording(): Recording {
  const blocks: { readonly path: string; readonly values: Record<string, string> }[] = [];
  for (const line of read('/mnt/host/cgroup-v2-systemd-arm64.tsv').split('\n')) {
    const [path = '', file = '', value = ''] = line.split('\t');
    if (!path.startsWith('kubepods')) continue;
    const last = blocks.at(-1);
    if (last?.path === path && !(file in last.values)) last.values[file] = value;
    else blocks.push({ path, values: { [file]: value } });
  }
  const slices = new Map<string, Values>();
  const scopes = new Map<string, { sandbox: Values; container: Values }>();
  for (const { path, values } of blocks) {
    if (!path.endsWith('.scope')) slices.set(path, values);
    else {
      const slice = path.slice(0, path.lastIndexOf('/'));
      const pair = scopes.get(slice) ?? { sandbox: {}, container: {} };
      pair[values['memory.oom.group'] === '0' ? 'sandbox' : 'container'] = values;
      scopes.set(slice, pair);
    }
  }
  return { slices, scopes };
}
