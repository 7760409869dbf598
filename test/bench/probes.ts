/**
 * What probing costs: pods with two http probes each second, in the whole agent on real containerd, beside the same requests by bare
 * node:http. The pods are in the host's network and their probes ask one server, a process of its own, which sees when each probe comes.
 * Agent and bare client run at the same time, under the same V8 flags and against the same server: what else the machine does is fair
 * to both. Of the agent everything counts, also what it does when it does not probe.
 */
import { request } from 'node:http';
import { join } from 'node:path';
import { type Daemon, freePort, sleep, startDaemon, until } from '../device/process.ts';
import { type ProcessBooks, processBooks, spread } from './measure.ts';
import type { BenchWorld } from './measures.ts';
import { type Row, row } from './report.ts';

export interface ProbeSettings {
  readonly pods: number;
  readonly warmMs: number;
  readonly windowMs: number;
  readonly windows: number;
}

interface Seen {
  readonly ms: number;
  readonly paths: readonly { readonly path: string; readonly count: number; readonly longestMs: number }[];
}

const here = (name: string): string => new URL(name, import.meta.url).pathname;
/** It gives a bundle the V8 flags of the installed agent. */
const wrapper = here('../../systemd/podsched');
const periodMs = 1_000;

const podName = (i: number): string => `probed-${i}`;
const pathsOf = (i: number): readonly [string, string] => [`/${podName(i)}/live`, `/${podName(i)}/ready`];

function probedManifest(i: number, port: number): string {
  const [live, ready] = pathsOf(i);
  // patient: on a busy machine a probe may run into its time-out, and a restart is not what is measured
  const probe = (path: string) => ({ httpGet: { host: '127.0.0.1', port, path }, periodSeconds: periodMs / 1000, failureThreshold: 600 });
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: podName(i) },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: 'localhost/busybox:1',
          command: ['sh', '-c', "trap 'exit 0' TERM; sleep 2147483647 & wait"],
          livenessProbe: probe(live),
          readinessProbe: probe(ready),
        },
      ],
    },
  });
}

/** The pods, and the server their probes ask. */
export class ProbedPods {
  #target: Daemon | undefined;
  #port = 0;

  constructor(
    private readonly world: BenchWorld,
    private readonly count: number,
  ) {}

  get port(): number {
    return this.#port;
  }

  /** Paths of what a bare client asks: others than the probes', so that both can be told apart. */
  get barePaths(): readonly string[] {
    return this.#each((i) => pathsOf(i).map((path) => `/bare${path}`)).flat();
  }

