/**
 * One seed: random edits, removals, re-adds, crashes, runtime errors and hangs, lost events and agent restarts on four pods, in virtual time;
 * then quiet, and the world must be what the manifests say. The seed decides everything, so a failing one can be run alone:
 * `SEED=17 node --import tsx --test test/scenario/random.test.ts`.
 */
import type { ContainerConfig, SandboxConfig } from '../../src/container/runtime.ts';
import { RuntimeError } from '../../src/container/runtime.ts';
import { manifest, World } from './world.ts';

/** mulberry32: small, and good enough to decide what happens next. */
export function randomOf(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const names = ['ant', 'bee', 'cat', 'dog'] as const;
type Kind = 'plain' | 'two' | 'init' | 'sidecar' | 'never' | 'onFailure';
interface Wanted {
  readonly kind: Kind;
  readonly tag: number;
  readonly label: number;
}

/** How a process behaves stands in its command, so that an edit of the manifest changes it. */
const container = (name: string, tag: number, ...words: string[]) =>
  `{name: ${name}, image: "localhost/busybox:${tag}", command: [run, ${words.map((w) => JSON.stringify(w)).join(', ')}]}`;

function textOf(name: string, w: Wanted): string {
  const labels = { label: `v${w.label}` };
  const grace = `terminationGracePeriodSeconds: ${name === 'dog' ? 9 : 4}`;
  const stubborn = name === 'dog' ? ['ignore'] : [];
  switch (w.kind) {
    case 'plain':
      return manifest(name, { labels, lines: [grace], containers: [container('app', w.tag, 'stay', ...stubborn)] });
    case 'two':
      return manifest(name, {
        labels,
        lines: [grace],
        containers: [container('app', w.tag, 'stay', ...stubborn), container('more', 1, 'stay')],
      });
    case 'init':
      return manifest(name, {
        labels,
        lines: [grace, 'initContainers:', `- ${container('first', 1, 'exit=0')}`],
        containers: [container('app', w.tag, 'stay')],
      });
    case 'sidecar': {
      const side = container('side', 1, 'stay').replace(/}$/, ', restartPolicy: Always}');
      return manifest(name, {
        labels,
        lines: [grace, 'initContainers:', `- ${side}`],
        containers: [container('app', w.tag, 'stay', ...stubborn)],
      });
    }
    case 'never':
      return manifest(name, { labels, lines: [grace, 'restartPolicy: Never'], containers: [container('app', w.tag, 'exit=0', 'once')] });
    case 'onFailure':
      return manifest(name, { labels, lines: [grace, 'restartPolicy: OnFailure'], containers: [container('app', w.tag, 'exit=0')] });
  }
}

const kinds: readonly Kind[] = ['plain', 'two', 'init', 'sidecar', 'never', 'onFailure'];
const appsOf: Readonly<Record<Kind, readonly string[]>> = {
  plain: ['app'],
  two: ['app', 'more'],
  init: ['app'],
  sidecar: ['app', 'side'],
  never: [],
  onFailure: [],
};
const faultyMethods = [
  'runSandbox',
  'createContainer',
  'startContainer',
  'stopContainer',
  'stopSandbox',
  'removeContainer',
  'listContainers',
  'containerStatus',
  'sandboxStatus',
  'imageStatus',
] as const;

export class RandomStory {
  readonly log: string[] = [];
  readonly faults: string[] = [];
  readonly world: World;
  #wanted = new Map<string, Wanted>();
  #random: () => number;
  #releases: (() => void)[] = [];
  #started = new Set<string>();
  #onceStarted = new Set<string>();

