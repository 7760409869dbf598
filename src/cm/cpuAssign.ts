// pure
/**
 * Which CPUs: whole memory nodes and sockets first, then whole cores, then single threads, of cores that are in use already before others.
 * Mirrors kubelet v1.32 cm/cpumanager/cpu_assignment.go (facts 11.7), the packed distribution.
 */

/** Where a CPU (one hardware thread) sits. Numbers are of the whole machine. */
export interface CpuPlace {
  readonly cpu: number;
  readonly core: number;
  readonly socket: number;
  readonly node: number;
}

type Level = 'node' | 'socket' | 'core';

/** `count` of the `available` CPUs, by number; undefined when there are not so many. */
export function takeCpus(topology: readonly CpuPlace[], available: Iterable<number>, count: number): readonly number[] | undefined {
  const wanted = new Set(available);
  const free = new Map(topology.filter((p) => wanted.has(p.cpu)).map((p) => [p.cpu, p]));
  if (free.size < count) return undefined;
  const taken: number[] = [];
  const take = (cpus: readonly number[]): void => {
    for (const cpu of cpus) {
      taken.push(cpu);
      free.delete(cpu);
    }
  };
  for (const level of levels(topology)) {
    for (const whole of wholeGroups(topology, free, level)) if (whole.length <= count - taken.length) take(whole);
  }
  if (taken.length < count) take(singles(free).slice(0, count - taken.length));
  return taken.sort((a, b) => a - b);
}

/** From the largest: a memory node is a part of a socket, or has several of them. */
function levels(topology: readonly CpuPlace[]): readonly Level[] {
  const [nodes, sockets] = [new Set(topology.map((p) => p.node)), new Set(topology.map((p) => p.socket))];
  return sockets.size >= nodes.size ? ['node', 'socket', 'core'] : ['socket', 'node', 'core'];
}

/** All CPUs of each group that is free as a whole. */
function wholeGroups(topology: readonly CpuPlace[], free: ReadonlyMap<number, CpuPlace>, level: Level): readonly (readonly number[])[] {
  const all = grouped(topology, level);
  const left = grouped([...free.values()], level);
  const socketsLeft = grouped([...free.values()], 'socket');
  const socketOf = (places: readonly CpuPlace[]): number => places[0]?.socket ?? 0;
  const leftIn = (places: readonly CpuPlace[]): number => socketsLeft.get(socketOf(places))?.length ?? 0;
  return [...left.entries()]
    .filter(([id, places]) => places.length === all.get(id)?.length)
    .sort(([a, p], [b, q]) => (level === 'core' ? leftIn(p) - leftIn(q) || socketOf(p) - socketOf(q) : p.length - q.length) || a - b)
    .map(([, places]) => places.map((p) => p.cpu));
}

/** What is free of the fullest socket first, and in it of the fullest core. */
function singles(free: ReadonlyMap<number, CpuPlace>): readonly number[] {
  const places = [...free.values()];
  const [sockets, cores] = [grouped(places, 'socket'), grouped(places, 'core')];
  const left = (groups: ReadonlyMap<number, readonly CpuPlace[]>, id: number): number => groups.get(id)?.length ?? 0;
  return places
    .sort(
      (a, b) =>
        left(sockets, a.socket) - left(sockets, b.socket) ||
        a.socket - b.socket ||
        left(cores, a.core) - left(cores, b.core) ||
        a.core - b.core ||
        a.cpu - b.cpu,
    )
    .map((p) => p.cpu);
}

function grouped(places: readonly CpuPlace[], level: Level): ReadonlyMap<number, readonly CpuPlace[]> {
  const groups = new Map<number, CpuPlace[]>();
  for (const place of places) {
    const group = groups.get(place[level]);
    if (group === undefined) groups.set(place[level], [place]);
    else group.push(place);
  }
  return groups;
}