  #each<T>(of: (i: number) => T): T[] {
    return Array.from({ length: this.count }, (_, i) => of(i));
  }

  /** Resolves when all pods are told ready. */
  async start(): Promise<void> {
    const { agent, watcher, bed } = this.world;
    this.#port = await freePort();
    this.#target = startDaemon(process.execPath, [here('probeTarget.mjs'), String(this.#port)], { logFile: join(bed.dir, 'target.log') });
    await until('the target to serve', 10_000, () =>
      this.seen().then(
        () => true,
        () => false,
      ),
    );
    for (let i = 0; i < this.count; i++) agent.drop(`${podName(i)}.yaml`, probedManifest(i, this.#port));
    const isReady = (value: unknown): boolean =>
      (value as { status?: { containerStatuses?: { ready?: boolean }[] } } | undefined)?.status?.containerStatuses?.[0]?.ready === true;
    const topics = this.#each((i) => agent.topic(`pods/default/${podName(i)}`));
    const notReady = (): string[] => topics.filter((topic) => !isReady(watcher.values.get(topic)));
    await watcher.untilAll(
      () => `${this.count} probed pods ready (not yet: ${notReady().join(' ').slice(0, 500)})`,
      () => notReady().length === 0,
      180_000,
    );
  }

  /** How often each path was asked since the last such question. */
  seen(): Promise<Seen> {
    return new Promise((resolve, reject) => {
      const req = request({ host: '127.0.0.1', port: this.#port, path: '/-/seen', agent: false }, (res) => {
        let text = '';
        res.on('data', (part: Buffer) => {
          text += part.toString();
        });
        res.on('end', () => resolve(JSON.parse(text) as Seen));
      });
      req.on('error', reject);
      req.end();
    });
  }

  /** Of the probes: how many came each second, and how late the latest came (ms after its moment). */
  probesOf(seen: Seen): { readonly perSecond: number; readonly latestMs: number } {
    const own = seen.paths.filter(({ path }) => !path.startsWith('/bare/'));
    if (own.length !== 2 * this.count) throw new Error(`${own.length} of ${2 * this.count} probes were heard of`);
    const asked = own.reduce((sum, { count }) => sum + count, 0);
    return { perSecond: (asked * 1000) / seen.ms, latestMs: Math.max(...own.map((p) => p.longestMs)) - periodMs };
  }

  async end(): Promise<void> {
    const { agent, watcher } = this.world;
    for (const i of this.#each((n) => n)) agent.removeManifest(`${podName(i)}.yaml`);
    const topics = this.#each((i) => agent.topic(`pods/default/${podName(i)}`));
    await watcher.untilAll('the probed pods gone', (values) => topics.every((t) => !values.has(t)), 120_000);
    await this.close();
  }

  /** The pods are somebody else's to end. */
  async close(): Promise<void> {
    await this.#target?.end();
  }
}

const perSecond = (before: ProcessBooks, after: ProcessBooks, ms: number): number => ((after.cpuMs - before.cpuMs) * 1000) / ms;

/** The rows of probing; the pods are gone afterwards. */
export async function measureProbes(world: BenchWorld, settings: ProbeSettings): Promise<Row[]> {
  const { agent, bed } = world;
  const pods = new ProbedPods(world, settings.pods);
  let bare: Daemon | undefined;
  try {
    await pods.start();
    bare = startDaemon(wrapper, [String(pods.port), ...pods.barePaths], {
      logFile: join(bed.dir, 'bare.log'),
      env: { ...process.env, PODSCHED_BUNDLE: here('bareProbes.mjs') },
    });
    await sleep(settings.warmMs);
    const own: number[] = [];
    const floor: number[] = [];
    const late: number[] = [];
    await pods.seen();
    for (let i = 0; i < settings.windows; i++) {
      const before = [processBooks(agent.pid), processBooks(bare.pid), performance.now()] as const;
      await sleep(settings.windowMs);
      const after = [processBooks(agent.pid), processBooks(bare.pid), performance.now()] as const;
      own.push(perSecond(before[0], after[0], after[2] - before[2]));
      floor.push(perSecond(before[1], after[1], after[2] - before[2]));
      const seen = await pods.seen();
      const { perSecond: rate, latestMs } = pods.probesOf(seen);
      const bareRate = (seen.paths.filter((p) => p.path.startsWith('/bare/')).reduce((sum, { count }) => sum + count, 0) * 1000) / seen.ms;
      // a cost is one of the whole work only
      if (Math.abs(rate / bareRate - 1) > 0.02)
        throw new Error(`${rate.toFixed(1)} probes came each second, and ${bareRate.toFixed(1)} bare requests`);
      late.push(latestMs);
    }
    const { rssBytes } = processBooks(agent.pid);
    const what = `${settings.pods} pods × 2 http probes at 1 s`;
    return [
      row(`${what}: CPU`, spread(own), { unit: 'ms/s', floor: spread(floor).median, budget: { of: 'ratio', limit: 1.3 } }),
      row(`${what}: latest probe`, spread([Math.max(...late)]), { budget: { of: 'value', limit: 1_000 } }),
      { what: `${what}: RSS`, unit: 'MB', value: rssBytes / 1e6 },
    ];
  } finally {
    await bare?.end();
    await pods.end();
  }
}
