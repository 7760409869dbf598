/**
 * What the processes of a random story do, by the words of their commands, and what must hold of them at every moment: a Never pod runs once,
 * an init container never beside what comes after it, a preStop once in an agent's life, one holder of a host port, and readiness is told
 * as the probes found it.
 */
import type { ToldPod } from '../../src/api/status.ts';
import type { ContainerConfig, SandboxConfig } from '../../src/container/runtime.ts';
import type { ProcessBehaviour } from '../fakes/runtimeRecords.ts';
import type { World } from './world.ts';

export type Health = 'well' | 'failing' | 'hanging';
export type Asked = 'startup' | 'liveness' | 'readiness' | 'postStart';

type Answer = ReturnType<NonNullable<ProcessBehaviour['exec']>>;

/** One start of a container. */
interface Process {
  readonly who: string;
  /** It has a readiness probe; what is told of a pod leaves probes out. */
  readonly probed: boolean;
  /** What its readiness probe was answered so far. */
  readonly answers: Set<Health>;
  /** It was told as ready. */
  ready: boolean;
  /** The agents that ran its preStop. */
  readonly stoppedBy: Set<unknown>;
}

const answerOf: Readonly<Record<Health, Answer>> = { well: {}, failing: { exitCode: 1 }, hanging: { takesMs: 20_000 } };

export class Processes {
  /** Of Never pods: what has run. */
  readonly onceStarted = new Set<string>();
  #debugStarted = new Set<string>();
  #health = new Map<string, Health>();
  #processes = new Map<string, Process>();

  constructor(
    private readonly world: World,
    private readonly fault: (text: string) => void,
  ) {
    world.runtime.onStart((name, config, pod) => this.#start(name, config, pod));
  }

  set(pod: string, what: Asked, health: Health): void {
    this.#health.set(`${pod} ${what}`, health);
  }

  health(pod: string, what: Asked): Health {
    return this.#health.get(`${pod} ${what}`) ?? 'well';
  }

  /** What would keep containers from running is well again; readiness stays as it is. */
  recover(): void {
    for (const key of this.#health.keys()) if (!key.endsWith(' readiness')) this.#health.set(key, 'well');
  }

  /** Names of pods that have it now. */
  holdersOf(port: number): string[] {
    const { sandboxes, containers } = this.world.runtime;
    const running = new Set([...containers.values()].filter((c) => c.state === 'running').map((c) => c.sandboxId));
    const has = ({ portMappings }: SandboxConfig) => portMappings.some((m) => m.hostPort === port);
    return [...sandboxes.values()].filter((s) => running.has(s.id) && has(s.config)).map((s) => s.config.name);
  }

  /** Ready is told only of what has said so, and once told it stays until the probe says otherwise: an agent's restart is no answer. */
  judgeTold(pod: ToldPod): void {
    for (const { containerID = '', state, ready } of pod.status.containerStatuses ?? []) {
      const process = this.#processes.get(containerID.replace('containerd://', ''));
      if (process === undefined || state.running === undefined) continue;
      if (ready && process.probed && !process.answers.has('well')) this.fault(`${process.who} is told ready, and was never found ready`);
      if (!ready && process.ready && process.answers.size < 2) this.fault(`${process.who} is told unready, and was always found ready`);
      process.ready ||= ready;
    }
  }

  #start(name: string, config: ContainerConfig, pod: SandboxConfig): ProcessBehaviour {
    const id = [...this.world.runtime.containers.values()].find((c) => c.config === config)?.id ?? '';
    const words = config.command;
    const who = `${pod.name}/${name} ${id}`;
    const process: Process = { who, probed: words.includes('probed'), answers: new Set(), ready: false, stoppedBy: new Set() };
    this.#processes.set(id, process);
    this.#judgeStart(name, config, pod, who);
    const exit = words.find((w) => w.startsWith('exit='));
    return {
      ...(words.includes('ignore') && { ignoresTerm: true }),
      ...(exit !== undefined && { exitAfterMs: 3000, exitCode: Number(exit.slice(5)) }),
      exec: ([what = '', word = '']) => this.#answer(what, word, process),
    };
  }

  #answer(what: string, word: string, process: Process): Answer {
    if (what === 'preStop') {
      const agent = this.world.kubelet;
      if (process.stoppedBy.has(agent)) this.fault(`the preStop of ${process.who} ran twice`);
      process.stoppedBy.add(agent);
      return { quick: { takesMs: 300 }, long: { takesMs: 3000 }, fails: { exitCode: 1 }, hangs: { takesMs: 600_000 } }[word];
    }
    const health = this.health(word, what as Asked);
    if (what === 'readiness') process.answers.add(health);
    // a hook has no time-out
    return what === 'postStart' && health === 'well' ? { takesMs: 700 } : answerOf[health];
  }

  #judgeStart(name: string, config: ContainerConfig, pod: SandboxConfig, who: string): void {
    if (config.command.includes('once')) this.#once(this.onceStarted, `${pod.uid} ${config.userSpecifiedImage}`, who);
    if (name.startsWith('debug-')) this.#once(this.#debugStarted, `${pod.uid} ${name}`, who);
    const beside = [...this.world.runtime.containers.values()].filter((c) => c.state === 'running' && c.podUid === pod.uid);
    const runs = (other: string): boolean => beside.some((c) => c.config.name === other);
    if ((name === 'app' || name === 'more') && runs('first')) this.fault(`${who} is started beside its init container`);
    if (name === 'first' && (runs('app') || runs('more'))) this.fault(`${who} is started beside its app`);
    for (const { hostPort } of pod.portMappings) {
      const other = this.holdersOf(hostPort).find((n) => n !== pod.name);
      if (hostPort > 0 && other !== undefined) this.fault(`${who} is started with the port ${hostPort} of ${other}`);
    }
  }

  #once(started: Set<string>, what: string, who: string): void {
    if (started.has(what)) this.fault(`${who} is to run once, and starts again`);
    started.add(what);
  }
}
