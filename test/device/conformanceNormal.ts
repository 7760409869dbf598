// pure
/**
 * Values of this run and of a recording brought to one shape: what varies from run to run and from machine to machine becomes the
 * recordings' placeholder, nulls are left out, env is a set. Nothing here is a difference of behaviour: those are conformanceAllowed.ts.
 */
import type { Json } from '../conformance/kubelet-1.32/recording.ts';
import type { Fields } from './conformanceRecordings.ts';

/** What is of a machine and of one agent's configuration. */
export interface Machine {
  readonly memoryBytes: number;
  /** `2MB`, `1GB`: the sizes of huge pages that the machine has. */
  readonly hugepageSizes: readonly string[];
  /** The thermal_throttle folders of its processors, which are masked beside the fixed paths. */
  readonly thermalThrottlePaths: readonly string[];
}

export interface Place extends Machine {
  readonly nodeName: string;
  readonly root: string;
  readonly tmp: string;
  readonly podLogsDir: string;
  readonly hostDns: string;
  /** It has cgroup v2 and nothing else. */
  readonly unified: boolean;
}

/** Of the machine the recordings were made on; its oom_score_adj values allow no other memory. */
export const recordedMachine: Machine = { memoryBytes: 25_300_000_000, hugepageSizes: ['2MB', '1GB'], thermalThrottlePaths: [] };

/** One text of a pod of this run with the recordings' placeholders. */
export function normalText(text: string, uid: string, place: Place): string {
  return text
    .replaceAll(place.podLogsDir, '/var/log/pods')
    .replaceAll(place.root, '<root>')
    .replaceAll(place.tmp, '<tmp>')
    .replaceAll(place.nodeName, '<node>')
    .replaceAll(uid, '<uid>')
    .replaceAll(/sha256:[0-9a-f]{64}/g, 'sha256:<digest>')
    .replaceAll(/\b[0-9a-f]{62,64}\b/g, '<id>')
    .replace(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/, '<time>')
    .replace(/^(<root>\/pods\/<uid>\/containers\/[^/]+\/)[^/]+$/, '$1<random>')
    .replace(new RegExp(`^${place.hostDns.replaceAll('.', '\\.')}$`), '<host-dns>');
}

/** Without nulls; every text through `text`. Objects stay also when they are empty: in CRI they can mean something. */
export function normal(value: Json, text: (s: string) => string): Json {
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return value.map((v) => normal(v, text));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, v]) => v !== null)
      .map(([k, v]) => [k, normal(v, text)]),
  );
}

/** A recording's ids that were left as they are, inside of messages. */
export const recordedText = (text: string): string => text.replaceAll(/\b[0-9a-f]{62,64}\b/g, '<id>');

export const isFields = (v: Json | undefined): v is Fields => typeof v === 'object' && v !== null && !Array.isArray(v);

/** What is inside of objects, or an empty object that is not of them. */
export function inside(value: Json | undefined, ...path: readonly string[]): Fields {
  let at = value;
  for (const key of path) at = isFields(at) ? at[key] : undefined;
  return isFields(at) ? at : {};
}

/** The objects of a list. */
export const items = (value: Json | undefined): readonly Fields[] => (Array.isArray(value) ? value.filter(isFields) : []);

const binary: Readonly<Record<string, number>> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, k: 1e3, M: 1e6, G: 1e9 };

/** Bytes of a quantity as the defaulted spec writes it. */
function bytes(quantity: Json | undefined): number {
  const [, number = '0', unit = ''] = /^([0-9.e]+)([A-Za-z]*)$/.exec(String(quantity ?? '0')) ?? [];
  return Number(number) * (binary[unit] ?? 1);
}

/** A container config without what only the machine decides, and env sorted. `spec` is the container's, with defaults. */
export function normalContainer(config: Fields, spec: Fields, machine: Machine): Fields {
  const copy = structuredClone(config);
  if (Array.isArray(copy.envs)) copy.envs = [...items(copy.envs)].sort((a, b) => (String(a.key) < String(b.key) ? -1 : 1));
  const security = inside(copy, 'linux', 'security_context');
  // all of the machine's own, and no other
  if (Array.isArray(security.masked_paths)) {
    const { masked_paths: paths } = security;
    const own = machine.thermalThrottlePaths;
    security.masked_paths = own.every((path) => paths.includes(path))
      ? paths.filter((path) => !own.includes(String(path)))
      : [...paths, '<a thermal_throttle of this machine is not masked>'];
  }
  const resources = inside(copy, 'linux', 'resources');
  // by the part of the node's memory that a burstable container asks for: 1000 − 1000 × request ÷ memory, kept in 3…999
  const request = bytes(inside(spec, 'resources', 'requests').memory);
  const score = Math.min(999, Math.max(3, 1000 - Math.trunc((1000 * request) / machine.memoryBytes)));
  if (resources.oom_score_adj === score) resources.oom_score_adj = '<by its part of the memory>';
  const limits = items(resources.hugepage_limits);
  const sizes = limits.map((l) => String(l.page_size)).sort();
  if (limits.every((l) => l.limit === undefined) && sizes.join() === [...machine.hugepageSizes].sort().join())
    resources.hugepage_limits = '<0 of each size>';
  return copy;
}
