// pure
/**
 * Who has which device, and which ones a container is given. A device is one pod's at a time, like an extended resource of Kubernetes: from
 * the pod's first start of a container with it until the pod has ended. What a running container has lost is kept for it when it comes back.
 */
import type { PodUid } from '../api/objects.ts';
import { devicesAnnotation } from '../container/devices.ts';
import type { Member } from './deviceScan.ts';

/** A device as a container was made with it. */
export interface Given {
  readonly deviceClass: string;
  readonly paths: readonly string[];
  readonly node: string;
  readonly kind: 'char' | 'block';
  readonly major: number;
  readonly minor: number;
  readonly inode: number;
}

/** The devices of one container of a pod. */
export interface Holder {
  readonly uid: PodUid;
  /** `default/web`. */
  readonly pod: string;
  readonly container: string;
  /** The id of its record while it runs. */
  readonly running?: string;
  readonly given: readonly Given[];
}

export type MembersOf = (deviceClass: string) => readonly Member[];

const numberOf = ({ kind, major, minor }: Pick<Given, 'kind' | 'major' | 'minor'>): string => `${kind} ${major}:${minor}`;

/** Whether a device is still the one that a container was made with. */
export type IsThere = (given: Given) => boolean;

/** What is known of all devices at one moment. */
export interface Devices {
  readonly membersOf: MembersOf;
  readonly isThere: IsThere;
}

const givenOf = (deviceClass: string, { paths, node, kind, major, minor, inode }: Member): Given => ({
  ...{ deviceClass, paths, node, kind, major, minor, inode },
});

/** One device by its content: for what is compared with a device that is gone. */
export const keyOf = (member: Pick<Member, 'node' | 'inode'>): string => `${member.node} ${member.inode}`;

/** A container that has lost some of its devices. */
export interface Lost {
  readonly holder: Holder;
  readonly gone: readonly Given[];
  /** Members that were there already when it lost them (`keyOf`): while it runs it is not moved to one of these. */
  readonly spares: ReadonlySet<string>;
}

/** Numbers of devices that these containers have and that are still there. */
const taken = (holders: readonly Holder[], isThere: IsThere): Set<string> =>
  new Set(holders.flatMap(({ given }) => given.filter(isThere).map(numberOf)));

/** What comes back for a lost device: the same path, else one that was not there before. */
function successor(gone: Given, spares: ReadonlySet<string>, free: readonly Member[]): Member | undefined {
  const same = free.find((m) => m.node === gone.node || m.paths.some((path) => gone.paths.includes(path)));
  return same ?? free.find((m) => !spares.has(keyOf(m)));
}

/** For each lost device what stands in for it, each once; undefined where nothing does. */
function successors(lost: readonly Lost[], held: ReadonlySet<string>, membersOf: MembersOf): Map<Given, Member | undefined> {
  const used = new Set(held);
  const found = new Map<Given, Member | undefined>();
  for (const { gone, spares } of lost) {
    for (const one of gone) {
      const free = membersOf(one.deviceClass).filter((m) => !used.has(numberOf(m)));
      const next = successor(one, spares, free);
      if (next !== undefined) used.add(numberOf(next));
      found.set(one, next);
    }
  }
  return found;
}

/** All that it lost can be had again. `lost`: every container that has lost something, in the order in which they did. */
export function isBack(who: Lost, lost: readonly Lost[], holders: readonly Holder[], devices: Devices): boolean {
  const next = successors(lost, taken(holders, devices.isThere), devices.membersOf);
  return who.gone.length > 0 && who.gone.every((gone) => next.get(gone) !== undefined);
}

export interface Wish {
  /** How many by class. */
  readonly wanted: ReadonlyMap<string, number>;
  /** What it had before, if it ran. */
  readonly before: readonly Given[];
}

export type Choice =
  | { readonly ok: true; readonly given: readonly Given[]; readonly members: readonly Member[] }
  | {
      readonly ok: false;
      readonly deviceClass: string;
      readonly count: number;
      readonly present: number;
      readonly pods: readonly string[];
    };

/**
 * The devices for a container that is about to be made. `holders`: everybody else who holds some; `lost`: of these who has lost some. What it
 * had before comes first, by its node or path, then the class in its order.
 */
export function choose(wish: Wish, holders: readonly Holder[], lost: readonly Lost[], { membersOf, isThere }: Devices): Choice {
  const used = taken(holders, isThere);
  for (const next of successors(lost, used, membersOf).values()) if (next !== undefined) used.add(numberOf(next));
  const given: Given[] = [];
  const chosen: Member[] = [];
  for (const [deviceClass, count] of wish.wanted) {
    const members = membersOf(deviceClass);
    const had = wish.before.filter((g) => g.deviceClass === deviceClass);
    const rank = (m: Member): number => {
      const known = had.some((g) => g.node === m.node || m.paths.some((path) => g.paths.includes(path)));
      return known ? 0 : 1;
    };
    const free = members.filter((m) => !used.has(numberOf(m))).sort((a, b) => rank(a) - rank(b));
    if (free.length < count) {
      const numbers = new Set(members.map(numberOf));
      const having = holders.filter((h) => h.given.some((g) => numbers.has(numberOf(g))));
      const keptFor = lost.filter((l) => l.gone.some((g) => g.deviceClass === deviceClass)).map((l) => l.holder);
      const pods = [...having, ...keptFor].map((h) => h.pod);
      return { ok: false, deviceClass, count, present: members.length, pods: [...new Set(pods)] };
    }
    for (const member of free.slice(0, count)) {
      used.add(numberOf(member));
      given.push(givenOf(deviceClass, member));
      chosen.push(member);
    }
  }
  return { ok: true, given, members: chosen };
}

/** As it stands on the container. */
export const givenText = (given: readonly Given[]): string =>
  JSON.stringify(
    given.map(({ deviceClass, paths, node, kind, major, minor, inode }) => ({
      ...{ class: deviceClass, paths, node, number: `${kind} ${major}:${minor}`, inode },
    })),
  );

/** What a container was made with, as far as it can be read. */
export function readGiven(annotations: Readonly<Record<string, string>>): Given[] {
  const list = parsed(annotations[devicesAnnotation]);
  if (!Array.isArray(list)) return [];
  return list.flatMap((one: unknown): Given[] => {
    if (typeof one !== 'object' || one === null) return [];
    const { class: deviceClass, paths, node, number, inode } = one as Readonly<Record<string, unknown>>;
    const [, kind, major, minor] = /^(char|block) (\d+):(\d+)$/.exec(typeof number === 'string' ? number : '') ?? [];
    if (typeof deviceClass !== 'string' || typeof node !== 'string' || !isNode(node) || typeof inode !== 'number') return [];
    if ((kind !== 'char' && kind !== 'block') || !Array.isArray(paths)) return [];
    const texts = paths.filter((path): path is string => typeof path === 'string');
    return [{ deviceClass, paths: texts, node, kind, major: Number(major), minor: Number(minor), inode }];
  });
}

/** The runtime keeps it for us; it is read as anybody's text. */
const isNode = (path: string): boolean => path.startsWith('/dev/') && !path.split('/').includes('..');

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined; // not ours
  }
}
