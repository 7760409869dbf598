/** The measures themselves: each drives the agent through its manifest folder and listens on MQTT, beside the same CRI calls by hand. */
import { join } from 'node:path';
import type { CriRuntime } from '../../src/cri/runtime.ts';
import type { Agent } from '../device/agent.ts';
import type { Bed } from '../device/bed.ts';
import { sleep } from '../device/process.ts';
import type { Watcher } from '../device/watcher.ts';
import { type ImageSettings, measureImages } from './images.ts';
import { processBooks, spread, timed, wallMs } from './measure.ts';
import { manifest, type PodShape, type RawPod, rawReplace, rawStart, rawStop } from './pods.ts';
import { measureProbes, type ProbeSettings } from './probes.ts';
import { type Row, row } from './report.ts';

export interface BenchSettings {
  readonly repeats: number;
  readonly rounds: number;
  readonly settleMs: number;
  readonly idleMs: number;
  readonly images: ImageSettings;
  readonly probes: ProbeSettings;
}

export interface BenchWorld {
  readonly bed: Bed;
  readonly runtime: CriRuntime;
  readonly watcher: Watcher;
  readonly agent: Agent;
}

interface Told {
  readonly phase: string | undefined;
  readonly containerId: string;
  readonly ready: boolean;
}

/** How long each part of one pod's life took, in ms. */
interface Life {
  readonly started: number;
  readonly running: number;
  readonly replaced: number;
  readonly stopped: number;
}

/** What a pod topic says, cut to what is measured. */
function told(value: unknown): Told {
  const status = (
    value as { status?: { phase?: string; containerStatuses?: { containerID?: string; ready?: boolean; state?: object }[] } } | undefined
  )?.status;
  const [container] = status?.containerStatuses ?? [];
  return { phase: status?.phase, containerId: container?.containerID ?? '', ready: container?.ready === true };
}

export class Bench {
  readonly rows: Row[] = [];
  constructor(
    private readonly world: BenchWorld,
    private readonly settings: BenchSettings,
  ) {}