  constructor(readonly seed: number) {
    this.#random = randomOf(seed);
    this.world = new World({ random: this.#random, latencyMs: 1 + Math.floor(this.#random() * 40) });
    this.world.runtime.onStart((name, config, pod) => {
      if (config.command.includes('once')) this.#countStart(pod, config);
      return behaviour(name, config, pod);
    });
    this.world.onTold.push((topic, payload) => this.#judgeTold(topic, payload));
  }

  /** Runs the story; the faults found, in sentences. */
  async run(steps = 40): Promise<readonly string[]> {
    const { world } = this;
    await world.start();
    for (let i = 0; i < steps; i++) {
      await this.#step();
      await world.advance(this.#random() < 0.4 ? this.#random() * 0.5 : this.#random() * 25);
      this.#noteStarts();
    }
    for (const release of this.#releases) release();
    world.runtime.setDown(false);
    world.folder.loseTicks = false;
    await world.advance(1200);
    this.#judgeEnd();
    await this.#judgeQuiet();
    this.faults.push(...world.runtime.violations);
    return this.faults;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  async #step(): Promise<void> {
    const { world } = this;
    const name = this.#pick(names);
    const before = this.#wanted.get(name);
    const dice = this.#random();
    const say = (what: string) => this.log.push(`${(world.clock.monotonic() / 1000 - 1000).toFixed(1)}s ${what}`);
    if (dice < 0.3 || before === undefined) {
      const kind = before === undefined || this.#random() < 0.3 ? this.#pick(kinds) : before.kind;
      const next: Wanted = { kind, tag: 1 + Math.floor(this.#random() * 3), label: Math.floor(this.#random() * 3) };
      say(`write ${name} ${JSON.stringify(next)}`);
      // an edit in place of what still runs starts it anew
      this.#onceStarted.clear();
      this.#wanted.set(name, next);
      world.folder.write(`${name}.yaml`, textOf(name, next));
    } else if (dice < 0.42) {
      say(`remove ${name}`);
      this.#wanted.delete(name);
      world.folder.remove(`${name}.yaml`);
    } else if (dice < 0.47) {
      say(`rename the file of ${name}`);
      world.folder.remove(`${name}.yaml`);
      world.folder.write(`${name}.yaml`, `# moved\n${textOf(name, before)}`);
    } else if (dice < 0.52) {
      say(`break the file of ${name}, and mend it`);
      world.folder.write(`${name}.yaml`, 'kind: Pod\n  oops');
      await world.advance(this.#random() * 3);
      world.folder.write(`${name}.yaml`, textOf(name, before));
    } else if (dice < 0.62) {
      const alive = [...world.runtime.containers.values()].filter((c) => c.state === 'running');
      const victim = alive.length > 0 ? this.#pick(alive) : undefined;
      if (victim === undefined) return;
      say(`container ${victim.config.name} of ${victim.podUid} crashes`);
      world.runtime.exit(victim.id, 1);
    } else if (dice < 0.635) {
      say('somebody removes the containers of completed pods');
      this.#removeCompleted();
    } else if (dice < 0.66) {
      const ready = [...world.runtime.sandboxes.values()].filter((s) => s.state === 'ready');
      if (ready.length === 0) return;
      const victim = this.#pick(ready);
      say(`sandbox of ${victim.config.name} dies`);
      world.runtime.killSandbox(victim.id);
    } else if (dice < 0.76) {
      const method = this.#pick(faultyMethods);
      const when = this.#random() < 0.5 ? 'before' : 'after';
      say(`next ${method} fails ${when} its deed`);
      world.runtime.failNext(method, new RuntimeError('unknown', `${method}: no luck`), 1 + Math.floor(this.#random() * 2), when);
    } else if (dice < 0.82) {
      const method = this.#pick(faultyMethods);
      say(`${method} hangs`);
      let waits = 1;
      const release = world.runtime.hang(method, () => waits-- > 0);
      this.#releases.push(release);
      if (this.#random() < 0.7) world.clock.sleep(this.#random() * 60_000).then(release, () => {});
    } else if (dice < 0.86) {
      const n = 1 + Math.floor(this.#random() * 6);
      say(`${n} events are lost`);
      world.runtime.loseEvents(n);
    } else if (dice < 0.89) {
      say('the event stream breaks');
      world.runtime.breakEvents();
    } else if (dice < 0.92) {
      say('the runtime is down for a while');
      world.runtime.setDown(true);
      await world.advance(this.#random() * 30);
      world.runtime.setDown(false);
    } else if (dice < 0.98) {
      say('kill -9 of the agent');
      await world.restart();
    } else {
      say('power cut');
      await world.reboot();
    }
  }

  /** What was never told as ended may have been anything, and nobody could know that it ran: it stays. */
  #removeCompleted(): void {
    const { containers } = this.world.runtime;
    const ended = new Set(this.world.toldPods().flatMap((p) => (p.status.phase === 'Succeeded' ? [p.metadata.uid] : [])));
    for (const c of [...containers.values()]) if (c.state === 'exited' && ended.has(c.podUid)) containers.delete(c.id);
  }

  /** A Never pod runs once, whatever is lost. */
  #countStart(pod: SandboxConfig, config: ContainerConfig): void {
    const once = `${pod.uid} ${config.userSpecifiedImage}`;
    if (this.#onceStarted.has(once)) this.faults.push(`${pod.name} ${pod.uid} is to run once, and starts again`);
    this.#onceStarted.add(once);
  }

  #noteStarts(): void {
    for (const c of this.world.runtime.containers.values()) if (c.startedAt !== undefined) this.#started.add(c.id);
  }

  /** A container told as running has been started, and what is told as ended ended like that. */
  #judgeTold(topic: string, payload: string | undefined): void {
    if (payload === undefined || !topic.includes('/pods/')) return;
    this.#noteStarts();
    const pod = JSON.parse(payload) as import('../../src/api/status.ts').ToldPod;
    for (const c of [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])]) {
      const id = c.containerID?.replace('containerd://', '') ?? '';
      if (c.state.running !== undefined && !this.#started.has(id))
        this.faults.push(`${topic}: ${c.name} told running, but ${id} never started`);
      const real = [...this.world.runtime.containers.values()].find((r) => r.id === id);
      const told = c.state.terminated;
      if (told !== undefined && real?.state === 'exited' && told.reason !== 'ContainerStatusUnknown' && told.exitCode !== real.exitCode) {
        this.faults.push(`${topic}: ${c.name} told exit ${told.exitCode}, was ${real.exitCode}`);
      }
    }
  }

  #judgeEnd(): void {
    const { world, faults } = this;
    for (const name of names) {
      const wanted = this.#wanted.get(name);
      const told = world.pod(name);
      const sandboxes = [...world.runtime.sandboxes.values()].filter((s) => s.config.name === name);
      if (wanted === undefined) {
        if (sandboxes.length > 0) faults.push(`${name} was removed, and ${sandboxes.length} sandboxes of it are left`);
        if (told !== undefined) faults.push(`${name} was removed, and is still told`);
        if (world.sync(name) !== undefined) faults.push(`${name} was removed, and its sync topic is still there`);
        continue;
      }
      const running = world.runtime.running().filter((n) => n.startsWith(`${name}/`));
      const expected = appsOf[wanted.kind].map((c) => `${name}/${c}`).sort();
      if (running.join() !== expected.join()) faults.push(`${name} should run [${expected}] and runs [${running}]`);
      if (told === undefined) {
        faults.push(`${name} is not told`);
        continue;
      }
      if (told.metadata.labels?.label !== `v${wanted.label}`) faults.push(`${name} is told with an old label`);
      if (expected.length === 0) {
        if (told.status.phase !== 'Succeeded' && told.status.phase !== 'Failed')
          faults.push(`${name} is told ${told.status.phase}, and has ended`);
        continue;
      }
      if (told.status.phase !== 'Running') faults.push(`${name} is told ${told.status.phase}, and runs`);
      const app = world.runtime.find(name, 'app');
      if (app?.config.userSpecifiedImage !== `localhost/busybox:${wanted.tag}`) faults.push(`${name} runs an old image`);
      const status = told.status.containerStatuses?.find((c) => c.name === 'app');
      if (status?.containerID !== `containerd://${app?.id}`) faults.push(`${name}/app is told as ${status?.containerID}, is ${app?.id}`);
      if (status?.ready !== true) faults.push(`${name}/app runs and is told not ready`);
      if (sandboxes.filter((s) => s.state === 'ready').length !== 1) faults.push(`${name} has ${sandboxes.length} sandboxes`);
    }
  }

  /** In quiet times, agent restarts included, nothing is touched. */
  async #judgeQuiet(): Promise<void> {
    const { world } = this;
    const deeds = world.runtime.deeds.length;
    await world.advance(300);
    this.#removeCompleted();
    await world.restart();
    await world.advance(300);
    const more = world.runtime.calls.filter((c) => /^(run|stop|remove|create|start|pull)/.test(c.method)).slice(deeds);
    if (more.length > 0) this.faults.push(`in quiet times: ${more.map((c) => c.method).join(', ')}`);
  }
}

function behaviour(_name: string, config: ContainerConfig, _pod: SandboxConfig) {
  const words = config.command;
  const exit = words.find((w) => w.startsWith('exit='));
  return {
    ...(words.includes('ignore') && { ignoresTerm: true }),
    ...(exit !== undefined && { exitAfterMs: 3000, exitCode: Number(exit.slice(5)) }),
  };
}
