/**
 * What the machine is made of, as `systeminformation` finds it: for a person who asks (`podsched doctor`), never for the agent. Nearly every
 * function of it starts shells (lscpu, dmidecode, lsblk), and it is loaded at the question only. What the node's status tells is read from
 * files instead: vitals.ts, board.ts.
 * Door of systeminformation.
 */
export interface MachineParts {
  /** Maker and model. */
  readonly system: string;
  /** `Cortex-A72, 4 cores, 1.8 GHz` */
  readonly processor: string;
  /** Each by name, kind and bytes. */
  readonly disks: readonly { readonly device: string; readonly name: string; readonly kind: string; readonly bytes: number }[];
}

/** Whoever made a part named it: what would speak to a terminal is left out. */
const plain = (text: unknown): string =>
  typeof text === 'string'
    ? text
        .replace(/[^\x20-\x7e]/g, '')
        .trim()
        .slice(0, 100)
    : '';
const joined = (parts: readonly string[], by: string): string => parts.filter((part) => part !== '').join(by);
const isNumber = (n: unknown): n is number => typeof n === 'number' && Number.isFinite(n) && n > 0;

/** Takes up to seconds, and starts processes. What cannot be found is empty; never rejects but when the package is not there. */
export async function machineParts(): Promise<MachineParts> {
  const si = await import('systeminformation');
  const [system, cpu, disks] = await Promise.all([
    si.system().catch(() => undefined),
    si.cpu().catch(() => undefined),
    si.diskLayout().catch(() => []),
  ]);
  return {
    system: joined([plain(system?.manufacturer), plain(system?.model)], ' '),
    processor: joined(
      [
        joined([plain(cpu?.manufacturer), plain(cpu?.brand)], ' '),
        isNumber(cpu?.cores) ? `${cpu.cores} ${cpu.cores === 1 ? 'core' : 'cores'}` : '',
        isNumber(cpu?.speedMax) ? `${cpu.speedMax} GHz` : '',
      ],
      ', ',
    ),
    disks: disks.map((d) => ({
      device: plain(d.device),
      name: plain(d.name),
      kind: joined([plain(d.interfaceType), plain(d.type)], ' '),
      bytes: isNumber(d.size) ? d.size : 0,
    })),
  };
}
