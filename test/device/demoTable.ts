/** The demo's table: knows only topics and payloads. On a terminal it redraws in place, elsewhere it prints a line per change. */

interface PodRow {
  phase: string;
  ready: string;
  restarts: number;
  ip: string;
  why: string;
}

interface ToldStatus {
  readonly phase?: string;
  readonly podIP?: string;
  readonly containerStatuses?: readonly {
    readonly ready?: boolean;
    readonly restartCount?: number;
    readonly state?: Readonly<Record<string, { reason?: string }>>;
  }[];
}

const columns = ['POD', 'PHASE', 'READY', 'RESTARTS', 'IP', 'SYNC'] as const;
const pad = (cells: readonly string[], widths: readonly number[]): string =>
  cells
    .map((c, i) => c.padEnd(widths[i] ?? 0))
    .join('   ')
    .trimEnd();

export class PodTable {
  readonly #pods = new Map<string, PodRow>();
  readonly #said: string[] = [];
  #online = '—';
  #messages = 0;
  #drawn = 0;
  #last = '';

  constructor(private readonly out: NodeJS.WriteStream) {}

  /** A sentence above the table. */
  say(text: string): void {
    const clock = new Date().toISOString().slice(11, 19);
    this.#said.push(`${clock} ${text}`);
    if (!this.out.isTTY) this.out.write(`demo: ${clock} ${text}\n`);
    this.#draw();
  }

  /** Takes one MQTT message in: `…/nodes/<node>/(online | pods/<ns>/<pod> | sync/<ns>/<name>)`. */
  heard(topic: string, text: string): void {
    this.#messages++;
    const [, , , , kind, namespace, name] = topic.split('/');
    const payload = text === '' ? undefined : (JSON.parse(text) as Record<string, unknown>);
    if (kind === 'online') this.#online = String(payload?.state);
    if ((kind === 'pods' || kind === 'sync') && namespace !== '_files' && name !== undefined) {
      const key = `${namespace}/${name}`;
      const row = this.#pods.get(key) ?? { phase: '', ready: '', restarts: 0, ip: '', why: '' };
      if (kind === 'pods') this.#pods.set(key, { ...row, ...podCells(payload) });
      else this.#pods.set(key, { ...row, why: payload === undefined ? '' : `${payload.phase} ${payload.reason ?? ''}`.trim() });
      if (payload === undefined && kind === 'sync') this.#pods.set(key, { ...row, why: '' });
      // an object beside the pods has nothing more to say when it is gone
      if (payload === undefined && name.includes(':')) this.#pods.delete(key);
    }
    this.#draw();
  }

  lines(): string[] {
    const rows = [...this.#pods]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, r]) => [key, r.phase, r.ready, String(r.restarts), r.ip, r.why]);
    const widths = columns.map((c, i) => Math.max(c.length, ...rows.map((r) => r[i]?.length ?? 0)));
    return [`node demo is ${this.#online}; ${this.#messages} MQTT messages`, pad(columns, widths), ...rows.map((r) => pad(r, widths))];
  }

  #draw(): void {
    const lines = this.lines();
    if (!this.out.isTTY) {
      const body = lines.slice(2).join('\n');
      if (body !== this.#last && body !== '') this.out.write(`${body}\n\n`);
      this.#last = body;
      return;
    }
    const width = this.out.columns || 120;
    const all = [...this.#said.slice(-8), '', ...lines].map((l) => (l.length > width ? `${l.slice(0, width - 1)}…` : l));
    this.out.write(`${this.#drawn > 0 ? `\x1b[${this.#drawn}A` : ''}${all.map((l) => `\x1b[2K${l}\n`).join('')}\x1b[J`);
    this.#drawn = all.length;
  }
}

function podCells(payload: Record<string, unknown> | undefined): Partial<PodRow> {
  if (payload === undefined) return { phase: 'gone', ready: '', restarts: 0, ip: '' };
  const status = (payload.status ?? {}) as ToldStatus;
  const containers = status.containerStatuses ?? [];
  const deleted = (payload.metadata as { deletionTimestamp?: string } | undefined)?.deletionTimestamp !== undefined;
  return {
    phase: deleted ? 'Terminating' : (status.phase ?? ''),
    ready: `${containers.filter((c) => c.ready === true).length}/${containers.length}`,
    restarts: containers.reduce((sum, c) => sum + (c.restartCount ?? 0), 0),
    ip: status.podIP ?? '',
  };
}
