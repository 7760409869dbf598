// pure
/** Lists of CPUs as the kernel and the kubelet write them: `0-1,3`. Mirrors kubelet v1.32 pkg/util/cpuset. */

/** More than any kernel is built for; what is beyond it is a mistake, not a machine. */
const highestCpu = 8191;

/** The CPUs of a list, in order, each once; undefined when the text is no such list. An empty text is none. */
export function parseCpuList(text: string): readonly number[] | undefined {
  if (text === '') return [];
  const cpus = new Set<number>();
  for (const part of text.split(',')) {
    const [, first, last] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part) ?? [];
    if (first === undefined) return undefined;
    const [from, to] = [Number(first), Number(last ?? first)];
    if (from > to || to > highestCpu) return undefined;
    for (let cpu = from; cpu <= to; cpu++) cpus.add(cpu);
  }
  return sorted(cpus);
}

/** The shortest list of them: neighbours become a range. */
export function cpuListText(cpus: Iterable<number>): string {
  const parts: string[] = [];
  let run: readonly [number, number] | undefined;
  const end = (): void => {
    if (run !== undefined) parts.push(run[0] === run[1] ? `${run[0]}` : `${run[0]}-${run[1]}`);
  };
  for (const cpu of sorted(cpus)) {
    if (run !== undefined && cpu === run[1] + 1) run = [run[0], cpu];
    else {
      end();
      run = [cpu, cpu];
    }
  }
  end();
  return parts.join(',');
}

const sorted = (cpus: Iterable<number>): readonly number[] => [...new Set(cpus)].sort((a, b) => a - b);