  get #rawDir(): string {
    return join(this.world.bed.dir, 'raw');
  }
  #topic(name: string): string {
    return this.world.agent.topic(`pods/default/${name}`);
  }

  async #drop(name: string, shape: PodShape = {}): Promise<Told> {
    this.world.agent.drop(`${name}.yaml`, manifest(name, shape));
    return told(await this.world.watcher.until(this.#topic(name), (v) => told(v).phase === 'Running', 60_000));
  }

  async #remove(name: string): Promise<void> {
    this.world.agent.removeManifest(`${name}.yaml`);
    await this.world.watcher.until(this.#topic(name), (v) => v === undefined, 60_000);
  }

  /** Spawn → `online` heard. */
  async startToOnline(): Promise<void> {
    const times: number[] = [];
    for (let i = 0; i < Math.max(3, this.settings.repeats / 2); i++) {
      await this.world.agent.stop();
      await sleep(300);
      const start = performance.now();
      const online = new Promise<void>((resolve) => {
        this.world.watcher.onMessage = (m) => {
          if (
            m.topic === this.world.agent.topic('online') &&
            m.text.includes('"online"') &&
            (JSON.parse(m.text) as { state: string }).state === 'online'
          )
            resolve();
        };
      });
      this.world.agent.start();
      await online;
      times.push(performance.now() - start);
    }
    this.world.watcher.onMessage = undefined;
    this.rows.push(row('start → online', spread(times), { budget: { of: 'value', limit: 1000 } }));
  }

  /** The same life by hand: started, its container replaced, stopped. The sleeps give the shell time to listen to TERM, as below. */
  async #rawLife(name: string, deaf: boolean): Promise<Life> {
    const { runtime } = this.world;
    const start = performance.now();
    const pod = await rawStart(runtime, this.#rawDir, name, { ignoresTerm: deaf });
    const started = performance.now() - start;
    await sleep(300);
    let now = pod;
    const replaced = deaf
      ? Number.NaN
      : await timed(async () => {
          now = await rawReplace(runtime, pod, { image: 'localhost/busybox:2' });
        });
    await sleep(300);
    const stopped = await timed(() => rawStop(runtime, now, deaf ? 2 : 1)); // the kubelet gives no less than 2 s
    await runtime.removeSandbox(pod.sandbox);
    return { started, running: started, replaced, stopped };
  }

  /** A pod's life by manifest and MQTT: dropped in, edited, removed. */
  async #agentLife(name: string, deaf: boolean): Promise<Life> {
    const { agent, watcher, bed } = this.world;
    const wall = wallMs();
    const start = performance.now();
    const first = await this.#drop(name, { ignoresTerm: deaf });
    const started = performance.now() - start;
    const { startedAt } = await bed.cri.containerStatus(first.containerId.replace(/^containerd:\/\//, ''));
    await sleep(300);
    const replaced = deaf
      ? Number.NaN
      : await timed(async () => {
          agent.drop(`${name}.yaml`, manifest(name, { image: 'localhost/busybox:2' }));
          await watcher.until(this.#topic(name), (v) => told(v).ready && told(v).containerId !== first.containerId, 60_000);
        });
    await sleep(300);
    const stopped = await timed(() => this.#remove(name));
    return { started, running: Number(startedAt / 1000n) / 1000 - wall, replaced, stopped };
  }

  /** One pod at a time, by hand and by the agent in turns: what else the machine does meanwhile is fair to both. */
  async onePod(): Promise<void> {
    const raw: Life[] = [];
    const own: Life[] = [];
    for (let i = 0; i <= this.settings.repeats; i++) {
      const lives = [await this.#rawLife(`raw-${i}`, false), await this.#agentLife(`one-${i}`, false)] as const;
      if (i === 0) continue; // everything is warm from here on
      raw.push(lives[0]);
      own.push(lives[1]);
    }
    const rawDeaf: Life[] = [];
    const ownDeaf: Life[] = [];
    for (let i = 0; i < 3; i++) {
      rawDeaf.push(await this.#rawLife(`raw-deaf-${i}`, true));
      ownDeaf.push(await this.#agentLife(`deaf-${i}`, true));
    }
    const of = (lives: readonly Life[], what: keyof Life) => spread(lives.map((l) => l[what]));
    const floor = (lives: readonly Life[], what: keyof Life) => of(lives, what).median;
    this.rows.push(
      row('raw CRI: sandbox, create, start', of(raw, 'started')),
      row('renamed in → running', of(own, 'running'), { floor: floor(raw, 'started'), kubelet: '177 ms, 1.35 ×' }),
      row('renamed in → told Running', of(own, 'started'), {
        floor: floor(raw, 'started'),
        budget: { of: 'ratio', limit: 1.5 },
        kubelet: '655 ms, 5.0 ×',
      }),
      row('edited → replaced and told', of(own, 'replaced'), { floor: floor(raw, 'replaced'), kubelet: 'whole pod, ≤ 15 s' }),
      row('removed → told gone', of(own, 'stopped'), { floor: floor(raw, 'stopped') }),
      row('removed → told gone, deaf to TERM', of(ownDeaf, 'stopped'), { floor: floor(rawDeaf, 'stopped'), kubelet: '2095 ms' }),
    );
  }

  /** 25 manifests at once against the same calls by hand, all 25 side by side too; in turns. */
  async manyPods(): Promise<void> {
    const names = Array.from({ length: 25 }, (_, i) => `many-${i}`);
    const byHand: number[] = [];
    const byAgent: number[] = [];
    for (let round = 0; round < this.settings.rounds; round++) {
      let pods: RawPod[] = [];
      byHand.push(
        await timed(async () => {
          pods = await Promise.all(names.map((n) => rawStart(this.world.runtime, this.#rawDir, `raw-${n}`)));
        }),
      );
      await Promise.all(pods.map((p) => rawStop(this.world.runtime, p, 1).then(() => this.world.runtime.removeSandbox(p.sandbox))));
      await sleep(2_000);
      byAgent.push(
        await timed(async () => {
          for (const name of names) this.world.agent.drop(`${name}.yaml`, manifest(name));
          await this.world.watcher.untilAll(
            '25 pods told Running',
            () => names.every((n) => told(this.world.watcher.values.get(this.#topic(n))).phase === 'Running'),
            120_000,
          );
        }),
      );
      await Promise.all(names.map((n) => this.#remove(n)));
      await sleep(3_000);
    }
    this.rows.push(
      row('25 at once → all told Running', spread(byAgent), {
        floor: spread(byHand).median,
        budget: { of: 'ratio', limit: 1.3 },
        kubelet: '6.5 s (sequential calls: 3.3 s)',
      }),
    );
  }

  /** 20 quiet pods, long after the last change. */
  async quiet(): Promise<void> {
    const names = Array.from({ length: 20 }, (_, i) => `quiet-${i}`);
    await this.world.agent.restart(); // a fresh process: what was measured before is not what a quiet node carries
    for (const name of names) this.world.agent.drop(`${name}.yaml`, manifest(name));
    await this.world.watcher.untilAll(
      '20 pods told Running',
      () => names.every((n) => told(this.world.watcher.values.get(this.#topic(n))).phase === 'Running'),
      120_000,
    );
    await sleep(this.settings.settleMs);
    const before = processBooks(this.world.agent.pid);
    await sleep(this.settings.idleMs);
    const after = processBooks(this.world.agent.pid);
    const minutes = this.settings.idleMs / 60_000;
    this.rows.push(
      {
        what: '20 quiet pods: RSS',
        unit: 'MB',
        value: after.rssBytes / 1e6,
        budget: { of: 'value', limit: 75 },
        kubelet: '83 MB (30 pods)',
      },
      { what: '20 quiet pods: peak RSS', unit: 'MB', value: after.peakRssBytes / 1e6 },
      {
        what: '20 quiet pods: CPU',
        unit: 'ms/s',
        value: (after.cpuMs - before.cpuMs) / (this.settings.idleMs / 1000),
        budget: { of: 'value', limit: 4 },
        kubelet: '20 ms/s (30 pods)',
      },
      {
        what: '20 quiet pods: written',
        unit: 'bytes/min',
        value: (after.writtenBytes - before.writtenBytes) / minutes,
        budget: { of: 'value', limit: 0 },
      },
    );
    await Promise.all(names.map((n) => this.#remove(n)));
  }

  /** An update over a thin link, a large archive, a changed ConfigMap. */
  async images(): Promise<void> {
    this.rows.push(...(await measureImages(this.world, this.settings.images)));
  }

  /** Many pods with http probes each second, beside the same requests by bare node:http. */
  async probes(): Promise<void> {
    this.rows.push(...(await measureProbes(this.world, this.settings.probes)));
  }
}
